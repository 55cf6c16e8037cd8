"""SQL text → IR: the condition of a join, parsed by sqlglot and typed by `splitjoin.lang.build`."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal

from sqlglot import exp, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import TokenType

from ..errors import PredicateError, SchemaError
from . import build, functions
from .casts import cast, sql_type
from .depth import MAX_DEPTH, too_deep
from .ir import ArithOp, CmpOp, Expr, Lit
from .literals import MAX_DIGITS
from .places import marked
from .schema import Schema, suggest
from .sql_errors import short, unreadable, untokenizable
from .types import UNIT_NS, Date, Timestamp

__all__ = ["SUPPORTED", "Reader", "Sql", "parse_sql"]

#: What errors say a condition may hold.
SUPPORTED = ("columns, literals, + - * / %, DIV (//), & | ^ ~ << >>, abs(), bit_count(), least(), greatest(), "
             "coalesce(), nullif(), CASE, CAST, = <> < <= > >=, BETWEEN, IN, starts_with(), LIKE 'prefix%', AND, OR, "
             "NOT, IS [NOT] NULL, IS [NOT] TRUE, IS [NOT] FALSE and IS [NOT] DISTINCT FROM")

_CLOSING = re.compile(r"\)")
_END = re.compile(r"\bEND\b", re.IGNORECASE)
_CMP: dict[type[exp.Expr], CmpOp] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}
_ARITH: dict[type[exp.Expr], ArithOp] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_REMAINDER: dict[type[exp.Expr], Literal["div", "mod"]] = {exp.IntDiv: "div", exp.Mod: "mod"}
_BITS: dict[type[exp.Expr], Literal["&", "|", "^"]] = {
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^", exp.Xor: "^",
}
_SHIFT: dict[type[exp.Expr], Literal["<<", ">>"]] = {exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>"}
#: Names for what people try first; everything else is named by its node or function.
_NAMES: dict[type[exp.Expr], str] = {
    exp.DPipe: "concatenation (||)", exp.Like: "LIKE with anything but a constant that ends in its only %",
    exp.ILike: "ILIKE", exp.SimilarTo: "SIMILAR TO", exp.RegexpLike: "a regular expression",
    exp.Escape: "LIKE with ESCAPE",
    exp.Cast: "a cast to this type (cast the column before the join)", exp.TryCast: "TRY_CAST",
    exp.Subquery: "a subquery", exp.Select: "a subquery", exp.Exists: "a subquery", exp.Any: "ANY", exp.All: "ALL",
    exp.In: "IN with anything but a list of values",
    exp.Window: "a window function", exp.Placeholder: "a parameter", exp.Parameter: "a parameter",
    exp.Tuple: "a tuple", exp.Bracket: "an element by index", exp.Dot: "a nested field", exp.Star: "*",
    exp.AtTimeZone: "AT TIME ZONE", exp.Between: "BETWEEN SYMMETRIC", exp.Column: "a name of more than two parts",
    exp.Is: "IS with anything but NULL, TRUE and FALSE",
}
#: Arguments that `Reader.node` reads or may disregard, of every node and of some.
_READ = {"this", "expression", "low", "high", "is_string", "quoted", "table", "unit", "to"}
_READ_OF: dict[type[exp.Expr], set[str]] = {
    exp.Case: {"ifs", "default"}, exp.If: {"true", "false"}, exp.In: {"expressions"}, exp.Least: {"expressions"},
    exp.Greatest: {"expressions"}, exp.Coalesce: {"expressions"}, exp.Anonymous: {"expressions"},
    exp.Like: {"negate"}, exp.HexString: {"is_integer"},
}


class Sql(Dialect):
    """sqlglot's own dialect, with Spark's `name` beside the standard's "name", X'00FF' and DuckDB's //."""

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[list[Any]] = ['"', "`"]
        HEX_STRINGS: ClassVar[list[Any]] = [("x'", "'"), ("X'", "'")]
        KEYWORDS: ClassVar[dict[str, Any]] = {**tokens.Tokenizer.KEYWORDS, "//": TokenType.DIV}


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
            return Reader(text, {"r": r, "s": s}).condition(parsed)
        return Reader(text, {"r": r, "s": s}, quoting=True).condition(parsed)
    except RecursionError:
        raise too_deep() from None


def _parse(text: str) -> exp.Expr:
    dialect = Sql()
    try:
        parts = dialect.parser().parse_into(exp.Condition, dialect.tokenize(text), text)
    except ParseError as error:
        raise PredicateError(unreadable(text, error)) from None
    except TokenError as error:
        raise PredicateError(untokenizable(text, error)) from None
    found = [p for p in parts if p is not None]
    if not found:
        raise PredicateError("the condition is empty; write for example 'abs(r.x - s.a) <= 10'")
    if len(found) > 1:
        raise PredicateError(f"one condition is needed, not the {len(found)} in {short(text)!r}; combine them with "
                             f"AND or OR instead of ';'")
    return found[0]


