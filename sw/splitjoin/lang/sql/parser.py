"""SQL text → IR: the condition of a join, parsed by sqlglot and typed by `splitjoin.lang.build`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Literal

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError

from splitjoin.base.errors import PredicateError, SchemaError

from .. import build, functions
from ..build import MAX_DIGITS, find_column
from ..casts import cast, sql_type
from ..ir import MAX_DEPTH, ArithOp, CmpOp, Expr, Lit, too_deep
from ..local_times import ELAPSED, session_zone
from ..operations import OPERATIONS, functions as integer_functions, operators
from ..schema import Schema, suggest
from ..types import UNIT_NS, Date, TimeOfDay, Timestamp
from .source import ConditionText, Sql, short, sql_of, sql_tokens, unreadable, untokenizable

__all__ = ["SUPPORTED", "Sql", "SqlReader", "interval", "number", "parse_sql", "parse_tree"]

#: What errors say a condition may hold.
SUPPORTED = (f"columns, literals, + - * / %, DIV (//), {' '.join(o.name for o in operators())} ~ << >>, abs(), "
             f"{', '.join(f'{o.name}()' for o in integer_functions())}, least(), greatest(), coalesce(), nullif(), "
             f"sqrt(), floor(), ceil(), round(), date_diff(), date_sub(), date_trunc(), epoch(), CASE, CAST, "
             f"= <> < <= > >=, BETWEEN, IN, starts_with(), LIKE, AND, OR, NOT, IS [NOT] NULL, IS [NOT] TRUE, "
             f"IS [NOT] FALSE and IS [NOT] DISTINCT FROM")

_CMP: dict[type[exp.Expr], CmpOp] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}
_ARITH: dict[type[exp.Expr], ArithOp] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
#: Type rules of nodes with one operand, and with two.
_UNARY: dict[type[exp.Expr], Callable[[Expr, str], Expr]] = {
    exp.Neg: build.neg, exp.Abs: build.abs_, exp.Not: build.not_, exp.BitwiseNot: functions.complement,
    exp.Sqrt: functions.square_root}
_BINARY: dict[type[exp.Expr], Callable[[Expr, Expr, str], Expr]] = {
    **{node: partial(build.compare, op) for node, op in _CMP.items()},
    **{getattr(exp, node): partial(functions.operation_of_two, o.name) for o in operators() for node in o.sql},
    exp.Div: build.divide, exp.IntDiv: partial(build.remainder, "div"), exp.Mod: partial(build.remainder, "mod"),
    exp.BitwiseLeftShift: partial(functions.shift, "<<"), exp.BitwiseRightShift: partial(functions.shift, ">>"),
    exp.Nullif: functions.nullif, exp.StartsWith: functions.starts_with}
#: Names for what people try first; everything else is named by its node or function.
_NAMES: dict[type[exp.Expr], str] = {
    exp.DPipe: "concatenation (||)", exp.Like: "LIKE with anything but a constant",
    **dict.fromkeys((exp.Ln, exp.Log, exp.Exp), "a function that libraries round differently in the last digit "
                    "(compute the column before the join)"),
    exp.Pow: "a power, which libraries round differently in the last digit (multiply, as in r.x * r.x)",
    **dict.fromkeys((exp.DatetimeDiff, exp.TimestampDiff), "a difference in whole units (date_diff() counts the "
                    "boundaries between two times; or compare their difference with an INTERVAL)"),
    exp.TimestampTrunc: "TIMESTAMP_TRUNC (write date_trunc('day', …))",
    exp.ILike: "ILIKE", exp.SimilarTo: "SIMILAR TO", exp.RegexpLike: "a regular expression",
    exp.Escape: "LIKE with ESCAPE",
    exp.Cast: "a cast to this type (cast the column before the join)", exp.TryCast: "TRY_CAST",
    exp.Subquery: "a subquery", exp.Select: "a subquery", exp.Any: "ANY", exp.All: "ALL",
    exp.In: "IN with anything but a list of values",
    exp.Window: "a window function", exp.Placeholder: "a parameter", exp.Parameter: "a parameter",
    exp.Tuple: "a tuple", exp.Bracket: "an element by index", exp.Dot: "a nested field", exp.Star: "*",
    exp.AtTimeZone: "AT TIME ZONE", exp.Between: "BETWEEN SYMMETRIC", exp.Column: "a name of more than two parts",
    exp.Is: "IS with anything but NULL, TRUE and FALSE",
}
#: Arguments that `SqlReader.node` reads or may disregard, of every node and of some.
_READ = {"this", "expression", "low", "high", "is_string", "quoted", "table", "unit", "to"}
_READ_OF: dict[type[exp.Expr], set[str]] = {
    exp.Case: {"ifs", "default"}, exp.If: {"true", "false"}, exp.In: {"expressions"}, exp.Least: {"expressions"},
    exp.Greatest: {"expressions"}, exp.Coalesce: {"expressions"}, exp.Anonymous: {"expressions"},
    exp.Interval: {"fraction_in_string"}, exp.Like: {"negate"}, exp.HexString: {"is_integer"}, exp.Round: {"decimals"},
}


def parse_sql(text: str, r: Schema, s: Schema, *, value: bool = False, reader: type[SqlReader] | None = None) -> Expr:
    """The IR of an SQL condition over the streams ``r`` and ``s``.

    Columns are written ``r.x`` and ``s.a``, or just ``x`` where only one stream has it. Raises `PredicateError` for
    text that cannot be read and for parts that are not supported or ill-typed, quoting them, and `SchemaError` for
    columns. ``value``: the text may be a value as well. ``reader``: what reads it, by default `SqlReader`.
    """
    reading = reader or SqlReader

    def read(*, quoting: bool) -> Expr:
        made = reading(text, {"r": r, "s": s}, quoting=quoting)
        return made.expr(parsed) if value else made.condition(parsed)

    try:
        parsed = parse_tree(text, reading.dialect)
        # Finding the user's own text of every part costs more than all the rest, and only errors show it.
        with contextlib.suppress(PredicateError, SchemaError):
            return read(quoting=False)
        return read(quoting=True)
    except RecursionError:
        raise too_deep() from None


def parse_tree(text: str, dialect: type[Dialect] = Sql) -> exp.Expr:
    """Sqlglot's tree of the text of a condition or a value. Raises `PredicateError` for what cannot be read."""
    try:
        parts = dialect().parser().parse_into(exp.Condition, sql_tokens(text), text)
    except ParseError as error:
        raise PredicateError(unreadable(text, error)) from None
    except TokenError as error:
        raise PredicateError(untokenizable(text, error)) from None
    except RecursionError:
        raise too_deep() from None
    found = [p for p in parts if p is not None]
    if not found:
        raise PredicateError("the condition is empty; write for example 'abs(r.x - s.a) <= 10'")
    if len(found) > 1:
        raise PredicateError(f"one condition is needed, not the {len(found)} in {short(text)!r}; combine them with "
                             f"AND or OR instead of ';'")
    return found[0]


