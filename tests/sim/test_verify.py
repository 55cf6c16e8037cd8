"""Conditions that a circuit decides in part: the host verifies its results, on both simulators and in every order."""

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.passes.compiler import make_plan
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import assert_conforms, run
from ..support.sampling import at_length

ON = "abs(r.x - s.a) <= 3 AND r.y - s.b <= r.x"
R = pa.table({"x": [n * 7 % 11 for n in range(60)], "y": [float(n % 5) for n in range(60)]})
S = pa.table({"a": [n * 5 % 11 for n in range(60)], "b": [float(n % 7) for n in range(60)]})


@pytest.mark.parametrize(("make", "order"), [
    *((SimDevice, order) for order in ("total", "outer(1)", "outer(7)", "none")), (PysimDevice, "outer(7)"),
    *(at_length(PysimDevice, order) for order in ("total", "outer(1)", "none"))])
def test_verified_on_the_host(make, order):
    query = Query.make(Schema.from_table("r", R), Schema.from_table("s", S), on=ON, window="ROWS 8", order=order)
    assert make_plan(query.predicate).residual is not None
    got = run(make(cores=2, capacity=4), query, R, S, [5, 50, 51])
    assert_conforms(got, run(GoldenDevice(), query, R, S), order)


def test_candidates_and_matches_are_counted():
    result = splitjoin.join(R, S, on=ON, window="ROWS 8", device=SimDevice(cores=2, capacity=4))
    assert result.counters["matches"] == result.table.num_rows > 0
    band = splitjoin.join(R, S, on="abs(r.x - s.a) <= 3", window="ROWS 8", device="golden")
    # The second comparison narrows the device's candidates, with bounds rounded outwards: here to the matches.
    assert band.table.num_rows > result.counters["unverified"] >= result.table.num_rows
