"""`WholeRows`: the rows of a query over arrivals that are all there, of whole tables or of a part of their times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from splitjoin.base.memory import check_memory, give_back, room_for, too_large, too_many
from splitjoin.base.progress import progress_bar
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, PAIR, STAR, Device, Items, Session, TableWay, begin, joined_items
from splitjoin.engines.registry import host
from splitjoin.lang.layouts import indices, take
from splitjoin.lang.order import Order
from splitjoin.lang.query import Query

from .aggregates import Gather, Groups
from .aggregates.state_operator import state_operator
from .answers import (
    EVERY,
    interval_engine,
    nearest_of_pairs,
    operator_of_pairs,
    pairs_device,
    rows_at_once,
    rows_of_pairs,
)
from .kinds import KindOperator
from .operator import RowBatch
from .table_rows import TableRows

if TYPE_CHECKING:
    from splitjoin.circuit.driver import CircuitDevice
    from splitjoin.circuit.query_circuit import QueryCircuit

    from .interval_joins.choice import IntervalChoice

#: The arrivals of the first slice, where rows leave slice by slice.
_FIRST = 1 << 10
#: Pairs by a session of the device.
_SESSION = TableWay("a session, to which the tuples come in their order of arrival")
#: Bytes of columns that are worth giving freed memory back for.
_LARGE = 1 << 24
#: Bytes of a pair that is found at once, beside the values of its row; where rows are then put into order ``left``.
_FOUND_BYTES, _ORDERED_BYTES = 32, 64
#: Bytes of memory for each pair of a part of the rows, of which a slice may have several times as many as expected.
_PART_BYTES = 512
#: Bytes of a partner among the nearest ones of a tuple.
_NEIGHBOUR_BYTES = 64


@dataclass
class WholeRows:
    """Finds the rows of ``query`` over ``arrivals`` on ``device``, each time that it is asked. Those of order ``left``
    come in any order.

    Attributes:
        groups: As of `identical_rows`, where identical tuples of R are one base of the aggregates; else None.
        between: The number of warm arrivals, and the times that decide or bring the rows, as of `KindOperator.between`.
        watch: Gets the number of arrivals pushed and of pairs so far; may raise an exception to end it.
        facts: What the device tells of itself, as arguments of `JoinResult`: there after the last row.
        row_bytes: What the caller makes of a row, while all rows are in memory.
        room: The most pairs that may be found at once; None is what free memory has room for.
    """

    query: Query
    device: Device
    arrivals: Arrivals
    groups: Groups = None
    between: tuple[int, int | None, int | None] = EVERY
    watch: Callable[[int, int], None] = lambda arrivals, pairs: None
    facts: dict[str, Any] = field(default_factory=lambda: {"counters": {}})
    row_bytes: int = 0
    room: int | None = None

    def table(self) -> TableRows:
        """All rows."""
        table = self._at_once()
        return TableRows.of(self._batch()) if table is None else table  # also if it has no rows

    def tables(self, rows: int) -> Iterator[TableRows]:
        """The rows in parts of at most ``rows``; where it can be, memory holds one part at a time."""
        at_once = self._at_once()
        tables = [at_once] if at_once is not None else map(TableRows.of, self._batches(rows))
        return (part for table in tables if len(table) for part in table.parts(rows))

    def batch(self) -> RowBatch:
        """All rows, and the stars that the device gave."""
        table = self._at_once() if self.query.aggregates else None
        return self._batch() if table is None else RowBatch(table.items(), table.values)

    def _batch(self) -> RowBatch:
        return RowBatch.joined(list(self._batches(None)))

    def _at_once(self) -> TableRows | None:
        """All rows, where the device finds at once what decides them, and they have room in memory."""
        query, incoming, nearest = self.query, self.arrivals, self.query.chooses_by_distance
        if nearest:
            check_memory(len(incoming.r), len(incoming.r) * min(query.kind.k, len(incoming.s)) * _NEIGHBOUR_BYTES)
        elif self.between != EVERY:
            return None
        room = self._most_pairs
        found = rows_at_once(query, self.device, incoming, room if self.room is None else min(room, self.room),
                             self._gather, self.groups)
        if found is not None:
            rows, answer = found
            self.facts = {"plan": answer.plan, "counters": answer.counters}
            if not query.needs_few_pairs and len(rows) * self.row_bytes >= _LARGE:
                give_back()  # what the search had, before columns take as much memory
            return rows
        if not nearest:
            return None
        begin(_SESSION)
        with self.device.open(query.pairs) as session:
            items = self._items(self.device, session)
            self._note(session)
        return nearest_of_pairs(query, incoming, items)

    @cached_property
    def _most_pairs(self) -> int:
        """The most pairs that memory has room for at once."""
        return room_for(self._all_pairs, self._pair_bytes)

    @property
    def _pair_bytes(self) -> int:
        return (_ORDERED_BYTES if self.query.order.kind == "left" else _FOUND_BYTES) + self.row_bytes

    @property
    def _all_pairs(self) -> int:
        return len(self.arrivals.r) * len(self.arrivals.s)

    def _check_count(self) -> None:
        """Raise `CapacityError` if memory has no room for all pairs, where these can be counted without making them."""
        query, room = self.query, self._most_pairs
        if room >= self._all_pairs or query.needs_few_pairs or query.chooses_by_distance or self.between != EVERY:
            return
        pairs = host().count_pairs(query, self.arrivals, room)
        if pairs is not None and pairs > room:
            raise too_many(pairs, pairs * self._pair_bytes, is_rows=query.is_pairs)

    def _batches(self, rows: int | None) -> Iterator[RowBatch]:
        query, device = self._arriving, self.device
        if self.groups is None:
            if (choice := interval_engine(query, device)) is not None:
                return self._without_pairs(choice)
            if (circuit := device.states_circuit(query)) is not None:
                return iter([self._of_states(cast("CircuitDevice", device), circuit)])
            return iter([self._of_pairs(device)]) if rows is None else self._parts(device, rows)
        interval_engine(query, device)  # which tells of an engine that cannot fold at all
        return iter([self._of_pairs(pairs_device(query, device))])  # states cannot be put together, but pairs can

    def _without_pairs(self, choice: IntervalChoice) -> Iterator[RowBatch]:
        """The rows by an engine that folds aggregates itself."""
        from .interval_joins.session import fold_slices

        first, end = 0, len(self.arrivals.r)
        if self.between != EVERY:
            decider = KindOperator(self._arriving, bases=True)
            mine = decider.between(self.arrivals, np.empty(0, ITEM), *self.between).items["r"]  # they follow each other
            first, end = (int(mine[0]), int(mine[-1]) + 1) if len(mine) else (0, 0)
        self.facts["plan"] = str(choice)
        begin(TableWay(str(choice)))
        return fold_slices(self._arriving, choice, self.arrivals, self._gather, first, end, self.facts)

    def _of_states(self, device: CircuitDevice, circuit: QueryCircuit) -> RowBatch:
        """The rows by the ``circuit`` of ``device`` that folds the aggregates itself."""
        assert circuit.folding is not None
        begin(TableWay("aggregates that the circuit folds"))
        operator = state_operator(self._arriving, circuit.folding, lambda: ((0, 0), self.arrivals), self._gather)
        with device.start(circuit) as session:
            items = self._items(device, session)
            operator.note(session.states())
            self._note(session)
        return operator.between(self.arrivals, items, *self.between)

    def _of_pairs(self, device: Device) -> RowBatch:
        """The rows by pairs, all at once."""
        query, incoming = self._arriving, self.arrivals
        self._check_count()
        begin(_SESSION)
        with device.open_deciding(query) as session:
            items = self._items(device, session)
            self._note(session)
        return rows_of_pairs(query, device, incoming, items, self._gather, self.groups, self.between)

    def _items(self, device: Device, session: Session) -> Items:
        """All items of the query's pairs."""
        parts, matches, done = list[Items](), 0, 0
        # Where all pairs may not fit, small slices first tell whether they do.
        first = device.most_arrivals if self._most_pairs >= self._all_pairs else min(_FIRST, device.most_arrivals)
        for part, items in self._slices(device, session, first, 0):
            parts.append(items)
            matches += int(np.count_nonzero(items["kind"] == PAIR))
            done += len(part)
            self.watch(done, matches)
        parts = [part for part in (*parts, session.flush()) if len(part)]
        if len(parts) == 1:
            return parts[0]
        try:
            check_memory(matches, sum(part.nbytes for part in parts))
            return joined_items(parts)
        except MemoryError as error:
            raise too_large(matches) from error

    def _parts(self, device: Device, rows: int) -> Iterator[RowBatch]:
        """The rows by pairs, part by part: about ``rows`` of them, or fewer where memory is small."""
        rows = min(rows, max(_FIRST, room_for(self._all_pairs, _PART_BYTES)))
        operator = operator_of_pairs(self._arriving, self._gather)
        held, settled = np.empty(0, ITEM), [0, 0]
        begin(_SESSION)
        with device.open_deciding(self._arriving) as session:
            for part, items in self._slices(device, session, min(_FIRST, device.most_arrivals), rows):
                if self._arriving.is_pairs:
                    yield RowBatch(items)
                    continue
                operator.arrive(part)
                # In total order a star ends the items of each probe: those behind the last one wait for the rest.
                held = np.concatenate([held, items])
                stars = np.flatnonzero(held["kind"] == STAR)
                if len(stars):
                    known, held = held[:stars[-1] + 1], held[stars[-1] + 1:]
                    for side, name in enumerate(("r", "s")):
                        mine = known[(known["kind"] == STAR) & (known["side"] == side)]
                        settled[side] = int(mine[name][-1]) + 1 if len(mine) else settled[side]
                    yield operator.take(known, (settled[0], settled[1]))
            yield operator.finish(np.concatenate([held, session.flush()]))
            self._note(session)

    def _slices(self, device: Device, session: Session, size: int, rows: int) -> Iterator[tuple[Arrivals, Items]]:
        """Push all arrivals, and give each slice of them with the items that have come. The first one has ``size``
        arrivals; those of a device whose results are there at once so many that about ``rows`` come, if not 0.
        """
        rest, most = self.arrivals if len(self.arrivals) else None, device.most_arrivals
        with progress_bar(len(self.arrivals), "join", "rows") as bar:
            while rest is not None:
                part, rest = rest.split(size)
                session.push(part)
                items = session.poll()
                bar.update(len(part))
                yield part, items
                wanted = len(part) * rows // max(len(items), 1) if rows and device.immediate else most
                size = max(1, min(2 * size, wanted, most))

    @property
    def _arriving(self) -> Query:
        """The query in an order of arrivals, by which rows come but for order ``left``."""
        query = self.query
        return query if query.order.kind != "left" else replace(
            query, order=Order("none" if query.is_pairs else "total"))

    def _note(self, session: Session) -> None:
        """Note the facts about a ``session`` that has flushed."""
        self.facts = {"counters": session.counters(), "plan": session.plan(), "latencies": session.latencies(),
                      "region_counters": session.region_counters()}

    @property
    def _gather(self) -> Gather:
        """Gets columns by row id."""
        tables = {"r": self.arrivals.r, "s": self.arrivals.s}
        return lambda side, names, rows: [take(tables[side].column(name), indices(rows)) for name in names]
