"""`ColumnReader`: what Spark's functions and operators mean in a condition, whatever kind of session made them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Literal

from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code uses
from sqlglot import exp

from splitjoin.base.errors import PredicateError, SplitJoinError
from splitjoin.lang import build, functions
from splitjoin.lang.build import find_column
from splitjoin.lang.calendar import UNITS
from splitjoin.lang.casts import cast, named_type, sql_type
from splitjoin.lang.ir import MAX_DEPTH, ArithOp, CmpOp, Expr, Lit, too_deep
from splitjoin.lang.operations import OPERATIONS, functions as integer_functions
from splitjoin.lang.schema import Schema
from splitjoin.lang.sql.parser import SqlReader, parse_sql
from splitjoin.lang.sql.source import Sql, sql_of
from splitjoin.lang.types import EXACT, STRING, UNIT_NS, Duration, Float, Timestamp

from .time_functions import TIME_FUNCTIONS, Maker, extracted, spark_cast

__all__ = ["ColumnReader", "SparkReader", "chain", "unsupported"]

_CMP: dict[str, CmpOp] = {"=": "=", "==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "!=": "<>", "<>": "<>"}


class ColumnReader:
    """Makes IR of the nodes of a tree; a subclass knows the nodes of one kind of session."""

    def __init__(self, r: Schema, s: Schema):
        self._schemas: dict[str, Schema] = {"r": r, "s": s}
        self._depth = 0
        self._placed = False

    def expr(self, node: Any) -> Expr:
        """The IR of ``node``. Raises a `SplitJoinError` with the place of the part that is wrong."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise too_deep()
        try:
            return self._node(node)
        except SplitJoinError as error:
            place = None if self._placed else self._place(node)
            if place is None:
                raise
            self._placed = True  # the innermost part with a place is the wrong one
            raise type(error)(f"{error}\n  {place}") from None
        finally:
            self._depth -= 1

    def _node(self, node: Any) -> Expr:
        raise NotImplementedError

    def _place(self, node: Any) -> str | None:
        """The place in the user's Python that made ``node``, as ``file.py:7``; None if Spark did not note it."""
        raise NotImplementedError

    def _named(self, parts: Sequence[str], at: str) -> Expr:
        if len(parts) > 2:
            raise unsupported(at, "a name of more than two parts")
        return find_column(self._schemas, parts[-1], parts[0] if len(parts) == 2 else None, at)

    def _called(self, name: str, operands: Sequence[Any], at: str, *, plain: bool = True) -> Expr:
        """A call of the function ``name``; not ``plain``: a user-defined one, or one of distinct values."""
        parts = [self.expr(a) for a in operands]
        found = _FUNCTIONS.get(name)
        if found is None or not plain:
            raise unsupported(at, f"function {name.upper()}")
        least, most, make = found
        if not least <= len(parts) <= most:
            raise unsupported(at, f"function {name.upper()} of {len(parts)} values")
        return make(parts, at)

    def _case(self, branches: Sequence[tuple[Any, Any]], otherwise: Any | None, at: str) -> Expr:
        read = [(self.expr(when), self.expr(then)) for when, then in branches]
        last = build.literal(None, at) if otherwise is None else self.expr(otherwise)
        return functions.case([w for w, _ in read], [t for _, t in read], last, at)

    def _sql(self, text: str) -> Expr:
        return parse_sql(text, self._schemas["r"], self._schemas["s"], value=True, reader=SparkReader)

    def _cast(self, child: Any, to: str, tried: bool, at: str) -> Expr:
        if tried:
            raise PredicateError(f"{at!r}: TRY_CAST is not supported in a condition; write a cast")
        a = self.expr(child)
        if _is_interval(to) and isinstance(a.type, Duration):
            return a
        kind = named_type(to, at)
        return spark_cast(a, kind, at) or cast(a, kind, at)


