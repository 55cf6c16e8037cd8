"""Every quick proof closes, and every property of every proof can break."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Signal

from splitjoin_hw.network.skid_buffer import SkidBuffer

from ..support.planting import times
from ..support.sampling import at_length
from .__main__ import main
from .harness import Harness
from .proofs import Fault, Proof, alive, check, find, planted
from .results import listing
from .table import ALL, listed, table

QUICK = [proof for proof in ALL if proof.quick]
#: Proofs of circuits between whose sizes others are.
BETWEEN = {"combiner of rows of two, a way each", "distribution tree, 2 leaves, fan-out 2",
           "distribution tree, 3 leaves, fan-out 2", "distributor to 1", "distributor to 2", "distributor to 4",
           "lookahead FIFO that shows 5 bits", "merger of 2", "queue of 2", "queue of 4", "queue of 16",
           "states in turn, 1 and 1 cores"}
#: What most circuits promise, and those in which a fault that breaks it is planted.
STABLE, SHAKEN = "offers at o are stable", {"combiner", "distributor to 3", "emitter of one probe"}
DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("proof", [at_length(p) if p.name in BETWEEN else p for p in QUICK], ids=lambda p: p.name)
def test_it_is_proved(proof, tmp_path):
    assert check(proof, tmp_path) == []


@pytest.mark.parametrize(("proof", "fault"), [
    (p, f) if f == p.faults[0] and (f.breaks != STABLE or p.name in SHAKEN) else at_length(p, f)
    for p in QUICK for f in p.faults],
    ids=lambda x: getattr(x, "breaks", None) or x.name)
def test_a_planted_fault_breaks_the_property(proof, fault, tmp_path):
    """One of most proofs; `make formal` and `make test-long` plant all of them."""
    assert find(proof, fault, tmp_path) == [fault.breaks]


@pytest.mark.long  # concerns the list alone
def test_every_property_has_a_fault():
    """Circuits of one kind that differ in size share their faults."""
    broken = {fault.breaks for proof in ALL for fault in proof.faults}
    proved = {proof.name: set(proof.properties) for proof in ALL}
    assert set().union(*proved.values()) <= broken
    assert [(proof.name, fault.breaks) for proof in ALL for fault in proof.faults
            if fault.breaks not in proved[proof.name]] == []


def test_every_fault_fits_its_circuit():
    """The text that a fault replaces is in the circuit's source once. Here it fails as soon as a circuit changes; most
    faults are planted by `make formal` alone.
    """
    faults = dict.fromkeys(fault for proof in ALL for fault in proof.faults)
    assert [fault for fault in faults if ast.dump(ast.parse(fault.old)) == ast.dump(ast.parse(fault.new))] == []
    assert [fault for fault in faults if times(fault.part, fault.method, fault.old) != 1] == []


def test_the_page_has_the_table():
    assert table() in (DOCS / "formal.md").read_text(), "run `python -m tests.formal --table`"
    assert listed() == (DOCS / "proofs.csv").read_text(), "run `python -m tests.formal --properties > docs/proofs.csv`"


@pytest.mark.parametrize("proof", [at_length(p) if p.faults or p.name in BETWEEN else p for p in QUICK],
                         ids=lambda p: p.name)
def test_assumptions_leave_the_circuit_alive(proof, tmp_path):
    """At length where a planted fault is found or another size looked at: contradictory assumptions would hide it."""
    assert alive(proof, tmp_path)


@pytest.mark.long  # concerns the prover alone, and so does the next
def test_induction_alone_does_not_count(tmp_path):
    """A property that holds in every step but not from power-up is refused, and so is one with a bounded proof only."""
    def counter(start, limit):
        def make():
            h = Harness(SkidBuffer(1))
            count = Signal(8, init=start)
            h.m.d.sync += count.eq(count + (count < 100))
            h.prove("small", count < limit)
            return h
        return make

    assert check(Proof("never", counter(60, 50), 2), tmp_path) == ["small"]
    assert check(Proof("late", counter(0, 50), 2), tmp_path) == ["small"]
    assert check(Proof("bounded", counter(0, 50), 20, inductive=False), tmp_path) == []
    assert check(Proof("for ever", counter(0, 101), 2), tmp_path) == []


@pytest.mark.long
def test_properties_apart_rely_on_each_other_in_the_cycles_before_alone(tmp_path):
    def two(start, follows):
        def make():
            h = Harness(SkidBuffer(1))
            a, b = Signal(name="a", init=start), Signal(name="b", init=start)
            h.m.d.sync += [a.eq(b), b.eq(a if follows else h.free("any"))]
            h.prove("a", a)
            h.prove("b", b)
            return h
        return make

    assert check(Proof("both", two(1, True), 1, apart=True), tmp_path) == []
    assert check(Proof("one", two(1, False), 1, apart=True), tmp_path) == ["b"]


def test_harness_wrong_names():
    h = Harness(SkidBuffer(1))
    with pytest.raises(LookupError, match=r"^the component has no signal 'ful', but .*full"):
        h.inner("ful")
    with pytest.raises(LookupError, match=r"^there is no submodule 'fifo', but "):
        h.inner("fifo.level")
    with pytest.raises(AssertionError, match=r"^SkidBuffer.elaborate has 0 times: levle"), planted(
            Fault("", SkidBuffer, "levle", "level")):
        pass


def test_harness_names_that_several_signals_have():
    """The emitter's list and its queue of items each have a level."""
    h = listing()
    with pytest.raises(LookupError, match=r"^2 of 2 signals named 'level' in the component fit; say how many bits"):
        h.inner("level")
    with pytest.raises(LookupError, match=r"^0 of 2 signals named 'level' in the component fit"):
        h.inner("level", bits=1)
    assert h.inner("level", domain="sync") is not h.inner("items.level")


def test_command_line(capsys, monkeypatch):
    """With one fault: the others break above."""
    first = replace(ALL[0], faults=ALL[0].faults[:1])
    monkeypatch.setattr("tests.formal.__main__.ALL", (first, *ALL[1:]))
    assert main(["buffer"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("proved") and lines[0].endswith("buffer")
    assert len(lines) == 2
    assert lines[1].startswith("breaks") and lines[1].endswith(f"buffer, with a fault: {first.faults[0].breaks}")
    assert main(["bufer"]) == 1
    assert capsys.readouterr().err.startswith("there is no proof 'bufer'; there are: buffer; queue of 2")
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.startswith("buffer\nqueue of 2\n")
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "16 CPU minutes" in " ".join(capsys.readouterr().out.split())
