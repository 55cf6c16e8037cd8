"""The output shown in docs/tuning.md and docs/cost.md is that of the commands and the code.

After a change that is meant: python -m tests.sw.tuner.test_docs
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from splitjoin.cli import main
from tests.wheel.pages import words

DOCS = Path(__file__).parents[4] / "docs"
PAGE = DOCS / "tuning.md"


def page() -> str:
    """docs/tuning.md with what its commands print now."""
    def run(found: re.Match[str]) -> str:
        _, *arguments = words(found[1])
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert main(arguments) == 0
        return f"```sh\n{found[1]}```\n\n```text\n{out.getvalue()}```"

    return re.sub(r"```sh\n(.*?)```\n\n```text\n(.*?)```", run, PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_commands_print_what_the_page_shows() -> None:
    now = page()
    assert now.count("```sh") == 1
    assert now == PAGE.read_text(encoding="utf-8")


def test_the_example_of_the_cost_model_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "cost.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    cost = names["cost"]
    assert cost.total.lut > 0  # type: ignore[attr-defined]  # exec gives objects
    assert cost.comparisons == 2 * 8 * 4 * 4  # type: ignore[attr-defined]  # exec gives objects


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