class _SparkParser(Sql.Parser):
    """Reads functions of Spark by their names, with their arguments in order."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {
        name: node for name, node in Sql.Parser.FUNCTIONS.items() if name.lower() not in TIME_FUNCTIONS}


class _SparkSql(Sql):
    """The dialect of conditions of Spark."""

    Parser = _SparkParser


class SparkReader(SqlReader):
    """Reads the text of a condition as `SqlReader` does, with Spark's functions of times, and others by its names."""

    dialect = _SparkSql

    def node(self, e: exp.Expr) -> Expr:
        match e:
            case exp.Anonymous() if (found := self._found(e)) is not None:
                least, most, make = found
                if not least <= len(e.expressions) <= most:
                    raise self.unsupported(e)
                unit = len(e.expressions) == 3 and isinstance(e.expressions[0], exp.Column)
                first = [Lit(STRING, e.expressions[0].name)] if unit else []
                return make([*first, *(self.expr(a) for a in e.expressions[len(first):])], self.quote(e))
            case exp.Extract():
                return extracted(e.name, self.expr(e.expression), self.quote(e))
            case exp.Interval(args={"unit": exp.IntervalSpan()}):
                return _day_to_second(e, self.quote(e))
            case exp.Cast() if not (isinstance(e.this, exp.Literal) and e.this.is_string):
                to, a = e.args["to"], self.expr(e.this)
                if _is_interval(sql_of(to)) and isinstance(a.type, Duration):
                    return a
                if (made := spark_cast(a, sql_type(to), self.quote(e))) is not None:
                    return made
        return super().node(e)

    def _found(self, e: exp.Anonymous) -> tuple[int, int, Maker] | None:
        """The function of Spark that ``e`` calls; None for one of the language, as with a unit in quotes."""
        name, first = e.name.lower(), e.expressions[:1]
        if name in TIME_FUNCTIONS:
            quoted = len(e.expressions) == 3 and isinstance(first[0], exp.Literal) and first[0].is_string
            return None if quoted and name in ("datediff", "date_diff") else TIME_FUNCTIONS[name]
        return None if name in OPERATIONS or name.startswith("date") else _FUNCTIONS.get(name)

    def unsupported(self, e: exp.Expr) -> PredicateError:
        error = super().unsupported(e)
        return PredicateError(f"{error}; and of Spark {', '.join(f'{name}()' for name in TIME_FUNCTIONS)}, extract()"
                              ) if "it may hold" in str(error) else error


def _is_interval(to: str) -> bool:
    """True for an INTERVAL type that has all that is shorter than a day."""
    return re.fullmatch(r"interval ((day|hour|minute) to )?second", to.lower()) is not None


def _day_to_second(e: exp.Expr, at: str) -> Lit:
    """``INTERVAL '1 02:03:04.5' DAY TO SECOND``."""
    span, text = e.args["unit"], e.this.name.strip()
    found = re.fullmatch(r"([+-]?)(?:(\d+) )?(\d+):(\d+):(\d+(?:\.\d{1,9})?)", text)
    if found is None or str(span.expression).upper() != "SECOND" or (found[2] is None) == (str(span.this) == "DAY"):
        raise PredicateError(f"{at!r}: an INTERVAL of several fields must be written as INTERVAL '1 02:03:04' DAY TO "
                             f"SECOND or INTERVAL '02:03:04' HOUR TO SECOND")
    sign, *numbers = found.groups()
    units = (UNIT_NS[unit] for unit in ("DAY", "HOUR", "MINUTE", "SECOND"))
    ns = sum(Fraction(n or 0) * unit for n, unit in zip(numbers, units, strict=True))
    return build.duration(int(-ns if sign == "-" else ns))


def chain(node: Any, parts: Callable[[Any], list[Any]], same: Callable[[Any], bool]) -> list[Any]:
    """The operands of a whole chain of AND or OR, which is one level: ``parts`` gives those of a node, and ``same`` is
    true of a node that goes on with the chain.
    """
    todo, found = parts(node)[::-1], list[Any]()
    while todo:
        part = todo.pop()
        if same(part):
            todo += parts(part)[::-1]
        else:
            found.append(part)
    return found


def unsupported(at: str, what: str) -> PredicateError:
    """The error for a part ``at`` of a condition that is ``what``."""
    name, inner, _ = at.partition("(columnnodeexpression(")  # how Spark writes what a Python function is given
    at = f"{name}(…)" if inner else at
    return PredicateError(f"{at!r}: {what} is not supported in a condition of Spark Columns; it may hold columns, "
                          f"literals, operators, cast, between, isin, isNull, eqNullSafe, startswith, like, F.when, "
                          f"F.expr and F.{', F.'.join(_SHOWN)}")


def _compare(op: CmpOp) -> Callable[[list[Expr], str], Expr]:
    return lambda p, at: build.compare(op, p[0], p[1], at)


def _rounded(name: Literal["floor", "ceil"]) -> Callable[[list[Expr], str], Expr]:
    return lambda p, at: functions.rounded(name, p[0], at)


def _arith(op: ArithOp) -> Callable[[list[Expr], str], Expr]:
    return lambda p, at: build.arith(op, p[0], p[1], at)


