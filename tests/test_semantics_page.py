"""The worked examples of docs/semantics.md are what the golden model gives.

After a change that is meant: python -m tests.test_semantics_page
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin import Query, Schema
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import PAIR
from splitjoin.engines.golden import GoldenDevice
from splitjoin.rows.kinds import KindOperator, reference_rows
from tests.support.conformance import slices

PAGE = Path(__file__).parents[1] / "docs" / "semantics.md"
KINDS = r"(left|right|full|semi|anti|asof|asof_left)(?: (\w+))?"
ORDERS = r"none|total|outer\(\d+\)|inner\(\d+\)"
#: The line above a table with the query, then the table.
EXAMPLE = re.compile(r"Example: `(?P<query>.*)`\n\n(?P<head>\|.*)\n(?P<rule>\|[-|]+)\n(?P<rows>(?:\|.*\n)+)")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def line(values: list[str]) -> str:
    return "|" + "".join(f" {v} |" if v else " |" for v in values) + "\n"


class Example:
    """One table of the page: its query, its arrivals, and the columns that the golden model fills."""

    def __init__(self, found: re.Match[str]):
        self.query: dict[str, Any] = eval(f"dict({found['query']})")
        self.head = cells(found["head"])
        self.rows = [cells(row) for row in found["rows"].splitlines() if not row.startswith("| flush")]
        self.start = f"Example: `{found['query']}`\n\n{found['head']}\n{found['rule']}\n"
        self.given = self.head.index("compared with")

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Both streams' tuples, in the order in which the table lists them."""
        columns = {"r": {"ts": "ts", "x, a": "x"}, "s": {"ts": "ts", "x, a": "a"}}
        made = []
        for side, names in columns.items():
            rows = [row for row in self.rows if row[0].startswith(side)]
            assert [row[0] for row in rows] == [f"{side}{i}" for i in range(len(rows))]
            made.append(pa.table({names[name]: pa.array([None if row[at] == "NULL" else int(row[at]) for row in rows],
                                                        pa.int64())
                                  for at, name in enumerate(self.head[:self.given]) if at}))
        return made[0], made[1]

    def items(self, *, order: str, on: str | None = None) -> list[np.ndarray[Any, Any]]:
        """The golden items of each arrival in turn, and last those of flush."""
        options = dict(self.query)
        device = GoldenDevice(cores=options.pop("cores", 1), masked=options.pop("masked", ()))
        if on is not None:
            options["on"] = on
        r, s = self.tables()
        query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), order=order, **options)
        whole = arrivals(query, r, s)
        counts = {0: 0, 1: 0}
        for row, stream in zip(self.rows, whole.stream.tolist(), strict=True):
            assert row[0] == f"{'rs'[stream]}{counts[stream]}", f"{row[0]} is not what arrives here"
            counts[stream] += 1
        found = []
        with device.open(query) as session:
            for part in slices(whole, range(1, len(whole))):
                session.push(part)
                found.append(session.poll())
            found.append(session.flush())
        return found

    def rows_of_kind(self, **kind: str | None) -> list[Any]:
        """The rows of a kind of join that are decided with each arrival in turn, and last those of flush."""
        r, s = self.tables()
        query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), **self.query, **kind)
        whole = arrivals(query, r, s)
        operator, found, counts = KindOperator(query), [], [0, 0]
        parts = self.items(order="total")
        for arrival, items in zip(slices(whole, range(1, len(whole))), parts, strict=False):
            operator.arrive(arrival)
            counts = [counts[0] + len(arrival.r), counts[1] + len(arrival.s)]
            found.append(operator.take(items, (counts[0], counts[1])).items)
        found.append(operator.finish(parts[-1]).items)
        assert np.concatenate(found).tolist() == reference_rows(query, whole, np.concatenate(parts)).tolist()
        return [part[part["kind"] == PAIR] for part in found]

    def text(self) -> str:
        """The table with what the golden model gives, and a row for flush where that gives items."""
        columns = [[", ".join(f"r{i['r']}" if i["side"] else f"s{i['s']}" for i in part if i["kind"] == PAIR)
                    for part in self.items(order="total", on="TRUE")]]
        for order in self.head[self.given + 1:]:
            how = re.fullmatch(KINDS, order)
            assert how or re.fullmatch(ORDERS, order), f"{order!r} is no order and no kind of join"
            columns.append([" ".join(map(shown, part)) for part in (
                self.rows_of_kind(how=how[1], direction=how[2]) if how else self.items(order=order))])
        out = [line([*row[:self.given], *(column[i] for column in columns)]) for i, row in enumerate(self.rows)]
        if any(column[-1] for column in columns):
            out.append(line(["flush", *[""] * (self.given - 1), *(column[-1] for column in columns)]))
        return self.start + "".join(out)


def shown(item: Any) -> str:
    if item["kind"] == PAIR:
        r, s = ("–" if item[side] < 0 else f"{side}{item[side]}" for side in "rs")
        return f"({r}, {s})"
    return f"★s{item['s']}" if item["side"] else f"★r{item['r']}"


def page() -> str:
    """The page as the golden model would have it: its tables, and what its Python blocks print."""
    text = EXAMPLE.sub(lambda found: Example(found).text(), PAGE.read_text(encoding="utf-8"))

    def run(found: re.Match[str]) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(found[1], str(PAGE), "exec"), {})
        return f"```python\n{found[1]}```\n\n```text\n{out.getvalue()}```"

    return re.sub(r"```python\n(.*?)```\n\n```text\n(.*?)```", run, text, flags=re.DOTALL)


def test_the_examples_are_what_the_golden_model_gives() -> None:
    assert page() == PAGE.read_text(encoding="utf-8")


def test_every_window_and_order_has_an_example() -> None:
    found = [Example(match) for match in EXAMPLE.finditer(PAGE.read_text(encoding="utf-8"))]
    assert len(found) == PAGE.read_text(encoding="utf-8").count("Example: ")
    windows = {str(example.query["window"]) for example in found}
    assert {re.sub(r"\d+", "n", w) for w in windows} >= {"ROWS n", "RANGE n", "ROWS n RANGE n", "('ROWS n', 'ROWS n')"}
    columns = {order for example in found for order in example.head[example.given + 1:]}
    orders = {column for column in columns if not re.fullmatch(KINDS, column)}
    assert {column.split()[0] for column in columns - orders} == {"full", "semi", "anti", "asof", "asof_left"}
    assert {order.split("(")[0] for order in orders} == {"none", "outer", "inner", "total"}


def test_sections_keep_the_numbers_that_the_code_cites() -> None:
    titles = re.findall(r"(?m)^## (\d)\. (\w[\w-]*)", PAGE.read_text(encoding="utf-8"))
    assert titles == [("1", "Streams"), ("2", "Windows"), ("3", "Predicate"), ("4", "Output"), ("5", "Sub-windows"),
                      ("6", "Limits"), ("7", "Kinds"), ("8", "Aggregates"), ("9", "Late")]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
