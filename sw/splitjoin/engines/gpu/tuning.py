"""`GpuTuning`: sizes of the GPU engine, which change how long a join takes and its memory, never its answer."""

from __future__ import annotations

from dataclasses import dataclass, fields

from splitjoin.base.errors import DeviceError

from ..tuning import MOST_ARRIVALS


@dataclass(frozen=True, kw_only=True)
class GpuTuning:
    """Sizes of a session on a GPU, as in ``GpuDevice(tuning=GpuTuning(batch=16_384))``: whole numbers, each from 1 on.

    Attributes:
        batch: Arrivals of a batch, whose results are in memory at the same time; up to 2^20, as on the CPU.
        places: Least places for a stream's tuples in the GPU's memory.
        room: Room for appended matches of a stream's probes at first.
        most_room: That room at most; results with more matches are counted first.
        written: Matches of such a result that are written at a time, as far as one block of probes has no more.
    """

    batch: int = 1 << 16
    places: int = 1 << 16
    room: int = 1 << 18
    most_room: int = 1 << 23
    written: int = 1 << 25

    def __post_init__(self) -> None:
        for field in fields(self):
            most = MOST_ARRIVALS if field.name == "batch" else 1 << 40
            if not (type(value := getattr(self, field.name)) is int and 1 <= value <= most):
                raise DeviceError(f"{field.name} of GpuTuning must be a whole number from 1 to {most:,}, not {value!r}")


#: What sessions take if the user gives nothing else.
DEFAULTS = GpuTuning()