def _round(p: list[Expr], at: str) -> Expr:
    if len(p) == 1 or p[1] == Lit(EXACT, 0):
        return functions.rounded("round", p[0], at)
    if isinstance(p[0].type, Float):
        raise PredicateError(f"{at!r}: Spark rounds the decimal digits that a float prints as; round the column "
                             f"before the join, or cast it to a decimal there")
    return functions.rounded_to(p[0], p[1], at)


def _date_trunc(p: list[Expr], at: str) -> Expr:
    if isinstance(p[1].type, Timestamp) and p[1].type.tz is not None:
        raise PredicateError(f"{at!r}: Spark truncates a timestamp in the session's time zone; truncate the column "
                             f"before the join, or cast it to timestamp_ntz there")
    if isinstance(p[0], Lit) and str(p[0].value).lower() not in UNITS:  # of other units Spark makes NULL
        raise PredicateError(f"{at!r}: the unit of date_trunc() must be one of {', '.join(UNITS)}, not {p[0]}")
    return functions.date_trunc(p[0], p[1], at)


_ROUNDED: dict[str, Literal["floor", "ceil"]] = {"floor": "floor", "ceil": "ceil", "ceiling": "ceil"}
_MANY = 1 << 30
#: Name → the least and the greatest number of its arguments, and what it is.
_FUNCTIONS: dict[str, tuple[int, int, Callable[[list[Expr], str], Expr]]] = {
    **{symbol: (2, 2, _compare(op)) for symbol, op in _CMP.items()},
    "+": (2, 2, _arith("+")), "-": (2, 2, _arith("-")), "*": (2, 2, _arith("*")),
    "/": (2, 2, lambda p, at: build.divide(p[0], p[1], at)),
    "%": (2, 2, lambda p, at: build.remainder("mod", p[0], p[1], at)),
    "mod": (2, 2, lambda p, at: build.remainder("mod", p[0], p[1], at)),
    "div": (2, 2, lambda p, at: build.remainder("div", p[0], p[1], at)),
    "and": (2, _MANY, build.and_), "or": (2, _MANY, build.or_),
    "!": (1, 1, lambda p, at: build.not_(p[0], at)), "not": (1, 1, lambda p, at: build.not_(p[0], at)),
    "<=>": (2, 2, lambda p, at: build.not_(functions.distinct(p[0], p[1], at), at)),
    "negative": (1, 1, lambda p, at: build.neg(p[0], at)), "abs": (1, 1, lambda p, at: build.abs_(p[0], at)),
    "isnull": (1, 1, lambda p, at: build.is_null(p[0], at)),
    "isnotnull": (1, 1, lambda p, at: build.not_(build.is_null(p[0], at), at)),
    "between": (3, 3, lambda p, at: build.between(p[0], p[1], p[2], at)),
    "in": (2, _MANY, lambda p, at: functions.in_(p[0], p[1:], at)),
    "startswith": (2, 2, lambda p, at: functions.starts_with(p[0], p[1], at)),
    "like": (2, 2, lambda p, at: functions.like(p[0], p[1], at)),
    "sqrt": (1, 1, lambda p, at: functions.square_root(p[0], at)),
    **{name: (1, 1, _rounded(function)) for name, function in _ROUNDED.items()},
    "round": (1, 2, _round), "date_trunc": (2, 2, _date_trunc),
    "coalesce": (1, _MANY, functions.coalesce), "ifnull": (2, 2, functions.coalesce), "nvl": (2, 2, functions.coalesce),
    "nullif": (2, 2, lambda p, at: functions.nullif(p[0], p[1], at)),
    "least": (2, _MANY, lambda p, at: functions.extreme("least", p, at)),
    "greatest": (2, _MANY, lambda p, at: functions.extreme("greatest", p, at)),
    **{o.name: (o.operands, o.operands, partial(functions.operation, o.name)) for o in OPERATIONS.values()},
    **TIME_FUNCTIONS,
    "~": (1, 1, lambda p, at: functions.complement(p[0], at)),
    "shiftleft": (2, 2, lambda p, at: functions.shift("<<", p[0], p[1], at)),
    "shiftright": (2, 2, lambda p, at: functions.shift(">>", p[0], p[1], at)),
}
_SHOWN = sorted(("abs", "coalesce", "greatest", "ifnull", "least", "negative", "nullif", "shiftleft", "shiftright",
                 *(o.name for o in integer_functions()), *(name for name in TIME_FUNCTIONS if hasattr(F, name))))
