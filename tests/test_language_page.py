"""Statements of docs/language.md are true: its examples are run."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from splitjoin import Schema, SplitJoinError
from splitjoin.lang.eval.scalar import evaluate
from splitjoin.lang.order import parse_order
from splitjoin.lang.sql.parser import parse_sql
from splitjoin.lang.windows import parse_windows

PAGE = (Path(__file__).parents[1] / "docs" / "language.md").read_text(encoding="utf-8")

R = pa.schema([("x", pa.int32()), ("y", pa.float32()), ("z", pa.float64()), ("name", pa.string()), ("ok", pa.bool_()),
               ("day", pa.date32()), ("at", pa.timestamp("us"))])
S = pa.schema([("a", pa.int32()), ("b", pa.float32()), ("c", pa.float64()), ("word", pa.string()), ("fine", pa.bool_()),
               ("date", pa.date32()), ("due", pa.timestamp("us"))])
R_ROW = pa.table({"x": pa.array([5], pa.int32()), "y": [np.nan], "n": pa.array([None], pa.int32()),
                  "f": pa.array([np.float32(10.1)], pa.float32())})
S_ROW = pa.table({"a": pa.array([3], pa.int32()), "b": [np.nan], "z": [-0.0]})


def examples(kind: str) -> list[str]:
    blocks = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    found = [e.strip() for block in blocks for e in re.sub(r"--.*", "", block).split(";") if e.strip()]
    assert found, f"the page has no examples of kind {kind!r}"
    return found


@pytest.mark.parametrize("on", examples("sql"))
def test_examples_are_conditions(on: str) -> None:
    assert str(parse_sql(on, Schema.from_arrow("r", R), Schema.from_arrow("s", S)).type) == "bool"


@pytest.mark.parametrize("on", examples("sql refused"))
def test_refused_examples_are_refused(on: str) -> None:
    with pytest.raises(SplitJoinError) as caught:
        parse_sql(on, Schema.from_arrow("r", R), Schema.from_arrow("s", S))
    part = re.match(r"""'([^']+)': |"([^"]+)": """, str(caught.value))
    assert part is not None
    assert (part[1] or part[2]) in on


@pytest.mark.parametrize(("on", "true"), [(e, True) for e in examples("sql true")]
                         + [(e, False) for e in examples("sql not true")])
def test_examples_with_values(on: str, true: bool) -> None:
    condition = parse_sql(on, Schema.from_table("r", R_ROW), Schema.from_table("s", S_ROW))
    assert (evaluate(condition, R_ROW.to_pylist()[0], S_ROW.to_pylist()[0]) is True) is true


def test_the_python_example_gives_the_same_as_the_sql_one() -> None:
    r, s = pa.table({"x": [1, 50, 7], "id": [1, 2, 3]}), pa.table({"a": [9, 44, 7], "id": [1, 5, 3]})
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    made: list[Any] = []
    scope = {"r": r, "s": s, "made": made}
    exec(re.sub(r"(?ms)^(splitjoin\.join\(.*?\))$", r"made.append(\1)", block), scope)
    assert made[0] == made[1]
    assert len(made[0]) == 3


def test_windows_and_orders_of_the_page() -> None:
    texts = re.findall(r"`((?:ROWS|RANGE) \d[^`]*)`", PAGE)
    assert {"ROWS 4096", "RANGE 900", "RANGE 15 MINUTES", "ROWS 100 RANGE 15 MINUTES"} <= set(texts)
    for text in texts:
        assert parse_windows(text)[0] == parse_windows(text)[1]
    for order in re.findall(r"(?m)^\| `(\w+(?:\([Nn]\))?)` \| ", PAGE.split("## Orders")[1]):
        assert parse_order(order.lower().replace("(n)", "(3)")).kind in order
