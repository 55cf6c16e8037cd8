"""Completion in shells, and help that lists the whole language and every command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from splitjoin.cli import DONE, main
from splitjoin.lang.operations import functions, operators
from splitjoin.lang.sql.parser import SUPPORTED


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_code(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == DONE
    out = capsys.readouterr().out
    assert "_ARGCOMPLETE" in out
    assert "splitjoin" in out


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["completion", "csh"])
    assert "invalid choice: 'csh'" in capsys.readouterr().err


def completed(line: str, folder: Path) -> set[str]:
    """Possible continuations of the line, as bash asks for them."""
    answer = folder / "answer"
    answer.touch()
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_SHELL": "bash", "COMP_LINE": line, "COMP_POINT": str(len(line)),
             "COMP_TYPE": "9", "_ARGCOMPLETE_IFS": "\n", "IFS": "\n", "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    code = "import sys; from splitjoin.cli import main; sys.argv[0] = 'splitjoin'; main()"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return {word.strip() for word in answer.read_text().split("\n") if word.strip()}


def test_bash_completes_commands_options_and_values(tmp_path: Path) -> None:
    assert {"join", "doctor", "completion"} <= completed("splitjoin ", tmp_path)
    assert completed("splitjoin explain --schema-", tmp_path) == {"--schema-r", "--schema-s"}
    assert completed("splitjoin explain --core ", tmp_path) == {"auto", "scan", "hash", "bucket", "ordered"}


def test_help_lists_the_whole_language(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert " ".join(SUPPORTED.split()) in said
    assert [o.name for o in operators() if f" {o.name} " not in said] == []
    assert [o.name for o in functions() if f" {o.name}()" not in said] == []
