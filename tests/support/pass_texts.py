"""Golden files of the compiler's passes, one each: conditions, and their text forms before and after the pass.

A file lists conditions as ``on …`` lines, those for circuits as ``on instead: …`` or ``on beside: …`` (what becomes
of the interval tests that sum tests imply), or ``on 250 MHz instead: …``. After a change that is meant, or with new
such lines, write them again:
python -m tests.support.pass_texts
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from splitjoin.circuit import lowering
from splitjoin.circuit.core_choice import SCAN, CoreChoice
from splitjoin.circuit.lowering import _circuit_plan
from splitjoin.circuit.plan import CircuitPlan
from splitjoin.circuit.sums import sum_relation
from splitjoin.lang.query import predicate
from splitjoin.lang.schema import Schema
from splitjoin.plan.passes.compiler import PASSES, Conjuncts, Forms, Pass, compiled, strength
from splitjoin.plan.passes.strength import ComputedTests
from splitjoin.plan.plan import Shared

PATHS = sorted((Path(__file__).parents[1] / "sw" / "plan" / "passes").glob("*.golden"))
R = Schema.from_arrow("r", pa.schema([
    pa.field("x", pa.int32(), False), ("n", pa.int32()), pa.field("j", pa.int16(), False),
    pa.field("big", pa.int64(), False),
    pa.field("y", pa.float32(), False), ("z", pa.float64()), pa.field("p", pa.decimal128(9, 2), False),
    ("t", pa.string()),
    pa.field("ok", pa.bool_(), False), ("maybe", pa.bool_()), pa.field("d", pa.date32(), False),
    pa.field("at", pa.timestamp("ms"), False),
]))
S = Schema.from_arrow("s", pa.schema([
    pa.field("a", pa.int32(), False), ("m", pa.int32()), pa.field("k", pa.int16(), False),
    pa.field("huge", pa.int64(), False),
    pa.field("b", pa.float32(), False), ("c", pa.float64()), pa.field("o", pa.decimal128(9, 2), False),
    ("w", pa.string()),
    pa.field("fine", pa.bool_(), False), ("perhaps", pa.bool_()), pa.field("e", pa.date32(), False),
    pa.field("due", pa.timestamp("us"), False),
]))
#: Before passes from ``logic`` on, those in front of them are run, from this one.
_FIRST = [p.name for p in PASSES].index("logic")
_CIRCUIT = {p.name: p for p in lowering.PASSES}
_COMPUTED = {"": None, "none": None, "instead": ComputedTests(sum_relation, False),
             "beside": ComputedTests(sum_relation, True)}


def conditions(path: Path) -> list[str]:
    """The conditions of a golden file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("on ") for line in lines if line.startswith("on ")]


def written(path: Path) -> str:
    """The text that the golden file of a pass must hold."""
    name = path.stem
    step = _CIRCUIT.get(name) or next(p for p in PASSES if p.name == name)
    parts = [f"# {name}: {step.what}\n"]
    for on in conditions(path):
        wish, _, condition = on.rpartition(": ")
        clock, _, sums = wish.rpartition(" MHz ")
        before, after = _applied(name, condition, sums, float(clock) if clock else None)
        lines = str(after).splitlines()
        if isinstance(before, (Shared, CircuitPlan)):  # a plan keeps most of its lines
            lines = [line for line in lines if line not in str(before).splitlines()]
        conjuncts = after.conjuncts if isinstance(after, (Conjuncts, Forms)) else ()
        undecided = [why for c in conjuncts for why in c.undecided]
        parts.append("\n".join([f"on {on}", "before", *_indented(str(before).splitlines()), "after", *_indented(lines),
                                *(f"undecided {why}" for why in undecided)]) + "\n")
    return "\n".join(parts)


def _applied(name: str, condition: str, sums: str, clock: float | None) -> tuple[Any, Any]:
    """The phase before pass ``name`` and the one after it."""
    computed, phase = _COMPUTED[sums], Conjuncts.of(predicate(condition, R, S))
    if name in _CIRCUIT:
        shared = compiled(predicate(condition, R, S), computed)
        core = SCAN if sums == "instead" else CoreChoice("bucket", (0,), "")
        plan = replace(_circuit_plan(shared, SCAN), core=core)
        if name == "clock":
            plan = lowering.WIDTH.run((plan, clock)) if sums == "instead" else plan
        return plan, _CIRCUIT[name].run((plan, clock))
    steps: list[Pass[Any, Any]] = [strength(computed) if p.name == "strength" else p for p in PASSES]
    at = [p.name for p in PASSES].index(name)
    now: Any = phase
    for step in steps[_FIRST:at]:
        now = step.run(now)
    return now, steps[at].run(now)


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


if __name__ == "__main__":
    for path in PATHS:
        path.write_text(written(path), encoding="utf-8")
