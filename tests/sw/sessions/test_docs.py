"""The guide's examples run, and print what the guide says."""

import re
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "streaming.md"


def test_examples(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```(python|text)\n(.*?)```", GUIDE.read_text(), re.S)
    names: dict[str, Any] = {}
    printed = ""
    for kind, code in blocks:
        if kind == "python":
            assert printed == "", "what an example prints must stand in the guide"
            exec(compile(code, str(GUIDE), "exec"), names)
            printed = capsys.readouterr().out
        else:
            assert printed == code
            printed = ""
    assert printed == ""
    assert sum(kind == "text" for kind, _ in blocks) > 5
