"""SQL text → IR: the condition of a join, parsed by sqlglot and typed by `splitjoin.lang.build`."""

from __future__ import annotations

import contextlib
import itertools
import re
from fractions import Fraction
from typing import Any, ClassVar

from sqlglot import exp, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError

from ..errors import PredicateError, SchemaError
from . import build
from .depth import MAX_DEPTH, too_deep
from .ir import ArithOp, CmpOp, Expr, Lit
from .literals import MAX_DIGITS
from .schema import Schema, suggest
from .types import DATE, UNIT_NS, Date, Timestamp

__all__ = ["SUPPORTED", "parse_sql"]

#: What errors say a condition may hold.
SUPPORTED = ("columns, literals, + - *, abs(), = <> < <= > >=, BETWEEN, AND, OR, NOT, IS [NOT] NULL, IS [NOT] TRUE and "
             "IS [NOT] FALSE")

_CLOSING = re.compile(r"\)")
_CMP: dict[type[exp.Expr], CmpOp] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}
_ARITH: dict[type[exp.Expr], ArithOp] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_TIMES: dict[exp.DType, Date | Timestamp] = {
    exp.DType.DATE: DATE, exp.DType.TIMESTAMP: Timestamp("us"), exp.DType.TIMESTAMPNTZ: Timestamp("us"),
    exp.DType.TIMESTAMPTZ: Timestamp("us", "UTC"), exp.DType.TIMESTAMPLTZ: Timestamp("us", "UTC"),
}
#: Names for what people try first; everything else is named by its node or function.
_NAMES: dict[type[exp.Expr], str] = {
    exp.Div: "division", exp.IntDiv: "division", exp.Mod: "the remainder (%)", exp.DPipe: "concatenation (||)",
    exp.BitwiseAnd: "a bit operation", exp.BitwiseOr: "a bit operation", exp.BitwiseXor: "a bit operation",
    exp.BitwiseNot: "a bit operation", exp.BitwiseLeftShift: "a bit operation",
    exp.BitwiseRightShift: "a bit operation", exp.Xor: "XOR", exp.Like: "LIKE", exp.ILike: "ILIKE",
    exp.SimilarTo: "SIMILAR TO", exp.RegexpLike: "a regular expression", exp.In: "IN (write = and OR)",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM", exp.Case: "CASE", exp.If: "IF",
    exp.Cast: "a cast (cast the column before the join)", exp.TryCast: "a cast (cast the column before the join)",
    exp.Subquery: "a subquery", exp.Select: "a subquery", exp.Exists: "a subquery", exp.Any: "ANY", exp.All: "ALL",
    exp.Window: "a window function", exp.Placeholder: "a parameter", exp.Parameter: "a parameter",
    exp.Tuple: "a tuple", exp.Bracket: "an element by index", exp.Dot: "a nested field", exp.Star: "*",
    exp.AtTimeZone: "AT TIME ZONE", exp.Between: "BETWEEN SYMMETRIC", exp.Column: "a name of more than two parts",
    exp.Is: "IS with anything but NULL, TRUE and FALSE",
}


class _Sql(Dialect):
    """sqlglot's own dialect, with Spark's `name` beside the standard's "name"."""

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[list[Any]] = ['"', "`"]


def parse_sql(text: str, r: Schema, s: Schema) -> Expr:
    """The IR of an SQL condition over the streams ``r`` and ``s``.

    Columns are written ``r.x`` and ``s.a``, or just ``x`` where only one stream has it. Raises `PredicateError` for
    text that cannot be read and for parts that are not supported or ill-typed, quoting them, and `SchemaError` for
    columns.
    """
    try:
        parsed = _parse(text)
        # Finding the user's own text of every part costs more than all the rest, and only errors show it.
        with contextlib.suppress(PredicateError, SchemaError):
            return _Reader(text, r, s).condition(parsed)
        return _Reader(text, r, s, quoting=True).condition(parsed)
    except RecursionError:
        raise too_deep() from None


def _parse(text: str) -> exp.Expr:
    dialect = _Sql()
    try:
        parts = dialect.parser().parse_into(exp.Condition, dialect.tokenize(text), text)
    except ParseError as error:
        raise PredicateError(_unreadable(text, error)) from None
    except TokenError as error:
        raise PredicateError(_untokenizable(text, error)) from None
    found = [p for p in parts if p is not None]
    if not found:
        raise PredicateError("the condition is empty; write for example 'abs(r.x - s.a) <= 10'")
    if len(found) > 1:
        raise PredicateError(f"one condition is needed, not the {len(found)} in {_short(text)!r}; combine them with "
                             f"AND or OR instead of ';'")
    return found[0]


