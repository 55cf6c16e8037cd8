"""SQL text: the dialect that it is read in, errors of sqlglot in plain words, and the places of parts in the text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from ..locations import marked
from ..operations import OPERATIONS
from .words import WORDS


def language_functions(known: Mapping[str, Any]) -> dict[str, Any]:
    """The functions ``known`` to a parser without the language's, which are read by their names, whatever sqlglot knows
    of functions of that name; with the `WORDS` that stand for longer conditions.
    """
    return {name: node for name, node in known.items() if name.lower() not in OPERATIONS and name not in (
        "DATE_DIFF", "DATEDIFF", "DATE_TRUNC", "DATETRUNC", "DATE_SUB", "DATESUB", "DATE_PART", "DATEPART", "EPOCH",
        "EPOCH_MS", "EPOCH_US")} | WORDS


class WholeIntervals:
    """Mixed into a parser, keeps the text of an INTERVAL, such as '1 day 2 hours' or '1 day x', whole: sqlglot itself
    may read the first two words only.
    """

    def _parse_interval_span(self, this: exp.Expr, parse_function_unit: bool = True) -> exp.Interval:
        if this.is_string and re.search(r"[^\W\d]", this.name):
            return exp.Interval(this=this)
        made: exp.Interval = super()._parse_interval_span(  # type: ignore[misc]  # of the parser
            this, parse_function_unit)
        return made


class Sql(Dialect):
    """sqlglot's dialect with Spark's `name`, X'00FF', DuckDB's //, and Snowflake's MATCH_CONDITION beside."""

    NULL_ORDERING = "nulls_are_last"  # as in DuckDB

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[list[Any]] = ['"', "`"]
        HEX_STRINGS: ClassVar[list[Any]] = [("x'", "'"), ("X'", "'")]
        KEYWORDS: ClassVar[dict[str, Any]] = {
            **tokens.Tokenizer.KEYWORDS, "//": TokenType.DIV, "INT8": TokenType.BIGINT,
            "MATCH_CONDITION": TokenType.MATCH_CONDITION}

    class Parser(WholeIntervals, parser.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = language_functions(parser.Parser.FUNCTIONS)
        # As in all databases, x = y IS NULL asks for the comparison.
        IS_PREDICATE_PRECEDENCE = parser.IsPredicatePrecedence.LOW


def sql_tokens(text: str) -> list[Token]:
    """The tokens of ``text``, `with_names`. Raises `TokenError`."""
    return with_names(Sql().tokenize(text))


def with_names(found: list[Token]) -> list[Token]:
    """The tokens ``found``, where a keyword behind a dot is a name, as in DuckDB: ``r.from``."""
    for before, token in itertools.pairwise(found):
        if (before.token_type == TokenType.DOT and token.token_type != TokenType.IDENTIFIER
                and token.text.isidentifier()):
            token.token_type = TokenType.VAR
    return found


def sql_of(e: exp.Expr) -> str:
    """Equivalent SQL of ``e``."""
    return str(e.sql(dialect=Sql, comments=False))


def short(text: str) -> str:
    """``text`` on one line, its middle left out if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:50]} … {line[-25:]}"


def unreadable(text: str, error: ParseError, kind: str = "condition") -> str:
    """The error in a text that cannot be parsed, and its place; ``kind``: what it should have been."""
    found = error.errors[0]
    what, token = str(found["description"]), str(found["highlight"])
    before = str(found["start_context"]).split("\n")[-1].rstrip()
    if what.startswith("Required keyword"):
        problem = f"something must follow {token!r}" if token else "something is missing"
    elif what.startswith("Invalid expression"):
        problem = f"{token!r} is not expected here"
    elif what.startswith("Expected table name"):
        problem = f"a table's name is expected, not {token!r}"
    elif what.startswith("Expecting"):
        problem = f"{what.split()[-1]!r} is expected after {token!r}"
    else:
        what = re.sub(r"<Token .*?text: (.*?), line: .*?comments: \[.*?\]>", r"\1", what.split("\n")[0])
        problem = re.sub(r"\x1b\[\d*m|<class '[\w.]*?(\w+)'>", r"\1", what.split("\n")[0])
    if before.endswith("**"):
        problem = "SQL has no operator **; multiply, as in r.x * r.x"
    # sqlglot counts to the end of the token.
    column = max(1, int(found["col"] or 1) - max(0, len(token) - 1))
    place = f"line {found['line']}, column {column}" + (f", after {before[-40:]!r}" if before else "")
    statement = re.match(r"\s*(SELECT|WITH|ON|WHERE|FROM|INSERT|UPDATE|DELETE|CREATE|DROP)\b", text, re.IGNORECASE)
    advice = ""
    if statement and kind == "condition":
        advice = f"; write the condition alone, without {statement[1].upper()}"
    return f"the {kind} {short(text)!r} cannot be read at {place}: {problem}{advice}"


