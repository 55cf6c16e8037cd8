"""`Tuning`: sizes and limits of the CPU engine, which change how long a join takes and its memory, never its answer."""

from __future__ import annotations

from dataclasses import dataclass, fields

from splitjoin.base.errors import DeviceError

#: Arrivals of a batch, at most: the index notes their rows in 20 bits (``grid.hpp``).
MOST_ARRIVALS = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Sizes and limits of a session on the CPU, as in ``CpuDevice(tuning=Tuning(batch=4096))``: smaller ones take less
    memory and give results sooner, larger ones take less time for each tuple. The defaults were measured on servers
    and laptops with caches of 1 MiB or more. Numbers are at least 0, or 1 where there must be one.

    Attributes:
        batch: Arrivals of a batch, whose results are in memory at the same time; from 1 to `MOST_ARRIVALS`.
        slack: Tuples that may be kept beyond a window before their memory is released.
        room: Matches for which a session has memory, beside those of one probe; from 1 on.
        share: Nanoseconds of work from which on a thread gets a share of a batch: handing it over takes a tenth of the
            default, more if the thread has to be woken; above 0.
        step: Nanoseconds of each thread's work in one step of an index, after which threads wait for each other, at
            least; above 0.
        shared_arrivals: Arrivals of such a step, at least; from 1 on.
        part_arrivals: Arrivals of a step in the part that one thread probes with, at least; from 1 on.
        part_probes: Probes in a part of nested loops, at least where there are as many: fewer would read each chunk of
            the window too often; from 1 on.
        grid_spare: Tuples for which the cells of an index have memory beyond those present, before its grid is built
            anew, at least.
        grid_tuples: Tuples after which a grid is built anew, as it numbers them in 32 bits; from 1 to 2**30.
        trend_sample: Tuples that a sample must have to show whether keys rise or fall over time; from 1 on.
        run_tuples: Tuples that are sorted into a new run, at least; from 1 on.
        sorted_probes: Probes of sorted runs from which on they search in the order of their bounds; from 1 on.
        choice_arrivals: Arrivals, beside 16 windows, after which the engine chooses its method again.
        check_arrivals: Arrivals after which it checks, at the earliest, whether an index compares more than predicted.
        review_pairs: Pairs after which it checks whether interval tests ahead of a residual pay.
        interpreted_pairs: Pairs of which NumPy evaluates what is no test, until numba compiles it, which takes as long.
        numpy_pairs: Pairs that NumPy evaluates at once; from 1 on.
        verified: Candidates in a part of a batch whose residual is evaluated together; from 1 on.
        verified_first: Arrivals of the first such part; from 1 on.
        verified_limit: Candidates that a part may have at most, if tests let everything through; from 1 on.
        schedule_arrivals: Tuples of S after which engine "scale-oij" divides the keys among its threads anew; fewer
            for a job with fewer tuples; from 1 on.
        range_rows: Rows of a table whose least and greatest values are kept together; from 1 on.
        table_share: Nanoseconds of work of a join of whole tables for each further thread; above 0.
        table_rows: Rows of a slice of a table, whose columns and codes stay in the second-level cache; from 1 on.
        table_pairs: Candidates of a join of whole tables that are evaluated together; from 1 on.
        table_part: Rows of R for each thread that looks for their nearest partners, at least; from 1 on.
    """

    batch: int = 1 << 16
    slack: int = 1 << 16
    room: int = 1 << 16
    share: float = 25_000.0
    step: float = 30_000.0
    shared_arrivals: int = 4096
    part_arrivals: int = 64
    part_probes: int = 128
    grid_spare: int = 1 << 12
    grid_tuples: int = 1 << 30
    trend_sample: int = 64
    run_tuples: int = 1024
    sorted_probes: int = 1024
    choice_arrivals: int = 1 << 20
    check_arrivals: int = 4096
    review_pairs: int = 1 << 24
    interpreted_pairs: int = 1 << 23
    numpy_pairs: int = 1 << 18
    verified: int = 1 << 20
    verified_first: int = 1024
    verified_limit: int = 1 << 27
    schedule_arrivals: int = 1 << 16
    range_rows: int = 4096
    table_share: float = 1_000_000.0
    table_rows: int = 1 << 16
    table_pairs: int = 1 << 21
    table_part: int = 1 << 17

    def __post_init__(self) -> None:
        for field in fields(self):
            value, default = getattr(self, field.name), field.default
            least = 0 if field.name in _FROM_ZERO else 1
            if isinstance(default, int):
                most = {"grid_tuples": default, "batch": MOST_ARRIVALS}.get(field.name, 1 << 40)
                if not (type(value) is int and least <= value <= most):
                    raise DeviceError(f"{field.name} of Tuning must be a whole number from {least} to {most:,}, not "
                                      f"{value!r}")
            elif not (type(value) in (int, float) and 0 <= value < float("inf") and (value or not least)):
                asked = "above 0" if least else "of 0 or more"
                raise DeviceError(f"{field.name} of Tuning must be a number {asked}, not {value!r}")


_FROM_ZERO = ("slack", "grid_spare", "choice_arrivals", "check_arrivals", "review_pairs", "interpreted_pairs")
#: What sessions take if the user gives nothing else.
DEFAULTS = Tuning()
