"""The cases of other engines: the same rows here, in the same step unless the table says why.

docs/other-engines.md has the table. After a change that is meant: python -m tests.sw.sessions.test_other_engines
"""

from __future__ import annotations

import io
import random
import re
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import splitjoin
from splitjoin.lang.schema import SIDES
from splitjoin.spark.streaming import task as tasks
from splitjoin.spark.streaming.watermark import WatermarkRule

from ...support.engine_cases import CASES, Case, Row, Step
from ...support.micro_batches import MicroBatches

R = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("x", pa.int64())])
S = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("a", pa.int64())])
PAGE = Path(__file__).parents[3] / "docs" / "other-engines.md"


def arguments(case: Case) -> dict[str, Any]:
    return {"on": "r.k = s.k", "order": "none", "time": "ts", **case.query}


def table(step: Step, schema: pa.Schema) -> pa.Table:
    return pa.table([list(column) for column in zip(*step.what, strict=True)], schema=schema)


def rows(found: Any) -> list[Row]:
    return sorted(((row["x"], row.get("a")) for row in found.to_pylist()), key=repr)


def operations(found: pa.RecordBatch) -> tuple[list[Row], list[Row]]:
    """The rows that are given, and those that are taken back."""
    if "operation" not in found.schema.names:
        return rows(found), []
    given, back = (found.filter(pc.equal(found["operation"], operation)) for operation in "+-")
    return rows(given), rows(back)


def ours(step: Step) -> list[Row]:
    return sorted(step.theirs if step.ours is None else step.ours, key=repr)


@pytest.mark.parametrize("device", ["golden", "cpu"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.engine}: {case.title}")
def test_session(case: Case, device: str) -> None:
    taken_back: list[Row] = []
    with splitjoin.open(splitjoin.query(R, S, **arguments(case)), device, **case.options) as session:
        for step in case.steps:
            if step.action == "r":
                session.push_r(table(step, R))
            elif step.action == "s":
                session.push_s(table(step, S))
            elif step.action == "idle":
                session.idle(step.what)
            else:
                session.heartbeat(step.what)
            given, back = operations(session.poll())
            assert given == ours(step), step
            taken_back += back
    wrong = [row for step in case.steps for row in step.withdrawn]
    assert taken_back == (wrong if case.options.get("early") else [])


@pytest.mark.parametrize("case", [case for case in CASES if case.in_spark], ids=lambda c: f"{c.engine}: {c.title}")
def test_in_the_tasks_of_spark(case: Case, tmp_path: Path) -> None:
    """A micro-batch a step, through the tasks of a streaming join, without a JVM. As Spark does it where the watermark
    has moved, one without data follows by Spark's rule.
    """
    rule = WatermarkRule(dict.fromkeys(SIDES, case.options["lateness"]),
                         policy="max" if case.options["watermark"] == "max" else "min",
                         beyond=case.options["watermark"] == "spark")
    tasks._CACHE.clear()
    query = MicroBatches(str(tmp_path), R, S, 0, arguments(case), rule=rule)
    for step in case.steps:
        parts = {"r": R.empty_table(), "s": S.empty_table(), step.action: table(step, R if step.action == "r" else S)}
        found = rows(query.run([parts["r"]], [parts["s"]]))
        if rule.beyond:
            found += rows(query.run([R.empty_table()], [S.empty_table()]))
        assert found == ours(step), step


def when(case: Case) -> str:
    """The steps of the rows here beside those there: "same", "later" or "earlier"."""
    here, there = ({row: n for n, step in enumerate(case.steps) for row in given(step) if row not in step.withdrawn}
                   for given in (ours, lambda step: step.theirs))
    both = [(here[row], there[row]) for row in here.keys() & there.keys()]
    return "later" if any(a > b for a, b in both) else "earlier" if any(a < b for a, b in both) else "same"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.engine}: {case.title}")
def test_later_has_a_reason(case: Case) -> None:
    assert bool(case.why) == (when(case) == "later")
    kept = [row for step in case.steps for row in step.theirs if row not in step.withdrawn]
    found = [row for step in case.steps for row in ours(step)]
    assert len(set(found)) == len(found)
    assert set(kept) <= set(found)


def test_ten_run_in_spark() -> None:
    assert sum(case.in_spark for case in CASES) >= 10


def lines() -> str:
    """The table: the cases of an engine that come out alike share a line."""
    titles: dict[tuple[str, str], list[str]] = {}
    for case in CASES:
        how = when(case)
        taken, early = any(step.withdrawn for step in case.steps), case.options.get("early")
        here = (f"{how}{f': {case.why}' if case.why else ''}{', with `early=True`' if early else ''}"
                f"{'; then taken back' if taken and early else ''}")
        titles.setdefault((case.engine, here), []).append(case.title)
    return "\n".join(["| engine | cases | here |", "|---|---|---|",
                      *(f"| {engine} | {'; '.join(cases)} | {here} |" for (engine, here), cases in titles.items())])


def test_page() -> None:
    assert lines() in PAGE.read_text(encoding="utf-8")


def test_the_recipe_for_session_windows() -> None:
    """Its pairs are those that a chain of tuples connects, each at most the gap after the one before."""
    code = next(part for part in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
                if "def session_of" in part)
    chance, gap = random.Random(1), 9
    tuples = sorted((chance.randrange(400), chance.choice("rs"), chance.randrange(3)) for _ in range(120))
    recipe: dict[str, Any] = {"pa": pa, "splitjoin": splitjoin}
    with redirect_stdout(io.StringIO()):
        exec(compile(code, str(PAGE), "exec"), recipe)
    recipe["last"].clear()
    recipe["numbers"].clear()
    with splitjoin.open(recipe["query"]) as session:
        for ts, side, k in tuples:
            row = {"ts": ts, "k": k, "session": recipe["session_of"](k, ts, gap)}
            (session.push_r if side == "r" else session.push_s)(pa.Table.from_pylist([row], recipe["schema"]))
        got = Counter((row["k_r"], row["ts_r"], row["ts_s"]) for row in session.flush().to_pylist())
    want: Counter[tuple[int, int, int]] = Counter()
    for ts, side, k in tuples:
        reached = {ts}  # all times of the key that a chain of steps reaches
        while more := {t for t, _, other in tuples if other == k and t not in reached and
                       any(abs(t - one) <= gap for one in reached)}:
            reached |= more
        if side == "r":
            want.update((k, ts, t) for t, which, other in tuples if which == "s" and other == k and t in reached)
    assert got == want
    assert 50 < want.total() < 1500


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(r"\| engine \|.*?\n\n", lambda _: lines() + "\n\n", text, flags=re.S), encoding="utf-8")