class _Reader:
    """Turns sqlglot's tree of one condition into IR."""

    def __init__(self, text: str, r: Schema, s: Schema, *, quoting: bool = False):
        self.text = text
        self.quoting = quoting
        self.schemas = {"r": r, "s": s}
        self.depth = 0

    def condition(self, e: exp.Expr) -> Expr:
        return build.condition(self.expr(e), self.text.strip())

    def expr(self, e: exp.Expr) -> Expr:
        self.depth += 1
        if self.depth > 2 * MAX_DEPTH:  # parentheses have a level here, but none in the IR
            raise too_deep()
        try:
            return self.node(e)
        finally:
            self.depth -= 1

    def node(self, e: exp.Expr) -> Expr:
        kind = type(e)
        # An argument that is not read here (a frame, a modifier, …) would change the meaning: refuse it.
        a: Any = e.args.get("this")
        b: Any = e.args.get("expression")
        known = {"this", "expression", "low", "high", "is_string", "quoted", "table", "unit", "to"}
        if any(v for k, v in e.args.items() if k not in known):
            raise self.unsupported(e)
        if kind is exp.Paren:
            return self.expr(a)
        if kind is exp.Column:
            return self.column(e)
        if kind is exp.Literal:
            return build.literal(e.name, self.quote(e)) if e.is_string else self.number(e.name)
        if kind is exp.Boolean:
            return build.literal(bool(a), self.quote(e))
        if kind is exp.Null:
            return build.literal(None, self.quote(e))
        if kind is exp.Interval:
            return self.interval(e)
        if kind is exp.Cast:
            return self.time(e)
        if kind is exp.Neg:
            return build.neg(self.expr(a), self.quote(e))
        if kind is exp.Abs:
            return build.abs_(self.expr(a), self.quote(e))
        if kind is exp.Not:
            return build.not_(self.expr(a), self.quote(e))
        if kind is exp.Between:
            return build.between(self.expr(a), self.expr(e.args["low"]), self.expr(e.args["high"]), self.quote(e))
        if kind is exp.Is:
            return self.is_(e)
        if kind in _ARITH:
            return build.arith(_ARITH[kind], self.expr(a), self.expr(b), self.quote(e))
        if kind in _CMP:
            return build.compare(_CMP[kind], self.expr(a), self.expr(b), self.quote(e))
        if isinstance(e, (exp.And, exp.Or)):
            # flatten(): a chain of a thousand ORs is a tree a thousand deep.
            args = [build.condition(self.expr(x), self.quote(x)) for x in e.flatten()]
            return build.and_(args, self.quote(e)) if kind is exp.And else build.or_(args, self.quote(e))
        raise self.unsupported(e)

    def column(self, e: exp.Expr) -> Expr:
        name, side = e.name, e.args.get("table")
        if isinstance(e.this, exp.Star):
            raise self.unsupported(e.this)
        if side is not None:
            schema = self.schemas.get(side.name.lower())
            if schema is None:
                raise SchemaError(f"{self.quote(e)!r}: there is no stream {side.name!r}; the streams are r and s")
            return build.column(schema, name)
        found = [c for c in self.schemas.values() if any(name.lower() == n.lower() for n in c.names)]
        if len(found) == 1:
            return build.column(found[0], name)
        if found:
            raise SchemaError(f"column {name!r} is ambiguous: it could be r.{found[0].find(name).name} or "
                              f"s.{found[1].find(name).name}; write which")
        names = [f"{c.side}.{n}" for c in self.schemas.values() for n in c.names]
        raise SchemaError(f"neither stream has a column {name!r}{suggest(name, [n[2:] for n in names])}; the columns "
                          f"are {', '.join(names) or '(none)'}")

    def number(self, text: str) -> Lit:
        if not re.fullmatch(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.ASCII | re.IGNORECASE):
            raise PredicateError(f"{_short(text)!r} cannot be read as a number; write for example 15, 1.5 or 1.5e3")
        digits, _, exponent = text.lower().partition("e")
        if len(digits) > MAX_DIGITS or len(exponent) > 5 or abs(int(exponent or 0)) > MAX_DIGITS:
            raise PredicateError(f"{_short(text)!r}: a number must not have more than {MAX_DIGITS} digits")
        return build.literal(Fraction(text), text)

    def time(self, e: exp.Expr) -> Lit:
        to = e.args["to"]
        type_ = _TIMES.get(to.this)
        if type_ is None or to.expressions or not (isinstance(e.this, exp.Literal) and e.this.is_string):
            raise self.unsupported(e)
        return build.time_literal(e.this.name, type_, f"{_sql(to)} {_sql(e.this)}")

    def interval(self, e: exp.Expr) -> Lit:
        unit = e.args.get("unit")
        number = e.this.name.strip() if isinstance(e.this, exp.Literal) else ""
        if not isinstance(unit, exp.Var) or not re.fullmatch(r"[+-]?\d{1,20}(\.\d{1,20})?", number):
            raise PredicateError(f"{self.quote(e)!r}: an INTERVAL must be one number and one unit, such as "
                                 f"INTERVAL '15' MINUTE")
        word = unit.name.upper()
        per = UNIT_NS.get(word.removesuffix("S"))
        if per is None:
            raise PredicateError(f"{self.quote(e)!r}: the unit of an INTERVAL must be one of "
                                 f"{', '.join(u + 'S' for u in UNIT_NS)}, not {word}{suggest(word, UNIT_NS)}")
        ns = Fraction(number) * per
        if ns.denominator != 1:
            raise PredicateError(f"{self.quote(e)!r}: an INTERVAL must be a whole number of nanoseconds")
        return build.duration(ns.numerator)

    def is_(self, e: exp.Expr) -> Expr:
        at, what = self.quote(e), e.args["expression"]
        a = self.expr(e.this)
        if isinstance(what, exp.Null):
            return build.is_null(a, at)
        if not isinstance(what, exp.Boolean):
            raise self.unsupported(e)
        known = build.not_(build.is_null(a, at), at)
        return build.and_([a if what.this else build.not_(a, at), known], at)

    def unsupported(self, e: exp.Expr) -> PredicateError:
        name = _NAMES.get(type(e))
        if name is None and isinstance(e, exp.Func):
            name = f"function {(e.name if isinstance(e, exp.Anonymous) else e.sql_name()).upper()}"
        return PredicateError(f"{self.quote(e)!r}: {name or type(e).__name__.upper()} is not supported in a condition; "
                              f"it may hold {SUPPORTED}")

    def quote(self, e: exp.Expr) -> str:
        """The user's own text of ``e`` where it can be found, else equivalent SQL."""
        if not self.quoting:
            return ""
        spans = [n.meta for n in e.walk() if "start" in n.meta]
        if spans:
            start, end = min(m["start"] for m in spans), max(m["end"] for m in spans) + 1
            # A call's closing parenthesis has no node of its own.
            stops = (m.end() for m in _CLOSING.finditer(self.text, end))
            for stop in (end, *itertools.islice(stops, 2)):
                own = self.text[start:stop]
                if _same(own, e):
                    return " ".join(own.split())
        return _sql(e)


