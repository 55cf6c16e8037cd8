"""The examples of the pages on sessions run, and print what the pages say."""

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", ["streaming.md", "other-engines.md", "several-streams.md", "shared-streams.md"])
def test_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```(python|text)\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.S)
    names: dict[str, Any] = {}
    printed = ""
    for kind, code in blocks:
        if kind == "python":
            assert printed == "", "what an example prints must stand in the guide"
            exec(compile(code, name, "exec"), names)
            printed = capsys.readouterr().out
        else:
            assert printed == code
            printed = ""
    assert printed == ""
    assert sum(kind == "text" for kind, _ in blocks) > (5 if name == "streaming.md" else 0)
