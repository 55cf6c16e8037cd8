"""Whole circuits that look up tests of constant width: the golden model's answer to every condition and scenario."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from splitjoin.base.errors import SplitJoinError
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import assert_conforms, run
from ..support.sampling import at_length
from .test_widths import CONDITIONS, SCHEMAS, table

#: Conditions with a test that is looked up: of a few numbers, of so many that a part is subtracted, beside others.
LOOKED_UP = [on for on, widths in CONDITIONS.items() if any(wide is not None for wide in widths)]
NAMES = {"r": "xyz", "s": "abc"}
BANDS = "abs(r.x - s.a) <= 1 AND (abs(r.y - s.b) <= 10 OR r.z = s.c)"
ORDERS = ("total", "none", "outer(1)", "inner(3)")


@pytest.mark.parametrize("on", [at_length(on) if n % 3 else on for n, on in enumerate(LOOKED_UP)])
def test_the_answer_is_the_golden_models(on: str) -> None:
    rng = random.Random(on)
    r, s = table("r", rng), table("s", rng)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window="ROWS 14")
    golden = run(GoldenDevice(), query, r, s)
    # One each with and without further registers: it is slow.
    clock, lanes, probes = (None, 2, 3) if LOOKED_UP.index(on) % 2 else (150, 1, 8)
    engine = PysimDevice(cores=1, capacity=16, lanes=lanes, probes=probes, clock=clock, core="scan", tables=True,
                         stall_in=0.3, stall_out=0.3, seed=5)
    assert_conforms(run(engine, query, r, s, [5, 31]), golden, "total")


@pytest.mark.parametrize("stalls", [(0.0, 0.0), at_length((0.9, 0.0)), at_length((0.0, 0.9))], ids=str)
def test_bands_and_equalities_under_stalls(stalls: tuple[float, float]) -> None:
    """Long streams through passes of few reads and of many, in every order."""
    rng = random.Random(11)
    r, s = (pa.table([pa.array([rng.randint(-4, 4) for _ in range(200)], pa.int32()) for _ in NAMES[side]],
                     names=list(NAMES[side])) for side in "rs")
    for order in ORDERS[::2] if stalls[0] or stalls[1] else ORDERS:
        query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=BANDS, window="ROWS 120",
                           order=order)
        device = SimDevice(cores=2, capacity=64, lanes=2, probes=4, tables=True, stall_in=stalls[0],
                           stall_out=stalls[1])
        assert_conforms(run(device, query, r, s, [100, 200]), run(GoldenDevice(cores=2), query, r, s), order)


@pytest.mark.parametrize(("options", "on", "said"), [
    ({"core": "hash", "tables": True}, "r.n = s.m", "tables with core hash must be False, as it compares a probe with "
     "few candidates; give core='scan' for tables, not True"),
    ({"tables": True}, "r.x < s.a", "tables must be False for a condition without a test that is looked up, an "
     "equality or a band of constant width on keys of less than 64 bits, not True"),
    ({"tables": "yes"}, "r.n = s.m", "tables must be True or False, not 'yes'"),
])
def test_tables_are_refused_where_they_cannot_be(options: dict[str, object], on: str, said: str) -> None:
    query = Query.make(Schema.from_arrow("r", SCHEMAS["r"]), Schema.from_arrow("s", SCHEMAS["s"]), on=on,
                       window="ROWS 16")
    with pytest.raises(SplitJoinError) as caught:
        PysimDevice(**options).configuration(query)  # type: ignore[arg-type]  # that is what is refused
    assert str(caught.value) == said