def untokenizable(text: str, error: TokenError, kind: str = "condition") -> str:
    """The error in a text that cannot be split into words, and its place; ``kind`` as in `unreadable`."""
    missing = re.match(r"Missing (.+) from \d+:(\d+)", str(error.__cause__ or error))
    if missing is None:
        return f"the {kind} {short(text)!r} cannot be read: a comment or a quoted text in it is not closed"
    offset = int(missing[2])  # from the start of the text, whatever the line
    return (f"the {kind} {short(text)!r} cannot be read: the {missing[1]} opened at line "
            f"{text.count(chr(10), 0, offset) + 1}, column {offset - text.rfind(chr(10), 0, offset)} is not closed")


#: What may stand before the first part that has a place.
_OPENING = re.compile(r"(-|~|\(|\bNOT)\s*\Z", re.IGNORECASE)
_CLOSING = re.compile(r"\)")
_END = re.compile(r"\bEND\b", re.IGNORECASE)


class ConditionText:
    """The places of parts in ``text``, which they were parsed from. A node in place of one that was parsed has that in
    its meta data, as ``written``.
    """

    def __init__(self, text: str):
        self.text = text

    def quote(self, e: exp.Expr) -> str:
        """The user's own text of ``e`` where it can be found, else equivalent SQL."""
        e = _as_written(e)
        span, exact = self._span(e)
        return " ".join(self.text[span].split()) if exact else sql_of(e)

    def mark(self, e: exp.Expr) -> str:
        """The line of the user's text in which ``e`` begins, on a line of its own, and a mark under ``e``."""
        span, _ = self._span(_as_written(e))
        if span.stop == 0:
            return ""
        begin = self.text.rfind("\n", 0, span.start) + 1
        line = self.text[begin:].split("\n", 1)[0]
        return "\n" + marked(line, span.start - begin, min(span.stop - begin, len(line)))

    def _span(self, e: exp.Expr) -> tuple[slice, bool]:
        """The place of ``e`` in the user's text, empty if it cannot be found; True if that is all of ``e``."""
        spans = [n.meta for n in e.walk() if "start" in n.meta]
        if not spans:
            return slice(0, 0), False
        start, end = min(m["start"] for m in spans), max(m["end"] for m in spans) + 1
        # A call's closing parenthesis has no node of its own, nor have CASE and END.
        if isinstance(e, exp.Case):
            start = max(0, self.text.upper().rfind("CASE", 0, start))
        stops = (m.end() for m in (_END if isinstance(e, exp.Case) else _CLOSING).finditer(self.text, end))
        starts = [start]
        while len(starts) < 4 and (opening := _OPENING.search(self.text, 0, starts[-1])):
            starts.append(opening.start())
        for begin, stop in itertools.product(starts, (end, *itertools.islice(stops, 2))):
            if _same(self.text[begin:stop], e):
                return slice(begin, stop), True
        return slice(start, end), False


def _as_written(e: exp.Expr) -> exp.Expr:
    if not any("written" in node.meta for node in e.walk()):
        return e
    written: exp.Expr = e.transform(lambda node: node.meta.get("written", node))
    return written


def _same(text: str, e: exp.Expr) -> bool:
    try:
        return bool(Sql().parser().parse_into(exp.Condition, sql_tokens(text), text) == [e])
    except (ParseError, TokenError):
        return False
