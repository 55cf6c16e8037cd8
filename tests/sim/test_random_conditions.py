"""Random conditions of every kind on circuits: Amaranth's simulator gives the golden model's answer."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings, strategies as st
from splitjoin.errors import SplitJoinError
from splitjoin.golden import GoldenDevice
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.sim.pysim import PysimDevice

from tests.support.conformance import assert_conforms, run
from tests.support.strategies import Scenario, scenario


@settings(max_examples=8)
@given(scenario(max_rows=8), st.booleans())
def test_random_conditions_on_the_simulated_circuit(case: Scenario, tables: bool) -> None:
    query = Query.make(Schema.from_table("r", case.r), Schema.from_table("s", case.s), on=case.on.sql,
                       window=case.windows.spec, time=case.time, order=case.order)
    device = PysimDevice(cores=2, capacity=8)
    if tables:
        device = _with_tables(device, query)
    items = run(device, query, case.r, case.s)
    assert_conforms(items, run(GoldenDevice(cores=2), query, case.r, case.s), case.order)


def _with_tables(device: PysimDevice, query: Query) -> PysimDevice:
    """The device with tables, if the condition has a test that is looked up."""
    wanted = replace(device, core="scan", tables=True)
    try:
        wanted.configuration(query)
    except SplitJoinError:
        return device
    return wanted
