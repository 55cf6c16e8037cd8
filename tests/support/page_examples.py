"""Examples of pages in docs/: a ``python`` block and the ``text`` block behind it, which is what the example prints."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"


def printed(page: str) -> str:
    """The text of ``page`` with what its examples print; they share their names."""
    names: dict[str, Any] = {}

    def run(found: re.Match[str]) -> str:
        out, name = io.StringIO(), f"{page} {found.start()}"
        # Classes of user-defined aggregates are compiled from their source.
        linecache.cache[name] = len(found[1]), None, found[1].splitlines(keepends=True), name
        with contextlib.redirect_stdout(out):
            exec(compile(found[1], name, "exec", dont_inherit=True), names)
        return f"```python\n{found[1]}```\n\n```text\n{out.getvalue()}```"

    return re.sub(r"```python\n(.*?)```\n\n```text\n(.*?)```", run, (DOCS / page).read_text(encoding="utf-8"),
                  flags=re.DOTALL)


def check_examples(page: str, least: int) -> None:
    """Check that all examples of ``page``, ``least`` or more, print what the page says."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert printed(page) == text
    assert text.count("```python\n") == text.count("```text\n") >= least


def write_examples(page: str) -> None:
    """Write what the examples of ``page`` print now into it."""
    (DOCS / page).write_text(printed(page), encoding="utf-8")