def _sql(e: exp.Expr) -> str:
    return str(e.sql(dialect=_Sql, comments=False))


def _same(text: str, e: exp.Expr) -> bool:
    dialect = _Sql()
    try:
        return bool(dialect.parser().parse_into(exp.Condition, dialect.tokenize(text), text) == [e])
    except (ParseError, TokenError):
        return False


def _short(text: str) -> str:
    """``text`` on one line, its middle left out if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:50]} … {line[-25:]}"


def _unreadable(text: str, error: ParseError) -> str:
    found = error.errors[0]
    what, token = str(found["description"]), str(found["highlight"])
    before = str(found["start_context"]).split("\n")[-1].rstrip()
    if what.startswith("Required keyword"):
        problem = f"something must follow {token!r}" if token else "something is missing"
    elif what.startswith("Invalid expression"):
        problem = f"{token!r} is not expected here"
    elif what.startswith("Expecting"):
        problem = f"{what.split()[-1]!r} is expected after {token!r}"
    else:
        problem = re.sub(r"\x1b\[\d*m|<class '[\w.]*?(\w+)'>", r"\1", what.split("\n")[0])
    # sqlglot counts to the end of the token.
    column = max(1, int(found["col"] or 1) - max(0, len(token) - 1))
    place = f"line {found['line']}, column {column}" + (f", after {before[-40:]!r}" if before else "")
    statement = re.match(r"\s*(SELECT|WITH|ON|WHERE|FROM|INSERT|UPDATE|DELETE|CREATE|DROP)\b", text, re.IGNORECASE)
    advice = f"; write the condition alone, without {statement[1].upper()}" if statement else ""
    return f"the condition {_short(text)!r} cannot be read at {place}: {problem}{advice}"


def _untokenizable(text: str, error: TokenError) -> str:
    missing = re.match(r"Missing (.+) from \d+:(\d+)", str(error.__cause__ or error))
    if missing is None:
        return f"the condition {_short(text)!r} cannot be read: a comment or a quoted text in it is not closed"
    offset = int(missing[2])  # from the start of the text, whatever the line
    return (f"the condition {_short(text)!r} cannot be read: the {missing[1]} opened at line "
            f"{text.count(chr(10), 0, offset) + 1}, column {offset - text.rfind(chr(10), 0, offset)} is not closed")
