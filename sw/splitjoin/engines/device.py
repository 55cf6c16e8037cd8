"""The Device interface: what the golden model, the simulators, the CPU engine and boards have in common.

A *device* is a description (cores, capacity, …); `Device.open` makes a *session* for one query, which takes arrivals of
both streams at any time and gives back result items in the query's order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from splitjoin.base.errors import DeviceError, InputError, OrderError, UnsupportedError, plural
from splitjoin.lang.aggregate_functions import Term
from splitjoin.lang.eval.vector import Vector
from splitjoin.lang.order import Order
from splitjoin.lang.query import Query

from .arrival import Arrivals
from .slices import Slices

#: Kinds of result items.
PAIR, STAR = 0, 1

#: A result item. A pair: the probe's stream ``side`` and both row ids. A star: its stream, and the row id of the last
#: probe it covers in that stream's field; the other field is −1.
ITEM = np.dtype([("kind", "u1"), ("side", "u1"), ("r", "i8"), ("s", "i8")])

#: An array of `ITEM`.
Items = npt.NDArray[np.void]


@dataclass(frozen=True)
class TableWay:
    """A way to join whole tables, before it looks at pairs.

    Attributes:
        plan: The way in words.
        candidates: How many pairs it is expected to look at; None where it looks rows up.
        threads: How many threads share the work, and why, in words; empty where a device has no choice.
    """

    plan: str
    candidates: float | None = None
    threads: str = ""


#: Gets each way to join whole tables that is begun, where somebody listens.
_listener: ContextVar[Callable[[TableWay], None] | None] = ContextVar("listener", default=None)


def begin(way: TableWay) -> None:
    """Report that whole tables are now joined in this ``way``, to who is `listening`."""
    if (listener := _listener.get()) is not None:
        listener(way)


@contextmanager
def listening(listener: Callable[[TableWay], None]) -> Iterator[None]:
    """Within the block, ``listener`` gets each way to join whole tables that this thread begins. It may raise an
    exception to end the join.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@dataclass(frozen=True, kw_only=True)
class TableAnswer:
    """What decides the rows of a query over whole tables, found at once.

    Attributes:
        plan: How it was found, in words.
        counters: As of `Session.counters`.
        work: What divides the work on the rows, among several threads if the device has some for this.
    """

    plan: str
    counters: dict[str, int]
    work: Slices = field(default_factory=Slices)


@dataclass(frozen=True)
class TablePairs(TableAnswer):
    """The pairs that decide the rows, by row ids: all; of a semi join the first one of each tuple of R, of an anti join
    any, and of an as-of join the chosen one. Those of as-of joins and in order ``left`` are by the tuples of R, then of
    S; inner joins in order ``none`` have any order, and all others that of the later tuples, then of the earlier ones.

    Attributes:
        r, s: The row ids (n,).
        at: The position of the later tuple; None where the row ids tell it, as the items of rows alone need it.
    """

    r: npt.NDArray[np.int64]
    s: npt.NDArray[np.int64]
    at: npt.NDArray[np.int64] | None


@dataclass(frozen=True)
class TableMatches(TableAnswer):
    """The tuples of R that have a partner in a semi or anti join, in place of pairs.

    Attributes:
        met: uint8 (r,): 0 for a tuple without a partner, 1 for one all of whose partners arrive later, and 2 for one
            with an earlier partner. For an anti join 1 and 2 are the same.
        late: The row ids of the tuples with 1, by the arrival of their first partners, then by row id: int64 (n,);
            empty for an anti join, and in order ``left``.
        partners: The row ids of these first partners (n,).
        before: How many tuples of R arrive before each of these partners (n,).
    """

    met: npt.NDArray[np.uint8]
    late: npt.NDArray[np.int64]
    partners: npt.NDArray[np.int64]
    before: npt.NDArray[np.int64]


@dataclass(frozen=True)
class TableNeighbours(TableAnswer):
    """The nearest partners of each tuple of R, as many as the query asks for, by row ids.

    Attributes:
        back: Those before it in time, and at its time, the nearest first: int64 (r, up to k), −1 for none.
        fore: Those after it, and, unless ``back`` has them, at its time, likewise.
    """

    back: npt.NDArray[np.int64]
    fore: npt.NDArray[np.int64]


