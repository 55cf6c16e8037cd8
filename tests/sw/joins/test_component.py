"""`splitjoin.component`: from a query to an Amaranth component, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from amaranth.hdl import Elaboratable

import splitjoin
from splitjoin.cli import main

R, S = (pa.schema([pa.field(name, pa.int16(), nullable=False)]) for name in ("x", "a"))


def query(**options: Any) -> splitjoin.Query:
    return splitjoin.query(R, S, **{"on": "abs(r.x - s.a) <= 2", "window": "ROWS 16"} | options)


def test_a_component_is_what_the_verilog_is(tmp_path: Any) -> None:
    made = splitjoin.component(query(how="left", aggregate={"n": "count(*)"}), cores=2, capacity=16)
    made._MustUse__silence = True
    assert isinstance(made, Elaboratable)
    assert main(["verilog", "--schema-r", "x: int16", "--schema-s", "a: int16", "--on", "abs(r.x - s.a) <= 2",
                 "--window", "ROWS 16", "--how", "left", "--aggregate", "n=count(*)", "--cores", "2", "--capacity",
                 "16", "-o", str(tmp_path)]) == 0
    written = json.loads((tmp_path / "splitjoin.json").read_text(encoding="utf-8"))
    described = json.loads(json.dumps(made.description))
    assert described.pop("query")["explain"] == written.pop("query")["explain"]
    assert described == written
    assert [(name, layout.size) for name, layout in made.layouts.items()] == [
        (name, sum(bits for _, bits in fields)) for name, fields in written["records"].items()]


def test_what_is_no_component() -> None:
    with pytest.raises(splitjoin.InputError, match="component takes a query"):
        splitjoin.component("r.x = s.a")
    with pytest.raises(splitjoin.UnsupportedError, match=r"no parameter 'cors'.*did you mean 'cores'"):
        splitjoin.component(query(), cors=2)
    with pytest.raises(splitjoin.UnsupportedError, match="cores must be 1 to 1024, not 0"):
        splitjoin.component(query(), cores=0)
    with pytest.raises(splitjoin.CapacityError, match="the window of stream r must fit the device"):
        splitjoin.component(query(window="ROWS 99"), cores=1, capacity=64)
