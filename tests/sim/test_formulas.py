"""Formula tests in circuits: what no interval or sum test decides is decided in the cores, so no other pair leaves."""

import random

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin import UnsupportedError
from splitjoin.circuit.architectures import ARCHITECTURES
from splitjoin.circuit.lowering import plan_for
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import assert_conforms, run, slices
from ..support.formula_conditions import CONDITIONS, SCHEMAS, rows
from ..support.sampling import at_length
from ..support.user_aggregates import Rises

S = {side: Schema.from_arrow(side, schema) for side, schema in SCHEMAS.items()}
#: Of all conditions those that CI runs: a division by a value, NULL with texts.
SHORT = ("mod by a nullable value", "least of chosen texts")
DOT = CONDITIONS["dot product"]


def query(on, order="total", window="ROWS 14"):
    return Query.make(S["r"], S["s"], on=on, window=window, order=order)


def check(engine, asked, seed, n=16):
    """The pairs that leave the circuit are the answer: the host drops none."""
    plan = engine.plan(asked)
    assert plan.formula is not None and (plan.residual is None) == plan.formula.exact
    r, s = rows("r", n, seed), rows("s", n, seed)
    golden = run(GoldenDevice(cores=engine.cores), asked, r, s)
    answer = np.count_nonzero(golden["kind"] == 0)
    assert 2 < answer < n * n
    with engine.open(asked) as session:
        found = []
        for part in slices(arrivals(asked, r, s), [5, 17]):
            session.push(part)
            found.append(session.poll())
        found.append(session.flush())
        counters = session.counters()
    assert_conforms(np.concatenate(found), golden, str(asked.order))
    left = counters.get("unverified", counters.get("matches"))  # which small circuits do not count
    assert left in (answer, None) and (left is not None or engine.architecture == "small")
    return plan


@pytest.mark.parametrize("name", [name if name in SHORT else at_length(name) for name in CONDITIONS])
def test_decided_in_the_cores(name):
    rng = random.Random(name)
    engine = PysimDevice(cores=rng.choice([1, 2]), capacity=16, lanes=rng.choice([1, 2]), probes=rng.choice([1, 2, 4]),
                         clock=rng.choice([None, 60.0]), stall_in=0.3, stall_out=rng.choice([0.3, 0.8]),
                         seed=rng.randrange(99))
    check(engine, query(CONDITIONS[name], rng.choice(["none", "total", "outer(2)", "inner(3)"])), name)


@pytest.mark.parametrize(("core", "on"), [("bucket", CONDITIONS["determinant beside a band"]),
                                          at_length("hash", f"{DOT} AND r.w % 4 = s.c % 4"),
                                          at_length("ordered", f"{DOT} AND abs(r.y - s.b) <= 12")])
def test_beside_an_index(core, on):
    """The interval tests by which an index finds candidates stay."""
    plan = check(PysimDevice(cores=1, capacity=16, core=core, stall_out=0.5, seed=2), query(on), core)
    assert plan.core.index and plan.tests


@pytest.mark.parametrize("name", [name if name == "small" else at_length(name) for name in ARCHITECTURES])
def test_in_every_architecture(name):
    order = "total" if "total" in ARCHITECTURES[name].orders else "none"
    check(PysimDevice(architecture=name, capacity=16, stall_out=0.4, seed=1), query(DOT, order), name)


def test_a_formula_takes_no_more_cycles_than_a_test():
    n = 24
    cycles, r, s = {}, rows("r", n, 1), rows("s", n, 1)
    formula, band = "r.x * s.a + r.y * s.b = 301", "r.x <= s.a - 40"
    for on in (formula, band):
        asked = query(on, window="ROWS 8")
        engine = PysimDevice(cores=1, capacity=8, lanes=1, probes=4)
        with engine.open(asked) as session:
            session.push(arrivals(asked, r, s))
            found = session.flush()
            accepted = session.accepted()
            assert session.counters()["matches"] == np.count_nonzero(found["kind"] == 0)
        cycles[on] = (accepted[-1] - accepted[n - 1]) / n
    assert cycles[formula] <= min(3, 1.05 * cycles[band])


@pytest.mark.parametrize(("sources", "how", "aggregate"), [
    (2, "left", {"n": "count(*)", "total": "sum(s.c)"}), at_length(1, "left", {"n": "count(*)", "total": "sum(s.c)"}),
    at_length(3, "left", {"in_order": Rises("s.c")}), at_length(4, "semi", None), at_length(2, "anti", None)])
def test_folded_behind_a_formula(sources, how, aggregate):
    """By the regions or by the unit behind the gather trees; of several sources the last states leave, too."""
    r, s = (rows(side, 24, 7).append_column("ts", pa.array(sorted(n * 37 % 50 for n in range(24)))) for side in "rs")
    of = {"on": DOT, "window": "RANGE 12", "time": "ts", "how": how, "aggregate": aggregate}
    engine = PysimDevice(cores=2, capacity=32, probes=2, fold="always", sources=sources, stall_in=0.3, seed=4)
    assert splitjoin.join(r, s, device=engine, **of).table == splitjoin.join(r, s, device="golden", **of).table


@pytest.mark.parametrize("kind", [at_length("semi"), at_length("anti"), at_length("left")])
def test_kinds(kind):
    r, s = rows("r", 24, kind), rows("s", 24, kind)
    of = {"on": DOT, "window": "ROWS 6", "how": kind}
    engine = PysimDevice(cores=2, capacity=8, probes=2, stall_out=0.3, seed=5)
    assert splitjoin.join(r, s, device=engine, **of).table == splitjoin.join(r, s, device="golden", **of).table


def test_where_it_is_decided():
    schemas = [Schema.from_arrow(side, schema.append(splitjoin.field("v", "float32", nullable=False)))
               for side, schema in SCHEMAS.items()]
    mixed = Query.make(*schemas, on=f"{DOT} AND r.v * s.v > 2", window="ROWS 9")
    plan = plan_for(mixed, CircuitParameters())
    assert plan.formula is not None and "r.v" in str(plan.residual)
    with pytest.raises(UnsupportedError, match=r"verify='core' wants all .* float of both streams"):
        plan_for(mixed, CircuitParameters(verify="core"))
    host = plan_for(mixed, CircuitParameters(verify="host"))
    assert host.formula is None and host.residual == mixed.predicate
    # A clock that the formula cannot have leaves it to the host.
    fast = plan_for(query(CONDITIONS["dot product"]), CircuitParameters(clock=180.0))
    assert fast.formula is None and fast.residual is not None and any("MHz" in why for why in fast.reasons)
