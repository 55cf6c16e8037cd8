"""Golden files of the compiler's passes, one each: conditions, and their text forms before and after the pass.

A file lists conditions as ``on …`` lines, those for circuits as ``on instead: …`` or ``on beside: …`` (what becomes
of the interval tests that sum tests imply), or ``on 250 MHz instead: …``. After a change that is meant, or with new
such lines, write them again:
python -m tests.support.pass_texts
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from splitjoin.lang.query import predicate
from splitjoin.lang.schema import Schema
from splitjoin.plan.make import Plan
from splitjoin.plan.passes.pipeline import PASSES, program

__all__ = ["PATHS", "conditions", "written"]

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
#: The passes that a program must have been through for a pass to take it.
_FORMS = ("logic", "strength", "bounds", "split", "merge", "share", "main", "width", "clock")


def conditions(path: Path) -> list[str]:
    """The conditions of a golden file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("on ") for line in lines if line.startswith("on ")]


def written(path: Path) -> str:
    """What the golden file of a pass must hold."""
    name = path.stem
    step = next(p for p in PASSES if p.name == name)
    before = _FORMS[:_FORMS.index(name)] if name in _FORMS else ()
    parts = [f"# {name}: {step.what}\n"]
    for on in conditions(path):
        wish, _, condition = on.rpartition(": ")
        clock, _, sums = wish.rpartition(" MHz ")
        now = program(predicate(condition, R, S), sums or "none",  # type: ignore[arg-type]  # one of Sums
                      float(clock) if clock else None)
        for p in PASSES:
            if p.name in before:
                now = p.run(now)
        after = step.run(now)
        lines = str(after).splitlines()
        if isinstance(now.whole, Plan):  # a plan keeps most of its lines
            lines = [line for line in lines if line not in str(now).splitlines()]
        reasons = [f"undecided {why}" for p in after.parts for why in p.undecided] if after.whole is None else []
        parts.append("\n".join([f"on {on}", "before", *_indented(str(now).splitlines()), "after", *_indented(lines),
                                *reasons]) + "\n")
    return "\n".join(parts)


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


if __name__ == "__main__":
    for path in PATHS:
        path.write_text(written(path), encoding="utf-8")
