"""The device ``sim``: the circuit compiled by Verilator, cycle-accurate, in this process."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from splitjoin.base.errors import DeviceError
from splitjoin.circuit.driver import CircuitDevice, DeviceStalled, Transport
from splitjoin.circuit.encode import Words, single_items
from splitjoin.circuit.sources import Sources
from splitjoin.circuit.wire import Configuration
from splitjoin.engines.device import Items, joined_items
from splitjoin_hw.top import padded

from .build import library
from .latency import LatencyLog
from .memory import EXTERNAL, SimulatedMemory
from .stalls import check_pace, check_patience, check_stalls, patience_for
from .waveforms import check_trace, trace_file

__all__ = ["ModelTransport", "SimDevice"]

_SENT, _END, _FULL, _STUCK, _PAUSED = range(5)
#: Items received per call of the model.
_ROOM = 1 << 16
#: Cycles between two checks for signals (Ctrl-C) of this process.
_PAUSE = 1 << 21


@dataclass(frozen=True, kw_only=True)
class SimDevice(CircuitDevice):
    """Cycle-accurate simulation. Parameters as of `CircuitDevice`, and:

    Attributes:
        seed: Seed of the random stalls.
        stall_in, stall_out: Share of cycles, 0 ≤ share < 1, in which the input pauses, and in which the
            host does not read.
        pace: Records that come in a cycle while there are records to send, from 0 to 1, and wait in front of the input;
            None for one as soon as the last is accepted.
        patience: Cycles without any transfer after which the circuit counts as stuck; None for the most that the
            longest scan and the longest pause can take.
        progress: True to show a progress bar on a terminal.
        trace: The file that gets the waveforms of a session, .fst or .vcd; None for none. Its model is another one,
            which runs slower.
        external: The memory of windows that do not lie in block RAM (parameter ``memory``).
    """

    name: ClassVar[str] = "sim"
    simulated: ClassVar[bool] = True

    seed: int = 0
    stall_in: float = 0.0
    stall_out: float = 0.0
    pace: float | None = None
    patience: int | None = None
    progress: bool = False
    trace: str | os.PathLike[str] | None = None
    external: SimulatedMemory = EXTERNAL

    def __post_init__(self) -> None:
        super().__post_init__()
        check_stalls(self.seed, self.stall_in, self.stall_out)
        check_pace(self.pace)
        check_patience(self.patience)
        check_trace(self.name, self.trace)

    def _connect(self, config: Configuration) -> Transport:
        patience = self.patience or patience_for(config, max(self.stall_in, self.stall_out), self.pace, self.external)
        model = library(config, None if self.trace is None else Path(self.trace).suffix)
        return ModelTransport(model, config, seed=self.seed, stall_in=self.stall_in, stall_out=self.stall_out,
                              pace=self.pace, patience=patience, progress=self.progress, trace=self.trace,
                              external=self.external)


class ModelTransport(Transport):
    """A compiled model, loaded as a shared library."""

    def __init__(self, path: Path, config: Configuration, *, seed: int, stall_in: float, stall_out: float,
                 patience: int, pace: float | None = None, progress: bool = False,
                 trace: str | os.PathLike[str] | None = None,
                 external: SimulatedMemory = EXTERNAL):
        self._config, self._patience, self._progress = config, patience, progress
        self._lib = _load(path, memory=config.memory != "bram")
        self._trace = None if trace is None else trace_file(trace)
        if trace is not None:
            self._lib.sj_trace(os.fsencode(trace))
        share = [int(x * 2**32) for x in (stall_in, stall_out)]
        self._model = ctypes.c_void_p(self._lib.sj_open(seed, *share, pace or 0.0))
        if config.memory != "bram":
            fails = -1 if external.fails is None else external.fails
            self._lib.sj_memory(self._model, external.latency, external.interval, external.reorder,
                                int(external.stall * 2**32), fails % 2**64)
        self._out_words = padded(config.output_record) // 32
        self._log = LatencyLog()

    @property
    def _open_model(self) -> ctypes.c_void_p:
        """The model. Raises `DeviceError` once it is closed."""
        if not self._model:
            raise DeviceError("the simulated circuit is closed; push, and read counters, before the session is closed")
        return self._model

    def read(self, address: int) -> int:
        return int(self._lib.sj_read(self._open_model, address))

    def write(self, address: int, word: int) -> None:
        self._lib.sj_write(self._open_model, address, word)

    def transfer(self, records: Words, *, until_end: bool) -> Items:
        return self.transfer_from(records, np.zeros(len(records), np.intp), until_end=until_end)

    def transfer_from(self, records: Words, sources: Sources, *, until_end: bool) -> Items:
        n = len(records)
        in_words = padded(self._config.input_record) // 32
        number = np.argsort(sources, kind="stable").astype(np.uint64)  # the records of source after source
        block = np.zeros((n, in_words), np.uint32)
        block[:, :records.shape[1]] = records[number]
        end = np.cumsum(np.bincount(sources, minlength=self._config.sources)).astype(np.uint64)
        begin = np.concatenate([np.zeros(1, np.uint64), end[:-1]])
        behind, start = begin.copy(), self._lib.sj_cycle(self._open_model)
        sent_cycles = np.zeros(n, np.uint64)
        out: list[Items] = []
        with tqdm(total=n, unit=" tuples", desc="simulating", disable=None if self._progress else True,
                  leave=False) as bar:
            while True:
                words = np.empty((_ROOM, self._out_words), np.uint32)
                cycles = np.empty(_ROOM, np.uint64)
                received, before = ctypes.c_uint64(), int(behind.sum())
                why = self._lib.sj_run(
                    self._open_model, _pointer(block), _pointer(number), start, _pointer(end), _pointer(behind),
                    _pointer(sent_cycles), _pointer(words), _ROOM, ctypes.byref(received), _pointer(cycles),
                    int(until_end), _PAUSE, self._patience)
                bar.update(int(behind.sum()) - before)
                items, record = single_items(words[: received.value], self._config)
                out.append(items)
                self._log.received(items, cycles[record])
                if why == _STUCK:
                    sent, cycle = int((behind - begin).sum()), self._lib.sj_cycle(self._open_model)
                    raise DeviceStalled(f"the simulated circuit made no progress for {self._patience} cycles (at "
                                        f"cycle {cycle}, {sent} of {n} records sent); this is a fault of the circuit, "
                                        f"please report it with the query")
                if why in (_SENT, _END):
                    break
        self._log.sent(records, sent_cycles[np.argsort(number)])
        return joined_items(out)

    def latencies(self) -> npt.NDArray[np.int64] | None:
        return self._log.latencies()

    def accepted(self) -> npt.NDArray[np.int64] | None:
        return self._log.accepted()

    def pair_latencies(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
        return self._log.pair_latencies()

    def close(self) -> None:
        if self._model:
            self._lib.sj_close(self._model)
            self._model = ctypes.c_void_p()
        if self._trace is not None:
            self._trace.close()


def _pointer(array: npt.NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _load(path: Path, *, memory: bool) -> ctypes.CDLL:
    lib = ctypes.CDLL(str(path))
    handle, u32, u64, p = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
    for name, result, arguments in (
        ("sj_open", handle, (u64, u32, u32, ctypes.c_double)),
        ("sj_close", None, (handle,)),
        ("sj_read", u32, (handle, u32)),
        ("sj_write", None, (handle, u32, u32)),
        ("sj_cycle", u64, (handle,)),
        ("sj_run", ctypes.c_int, (handle, p, p, u64, p, p, p, p, u64, p, p, ctypes.c_int, u64, u64)),
        *([("sj_memory", None, (handle, u64, u64, u64, u32, u64))] if memory else []),
    ):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, list(arguments)
    return lib
