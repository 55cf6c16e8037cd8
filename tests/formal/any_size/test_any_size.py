"""Every proof for any size closes, every planted fault breaks it, and the properties of circuits it rests on exist."""

import csv
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import z3

from ..proofs import planted
from .__main__ import MODELS, main
from .systems import System, broken, idle

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_it_is_proved(model):
    system = model.make()
    assert broken(system) == []
    assert idle(system) == []


@pytest.mark.parametrize(("model", "fault"), [(model, fault) for model in MODELS for fault in model.faults],
                         ids=lambda x: getattr(x, "name", None) or x.old)
def test_a_planted_fault_breaks_the_proof(model, fault):
    with planted(fault):
        assert broken(model.make(), fault.breaks) == [fault.breaks]


def test_what_does_not_hold_is_not_proved():
    """An invariant that fails at first, one that a step breaks, what does not follow, and a step never taken."""
    n = z3.Function("n", z3.IntSort())

    def counter(first, limit, most):
        return System(assumed=(), first=SimpleNamespace(n=lambda: z3.IntVal(first)), before=SimpleNamespace(n=n),
                      steps={"up": (n() < limit, SimpleNamespace(n=lambda: n() + 1))},
                      invariants={"small": lambda now: z3.And(now.n() >= 0, now.n() <= 5)},
                      follows={"at most": lambda now: now.n() <= most})

    assert broken(counter(0, 5, 5)) == idle(counter(0, 5, 5)) == []
    assert broken(counter(-1, 5, 5)) == ["small: at first"]
    assert broken(counter(0, 6, 5)) == ["small: after up"]
    assert broken(counter(0, 5, 4)) == ["at most"]
    assert idle(counter(0, 0, 5)) == ["up"]


def test_the_page_names_properties_that_are_proved_of_circuits():
    """Assumptions about a core or a node are quoted from docs/proofs.csv."""
    section = (DOCS / "formal.md").read_text().partition("## Any number of cores")[2].partition("\n## ")[0]
    with (DOCS / "proofs.csv").open(newline="") as file:  # which test_proofs.py compares with the proofs
        proved = {name for _, name, _ in csv.reader(file)}
    quoted = [" ".join(text.split()) for text in re.findall(r"\*([^*]+)\*", section)]
    assert len(quoted) >= 6
    assert [text for text in quoted if text not in proved] == []
    assert [model.name for model in MODELS if f"| {model.name} |" not in section] == []


def test_command_line(capsys, monkeypatch):
    monkeypatch.setattr("tests.formal.any_size.__main__.MODELS", MODELS[:1])
    assert main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("proved   turns, for any size: ")
    assert lines[1] == f"breaks   turns, with a fault: {MODELS[0].faults[0].breaks}"
