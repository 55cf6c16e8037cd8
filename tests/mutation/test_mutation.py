"""Mutants of a text, the faults that are planted, and the count of those that tests find."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap

import pytest

from ..support.sampling import examples
from . import run as runs
from .__main__ import sampled
from .finders import finders_of
from .mutators import KINDS, Mutant, mutants
from .planted import FAULTS, planted
from .run import ROOT, run

TEXT = textwrap.dedent('''
    """A text."""
    def at(a: int, path):
        """It has no mutants, nor have messages and annotations."""
        if a < 3 and path is not None:
            raise ValueError(f"{a + 1} is less than 3")
        with lock:
            disk.sync(path)
        path.mkdir(0o700)
        return min(a, 2) == 1

    class One:
        def restore(self, state):
            self.a, self.b = state.a, state.b
''')


def changes(kind: str) -> set[tuple[str, str]]:
    return {(TEXT[one.start:one.end], one.new) for one in mutants("at.py", TEXT) if one.kind == kind}


def test_each_kind_of_mutant() -> None:
    assert {kind: changes(kind) for kind in KINDS} == {
        "comparison": {("==", "!=")}, "boundary": {("<", "<=")}, "logic": {("and", "or")}, "null": {("is not", "is")},
        "off-by-one": {("3", "4"), ("2", "3"), ("1", "2")}, "extreme": {("min", "max")},
        "call": {("disk.sync(path)", "pass"), ("path.mkdir(0o700)", "pass")}, "lock": {("with lock", "if True")},
        "saved": {("self.a, self.b = state.a, state.b", "pass")}, "permission": {("0o700", "0o770")}}


def test_mutants_of_all_sessions_are_python() -> None:
    apart = 1 if examples(1) > 1 else 9
    for path in sorted((ROOT / "sw/splitjoin/sessions/gate").glob("*.py")):
        source = path.read_text()
        found, without = mutants(str(path), source), ast.dump(ast.parse(source))
        assert all(ast.dump(ast.parse(one.text)) != without for one in found[::apart])


def test_a_sample_has_each_kind_and_is_the_same_for_a_seed() -> None:
    found = mutants("at.py", TEXT)
    some = sampled(found, 10, 7)
    assert {one.kind for one in some} == set(KINDS)
    assert some == sampled(found, 10, 7) != sampled(found, 10, 8)
    assert len(sampled(found, 999, 7)) == len(found)


def test_each_planted_fault_is_still_a_change_of_the_code() -> None:
    found = planted(ROOT)
    assert len(found) == len(FAULTS), "names differ"
    for one in found.values():
        assert ast.dump(ast.parse(one.text)) != ast.dump(ast.parse(one.source))
    finders = {file: finders_of(ROOT, file) for file in {one.file for one in found.values()}}
    assert all(finders.values())
    assert "tests/simulation/test_simulation.py" in finders["sw/splitjoin/sessions/shared/chosen_pairs.py"]
    assert finders["sw/splitjoin/sessions/gate/gate.py"][0] == "tests/sw/sessions/gate/test_gate.py"


def test_files_of_which_no_test_in_their_own_folder_speaks_have_finders_too() -> None:
    """In another room, in the folder around theirs, or the finders of files that import them."""
    assert "tests/hw/hls/test_component.py" in finders_of(ROOT, "sw/splitjoin/hls/memories.py")
    assert finders_of(ROOT, "hw/splitjoin_hw/link/ft232h.py")[0] == "tests/boards/test_ft232h.py"
    assert "tests/sim/test_fault_isolation.py" in finders_of(ROOT, "sw/splitjoin/circuit/driver.py")
    assert finders_of(ROOT, "hw/splitjoin_hw/core/bitmap.py")[1] == "tests/sim/test_index_cores.py"
    assert set(finders_of(ROOT, "sw/splitjoin/tables/formats/arrow_file.py")) <= {
        str(path.relative_to(ROOT)) for path in (ROOT / "tests/sw/tables").glob("test_*.py")}
    assert finders_of(ROOT, "sw/splitjoin/hls/delays.py")
    subqueries = "tests/sw/joins/sql/test_subquery_joins.py"  # which says nothing of it but runs it
    assert subqueries in finders_of(ROOT, "sw/splitjoin/joins/sql/plain_rows.py")


def test_a_fault_is_found_or_survives() -> None:
    file, mirror = "sw/splitjoin/link/frames.py", "tests/sw/link/test_frames.py"
    source = (ROOT / file).read_text()

    def one(old: str, new: str) -> Mutant:
        start = source.index(old)
        return Mutant(file, source, start, start + len(old), new, "one")

    assert finders_of(ROOT, file)[0] == mirror
    outcomes = list(run([one("whole = content + zlib", "whole = zlib"), one("#: The", "# The")], 1, [mirror]))
    assert [outcome.found.partition("::")[0] for outcome in outcomes] == [mirror, ""]
    assert (ROOT / file).read_text() == source, "the tree is never changed"


def test_the_test_that_failed_is_named_as_pytest_knows_it() -> None:
    name, took = "tests/a.py::b[r.x - s.a]", "CPU 0.1 tests/a.py::b\nCPU 0.2 tests/a.py::b[r.x - s.a]\n"
    for line in (name, f"{name} - assert 1 - 1 == 2"):
        assert runs.failed_test(f"F\nFAILED {line}\n{took}") == (name, 0.2)
    assert runs.failed_test("ERROR tests/a.py - SyntaxError: no - text\n") == ("tests/a.py", 0.0)
    assert runs.failed_test(took) is None


def test_a_test_that_fails_without_a_fault_is_no_finder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs.Copy, "__init__", lambda self, folder: None)
    monkeypatch.setattr(runs.Copy, "tried", lambda self, mutant, tests: runs.Outcome(mutant, "tests/a.py::b"))
    monkeypatch.setattr(runs.Copy, "test", lambda self, tests: (1, "b failed"))
    with pytest.raises(SystemExit, match="these tests must pass without a fault, but\nb failed"):
        list(run(mutants("at.py", TEXT)[:1], 1))


@pytest.mark.parametrize(("code", "said"), [("import time; time.sleep(60)", "it hangs: it took 0.0"),
                                            ("import time\nwhile time.process_time() < 0.4: pass\nprint('ended')",
                                             "ended")])
def test_what_waits_hangs_and_what_works_does_not(monkeypatch: pytest.MonkeyPatch, code: str, said: str) -> None:
    """However long that takes where other programs have the processors."""
    monkeypatch.setattr(runs, "_HANGS", 1.5)
    with subprocess.Popen([sys.executable, "-Sc", code], text=True, stdout=subprocess.PIPE) as process:
        try:
            assert runs.said_of(process).startswith(said)
        finally:
            process.kill()
