"""Verification on the host: every pair as a candidate, and what the condition leaves of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.verify import Verifier
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import Items
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.ir import Lit
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.lang.types import BOOL
from tests.support.conformance import assert_conforms, run, slices
from tests.support.sampling import examples
from tests.support.strategies import Scenario, scenario


def query_of(case: Scenario) -> Query:
    return Query.make(Schema.from_table("r", case.r), Schema.from_table("s", case.s), on=case.on.sql,
                      window=case.windows.spec, time=case.time, order=case.order)


def filtered(verifier: Verifier, items: Items, size: int) -> list[Items]:
    """The items that the verifier keeps of ``items``, given in slices of ``size``."""
    return [verifier.filter(items[at:at + size]) for at in range(0, max(1, len(items)), size)]


@settings(max_examples=examples(60))
@given(scenario(), st.lists(st.integers(0, 20), max_size=6), st.integers(1, 9))
def test_what_is_left_of_all_pairs_is_the_answer(case: Scenario, cuts: list[int], size: int) -> None:
    """``size``: items per call, so that a probe's items are split over calls, with its inner stars between them."""
    if case.order == "none":  # a device puts stars among its items even then
        case = replace(case, order="outer(2)")
    query = query_of(case)
    verifier = Verifier(query, query.predicate, batch=3, slack=0)
    found = []
    with GoldenDevice().open(replace(query, predicate=Lit(BOOL, True))) as session:
        for part in slices(arrivals(query, case.r, case.s), cuts):
            verifier.push(part)
            session.push(part)
            found += filtered(verifier, session.poll(), size)
        found += filtered(verifier, session.flush(), size)
        assert verifier.candidates == session.counters()["matches"]
    expected = run(GoldenDevice(), query, case.r, case.s)
    assert_conforms(np.concatenate(found), expected, case.order)
    assert verifier.matches == int((expected["kind"] == 0).sum())


@pytest.mark.parametrize(("window", "time", "live"), [("ROWS 10", None, 20), ("RANGE 5", "t", 12)])
def test_tuples_are_kept_as_long_as_the_window_needs_them(window: str, time: str | None, live: int) -> None:
    table = pa.table({"t": range(1000), "x": range(1000)})
    query = Query.make(Schema.from_table("r", table), Schema.from_table("s", table), on="r.x <> s.x", window=window,
                       time=time)
    verifier = Verifier(query, query.predicate, batch=3, slack=0)
    with GoldenDevice().open(query) as session:
        for part in slices(arrivals(query, table, table), range(0, 2000, 3)):
            verifier.push(part)
            session.push(part)
            verifier.filter(session.poll())
            # Trimming waits until as much can go as stays.
            assert verifier.tuples <= 2 * live + 8
    assert verifier.matches > 1000
