"""`open`, `open_async`, `share` and `query`: start streaming sessions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Never

from splitjoin.base import threads
from splitjoin.base.errors import InputError, OptionError
from splitjoin.engines.compiled.compiler import has_numba, needs_numba
from splitjoin.engines.device import Device
from splitjoin.engines.registry import check_not_of_join, device as find_device, merged_options
from splitjoin.engines.tuning import DEFAULTS, Tuning
from splitjoin.joins.computed import make_query
from splitjoin.joins.sql import MultiwaySelect, Select
from splitjoin.lang.order import Order
from splitjoin.lang.query import Predicate, Query
from splitjoin.lang.schema import SIDES, Schema, suggest
from splitjoin.lang.time_columns import TimeSpec
from splitjoin.lang.windows import Tolerance, WindowSpec, session_windows
from splitjoin.rows.output import Selected
from splitjoin.tables.stated import NullValues, Stated

from .aio import AsyncStreamJoin
from .faults import OnFault
from .gate import Watermark
from .gate.times import Idle, Lateness
from .limit import Limit
from .multiway import MultiwayJoin
from .precision import AdaptivePrecision
from .schemas import arrow_schema, check_query
from .session import StreamJoin
from .shared import SharedStreams
from .shedding import Shedding

if TYPE_CHECKING:
    from .unsorted import UnsortedJoin


def query(r_schema: Any, s_schema: Any, *, on: Predicate | None = None, window: WindowSpec | None = None,
          closed: str | None = None, time: TimeSpec | None = None, order: str | Order = "total", how: str = "inner",
          direction: str | None = None, allow_exact: bool | None = None, k: int | None = None, ties: str | None = None,
          tolerance: Tolerance | None = None, by: str | None = None,
          aggregate: Mapping[str, Any] | None = None, null_values: NullValues | None = None,
          **others: Never) -> Query:
    """Make a checked query over two streams of these Arrow schemas.

    ``r_schema`` and ``s_schema`` are each a `pyarrow.Schema`, anything with ``__arrow_c_schema__``, or a DataFrame
    or table, whose rows do not matter. A field that is not nullable must never hold NULL, and circuits may be smaller
    for it. ``null_values`` are the values of columns that stand for NULL in batches. The other arguments are those of
    `splitjoin.join`; but only an as-of join that looks backward may leave ``window`` out: it keeps the last tuple of S
    of each key, so its condition must consist of equalities between R and S and of conditions on one of them.
    ``tolerance`` is a window where there is none. With ``k`` above 1, or ``ties="last"``, a tuple of R has its rows
    once nothing can meet it any more, the nearest partner first, in order ``"total"``.

    Raises a `SplitJoinError` that names the part that is wrong.
    """
    if others:
        check_not_of_join(others)
        raise _no_argument(next(iter(others)))
    r, s = _declared(r_schema, s_schema, null_values, SIDES)
    return make_query(r, s, on=on, window=session_windows(window, closed, how, tolerance), time=time,
                      order=order, how=how, direction=direction, allow_exact=allow_exact, k=k, ties=ties,
                      tolerance=tolerance, by=by, aggregate=aggregate)


def _declared(r: Any, s: Any, null_values: NullValues | None, names: Sequence[str]) -> tuple[Schema, Schema]:
    """The schemas of two streams of these ``names``, with the values that stand for NULL in their batches."""
    found = arrow_schema("r", r), arrow_schema("s", s)
    stated = Stated(None, null_values, names)
    if not stated:
        return found
    made = [stated.of(name).declared(schema.arrow) for name, schema in zip(names, found, strict=True)]
    stated.check()
    return arrow_schema("r", made[0]), arrow_schema("s", made[1])


def _no_argument(name: str) -> OptionError:
    """The error for an argument ``name`` that `query` does not have."""
    taken = [n for n in inspect.signature(query).parameters if n != "others"]
    if name in inspect.signature(open).parameters:
        return OptionError(f"splitjoin.query has no argument {name!r}; give it to splitjoin.open")
    return OptionError(f"splitjoin.query has no argument {name!r}{suggest(name, taken)}; its arguments are "
                       f"{', '.join(taken)}")


def open(query: Query | Select, device: str | Device = "cpu", *, select: Selected | None = None,  # noqa: A001  # called
         lateness: Lateness | None = None, watermark: Watermark | None = None,  # as splitjoin.open
         idle: Idle | None = None, early: bool = False, limit: Limit | int | None = None,
         when_full: Literal["raise", "block", "shed"] = "raise", shedding: Shedding | None = None,
         punctuation: bool = False, precision: AdaptivePrecision | None = None,
         clock: Callable[[], float] = threads.monotonic, on_fault: OnFault = "continue",
         device_options: Mapping[str, Any] | None = None, **options: object) -> StreamJoin:
    """Start ``query`` as a streaming session; `StreamJoin` documents its arguments and methods.

    ``device``, ``device_options`` and ``options`` are those of `splitjoin.join`: ``device="sim", cores=8``.
    """
    if isinstance(query, MultiwaySelect):
        raise InputError("a statement over three streams and more is run by splitjoin.open_multiway")
    check_query(query)
    chosen = find_device(device, **merged_options(device_options, options, device, open))
    return StreamJoin(query, chosen, select=select, lateness=lateness, watermark=watermark, idle=idle, early=early,
                      limit=limit, when_full=when_full, shedding=shedding, punctuation=punctuation,
                      precision=precision, clock=clock, on_fault=on_fault)


def open_multiway(select: MultiwaySelect, device: str | Device | Sequence[str | Device] = "cpu", *,
                  lateness: Lateness | Mapping[str, Any] | None = None, watermark: Watermark | None = None,
                  limit: Limit | int | None = None, when_full: Literal["raise", "shed"] = "raise",
                  shedding: Shedding | None = None, device_options: Mapping[str, Any] | None = None,
                  **options: object) -> MultiwayJoin:
    """Start a statement over three streams or more; `MultiwayJoin` documents its arguments and methods.

    ``select`` is what `splitjoin.sql` makes of schemas. Every step runs on a device of its own, as ``device``,
    ``device_options`` and ``options`` of `splitjoin.join` say; or ``device`` has one for each step, in order.
    """
    if not isinstance(select, MultiwaySelect):
        check_query(select)
        raise InputError("a join of two streams is run by splitjoin.open")
    each = list(device) if isinstance(device, Sequence) and not isinstance(device, str) else [device] * len(
        select.steps)
    if len(each) != len(select.steps):
        raise InputError(f"a join of {len(select.steps) + 1} streams has {len(select.steps)} steps, but {len(each)} "
                         f"devices are given; give one for all, or one for each step")
    devices = [find_device(one, **merged_options(device_options, options, one, open_multiway)) for one in each]
    return MultiwayJoin(select, devices, lateness=lateness, watermark=watermark, limit=limit, when_full=when_full,
                        shedding=shedding)


def open_async(query: Query | Select, device: str | Device = "cpu", **options: Any) -> AsyncStreamJoin:
    """Start ``query`` as a streaming session for asyncio, with the arguments of `open`: a push waits while the session
    is full, or, with ``when_full="shed"``, drops tuples.
    """
    if (full := options.get("when_full", "raise")) not in ("raise", "shed"):
        raise InputError(f"when_full must be 'raise', by which a push waits, or 'shed' with asyncio, not {full!r}")
    return AsyncStreamJoin(open(query, device, **options))


def share(r_schema: Any, s_schema: Any, *, time: TimeSpec | None = None, names: tuple[str, str] = ("r", "s"),
          retain: WindowSpec | None = None, lateness: Lateness | None = None, watermark: Watermark | None = None,
          idle: Idle | None = None, waiting: int | None = 1 << 22, unread: int | None = 1 << 22, late: int = 1 << 16,
          when_full: Literal["raise", "block"] = "raise",
          clock: Callable[[], float] = threads.monotonic, null_values: NullValues | None = None) -> SharedStreams:
    """Start a pair of streams that many queries read; `SharedStreams` documents its arguments and methods.

    ``r_schema``, ``s_schema`` and ``null_values`` are as for `query`.
    """
    r, s = _declared(r_schema, s_schema, null_values, names)
    return SharedStreams(r.arrow, s.arrow, time=time, names=names, retain=retain, lateness=lateness,
                         watermark=watermark, idle=idle, waiting=waiting, unread=unread, late=late,
                         when_full=when_full, clock=clock)


def open_unsorted(query: Query, *, lateness: Lateness, watermark: Watermark | None = None,
                  engine: Literal["key-oij", "scale-oij"] = "scale-oij", threads: int | Literal["auto"] = "auto",
                  select: Selected | None = None, tuning: Tuning = DEFAULTS) -> UnsortedJoin:
    """Start a query with aggregates over streams out of order by at most ``lateness``, without sorting them first.

    The rows are those of `open` with the same lateness and watermark. ``engine``, ``threads`` and ``tuning`` are
    those of the device ``"cpu"``; docs/aggregates.md says which queries the engines run. Raises `UnsupportedError` for
    others.
    """
    if not has_numba():
        raise needs_numba("open_unsorted", "use open with the same lateness")
    from .unsorted import UnsortedJoin  # here, as numba takes a third of a second to import

    return UnsortedJoin(query, lateness=lateness, watermark=watermark, engine=engine, threads=threads, select=select,
                        tuning=tuning)
