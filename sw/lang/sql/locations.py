"""Where the parts of sqlglot's tree stand in the user's SQL text, for errors."""

from __future__ import annotations

import itertools
import re

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from ..locations import marked
from .dialect import Sql, sql_of

__all__ = ["Places"]

#: What may stand before the first part that has a place.
_OPENING = re.compile(r"(-|~|\(|\bNOT)\s*\Z", re.IGNORECASE)
_CLOSING = re.compile(r"\)")
_END = re.compile(r"\bEND\b", re.IGNORECASE)


class Places:
    """The places of parts in ``text``, which they were parsed from."""

    def __init__(self, text: str):
        self.text = text

    def quote(self, e: exp.Expr) -> str:
        """The user's own text of ``e`` where it can be found, else equivalent SQL."""
        span, exact = self._span(e)
        return " ".join(self.text[span].split()) if exact else sql_of(e)

    def mark(self, e: exp.Expr) -> str:
        """The line of the user's text in which ``e`` begins, on a line of its own, and a mark under ``e``."""
        span, _ = self._span(e)
        if span.stop == 0:
            return ""
        begin = self.text.rfind("\n", 0, span.start) + 1
        line = self.text[begin:].split("\n", 1)[0]
        return "\n" + marked(line, span.start - begin, min(span.stop - begin, len(line)))

    def _span(self, e: exp.Expr) -> tuple[slice, bool]:
        """Where ``e`` stands in the user's text, and whether that is all of it; nowhere if it cannot be found."""
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


def _same(text: str, e: exp.Expr) -> bool:
    dialect = Sql()
    try:
        return bool(dialect.parser().parse_into(exp.Condition, dialect.tokenize(text), text) == [e])
    except (ParseError, TokenError):
        return False
