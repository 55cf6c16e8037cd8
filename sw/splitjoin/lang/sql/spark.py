"""`SparkReader`: conditions in Spark's words, as its users write them and as its plans show them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from splitjoin.base.errors import PredicateError

from .. import build, functions
from ..calendar import UNITS
from ..casts import sql_type
from ..ir import CmpOp, Expr, Lit
from ..operations import OPERATIONS
from ..types import EXACT, STRING, UNIT_NS, Duration, Float, Timestamp
from .parser import SqlReader
from .source import Sql, sql_of
from .spark_times import TIME_FUNCTIONS, Maker, extracted, spark_cast

_CMP: dict[str, CmpOp] = {"=": "=", "==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "!=": "<>", "<>": "<>"}


def spark_functions(known: Mapping[str, Any]) -> dict[str, Any]:
    """The functions ``known`` to a parser, where those of Spark are read by their names, with their arguments in order;
    the first of three may be a unit.
    """
    def read(name: str) -> Callable[[list[Any]], exp.Expr]:
        def call(parts: list[Any]) -> exp.Expr:
            if len(parts) == 3 and isinstance(parts[0], exp.Column) and not parts[0].table:
                parts = [exp.var(parts[0].name), *parts[1:]]
            return exp.Anonymous(this=name, expressions=parts)

        return call

    return {**known, **{name.upper(): read(name) for name in TIME_FUNCTIONS}}


class _SparkParser(Sql.Parser):
    FUNCTIONS: ClassVar[dict[str, Any]] = spark_functions(Sql.Parser.FUNCTIONS)


class _SparkSql(Sql):
    """The dialect of conditions of Spark."""

    Parser = _SparkParser


class SparkReader(SqlReader):
    """Reads the text of a condition as `SqlReader` does, with Spark's functions of times, and others by its names."""

    dialect: ClassVar[type[Dialect]] = _SparkSql

    def node(self, e: exp.Expr) -> Expr:
        match e:
            case exp.Anonymous() if (found := self._found(e)) is not None:
                least, most, make = found
                if not least <= len(e.expressions) <= most:
                    raise self.unsupported(e)
                return make([Lit(STRING, a.name) if isinstance(a, exp.Var) else self.expr(a) for a in e.expressions],
                            self.quote(e))
            case exp.Extract():
                return extracted(e.name, self.expr(e.expression), self.quote(e))
            case exp.Interval(args={"unit": exp.IntervalSpan()}):
                return _interval(e, self.quote(e))
            case exp.Cast() if not (isinstance(e.this, exp.Literal) and e.this.is_string):
                to, a = e.args["to"], self.expr(e.this)
                if is_interval(sql_of(to)) and isinstance(a.type, Duration):
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
        return None if name in OPERATIONS or name.startswith("date") else SPARK_FUNCTIONS.get(name)

    def unsupported(self, e: exp.Expr) -> PredicateError:
        error = super().unsupported(e)
        return PredicateError(f"{error}; and of Spark {', '.join(f'{name}()' for name in TIME_FUNCTIONS)}, extract()"
                              ) if "it may hold" in str(error) else error


def is_interval(to: str) -> bool:
    """True for an INTERVAL type that has all that is shorter than a day."""
    return re.fullmatch(r"interval ((day|hour|minute) to )?second", to.lower()) is not None


def _interval(e: exp.Expr, at: str) -> Lit:
    """``INTERVAL '1 02:03:04.5' DAY TO SECOND``, and between others of its units."""
    units = ("DAY", "HOUR", "MINUTE", "SECOND")
    first, last = (str(e.args["unit"].args[name]).upper() for name in ("this", "expression"))
    names = units[units.index(first):units.index(last) + 1] if {first, last} <= set(units) else ()
    fields = {"DAY": r"(\d{1,9}) ", last: r"(\d{1,9})" if last != "SECOND" else r"(\d{1,9}(?:\.\d{1,9})?)"}
    pattern = "".join(fields.get(name, r"(\d{1,9}):") for name in names)
    found = re.fullmatch(f"([+-]?){pattern}", e.this.name.strip(), re.ASCII)
    if not names or found is None:
        raise PredicateError(f"{at!r}: an INTERVAL of several units must be written as INTERVAL '1 02:03:04' DAY TO "
                             f"SECOND, or with fewer of these")
    sign, *numbers = found.groups()
    ns = sum(Fraction(n) * UNIT_NS[unit] for n, unit in zip(numbers, names, strict=True))
    return build.duration(int(-ns if sign == "-" else ns))


def _of(rule: Callable[..., Expr], *fixed: Any) -> Maker:
    """The type rule ``rule`` of as many operands as come, behind the arguments ``fixed``."""
    return lambda p, at: rule(*fixed, *p, at)


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


_MANY = 1 << 30
#: Name → the least and the greatest number of its arguments, and what it is.
SPARK_FUNCTIONS: dict[str, tuple[int, int, Maker]] = {
    **{symbol: (2, 2, _of(build.compare, op)) for symbol, op in _CMP.items()},
    **{symbol: (2, 2, _of(build.arith, symbol)) for symbol in "+-*"},
    "/": (2, 2, _of(build.divide)),
    **dict.fromkeys(("%", "mod"), (2, 2, _of(build.remainder, "mod"))), "div": (2, 2, _of(build.remainder, "div")),
    "and": (2, _MANY, build.and_), "or": (2, _MANY, build.or_),
    **dict.fromkeys(("!", "not"), (1, 1, _of(build.not_))),
    "<=>": (2, 2, lambda p, at: build.not_(functions.distinct(p[0], p[1], at), at)),
    "negative": (1, 1, _of(build.neg)), "abs": (1, 1, _of(build.abs_)), "isnull": (1, 1, _of(build.is_null)),
    "isnotnull": (1, 1, lambda p, at: build.not_(build.is_null(p[0], at), at)),
    "between": (3, 3, _of(build.between)),
    "in": (2, _MANY, lambda p, at: functions.in_(p[0], p[1:], at)),
    "startswith": (2, 2, _of(functions.starts_with)), "like": (2, 2, _of(functions.like)),
    "sqrt": (1, 1, _of(functions.square_root)),
    "floor": (1, 1, _of(functions.rounded, "floor")),
    **dict.fromkeys(("ceil", "ceiling"), (1, 1, _of(functions.rounded, "ceil"))),
    "round": (1, 2, _round), "date_trunc": (2, 2, _date_trunc),
    "coalesce": (1, _MANY, functions.coalesce), "ifnull": (2, 2, functions.coalesce), "nvl": (2, 2, functions.coalesce),
    "nullif": (2, 2, _of(functions.nullif)),
    **{name: (2, _MANY, partial(functions.extreme, name)) for name in ("least", "greatest")},
    **{o.name: (o.operands, o.operands, partial(functions.operation, o.name)) for o in OPERATIONS.values()},
    **TIME_FUNCTIONS,
    "~": (1, 1, _of(functions.complement)),
    "shiftleft": (2, 2, _of(functions.shift, "<<")), "shiftright": (2, 2, _of(functions.shift, ">>")),
}