class SqlReader:
    """Turns sqlglot's tree of a condition, or of a value, into IR.

    ``text`` is the whole text that the tree was parsed from; ``schemas`` are the streams by the names that columns are
    written with. With ``quoting``, errors show the part of the text where they arose.
    """

    dialect: ClassVar[type[Dialect]] = Sql

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
        if kind in _READERS:
            return _READERS[kind](self, e)
        if kind in _ARITH:  # apart from others, as its times may be of the session's zone
            x, y = self.expr(a), self.expr(b)
            with session_zone(None) if ELAPSED in e.meta else contextlib.nullcontext():
                return build.arith(_ARITH[kind], x, y, self.quote(e))
        if kind in _UNARY:
            return _UNARY[kind](self.expr(a), self.quote(e))
        if kind in _BINARY:
            return _BINARY[kind](self.expr(a), self.expr(b), self.quote(e))
        if isinstance(e, (exp.And, exp.Or)):
            # flatten(): a chain of a thousand ORs is a tree a thousand deep.
            args = [build.condition(self.expr(x), self.quote(x)) for x in e.flatten()]
            return build.and_(args, self.quote(e)) if kind is exp.And else build.or_(args, self.quote(e))
        raise self.unsupported(e)

    def literal(self, e: exp.Expr) -> Expr:
        if isinstance(e, exp.Literal) and not e.is_string:
            return number(e.name)
        value = e.name if isinstance(e, exp.Literal) else None if isinstance(e, exp.Null) else bool(e.this)
        return build.literal(value, self.quote(e))

    def between(self, e: exp.Expr) -> Expr:
        x, low, high = (self.expr(one) for one in (e.this, e.args["low"], e.args["high"]))
        return build.between(x, low, high, self.quote(e))

    def case(self, e: exp.Expr) -> Expr:
        at, is_if = self.quote(e), isinstance(e, exp.If)
        subject, default = (None, e.args.get("false")) if is_if else (e.this, e.args.get("default"))
        when, then = [], []
        for branch in [e] if is_if else e.args["ifs"]:
            made = self.expr(branch.this)
            when.append(made if subject is None else build.compare("=", self.expr(subject), made, at))
            then.append(self.expr(branch.args["true"]))
        return functions.case(when, then, build.literal(None, at) if default is None else self.expr(default), at)

    def in_(self, e: exp.Expr) -> Expr:
        if not e.expressions:
            raise self.unsupported(e)
        return functions.in_(self.expr(e.this), [self.expr(x) for x in e.expressions], self.quote(e))

    def extreme(self, e: exp.Expr) -> Expr:
        args = [self.expr(x) for x in (e.this, *e.expressions)]
        return functions.extreme("least" if isinstance(e, exp.Least) else "greatest", args, self.quote(e))

    def coalesce(self, e: exp.Expr) -> Expr:
        return functions.coalesce([self.expr(x) for x in (e.this, *e.expressions)], self.quote(e))

    def distinct(self, e: exp.Expr) -> Expr:
        at = self.quote(e)
        made = functions.distinct(self.expr(e.this), self.expr(e.expression), at)
        return made if isinstance(e, exp.NullSafeNEQ) else build.not_(made, at)

    def like(self, e: exp.Expr) -> Expr:
        at, pattern = self.quote(e), e.expression
        if not (isinstance(pattern, exp.Literal) and pattern.is_string):
            raise self.unsupported(e)
        made = functions.like(self.expr(e.this), build.literal(pattern.name, at), at)
        return build.not_(made, at) if e.args.get("negate") else made

    def rounded(self, e: exp.Expr) -> Expr:
        name: Literal["floor", "ceil", "round"] = "floor" if isinstance(e, exp.Floor) else (
            "ceil" if isinstance(e, exp.Ceil) else "round")
        places = e.args.get("decimals")
        if places is not None and name == "round":
            return functions.rounded_to(self.expr(e.this), self.expr(places), self.quote(e))
        return functions.rounded(name, self.expr(e.this), self.quote(e))

    def bytes_(self, e: exp.Expr) -> Expr:
        try:
            return build.literal(bytes.fromhex(e.name), self.quote(e))
        except ValueError:
            raise PredicateError(f"\"X'{short(e.name)}'\": a binary literal must have two hexadecimal digits a byte"
                                 ) from None

    def function(self, e: exp.Expr) -> Expr:
        found, of_times = OPERATIONS.get(e.name.lower()), _OF_TIMES.get(e.name.lower())
        if of_times is not None:
            return self.of_times(e, *of_times)
        if (parts := _EPOCHS.get(e.name.lower())) is not None and len(e.expressions) == 1:
            return functions.epoch(self.expr(e.expressions[0]), parts, self.quote(e))
        if found is None or len(e.expressions) != found.operands:
            raise self.unsupported(e)
        return functions.operation(found.name, [self.expr(x) for x in e.expressions], self.quote(e))

    def of_times(self, e: exp.Expr, name: str, operands: int) -> Expr:
        at, parts = self.quote(e), e.expressions
        if len(parts) != operands or not (isinstance(parts[0], exp.Literal) and parts[0].is_string):
            raise PredicateError(f"{at!r}: {name}() takes a unit in quotes and {operands - 1} time"
                                 f"{'s' * (operands > 2)}, such as {name}('day', r.at{', s.due' * (operands > 2)})")
        unit, *times = (self.expr(x) for x in parts)
        if name == "date_trunc":
            return functions.date_trunc(unit, times[0], at)
        if name == "date_part":
            return self.epoch(parts[0], times[0], 1, e)
        return (functions.date_diff if name == "date_diff" else functions.date_sub)(unit, times[0], times[1], at)

    def epoch(self, part: exp.Expr, a: Expr, parts: int, e: exp.Expr) -> Expr:
        if part.name.lower() != "epoch":
            raise self.unsupported(e)
        return functions.epoch(a, parts, self.quote(e))

    def extract(self, e: exp.Expr) -> Expr:
        return self.epoch(e.this, self.expr(e.expression), 1, e)

    def column(self, e: exp.Expr) -> Expr:
        name, side = e.name, e.args.get("table")
        if isinstance(e.this, exp.Star):
            raise self.unsupported(e.this)
        return find_column(self.schemas, name, None if side is None else side.name, self.quote(e))

    def cast(self, e: exp.Expr) -> Expr:
        to = e.args["to"]
        type_ = sql_type(to)
        if type_ is None:
            raise self.unsupported(e)
        text = e.this
        if isinstance(text, exp.Literal) and text.is_string and isinstance(type_, (Date, Timestamp, TimeOfDay)):
            return build.time_literal(text.name, type_, f"{sql_of(to)} {sql_of(text)}")
        return cast(self.expr(text), type_, self.quote(e))

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
        if isinstance(e, exp.Exists) or e.args.get("query") is not None:
            return PredicateError(f"{self.quote(e)!r}: a SELECT within a condition is not supported; a join by the "
                                  f"condition on r and s, such as on='r.x = s.a', with how='semi' gives the rows of r "
                                  f"that have a partner in s, and with how='anti' those that have none")
        name, hint = _NAMES.get(type(e)), ""
        if name is None and isinstance(e, exp.Func):
            name = f"function {(e.name if isinstance(e, exp.Anonymous) else e.sql_name()).upper()}"
            if isinstance(e, exp.Anonymous) and e.name.lower() not in _CALLED:
                hint = suggest(e.name.lower(), _CALLED, likeness=0.8)
        return PredicateError(f"{self.quote(e)!r}: {name or type(e).__name__.upper()} is not supported in a condition"
                              f"{hint}; it may hold {SUPPORTED}")

    def quote(self, e: exp.Expr) -> str:
        """The user's own text of ``e`` where it can be found, else equivalent SQL; without ``quoting``, none."""
        return ConditionText(self.text).quote(e) if self.quoting else ""

    def mark(self, e: exp.Expr) -> str:
        """The line of the user's text in which ``e`` begins, on a line of its own, and a mark under ``e``."""
        return ConditionText(self.text).mark(e)