@dataclass(frozen=True)
class TableFolds(TableAnswer):
    """The terms of a query's aggregates, in place of pairs.

    Attributes:
        bases: The row ids of R's tuples that have a row, which rise: int64 (n,).
        lengths: How many partners each has, as a function: int64 (n,).
        term: The values of a term for a slice of ``bases``.
        partners: The row ids of the partners of a slice of ``bases``, base by base, by arrival, for what is no term.
        terms: Those that `term` has.
    """

    bases: npt.NDArray[np.int64]
    lengths: Callable[[], npt.NDArray[np.int64]]
    term: Callable[[Term, slice], Vector]
    partners: Callable[[slice], npt.NDArray[np.int64]]
    terms: frozenset[Term]


@dataclass(frozen=True)
class HostFolds:
    """How the host folds aggregates from arrivals, without pairs, in place of a device that says so.

    Attributes:
        engine: The engine that must fold; ``"auto"`` for the best one, and pairs where none can.
        workers: The most threads.
        batch: Arrivals that are folded together, of whole tables.
        schedule_arrivals: As of `splitjoin.cpu.Tuning`.
    """

    engine: str
    workers: int
    batch: int
    schedule_arrivals: int


@dataclass(frozen=True)
class Fault:
    """A core that a device has left out, as it stood still (semantics, section 6).

    Attributes:
        core, cores: The number of the core, from 0, and how many cores there are.
        r, s: The row ids of the first probes of R and S that lack pairs of that core. These two probes may have some.
        lost_r, lost_s: The core stored the tuples of R whose row ids are ``lost_r`` modulo ``cores``, and those of S
            whose are ``lost_s``; they are lost.
    """

    core: int
    cores: int
    r: int
    s: int
    lost_r: int
    lost_s: int


class Session(ABC):
    """One running query. Use as a context manager; after `flush` no more can be pushed."""

    #: The most tuples of one stream that a session can number; None is no limit.
    row_limit: int | None = None
    #: The number of cores where some are masked, else 1. Tuples that are replayed into a fresh session must begin at
    #: row ids that are multiples of it; then each tuple is stored in the core where it was stored before.
    rotation: int = 1

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The cores that the device has left out, in the order in which this was seen."""
        return ()

    @abstractmethod
    def push(self, arrivals: Arrivals) -> None:
        """Deliver the next slice of arrival order."""

    @abstractmethod
    def poll(self) -> Items:
        """The result items that are complete and were not returned before, in order."""

    @abstractmethod
    def flush(self) -> Items:
        """Close every open group with a last star, wait until all is done, and return the remaining items."""

    def settle(self) -> Items:
        """Wait until all results of the tuples pushed so far are there, and return those not returned before, in order.

        Unlike `flush` it closes no group, and more can be pushed afterwards. Raises `OrderError` on circuits in order
        ``outer(N)`` with N > 1, where only a star tells the host that results are complete, and `DeviceError` where the
        device has no such barrier.
        """
        raise DeviceError(f"a session of {type(self).__name__} cannot tell when the results of all pushed tuples are "
                          f"complete; flush it and open a new one")

    def mask(self, cores: Collection[int]) -> None:
        """Leave out, from the next tuple on, the results whose stored tuple is in one of ``cores``, to isolate a fault.

        Tuples are stored in turn as before, in masked cores too, so the answer loses exactly those pairs and keeps its
        order and its stars; a core that is masked no more has what it stored meanwhile (semantics, section 6).
        Raises `DeviceError` for a core that the device does not have, or where there are none.
        """
        raise DeviceError(f"a session of {type(self).__name__} has no cores to mask; use a circuit, or device='golden'")

    def precision(self, n: int) -> None:
        """Let slices of order ``inner`` have ``n`` comparisons of each sub-window from the next tuple on.

        The next `poll` gives all results of the tuples before it. Raises `OrderError` in other orders, and
        `DeviceError` where the device has no slices that change.
        """
        raise DeviceError(f"a session of {type(self).__name__} keeps the slices that it was opened with; open a new "
                          f"one")

    def waiting(self) -> float | None:
        """The share of the time since the last call, 0 to 1, in which tuples or cores waited for results to leave;
        None where the device does not tell.
        """
        return None

    def counters(self) -> dict[str, int]:
        """Named counters of the session so far, for example ``cycles`` and ``comparisons``."""
        return {}

    def region_counters(self) -> dict[str, npt.NDArray[np.int64]] | None:
        """Counters of each region so far: name → array (cores, 2), of the regions that store R, and S. On the CPU,
        nested loops count what each thread compares in R, and in S.

        None where the device does not count so. `splitjoin.circuit.registers.REGION_COUNTERS` tells what each means.
        """
        return None

    def latencies(self) -> npt.NDArray[np.int64] | None:
        """Cycles from accepting each probe to its star at the output, in arrival order; None where not measured."""
        return None

    def plan(self) -> str:
        """The way in which the device answers the query at present, in words; empty where it has no choice."""
        return ""

    def close(self) -> None:  # noqa: B027  # a session without resources has nothing to release
        """Release what the session holds; it cannot be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