class Reader:
    """Turns sqlglot's tree of a condition, or of a value, into IR.

    ``text`` is the whole text that the tree was parsed from; ``schemas`` are the streams by the names that columns are
    written with. With ``quoting``, errors show the part of the text where they arose.
    """

    def __init__(self, text: str, schemas: Mapping[str, Schema], *, quoting: bool = False):
        self.text = text
        self.quoting = quoting
        self.schemas = schemas
        self.depth = 0
        self.marked = False

    def condition(self, e: exp.Expr) -> Expr:
        """``e``, the tree of a condition."""
        return build.condition(self.expr(e), self.text.strip())

    def expr(self, e: exp.Expr) -> Expr:
        """``e``, the tree of a condition or a value."""
        self.depth += 1
        if self.depth > 2 * MAX_DEPTH:  # parentheses have a level here, but none in the IR
            raise too_deep()
        try:
            return self.node(e)
        except (PredicateError, SchemaError) as error:
            if not self.quoting or self.marked:
                raise
            self.marked = True  # by the innermost part, which is where it went wrong
            raise type(error)(f"{error}{self.mark(e)}") from None
        finally:
            self.depth -= 1

    def node(self, e: exp.Expr) -> Expr:
        kind = type(e)
        # An argument that is not read here (a frame, a modifier, …) would change the meaning: refuse it.
        a: Any = e.args.get("this")
        b: Any = e.args.get("expression")
        read = _READ | _READ_OF.get(kind, set())
        # How a division is written, and that least() passes over NULL, is what we do anyway.
        if any(v for k, v in e.args.items() if k not in read and k != "ignore_nulls"):
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
            return self.cast(e)
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
        if kind in _FUNCTIONS:
            return _FUNCTIONS[kind](self, e)
        if kind is exp.Div:
            return build.divide(self.expr(a), self.expr(b), self.quote(e))
        if kind in _REMAINDER:
            return build.remainder(_REMAINDER[kind], self.expr(a), self.expr(b), self.quote(e))
        if kind in _BITS:
            return functions.bits(_BITS[kind], self.expr(a), self.expr(b), self.quote(e))
        if kind is exp.BitwiseNot:
            return functions.complement(self.expr(a), self.quote(e))
        if kind in _SHIFT:
            return functions.shift(_SHIFT[kind], self.expr(a), self.expr(b), self.quote(e))
        if kind in _ARITH:
            return build.arith(_ARITH[kind], self.expr(a), self.expr(b), self.quote(e))
        if kind in _CMP:
            return build.compare(_CMP[kind], self.expr(a), self.expr(b), self.quote(e))
        if isinstance(e, (exp.And, exp.Or)):
            # flatten(): a chain of a thousand ORs is a tree a thousand deep.
            args = [build.condition(self.expr(x), self.quote(x)) for x in e.flatten()]
            return build.and_(args, self.quote(e)) if kind is exp.And else build.or_(args, self.quote(e))
        raise self.unsupported(e)

    def case(self, e: exp.Expr) -> Expr:
        at, subject = self.quote(e), e.this
        when, then = [], []
        for branch in e.args["ifs"]:
            made = self.expr(branch.this)
            when.append(made if subject is None else build.compare("=", self.expr(subject), made, at))
            then.append(self.expr(branch.args["true"]))
        default = e.args.get("default")
        return functions.case(when, then, build.literal(None, at) if default is None else self.expr(default), at)

    def if_(self, e: exp.Expr) -> Expr:
        at, default = self.quote(e), e.args.get("false")
        otherwise = build.literal(None, at) if default is None else self.expr(default)
        return functions.case([self.expr(e.this)], [self.expr(e.args["true"])], otherwise, at)

    def in_(self, e: exp.Expr) -> Expr:
        if not e.expressions:
            raise self.unsupported(e)
        return functions.in_(self.expr(e.this), [self.expr(x) for x in e.expressions], self.quote(e))

    def extreme(self, e: exp.Expr) -> Expr:
        args = [self.expr(x) for x in (e.this, *e.expressions)]
        return functions.extreme("least" if isinstance(e, exp.Least) else "greatest", args, self.quote(e))

    def coalesce(self, e: exp.Expr) -> Expr:
        return functions.coalesce([self.expr(x) for x in (e.this, *e.expressions)], self.quote(e))

    def nullif(self, e: exp.Expr) -> Expr:
        return functions.nullif(self.expr(e.this), self.expr(e.expression), self.quote(e))

    def distinct(self, e: exp.Expr) -> Expr:
        at = self.quote(e)
        made = functions.distinct(self.expr(e.this), self.expr(e.expression), at)
        return made if isinstance(e, exp.NullSafeNEQ) else build.not_(made, at)

    def starts_with(self, e: exp.Expr) -> Expr:
        return functions.starts_with(self.expr(e.this), self.expr(e.expression), self.quote(e))

    def like(self, e: exp.Expr) -> Expr:
        at, pattern = self.quote(e), e.expression
        text = pattern.name if isinstance(pattern, exp.Literal) and pattern.is_string else "_"
        prefix = text.removesuffix("%")
        if any(c in prefix for c in "%_\\"):
            raise self.unsupported(e)
        a, head = self.expr(e.this), build.literal(prefix, at)
        made = build.compare("=", a, head, at) if prefix == text else functions.starts_with(a, head, at)
        return build.not_(made, at) if e.args.get("negate") else made

    def bytes_(self, e: exp.Expr) -> Expr:
        try:
            return build.literal(bytes.fromhex(e.name), self.quote(e))
        except ValueError:
            raise PredicateError(f"\"X'{short(e.name)}'\": a binary literal must have two hexadecimal digits a byte"
                                 ) from None

    def function(self, e: exp.Expr) -> Expr:
        if e.name.lower() != "bit_count" or len(e.expressions) != 1:
            raise self.unsupported(e)
        return functions.bit_count(self.expr(e.expressions[0]), self.quote(e))

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
            raise PredicateError(f"{short(text)!r} cannot be read as a number; write for example 15, 1.5 or 1.5e3")
        digits, _, exponent = text.lower().partition("e")
        if len(digits) > MAX_DIGITS or len(exponent) > 5 or abs(int(exponent or 0)) > MAX_DIGITS:
            raise PredicateError(f"{short(text)!r}: a number must not have more than {MAX_DIGITS} digits")
        return build.literal(Fraction(text), text)

    def cast(self, e: exp.Expr) -> Expr:
        to = e.args["to"]
        type_ = sql_type(to)
        if type_ is None:
            raise self.unsupported(e)
        text = e.this
        if isinstance(text, exp.Literal) and text.is_string and isinstance(type_, (Date, Timestamp)):
            return build.time_literal(text.name, type_, f"{_sql(to)} {_sql(text)}")
        return cast(self.expr(text), type_, self.quote(e))

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
        span, exact = self.span(e)
        return " ".join(self.text[span].split()) if exact else _sql(e)

    def mark(self, e: exp.Expr) -> str:
        """The line of the user's text in which ``e`` begins, on a line of its own, and a mark under ``e``."""
        span, _ = self.span(e)
        if span.stop == 0:
            return ""
        begin = self.text.rfind("\n", 0, span.start) + 1
        line = self.text[begin:].split("\n", 1)[0]
        return "\n" + marked(line, span.start - begin, min(span.stop - begin, len(line)))

    def span(self, e: exp.Expr) -> tuple[slice, bool]:
        """Where ``e`` stands in the user's text, and whether that is all of it; nowhere if it cannot be found."""
        spans = [n.meta for n in e.walk() if "start" in n.meta]
        if not spans:
            return slice(0, 0), False
        start, end = min(m["start"] for m in spans), max(m["end"] for m in spans) + 1
        # A call's closing parenthesis has no node of its own, nor have CASE and END.
        if isinstance(e, exp.Case):
            start = max(0, self.text.upper().rfind("CASE", 0, start))
        stops = (m.end() for m in (_END if isinstance(e, exp.Case) else _CLOSING).finditer(self.text, end))
        for stop in (end, *itertools.islice(stops, 2)):
            if _same(self.text[start:stop], e):
                return slice(start, stop), True
        return slice(start, end), False


_FUNCTIONS: dict[type[exp.Expr], Callable[[Reader, Any], Expr]] = {
    exp.Case: Reader.case, exp.If: Reader.if_, exp.In: Reader.in_, exp.Least: Reader.extreme,
    exp.Greatest: Reader.extreme, exp.Coalesce: Reader.coalesce, exp.Nullif: Reader.nullif,
    exp.NullSafeEQ: Reader.distinct, exp.NullSafeNEQ: Reader.distinct, exp.StartsWith: Reader.starts_with,
    exp.Like: Reader.like, exp.HexString: Reader.bytes_, exp.Anonymous: Reader.function,
}


def _sql(e: exp.Expr) -> str:
    return str(e.sql(dialect=Sql, comments=False))


def _same(text: str, e: exp.Expr) -> bool:
    dialect = Sql()
    try:
        return bool(dialect.parser().parse_into(exp.Condition, dialect.tokenize(text), text) == [e])
    except (ParseError, TokenError):
        return False