#: Readers of nodes that are more than a type rule of their operands.
_READERS: dict[type[exp.Expr], Callable[[SqlReader, Any], Expr]] = {
    exp.Column: lambda reader, e: reader.column(e), exp.Literal: SqlReader.literal, exp.Boolean: SqlReader.literal,
    exp.Null: SqlReader.literal, exp.Interval: lambda reader, e: interval(e, reader.quote(e)), exp.Cast: SqlReader.cast,
    exp.Between: SqlReader.between, exp.Is: SqlReader.is_, exp.Case: SqlReader.case, exp.If: SqlReader.case,
    exp.In: SqlReader.in_, exp.Least: SqlReader.extreme, exp.Greatest: SqlReader.extreme,
    exp.Coalesce: SqlReader.coalesce, exp.NullSafeEQ: SqlReader.distinct, exp.NullSafeNEQ: SqlReader.distinct,
    exp.Like: SqlReader.like, exp.HexString: SqlReader.bytes_, exp.Anonymous: SqlReader.function,
    exp.Floor: SqlReader.rounded, exp.Ceil: SqlReader.rounded, exp.Round: SqlReader.rounded,
    exp.Extract: SqlReader.extract,
}


#: A number of an INTERVAL.
_AMOUNT = r"[+-]?[0-9]{1,20}(?:\.[0-9]{1,20})?"
#: Functions of times by their names in SQL: each with its first name, and the number of its operands.
_OF_TIMES = {"date_diff": ("date_diff", 3), "datediff": ("date_diff", 3), "date_trunc": ("date_trunc", 2),
             "datetrunc": ("date_trunc", 2), "date_sub": ("date_sub", 3),
             "datesub": ("date_sub", 3), "date_part": ("date_part", 2),
             "datepart": ("date_part", 2)}
