"""The runner of a page's steps: Python steps share their names, and what a step must print is checked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .pages import ROOT


def ran(folder: Path, *steps: tuple[str, str, str | None]) -> tuple[int, str]:
    """Exit code and errors of the runner for ``steps`` of language, code and what they print."""
    named = [{"place": f"a.md:{n}", "language": language, "code": code, "prints": prints, "path": os.environ["PATH"]}
             for n, (language, code, prints) in enumerate(steps)]
    (folder / "steps.json").write_text(json.dumps(named))
    done = subprocess.run([sys.executable, str(ROOT / "tests" / "wheel" / "run_steps.py"), "steps.json"], cwd=folder,
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_steps_share_names_and_the_folder(tmp_path: Path) -> None:
    assert ran(tmp_path, ("python", "x = 3\nopen('x', 'w').write('four')\n", None), ("python", "print(x)\n", "3\n"),
               ("sh", "cat x  # prints four\n", "four"), ("sh", "cat x &\n", None)) == (0, "")


@pytest.mark.parametrize(("step", "text"), [
    (("python", "print(1)\n", "2\n"), "a.md:0 must print what stands below it:\n--- the page\n+++ printed\n"),
    (("python", "1 / 0\n", None), 'File "a.md:0", line 1, in <module>\n'),
    (("sh", "false\ntrue\n", None), "a.md:0 ended with 1:\nfalse\n"),
    (("sh", "echo $UNSET_HERE\n", None), "unbound variable"),
    (("sh", "echo FAIL    # prints PASS\n", None), "a.md:0 must print PASS, but prints\nFAIL\n"),
])
def test_what_goes_wrong_is_told(step: tuple[str, str, str | None], text: str, tmp_path: Path) -> None:
    code, errors = ran(tmp_path, step)
    assert code == 1
    assert text in errors