class Device(ABC):
    """A place where queries run."""

    #: The name under which `splitjoin.join` and the command line know the device.
    name: ClassVar[str]

    #: True if the `poll` after a `push` gives all results of the pushed tuples (without open groups' stars).
    immediate: ClassVar[bool] = False

    #: True if its sessions have a barrier, `Session.settle`.
    settles: ClassVar[bool] = False

    #: True if all pairs come in total order, also where a query asks for order ``none``, which has no stars.
    in_total_order: ClassVar[bool] = False

    #: True if it is the reference model, beside which rows too are decided a tuple at a time.
    is_reference: ClassVar[bool] = False

    #: The most arrivals that joins and streaming sessions push at once, from 1 on: so many are encoded in memory.
    most_arrivals: ClassVar[int] = 1 << 16
    #: ``opposite``, or ``own`` where tuples leave a RANGE window as Kang's procedure prints it (semantics, section 2).
    expire: str = "opposite"

    @classmethod
    def problem(cls) -> str:
        """What the device lacks on this machine beside its packages, with the cure; empty if nothing is known."""
        return ""

    @abstractmethod
    def open(self, query: Query) -> Session:
        """Start ``query``. Raises `UnsupportedError`, `OrderError` or `CapacityError` before anything runs."""

    def open_deciding(self, query: Query) -> Session:
        """Start a session that gives, in total order, the pairs from which the rows of ``query`` follow.

        By default those are all pairs of `Query.narrowed`. A device may leave out more pairs that decide nothing, and
        give −1 for a partner of which it matters only that there is one. Raises what `open` raises.
        """
        return self.open(query.narrowed.pairs)

    def open_latest(self, query: Query) -> Session:
        """Start a session that gives, in total order, the pairs that decide an as-of join without a window
        (`Query.is_unbounded`): for each tuple of R the last partner before it in arrival order; and where equal times
        count, for tuples of S their partners of the same time.

        Of S, it keeps the last tuple of each key. Raises `UnsupportedError` where the device's windows are bounded.
        """
        raise UnsupportedError(f"the device {self.name!r} stores windows of bounded size, so it runs no as-of join "
                               f"without a window; give a window, such as window='RANGE 900', or use device='cpu' or "
                               f"'golden'")

    def states_circuit(self, query: Query) -> Any:
        """The device's circuit that folds the aggregates of ``query`` (`QueryCircuit`), which `CircuitDevice.start`
        takes; None if pairs leave. Raises `UnsupportedError` if its circuit must fold and cannot.
        """
        return None

    def compile(self, query: Query, coming: Arrivals) -> bool:
        """Compile what the device needs for a session of ``query`` that gets the arrivals ``coming``. False if that is
        nothing.
        """
        return False

    def gives_all_pairs(self, query: Query) -> bool:
        """True if `open_deciding` of ``query``, or `open_latest`, leaves out no pair of `Query.narrowed`."""
        return not query.is_unbounded

    def window_room(self, query: Query) -> int | None:
        """The most tuples of a stream that a window of ``query`` may hold on the device; None without a bound, or where
        it is not known before a session is open.
        """
        return None

    def join_tables(self, query: Query, arrivals: Arrivals, room: int,
                    bases: npt.NDArray[np.int64] | None = None) -> TableAnswer | None:
        """What decides the rows of ``query`` over ``arrivals``, which are whole tables, found at once: `TableFolds` of
        aggregates, `TableNeighbours` of an as-of join that chooses by distance, else `TablePairs` or `TableMatches`.

        None where a session is expected to take less, or where more than ``room`` pairs may come. ``bases``: for
        each tuple of R the first one of its group, where a group is one base of the aggregates; None where each tuple
        is one.
        """
        return None

    def count_pairs(self, query: Query, arrivals: Arrivals, room: int) -> int | None:
        """The number of pairs of ``query`` over ``arrivals``, which are whole tables, counted without making them; None
        where there cannot be more than ``room``, or they cannot be counted so.
        """
        return None

    @property
    def has_prevailing(self) -> bool:
        """True if it joins whole tables with prevailing rows (semantics, section 2)."""
        return False

    @property
    def host_folds(self) -> HostFolds | None:
        """How the host folds aggregates in place of this device; None where the device gives pairs or states."""
        return None

    @property
    def of_pairs(self) -> Device:
        """The same device, giving pairs where the user asks for an engine that folds."""
        return self


