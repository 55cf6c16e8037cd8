"""Golden files: the stable text form of the IR and the plan of every condition of the bench.

After a change that is meant: python -m tests.sw.plan.test_plans
"""

from __future__ import annotations

from pathlib import Path

from bench import predicates

from splitjoin.joins.explain import explain
from splitjoin.lang.ir import text

HERE = Path(__file__).parent


def plans() -> str:
    """The conditions and their plans, as `explain` says them."""
    parts = []
    for case in predicates.cases():
        lines = explain(case.query()).splitlines()
        kept = [line for line in lines if line.split()[0] in ("key", "test", "combined", "main", "verified", "because")]
        parts.append("\n".join([f"{case.name}: {text(case.query().predicate)}", *kept]) + "\n")
    return "\n".join(parts)


def test_plans_are_as_they_were() -> None:
    assert plans() == (HERE / "plans.txt").read_text(encoding="utf-8")


if __name__ == "__main__":
    (HERE / "plans.txt").write_text(plans(), encoding="utf-8")
