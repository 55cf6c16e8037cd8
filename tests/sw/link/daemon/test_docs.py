"""The page's examples run, and print what the page says."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import daemon_process

PAGE = Path(__file__).parents[4] / "docs" / "daemon.md"


def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (_, start), *blocks = re.findall(r"```(sh|python|text)\n(.*?)```", PAGE.read_text(), re.S)
    command = start.strip().removesuffix("&").removeprefix("splitjoin daemon ")
    with daemon_process(tmp_path / "splitjoin" / "daemon.sock", *shlex.split(command)):
        names: dict[str, Any] = {}
        printed = ""
        for kind, code in blocks:
            if kind == "text":
                assert printed == code
                printed = ""
                continue
            assert printed == "", "what an example prints must stand on the page"
            if kind == "python":
                exec(compile(code, str(PAGE), "exec"), names)
                printed = capsys.readouterr().out
            else:
                printed = subprocess.run([sys.executable, "-m", *shlex.split(code)], capture_output=True, text=True,
                                         check=True).stdout
        assert printed == ""
    assert len(blocks) == 8