def check_threads(threads: object) -> None:
    """Raise `DeviceError` unless ``threads`` is a number of threads that share the work of a device, or ``"auto"``."""
    if threads != "auto" and not (type(threads) is int and 1 <= threads <= 256):
        raise DeviceError(f"threads must be a number from 1 to 256, or 'auto' for as many as pay, not {threads!r}")


def check_inner(query: Query) -> None:
    """Raise `UnsupportedError` unless ``query`` is an inner join without prevailing rows, the only kind that devices
    themselves run.
    """
    if query.prevailing:
        raise UnsupportedError(f"prevailing rows come from whole tables alone, by ranges of equal keys, but "
                               f"'{query.predicate}' in order '{query.order}' has none that the host finds; use order "
                               f"'total', 'none' or 'left', and plain columns as keys, or device='golden'")
    if not query.is_pairs:
        asked = "has aggregates" if query.aggregates else f"is of kind {query.kind.how!r}"
        raise UnsupportedError(f"a device gives the pairs of an inner join, but the query {asked}; open query.pairs, "
                               f"and decide its rows as splitjoin.join does")


def checked_precision(order: Order, n: int, kinds: tuple[str, ...] = ("outer", "inner")) -> int:
    """``n`` as the precision of ``order`` from some tuple on. Raises `OrderError` unless the order is of ``kinds``."""
    if order.kind not in kinds:
        named = " and ".join(f"'{kind}(n)'" for kind in kinds)
        raise OrderError(f"a precision is of {plural(len(kinds), 'order')} {named}, but the order is "
                         f"'{order}'; open the query with {'it' if len(kinds) == 1 else 'one of these'}")
    return Order(order.kind, n).n


def check_masked(masked: Collection[int], cores: int) -> frozenset[int]:
    """``masked`` as a set. Raises `InputError` unless it is a collection, and `DeviceError` unless all are numbers of
    the ``cores`` that there are.
    """
    if not isinstance(masked, Collection):
        raise InputError(f"masked cores must be a list of numbers, such as [0], not {masked!r}")
    for core in masked:
        if isinstance(core, bool) or not isinstance(core, int) or not 0 <= core < cores:
            raise DeviceError(f"masked cores must be numbers from 0 to {cores - 1}, not {core!r}")
    return frozenset(masked)


def stars(stream: npt.NDArray[np.uint8], first: tuple[int, int] = (0, 0)) -> Items:
    """A star for each arrival, as in order total. ``stream``: 0 for R, 1 for S (n,), as of `Arrivals`; ``first``: the
    row ids of the first tuples.
    """
    items = np.empty(len(stream), ITEM)
    items["kind"], items["side"], items["r"], items["s"] = STAR, stream, -1, -1
    for number, name in enumerate(("r", "s")):
        at = np.flatnonzero(stream == number)
        items[name][at] = first[number] + np.arange(len(at))
    return items


def pairs(items: Items) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The row ids ``(r, s)`` of the pairs among ``items``, in order."""
    mine = items["kind"] == PAIR
    return items["r"][mine], items["s"][mine]  # choosing among whole records is slow


def chosen_items(items: Items, mask: npt.NDArray[np.bool_]) -> Items:
    """Those of ``items`` for which ``mask``, (n,), holds. As bytes: NumPy chooses records field by field."""
    return items.view(f"V{ITEM.itemsize}")[mask].view(ITEM)


def joined_items(parts: Sequence[Items]) -> Items:
    """All ``parts``, one after the other. NumPy copies records field by field, so this copies their bytes."""
    made = np.empty(sum(map(len, parts)), ITEM)
    if parts:
        np.concatenate([np.ascontiguousarray(part).view(np.uint8) for part in parts], out=made.view(np.uint8))
    return made
