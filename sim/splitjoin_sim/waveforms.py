"""Waveform files of simulated circuits: which there are, and how a model is built that writes one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from filelock import lock_descriptor

from splitjoin.base.errors import DeviceError

from .runtime import UNTRACED, objects
from .tools import Verilator

#: Formats of waveform files, by their suffix.
TRACES = (".fst", ".vcd")

_HERE = Path(__file__).parent
_HARNESS, _TRACED = _HERE / "harness.cpp", _HERE / "traced.cpp"
_FST = _HERE / "fst"


@dataclass(frozen=True)
class ModelKind:
    """Recipe of models without waveforms, or with those of one format.

    Attributes:
        harness: Source of the functions that Python calls.
        translator: Options of Verilator.
        compiler: Options of the compiler, for the model and for the writer.
        writer: The source of the writer in Verilator's run-time library, if any.
        libraries: Libraries of the system to link with.
        key: Texts on which these models depend, beside what all models depend on.
    """

    harness: Path = _HARNESS
    translator: tuple[str, ...] = ()
    compiler: tuple[str, ...] = UNTRACED
    writer: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    key: tuple[str, ...] = ()

    def objects(self, verilator: Verilator, compiler: tuple[str, ...], level: str) -> list[Path]:
        """The run-time library as objects, compiled at ``level``: but for the writer the same for all models."""
        return [*objects(verilator, compiler, level), *objects(verilator, compiler, level, self.writer, self.compiler)]


def model_kind(trace: str | None, verilator: Verilator) -> ModelKind:
    """The kind of model that writes waveforms with the suffix ``trace``; without it, the one that writes none."""
    if trace is None:
        return ModelKind()
    name = trace[1:]
    compiler: tuple[str, ...] = ("-DVM_TRACE=1", f"-DVM_TRACE_FST={int(name == 'fst')}",
                                 f"-DVM_TRACE_VCD={int(name == 'vcd')}")
    libraries: tuple[str, ...] = ()
    if name == "fst" and (verilator.root / "include" / "fstcpp").is_dir():
        # Its writer asks for two libraries, whose headers few machines have: ours stand for them.
        compiler += (f"-I{_FST}", f"-DSPLITJOIN_FST=0x{_digest(sorted(_FST.glob('*.h')))}")
    elif name == "fst":
        libraries = ("-lz",)  # Verilator before 5.042 has a writer that needs all of zlib
    return ModelKind(_TRACED, (f"--trace-{name}",), compiler, (f"verilated_{name}_c.cpp",), libraries,
                     (trace, _digest([_TRACED, *_FST.glob("*.h")])))


def check_trace(device: str, trace: object, formats: Iterable[str] = TRACES) -> None:
    """Raise `DeviceError` unless ``trace``, a waveform file, is None or a path in one of ``formats``."""
    if trace is None:
        return
    endings = " or ".join(formats)
    if not isinstance(trace, str | os.PathLike) or Path(trace).suffix not in formats:
        raise DeviceError(f"trace of the device {device!r} must be a path that ends in {endings}, not {trace!r}")


def trace_file(path: str | os.PathLike[str]) -> IO[bytes]:
    """The waveform file ``path``, made if need be, and locked until it is closed.

    Raises `DeviceError` if it cannot be written, or if another session writes it.
    """
    try:
        # Not emptied: it may be another session's, and who writes it empties it.
        file = open(path, "ab")  # noqa: SIM115  # the caller closes it
    except OSError as error:
        raise DeviceError(f"the waveform file {str(path)!r} cannot be written: {error.strerror}") from None
    try:
        locked = lock_descriptor(file.fileno(), blocking=False)
    except OSError:  # the platform or the file system has no locks
        locked = True
    if not locked:
        file.close()
        raise DeviceError(f"another session is writing the waveform file {str(path)!r}; a file holds the waveforms "
                          f"of one session, so close that one first, or run in one partition") from None
    return file


def _digest(paths: Iterable[Path]) -> str:
    return hashlib.sha256("\0".join(path.read_text() for path in paths).encode()).hexdigest()[:15]