#: Functions of the time since 1970, with the parts of a second that they count.
_EPOCHS = {"epoch": 1, "epoch_ms": 10**3, "epoch_us": 10**6}
#: Functions that conditions may call, in the order in which a misspelled one is taken for them.
_CALLED = ("abs", "least", "greatest", "coalesce", "nullif", "sqrt", "floor", "ceil", "round", "starts_with",
           *_OF_TIMES, *_EPOCHS, *OPERATIONS)


def number(text: str) -> Lit:
    """A number as SQL writes it."""
    if not re.fullmatch(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.ASCII | re.IGNORECASE):
        raise PredicateError(f"{short(text)!r} cannot be read as a number; write for example 15, 1.5 or 1.5e3")
    digits, _, exponent = text.lower().partition("e")
    if len(digits) > MAX_DIGITS or len(exponent) > 5 or abs(int(exponent or 0)) > MAX_DIGITS:
        raise PredicateError(f"{short(text)!r}: a number must not have more than {MAX_DIGITS} digits")
    return build.literal(Fraction(text), text)


def interval(e: exp.Expr, at: str) -> Lit:
    """``INTERVAL '15' MINUTE``, or several numbers with their units in one text: ``INTERVAL '1 day 2 hours'``."""
    unit = e.args.get("unit")
    text = e.this.name.strip() if isinstance(e.this, exp.Literal) else ""
    if isinstance(unit, exp.Var):
        text = f"{text} {unit.name}" if re.fullmatch(_AMOUNT, text) else ""
    elif unit is not None:
        text = ""
    if not re.fullmatch(rf"{_AMOUNT}\s*[a-zA-Z]+(\s+{_AMOUNT}\s*[a-zA-Z]+){{0,9}}", text):
        raise PredicateError(f"{at!r}: an INTERVAL must be a constant number and a unit, such as INTERVAL '15' MINUTE, "
                             f"or several in one text, such as INTERVAL '1 day 2 hours'")
    ns = Fraction(0)
    for number, name in re.findall(rf"({_AMOUNT})\s*([a-zA-Z]+)", text):
        word = name.upper()
        per = UNIT_NS.get(word.removesuffix("S"))
        if per is None:
            length = "; a month has no fixed length, so compare date_trunc('month', …), or compute the column before " \
                     "the join" if word.removesuffix("S") in ("MONTH", "QUARTER", "YEAR") else suggest(word, UNIT_NS)
            raise PredicateError(f"{at!r}: the unit of an INTERVAL must be one of "
                                 f"{', '.join(u + 'S' for u in UNIT_NS)}, not {word}{length}")
        ns += Fraction(number) * per
    if ns.denominator != 1:
        raise PredicateError(f"{at!r}: an INTERVAL must be a whole number of nanoseconds")
    return build.duration(ns.numerator)
