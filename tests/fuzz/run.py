"""Runs workers, and starts another one after the case in which one ended: `run`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .comparisons import COMPARISONS
from .inputs import INPUTS

ROOT = Path(__file__).parents[2]
#: Seconds in which a worker must read its cases: to start, and for each case.
_START, _EACH = 300, 1.0


@dataclass(frozen=True)
class Finding:
    """A case that ended the process, took too long, raised another error than one of splitjoin, or differed."""

    input: str
    case: int
    problem: str


def names() -> list[str]:
    """The names of all inputs and comparisons."""
    return [one.name for one in (*INPUTS, *COMPARISONS)]


def run(of: Sequence[str], cases: int, seed: int, say: Callable[[str], None] = lambda line: None) -> list[Finding]:
    """The findings of the first ``cases`` cases of each of the inputs ``of``, which ``say`` gets too, as lines."""
    found: list[Finding] = []
    todo = [(name, 0) for name in of]
    while todo:
        more, todo = _worker(todo, cases, seed)
        found += more
        for one in more:
            say(f"{one.input}, case {one.case}: {one.problem}")
    say(f"{cases} cases of each of {', '.join(of)}: {len(found)} findings")
    return found


def _worker(todo: Sequence[tuple[str, int]], cases: int, seed: int) -> tuple[list[Finding], list[tuple[str, int]]]:
    """The findings of a worker that reads the inputs ``todo``, each from a case on; and what it left to do."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.fuzz.worker", str(cases), str(seed), folder,
                   *(f"{name}={first}" for name, first in todo)]
        with open(Path(folder) / "out", "w+") as out, open(Path(folder) / "errors", "w+") as errors:
            try:
                code: int | str = subprocess.run(command, cwd=ROOT, stdout=out, stderr=errors, check=False,
                                                 timeout=_START + _EACH * cases * len(todo)).returncode
            except subprocess.TimeoutExpired:
                code = "it took too long"
            out.seek(0)
            errors.seek(0)
            lines, said = out.read().splitlines(), errors.read()
        found = [Finding(name, int(number), problem)
                 for name, number, problem in (line.split(" ", 2) for line in lines)]
        if code == 0:
            return found, []
        at = Path(folder) / "at"
        if not at.exists():
            raise AssertionError(f"a worker must read its valid inputs, but ended: {code}\n{said[-3000:]}")
        name, number = at.read_text().split()
        found.append(Finding(name, int(number), f"the process ended: {code} {said[-300:]!r}"))
        behind = [one for one, _ in todo].index(name)
        return found, [*([(name, int(number) + 1)] if int(number) + 1 < cases else []), *todo[behind + 1:]]
