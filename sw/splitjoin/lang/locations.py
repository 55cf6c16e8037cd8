"""Error locations: adds the file, the line and the marked expression of the user's source to an error."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

from splitjoin.base.errors import SplitJoinError

#: How many characters of a long line are shown before and after the start of the expression.
_AROUND = 80

E = TypeVar("E", bound=SplitJoinError)


def located(error: E, fn: Callable[..., Any]) -> E:
    """``error`` with the location, in ``fn`` or in a function that it calls, of the expression that raised it."""
    here = __name__.rsplit(".", 2)[0] + "."
    found: tuple[CodeType, int] | None = None
    trace = error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        if not module.startswith(here):
            found = trace.tb_frame.f_code, trace.tb_lasti
        trace = trace.tb_next
    if found is None:
        return error
    code, instruction = found
    line, end_line, column, end_column = list(code.co_positions())[instruction // 2]
    source = linecache.getline(code.co_filename, line or 0).rstrip("\n")
    if line is None or not source.strip():
        return error
    text = f"{error}\n  {code.co_filename}, line {line}, in {code.co_name}"
    if column is None or end_column is None:
        return type(error)(f"{text}\n    {source.strip()}")
    # Columns are counted in bytes.
    raw = source.encode()
    start = len(raw[:column].decode(errors="ignore"))
    end = len(raw[:end_column].decode(errors="ignore")) if end_line == line else len(source)
    return type(error)(f"{text}\n{marked(source, start, end)}")


def marked(source: str, start: int, end: int) -> str:
    """The line ``source``, and below it a line of ``^`` under the characters from ``start`` to ``end`` (excluded).

    A long line is cut to the characters around ``start``.
    """
    first = max(len(source) - len(source.lstrip()), start - _AROUND)
    last = max(first, min(len(source.rstrip()), start + _AROUND))
    end = min(max(end, start + 1), max(last, start + 1))
    source = "".join(c if c.isprintable() else " " if c == "\t" else "?" for c in source)
    return f"    {source[first:last]}\n    {' ' * (start - first)}{'^' * (end - start)}"
