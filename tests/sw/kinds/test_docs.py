"""docs/kinds.md, docs/aggregates.md and docs/user-aggregates.md: their examples print what they say.

After a change that is meant: python -m tests.sw.kinds.test_docs
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("aggregates.md", "kinds.md", "user-aggregates.md")


def printed(page: str) -> str:
    """The page with what its examples print; they share their names."""
    names: dict[str, Any] = {}

    def run(found: re.Match[str]) -> str:
        out, name = io.StringIO(), f"{page} {found.start()}"
        linecache.cache[name] = len(found[1]), None, found[1].splitlines(keepends=True), name  # classes are compiled
        with contextlib.redirect_stdout(out):
            exec(compile(found[1], name, "exec", dont_inherit=True), names)
        return f"```python\n{found[1]}```\n\n```text\n{out.getvalue()}```"

    return re.sub(r"```python\n(.*?)```\n\n```text\n(.*?)```", run, (DOCS / page).read_text(encoding="utf-8"),
                  flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_examples(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert printed(page) == text
    assert text.count("```python\n") == text.count("```text\n") > 2


if __name__ == "__main__":
    for page in PAGES:
        (DOCS / page).write_text(printed(page), encoding="utf-8")
