"""`explain` tells what circuits make of user-defined aggregates."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
import splitjoin
from splitjoin.explain import explain

from ...support.user_aggregates import Extent, Histogram, Variance


def told(clock: float | None, family: str = "ecp5") -> list[str]:
    schema = pa.schema({"a": pa.int16(), "b": pa.uint8()})
    query = splitjoin.query(pa.schema({"x": pa.int32()}), schema, on="r.x = s.a", window="ROWS 64", aggregate={
        "v": Variance("s.a"), "h": Histogram("s.b"), "e": Extent("s.a"), "n": "count(*)"})
    lines = explain(query, clock=clock, family=family).splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("aggregate "))
    return lines[first:first + 9]


@pytest.mark.parametrize("family", ["ecp5", "ultrascale"])
def test_interval_latency_and_cost_are_told(family: str) -> None:
    lines = told(100, family)
    assert lines[0] == "aggregate   v: Variance(s.a)"
    assert lines[1] == ("  circuit   a partner every 1 cycle at 100 MHz on ECP5, result 3 cycles after the last; 96 "
                        "bits of state; result on the host: result() has no stated width")
    assert re.fullmatch(r"  cost      on (ECP5|UltraScale\+) \d+ LUT[46], \d+ flip-flops, 0 block RAMs of 18 Kbit, 1 "
                        r"DSP for a unit", lines[2])
    assert lines[4].startswith("  circuit   a partner every 2 cycles at 100 MHz on ECP5, result 7 cycles after the la")


def test_a_clock_that_is_too_fast_is_told() -> None:
    lines = told(200)
    assert lines[1] == ("  circuit   no: an operation '*' of 31 bits takes 6.9 ns, so the clock must be at most 145 "
                        "MHz, not 200; state fewer bits, or ask for a slower clock")
    assert lines[3].startswith("  circuit   a partner every 5 cycles at 200 MHz")
