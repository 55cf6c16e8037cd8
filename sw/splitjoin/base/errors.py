"""The exceptions of splitjoin: one tree, so that ``except SplitJoinError`` catches every error that a user can cause.

Every message states the requirement, the actual value, and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .safe_text import safe


class SplitJoinError(Exception):
    """Base of every error that splitjoin raises on purpose.

    Its text and its notes show no keys that URIs hold, and no characters that a terminal obeys (`safe_text.safe`).
    """

    def __init__(self, *args: object):
        super().__init__(*(safe(arg) if isinstance(arg, str) else arg for arg in args))

    def add_note(self, note: str, /) -> None:
        super().add_note(safe(note))


class SchemaError(SplitJoinError):
    """A column does not exist, is ambiguous, or has a type that cannot be used where it is used."""


class PredicateError(SplitJoinError):
    """A join condition cannot be parsed, is ill-typed, or uses something that is not supported."""


class StatementError(PredicateError):
    """A SELECT statement cannot be read, or has parts that joins of streams do not have."""


class WindowError(SplitJoinError):
    """A window cannot be parsed or does not fit the time column."""


class OrderError(SplitJoinError):
    """An output order is unknown, or not available on the chosen device."""


class InputError(SplitJoinError):
    """The input rows are unusable: unsorted or NULL time, a missing file, an unreadable format."""


class OptionError(InputError):
    """An argument has a value that it cannot have, or does not go with the others: wrong usage, whatever the rows."""


class UnsupportedError(SplitJoinError):
    """The query is valid, but the chosen device cannot run it; another device can."""


class CapacityError(SplitJoinError):
    """A window exceeds the device's capacity, which is found before the run, or a result does not fit into memory."""


class WindowOverflow(SplitJoinError):
    """A RANGE window outgrew the device at run time (semantics, section 6).

    Attributes: ``stream`` (``"r"`` or ``"s"``), ``row`` (the row id that did not fit), ``capacity`` (tuples).
    """

    def __init__(self, stream: str, row: int, capacity: int):
        self.stream, self.row, self.capacity = stream, row, capacity
        super().__init__(
            f"the window of stream {stream} must hold at most {capacity} tuples on this device, but row "
            f"{stream}#{row} arrived while all of them were still live; use a shorter RANGE, add a ROWS limit, "
            f"or build the device with a larger capacity"
        )

    def __reduce__(self) -> tuple[type[WindowOverflow], tuple[str, int, int]]:
        return type(self), (self.stream, self.row, self.capacity)


class BackPressure(SplitJoinError):
    """A streaming session is full and did not take the batch: first read results, or let other sources catch up."""


class SnapshotError(SplitJoinError):
    """The bytes are no snapshot, are damaged, or hold a snapshot of another query."""


class DeviceError(SplitJoinError):
    """A device failed, does not answer, or speaks another ABI than the driver."""


class DeviceLost(DeviceError):
    """A device lost its session, for example as its power failed; a fresh session can be opened on it. Streaming
    sessions do so by themselves, and reload their windows.
    """


class CoreLost(DeviceLost):
    """A device has left out ``cores`` (a text), and the session must reload its windows (``on_fault``)."""

    def __init__(self, cores: str):
        super().__init__(f"the device has left out {cores}, which stood still, and the session must begin anew")
        self.cores = cores


class ToolError(SplitJoinError):
    """An external tool (C++ compiler, Verilator, Java, a Python extra) is missing or failed."""


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Within the block, ``what`` (with its verb) imports packages of the ``extra``. Raises `ToolError` if one lacks."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ToolError(f"{what} the Python package {error.name!r}, which is not installed; pip install "
                        f"'splitjoin[{extra}]'") from error


def first_line(error: Exception | str) -> str:
    """The first line of another library's ``error``, or of its text, as messages show it; the name of its class if it
    has no text.
    """
    parts = (error,) if isinstance(error, str) else error.args
    several = len(parts) > 1 and all(isinstance(part, str) for part in parts)  # as pandas adds the column
    return safe((("; ".join(parts) if several else str(error)).splitlines() or [type(error).__name__])[0])


def plural(count: int, noun: str) -> str:
    """``noun``, in the plural unless ``count`` is 1."""
    return noun if count == 1 else f"{noun}s"


def check(name: str, value: object, holds: bool, must: str) -> None:
    """Raise `UnsupportedError` unless ``value`` is what it ``must`` be."""
    if not holds:
        raise UnsupportedError(f"{name} must be {must}, not {value!r}")
