"""Plants faults in copies of the tree, one at a time, and runs the tests that must find them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from .cpu_time import CPU_SECONDS
from .finders import finders_of
from .mutators import Mutant

ROOT = Path(__file__).parents[2]
#: CPU seconds that a test may take.
LIMIT = 60
#: Seconds in which the tests of a mutant must take a three-hundredth of them as CPU time: else they wait for what never
#: comes. On a loaded machine, tests that go on may take any time.
_HANGS = 300.0
_FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/.+)$", re.MULTILINE)
_TOOK = re.compile(r"^CPU ([0-9.]+) (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What the tests said of a mutant. ``found``: the test that fails, empty if it survived; ``seconds``: of CPU
    time that it took.
    """

    mutant: Mutant
    found: str
    seconds: float = 0.0


class Copy:
    """A copy of the files that git knows, in which faults are planted; the tree itself is never changed."""

    def __init__(self, folder: Path):
        self.root, self._home = folder / "tree", folder / "home"
        self._home.mkdir()
        names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                               check=True, capture_output=True, text=True).stdout.split("\0")
        # And the compiled loops, as long as their sources are these: to build them takes a minute.
        names += [str(path.relative_to(ROOT)) for path in (ROOT / "sw").rglob("loops-*.so")]
        for name in names:
            if name and (ROOT / name).is_file() and not name.startswith("findings/"):
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)

    def test(self, tests: Sequence[str]) -> tuple[int, str]:
        """Run ``tests`` here until one fails: pytest's exit status, and what it printed."""
        paths = [str(self.root / room) for room in ("sw", "hw", "sim", "boards")]
        # What this process is told as a test itself is not for those that it starts. And they limit themselves: a limit
        # set between fork and exec would run the hooks that libraries of this process have for a fork. That a fault is
        # found is enough: to shrink what finds it takes ten times as long. A minute has room for three times as many
        # examples as CI has.
        given = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment = {"SPLITJOIN_TEST_EXAMPLES": "1", **given} | {
            "PYTHONPATH": os.pathsep.join(paths), "HYPOTHESIS_PROFILE": "first", "SPLITJOIN_CACHE": str(self._home),
            "PYTHONDONTWRITEBYTECODE": "", CPU_SECONDS: str(LIMIT * (len(tests) + 1))}
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=line", "-p",
             "tests.mutation.cpu_time", *tests], cwd=self.root, env=environment, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said = said_of(process)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return process.returncode, said

    def tried(self, mutant: Mutant, tests: Sequence[str]) -> Outcome:
        """Plant ``mutant``, run ``tests``, by default those of its file, and take it away again."""
        path, tests = self.root / mutant.file, tests or finders_of(self.root, mutant.file)
        if not tests:
            return Outcome(mutant, "")
        path.write_text(mutant.text)
        try:
            status, said = self.test(tests)
        finally:
            path.write_text(mutant.source)
        if status == 0:
            return Outcome(mutant, "")
        failed = failed_test(said)
        if failed is None:
            said = " ".join(said.split())[-300:]
            return Outcome(mutant, f"ended by signal {-status}: {said}" if status < 0 else f"no start: {said}")
        return Outcome(mutant, *failed)


def said_of(process: subprocess.Popen[str]) -> str:
    """The output of ``process`` once it has ended, or the statement that it hangs."""
    used = 0.0
    while True:
        try:
            return process.communicate(timeout=_HANGS)[0]
        except subprocess.TimeoutExpired:
            before, used = used, _cpu_seconds(process.pid)
            if used - before < _HANGS / 300:
                return f"it hangs: it took {used - before:.2f} s of CPU time in {_HANGS:g} s"


def _cpu_seconds(process: int) -> float:
    """The CPU time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def failed_test(said: str) -> tuple[str, float] | None:
    """The test that failed first by what pytest printed, and its CPU seconds; None if it names none."""
    if (line := _FAILED.search(said)) is None:
        return None
    took = {test: float(seconds) for seconds, test in _TOOK.findall(said)}
    # A dash may be in the name as well as behind it.
    name = next((test for test in took if f"{line[1]} - ".startswith(f"{test} - ")), line[1].partition(" - ")[0])
    return name, took.get(name, 0.0)


@contextmanager
def copies(n: int) -> Iterator[list[Copy]]:
    """``n`` copies of the tree, in a folder for temporary files that goes with them."""
    with tempfile.TemporaryDirectory(prefix="splitjoin-mutation-") as folder:
        made = []
        for i in range(n):
            (Path(folder) / str(i)).mkdir()
            made.append(Copy(Path(folder) / str(i)))
        yield made


def run(mutants: Sequence[Mutant], jobs: int, tests: Sequence[str] = ()) -> Iterator[Outcome]:
    """What ``tests``, by default those of its file, say of each of ``mutants``, in ``jobs`` copies at a time.

    Raises `SystemExit` at the end if a test that has failed does so without a fault too.
    """
    free: Queue[Copy] = Queue()
    finders: dict[str, None] = {}

    def tried(mutant: Mutant) -> Outcome:
        copy = free.get()
        try:
            return copy.tried(mutant, tests)
        finally:
            free.put(copy)

    with copies(jobs) as made, ThreadPoolExecutor(jobs) as pool:
        for one in made:
            free.put(one)
        for outcome in pool.map(tried, mutants):
            if outcome.found:  # a process that ended by itself did not say which test it was
                finders |= dict.fromkeys([outcome.found] if "::" in outcome.found else
                                         tests or finders_of(ROOT, outcome.mutant.file))
            yield outcome
        if finders:
            status, said = made[0].test(list(finders))
            if status:
                raise SystemExit(f"these tests must pass without a fault, but\n{said}")
