"""`Tuning`: sizes and limits of the CPU engine, which change how long a join takes and its memory, never its answer."""

from __future__ import annotations

from dataclasses import dataclass, fields

from splitjoin.base.errors import DeviceError

__all__ = ["DEFAULTS", "Tuning"]


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Sizes and limits of a session on the CPU, as in ``CpuDevice(tuning=Tuning(batch=4096))``: smaller ones take less
    memory and give results sooner, larger ones take less time for each tuple. The defaults were measured on servers
    and laptops with caches of 1 MiB or more. Numbers are at least 0, or 1 where there must be one.

    Attributes:
        batch: Arrivals of a batch, whose results are in memory at the same time; from 1 on.
        slack: Tuples that may be kept beyond a window before memory is released.
        room: Room for matches beside those of one probe; from 1 on.
        share: Least nanoseconds of work for each thread: the hand-over takes a tenth of it, more if a helper has to be
            woken; above 0.
        step: Least nanoseconds of a thread's work in a step of an index, after which threads wait for each other;
            above 0.
        shared_arrivals: Least arrivals of such a step; from 1 on.
        part_arrivals: Least arrivals of a step in the part that one thread probes with; from 1 on.
        part_probes: Least probes in a part of nested loops, where there are many: fewer would read each chunk of the
            window too often; from 1 on.
        spare: Tuples by which the cells of an index can grow, at least, before its grid is built anew.
        numbered: Most tuples since a grid was built, which it numbers in 32 bits; from 1 to 2**30.
        trend: Least number of early codes of a sample that tell whether keys rise or fall over time; from 1 on.
        tail: Least number of tuples in arrival order that are sorted into a run; from 1 on.
        many: Least number of probes of sorted runs that look in the order of their bounds; from 1 on.
        rechosen: Arrivals after which the engine is chosen again, beside 16 windows.
        judged: Arrivals after which it is checked at the earliest whether an index compares more than was predicted.
        reviewed: Pairs after which interval tests with a residual are reviewed.
        interpreted: Pairs of which NumPy evaluates a condition before it is compiled, which takes about as long.
        numpy_pairs: Pairs that NumPy evaluates at once; from 1 on.
        zoned: Candidates of a probe by one key, on average, from which on NumPy tries zone maps.
        verified: Candidates that a part of a batch should have which are verified; from 1 on.
        verified_first: Arrivals of the first such part; from 1 on.
        verified_limit: Candidates that it could have at most if tests let everything through; from 1 on.
        range_rows: Rows whose least and greatest values are kept together; from 1 on.
        first: Arrivals of the first batch by NumPy, while loops are compiled; from 1 on.
        table_share: Nanoseconds of work of a join of whole tables that pay for one thread more; above 0.
        table_rows: Rows of a slice of a table, whose columns and codes stay in the second-level cache; from 1 on.
        table_pairs: Candidates of a join of whole tables that are looked at together; from 1 on.
        table_part: Least rows of R for a thread that looks for the nearest partner of each; from 1 on.
        loading: Seconds that a process takes to load numba and a query's compiled loops: NumPy goes on for so long.
    """

    batch: int = 1 << 16
    slack: int = 1 << 16
    room: int = 1 << 16
    share: float = 25_000.0
    step: float = 30_000.0
    shared_arrivals: int = 4096
    part_arrivals: int = 64
    part_probes: int = 128
    spare: int = 1 << 12
    numbered: int = 1 << 30
    trend: int = 64
    tail: int = 1024
    many: int = 1024
    rechosen: int = 1 << 20
    judged: int = 4096
    reviewed: int = 1 << 24
    interpreted: int = 1 << 23
    numpy_pairs: int = 1 << 18
    zoned: int = 64
    verified: int = 1 << 20
    verified_first: int = 1024
    verified_limit: int = 1 << 27
    range_rows: int = 4096
    first: int = 4096
    table_share: float = 1_000_000.0
    table_rows: int = 1 << 16
    table_pairs: int = 1 << 21
    table_part: int = 1 << 17
    loading: float = 0.5

    def __post_init__(self) -> None:
        for field in fields(self):
            value, default = getattr(self, field.name), field.default
            least = 0 if field.name in _FROM_ZERO else 1
            if isinstance(default, int):
                most = default if field.name == "numbered" else 1 << 40
                if not (type(value) is int and least <= value <= most):
                    raise DeviceError(f"{field.name} of Tuning must be a whole number from {least} to {most:,}, not "
                                      f"{value!r}")
            elif not (type(value) in (int, float) and 0 <= value < float("inf") and (value or not least)):
                asked = "above 0" if least else "of 0 or more"
                raise DeviceError(f"{field.name} of Tuning must be a number {asked}, not {value!r}")


_FROM_ZERO = ("slack", "spare", "rechosen", "judged", "reviewed", "interpreted", "zoned", "loading")
#: What sessions take if the user gives nothing else.
DEFAULTS = Tuning()
