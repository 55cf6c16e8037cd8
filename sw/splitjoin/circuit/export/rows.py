"""The way from a row to the fields of its record, as plain data from which both writers of row functions take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from splitjoin.base.errors import UnsupportedError
from splitjoin.engines.arrival import Arrivals
from splitjoin.lang.ir import MIRRORED, Col, Expr, IsNull, Within, text
from splitjoin.lang.properties import denominator, value_range
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side, other_side
from splitjoin.lang.types import Bool, Date, Decimal, Duration, Float, Int, Timestamp
from splitjoin.plan.encoding import Coder
from splitjoin.plan.keys import ExactKey, FloatKey, Key, TextKey, UnitKey, WideKey
from splitjoin.plan.linear import ExactRelation, LinearTerm
from splitjoin.plan.plan import KeySlot
from splitjoin.plan.relations import FloatOrder, Relation, Unit

from ..core_kinds import BucketGrid, Span
from ..index_coders import OrderedCells
from ..lowering import longest_range
from ..query_circuit import QueryCircuit

#: A value: a whole number, a column's value by its name, or an operation on values, its name first: ``+ - * //``,
#: ``< > >=``, ``|`` of truth values, ``least``, ``most``, ``null`` (True for a NULL), ``float`` (a float's code), and
#: ``pick`` (by a truth value one of two others, alone evaluated).
Term = Any
#: Numbers of this many bits are computed with in C.
_WIDEST = 126


@dataclass(frozen=True)
class RowColumn:
    """A column that a record depends on: ``low`` to ``high`` are its whole numbers, ``scale`` times the value.
    ``unit``: of times; ``zoned`` ones are instants. ``bits``: of a float, else 0.
    """

    type: str
    null: bool
    low: int = 0
    high: int = 0
    scale: int = 1
    unit: str = ""
    zoned: bool = False
    bits: int = 0


@dataclass(frozen=True)
class RowFields:
    """The records of a stream's rows. ``fields``: of the body, modulo 2^bits. ``time``: the column with the event time,
    None where records have none; a longer step of it than ``gap`` is sent as ``gap``, and times count from the first
    one, but where ``gap`` is None, as several sources have no steps in common, they are sent as they are. ``bits``: of
    the widest number on the way, with its sign.
    """

    columns: dict[str, RowColumn]
    fields: dict[str, Term]
    time: str | None
    gap: int | None
    bits: int


def row_fields(query: Query, circuit: QueryCircuit, sample: Arrivals) -> dict[str, RowFields]:
    """Stream → the records of its rows; ``circuit`` is that of ``query``. The cells of an index are as wide as a
    session chooses them that begins with the tuples ``sample``.

    Raises `UnsupportedError`, which names what row functions do not compute.
    """
    grid, coder = circuit.config.kind.index_coder(circuit.plan, circuit.config), Coder(circuit.plan)
    if isinstance(grid, OrderedCells):
        raise _refused("the cells of core ordered, which depend on the tuples before")
    grid.learn({side: coder.codes(side, sample.table(side)) for side in ("r", "s")})
    cells = grid.widths if isinstance(grid, BucketGrid) else None
    return {side: _Rows(query, circuit, cells, side).made() for side in ("r", "s")}


def described_rows(query: Query, circuit: QueryCircuit, sample: Arrivals) -> dict[str, RowFields] | str:
    """The `row_fields`, or the reason why there are no row functions."""
    try:
        return row_fields(query, circuit, sample)
    except UnsupportedError as error:
        return str(error)


class _Rows:
    def __init__(self, query: Query, circuit: QueryCircuit, cells: dict[str, list[float]] | None, side: Side):
        self._query, self._circuit, self._cells, self._side = query, circuit, cells, side
        self._columns: dict[str, RowColumn] = {}
        self._bits = 8

    def made(self) -> RowFields:
        """The description of the stream's rows."""
        circuit, side = self._circuit, self._side
        plan, config = circuit.plan, circuit.config
        mine, theirs = plan.slots(side), plan.slots(other_side(side))
        fields = {f"key{n}": self._pick(slot, 0, self._code(slot.key)) for n, slot in enumerate(mine)}
        bounds = []
        for j, test in enumerate(plan.tests):
            here, there = (test.r, test.s) if side == "r" else (test.s, test.r)
            parts = [self._interval(relation, mine[here].key, theirs[there].key) for relation in test.relations]
            low = self._pick(mine[here], 2**theirs[there].key.width - 1, _chain("most", [part[0] for part in parts]))
            high = self._pick(mine[here], 0, _chain("least", [part[1] for part in parts]))
            bounds.append((low, high))
            wide = config.test_widths[j]
            fields |= {f"lo{j}": low, f"hi{j}": high} if wide is None else {f"lo{j}": self._low_end(
                low, high, wide, dict(config.bounds(side).fields)[f"lo{j}"])}
        for j, sums in enumerate(plan.sums):
            slots, rest = (sums.r, sums.rest_r) if side == "r" else (sums.s, sums.rest_s)
            for n, (axis, slot) in enumerate(zip(sums.relation.axes, slots, strict=True)):
                offset = axis.c - axis.s.low if side == "r" else -axis.c - axis.r.low
                fields[f"at{j}_{n}"] = self._pick(mine[slot], 0, _plus(self._value(mine[slot].key), offset))
            if config.sums[j].limited:
                key = sums.relation.keys(other_side(side))[-1]
                limit = sums.relation.limit + 1 - (0 if key is None else key.low)
                left: Term = limit if rest is None else self._pick(
                    mine[rest], 0, ("-", limit, self._value(mine[rest].key)))
                fields[f"limit{j}"] = ("least", ("most", left, 0), max(0, sums.relation.most + 1))
        for n, j in enumerate(config.index if config.kind.stored_fields(config, side) else ()):
            fields |= self._cell(n, *bounds[j], fields[f"key{plan.tests[j].r if side == 'r' else plan.tests[j].s}"])
        if circuit.folding is not None and side == "s":
            for n, stored in enumerate(circuit.folding.values):
                if stored.expr is None:
                    continue
                if stored.value.ranged:
                    raise _refused(f"the width that a class states for {text(stored.expr)}")
                value = self._exact((LinearTerm(1, stored.expr, denominator(stored.expr)),))
                null = self._null((stored.expr,))
                for name, of in (("value", value), ("present", 1)):
                    fields[f"{name}{n}"] = ("pick", _chain("|", null), 0, of) if null else of
        length = longest_range(circuit.query)
        time = self._query.time.name(side) if config.time_bits and self._query.time is not None else None
        if time is not None:
            self._column(next(column for column in (self._query.r, self._query.s)[side == "s"] if column.name == time))
        body = [name for name, _ in config.body(side).fields]
        self._bits = max(self._bits, *(bits + 2 for _, bits in config.body(side).fields), *(
            max(abs(c.low), abs(c.high)).bit_length() + 2 for c in self._columns.values()))
        if self._bits > _WIDEST:
            raise _refused(f"numbers of {self._bits} bits")
        gap = None if config.sources > 1 else 0 if length is None else length + 1
        return RowFields(self._columns, {name: fields[name] for name in body}, time, gap, self._bits)

    def _column(self, column: Any) -> None:
        """Add ``column``, a `Col` or a column of the schema."""
        kind, null = column.type, column.nullable
        if isinstance(kind, Float):
            self._columns[column.name] = RowColumn(str(kind), null, bits=kind.bits)
        elif isinstance(kind, (Int, Bool, Decimal, Date, Timestamp, Duration)):
            col = Col(kind, self._side, column.name, null, column.range) if not isinstance(column, Col) else column
            scale = denominator(col)
            low, high = (int(end * scale) for end in value_range(col))
            unit = "day" if isinstance(kind, Date) else kind.unit if isinstance(kind, (Timestamp, Duration)) else ""
            self._columns[column.name] = RowColumn(str(kind), null, low, high, scale, unit,
                                                   isinstance(kind, Timestamp) and kind.tz is not None)
        else:
            raise _refused(f"values of type {kind}, such as {self._side}.{column.name}")

    def _null(self, exprs: Sequence[Expr]) -> list[Term]:
        """Conditions one of which holds exactly if one of ``exprs``, columns or their parts in a range, is NULL."""
        found: list[Term] = []
        for e in exprs:
            inner = e.a if isinstance(e, Within) else e
            found += [("null", inner.name)] if isinstance(inner, Col) and inner.nullable else []
            if isinstance(e, Within) and isinstance(inner, Col):
                found += [("<", inner.name, e.low), (">", inner.name, e.high)]
        return found

    def _pick(self, slot: KeySlot, null: Term, other: Term) -> Term:
        """``other``, or ``null`` where the key of ``slot`` is NULL or a guard does not hold."""
        key = slot.key
        found = self._null([t.expr for t in key.terms] if isinstance(key, ExactKey) else [key.expr] if isinstance(
            key, FloatKey) else [])
        for guard in slot.guards:
            if not isinstance(guard.condition, IsNull) or guard.values != {"false"} or not isinstance(
                    guard.condition.a, Col):
                raise _refused(f"the condition {text(guard.condition)} on {self._side} alone")
            self._column(guard.condition.a)
            found += self._null((guard.condition.a,))
        return ("pick", _chain("|", list(dict.fromkeys(found))), null, other) if found else other

    def _exact(self, terms: tuple[LinearTerm, ...]) -> Term:
        parts: list[Term] = []
        for term in terms:
            column = term.expr.a if isinstance(term.expr, Within) else term.expr
            if not isinstance(column, Col):
                raise _refused(f"the expression {text(column)}")
            self._column(column)
            factor = term.factor * term.scale // denominator(column)
            parts.append(column.name if factor == 1 else ("*", factor, column.name))
        return _chain("+", parts)

    def _value(self, key: Key) -> Term:
        assert isinstance(key, ExactKey)
        self._reach(sum(max(abs(x * t.factor * t.scale) for x in value_range(t.expr)) for t in key.terms))
        return self._exact(key.terms)

    def _reach(self, most: Any) -> None:
        self._bits = max(self._bits, int(most).bit_length() + 3)

    def _code(self, key: Key) -> Term:
        """The code of a key of this stream whose value is not NULL."""
        if isinstance(key, UnitKey):
            return 1
        if isinstance(key, ExactKey):
            return _plus(self._value(key), key.nullable - key.low)
        if isinstance(key, FloatKey) and isinstance(key.expr, Col):
            self._column(key.expr)
            return ("float", key.expr.name, key.bits, 1 if key.nan_low else 2**key.bits - 1)
        if isinstance(key, TextKey):
            raise _refused(f"the key {text(key.expr)}: the dictionary of a session gives texts their numbers")
        raise _refused("keys of more than 64 bits" if isinstance(key, WideKey) else f"the key {text(key.expr)}")

    def _interval(self, relation: Relation, mine: Key, theirs: Key) -> tuple[Term, Term]:
        """The lowest and the highest code of the other stream's key for which ``relation`` holds."""
        if isinstance(relation, Unit):
            return 1, 1
        if isinstance(relation, FloatOrder) and isinstance(theirs, FloatKey):
            code, low, high = self._code(mine), theirs.low_code, theirs.high_code
            op = relation.op if self._side == "s" else MIRRORED[relation.op]
            above = (">=", code, high)
            return {"<=": (low, code), ">=": (code, high), "=": (code, code), "<": (low, ("-", code, 1)),
                    ">": (("pick", above, high, ("+", code, 1)), ("pick", above, 0, high))}[op]
        if not isinstance(relation, ExactRelation) or not isinstance(theirs, ExactKey):
            raise _refused(f"tests of this sort ({type(relation).__name__})")
        factor, divisor = relation.factors(self._side)
        sign, op = (-1, MIRRORED[relation.op]) if divisor < 0 else (1, relation.op)
        factor, constant, divisor = -factor * sign, -relation.c * sign, abs(divisor)
        assert isinstance(mine, ExactKey)
        self._reach(abs(factor) * max(abs(mine.low), abs(mine.high)) + abs(constant)
                    + max(abs(theirs.low), abs(theirs.high)))
        value = self._value(mine)
        target: Term = _plus(value if factor == 1 else ("*", factor, value), constant)
        floor = target if divisor == 1 else ("//", target, divisor)
        ceil = target if divisor == 1 else ("-", 0, ("//", ("-", 0, target), divisor))
        offset = theirs.nullable - theirs.low
        empty = {">=": (">", ceil, theirs.high), "<=": ("<", floor, theirs.low)}
        empty["="] = _chain("|", [empty["<="], empty[">="], *([] if divisor == 1 else [(">", ceil, floor)])])
        low = theirs.low + offset if op == "<=" else _plus(("most", ceil, theirs.low), offset)
        high = theirs.high + offset if op == ">=" else _plus(("least", floor, theirs.high), offset)
        return ("pick", empty[op], 2**theirs.width - 1, low), ("pick", empty[op], 0, high)

    def _low_end(self, low: Term, high: Term, wide: int, bits: int) -> Term:
        """The bound of `splitjoin.circuit.encode`: below 0 where the key's range cuts the interval off."""
        cut: Term = ("pick", ("|", (">", low, 0), (">=", high, wide)), low, ("-", high, wide))
        return ("pick", (">", low, high), 2**(bits - 1), cut)

    def _cell(self, n: int, low: Term, high: Term, key: Term) -> dict[str, Term]:
        widths = {} if self._cells is None else self._cells
        slot = self._circuit.plan.tests[self._circuit.config.index[n]]
        here, there = self._side, other_side(self._side)
        if isinstance(self._circuit.plan.slots_r[slot.r].key, FloatKey):
            raise _refused("the cells of floats in an index")
        own, other = (max(1, int(min(widths[side][n], 2.0**63))) if side in widths else 1 for side in (here, there))
        first, last = ("//", low, other), ("//", high, other)
        return {f"cell{n}": ("//", key, own), f"first{n}": first,
                f"span{n}": ("pick", (">", low, high), Span.NONE.value, ("least", ("-", last, first), Span.MANY.value))}


def _plus(value: Term, offset: int) -> Term:
    return ("+", value, offset) if offset else value


def _chain(op: str, parts: Sequence[Term]) -> Term:
    made = parts[0]
    for part in parts[1:]:
        made = (op, made, part)
    return made


def _refused(of: str) -> UnsupportedError:
    return UnsupportedError(f"row functions do not compute {of}; pack the fields of such records with tuple_record")
