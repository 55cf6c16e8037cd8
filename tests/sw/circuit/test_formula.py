"""Formula tests on the host: the graphs of conditions give what the conditions are, from the keys of the plan."""

import re

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin import UnsupportedError
from splitjoin.circuit.cost import datapath_cost
from splitjoin.circuit.lowering import configure, plan_for
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.engines.golden import row_values
from splitjoin.lang.eval.scalar import compile_condition
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.encoding import Coder

from ...support.formula_conditions import CONDITIONS, SCHEMAS, rows
from ...support.graphs import formula_holds
from ...support.sampling import at_length

S = {side: Schema.from_arrow(side, schema) for side, schema in SCHEMAS.items()}


def query(on):
    return Query.make(S["r"], S["s"], on=on, window="ROWS 8")


def values(side, table):
    columns = {c.name: row_values(table.column(c.name), c.type) for c in S[side].columns}
    return [{name: column[n] for name, column in columns.items()} for n in range(len(table))]


@pytest.mark.parametrize("name", [name if n % 4 == 0 else at_length(name) for n, name in enumerate(CONDITIONS)])
def test_a_formula_is_the_condition(name):
    asked = query(CONDITIONS[name])
    plan = plan_for(asked, CircuitParameters())
    r, s = rows("r", 24, name), rows("s", 24, name)
    coder = Coder(plan)
    keys = {side: list(zip(*(k.tolist() for k in coder.codes(side, t).keys), strict=True))
            for side, t in (("r", r), ("s", s))}
    assert plan.formula is not None and (plan.residual is None) == plan.formula.exact
    condition = compile_condition(plan.formula.condition)
    found = {(i, j): formula_holds(plan.formula, a, b)
             for i, a in enumerate(keys["r"]) for j, b in enumerate(keys["s"])}
    wanted = {(i, j): condition(a, b) is True
              for i, a in enumerate(values("r", r)) for j, b in enumerate(values("s", s))}
    assert found == wanted
    assert 2 < sum(wanted.values()) < 570


@pytest.mark.parametrize("type_", [pa.string(), pa.binary(9)], ids=str)
def test_of_texts_that_begin_alike_those_whose_order_is_not_known_are_candidates(type_):
    of = [b"", b"a", b"customer", b"customer", b"customer-1", b"customer-2", b"custome", b"custom", None, b"b" * 40]
    if type_ == pa.binary(9):
        of = [t if t is None else t.ljust(9)[:9] for t in of]
    table = pa.table({"t": pa.array(of, pa.binary()).cast(type_), "n": pa.array(range(len(of)), pa.int8())})
    asked = Query.make(*(Schema.from_table(side, table) for side in "rs"), on="(r.t < s.t) = (r.n * s.n + s.n < 40)",
                       window="ROWS 8")
    plan = plan_for(asked, CircuitParameters())
    assert plan.formula is not None and not plan.formula.exact and plan.residual == asked.predicate
    condition, coder = compile_condition(asked.predicate), Coder(plan)
    keys = {side: list(zip(*(k.tolist() for k in coder.codes(side, table).keys), strict=True)) for side in "rs"}
    for i, a in enumerate(of):
        for j, b in enumerate(of):
            true = condition({"t": a, "n": i}, {"t": b, "n": j}) is True
            unknown = a is not None and b is not None and a[:8] == b[:8] and len(a) > 7
            assert formula_holds(plan.formula, keys["r"][i], keys["s"][j]) == (true or unknown), (a, b)


@pytest.mark.parametrize(("type_", "clock", "cycles"), [("int64", 140.0, 8), ("uint64", 100.0, 5), ("int32", None, 1)])
def test_wide_products_are_sums_of_products(type_, clock, cycles):
    """With a clock registers have a place between the products of one multiplier each."""
    schemas = [pa.schema([pa.field(name, type_, False) for name in names]) for names in ("xy", "ab")]
    plan = plan_for(splitjoin.query(*schemas, on="r.x * s.a - r.y * s.b > r.x", window="ROWS 8"),
                    CircuitParameters(clock=clock, verify="core"))
    assert plan.formula.pipeline.ahead >= cycles
    info = np.iinfo(type_)
    some = [info.min, info.max, info.max - 1, 1, 3, 2**17, 2**17 - 1, 2**18, 12345678, int(info.max) // 3]
    sign = 2**(info.bits - 1) if info.min < 0 else 0
    for n in range(300):
        x, y, a, b = (int(some[n // 10**i % 10]) if i < 2 else int(some[(n * 7 + i * n // 3) % 10]) for i in range(4))
        coded = [[(value + sign) % 2**info.bits for value in of] for of in ((x, y), (a, b))]
        assert formula_holds(plan.formula, *coded) == (x * a - y * b > x), (x, y, a, b)


def test_explain_tells_what_is_computed_and_what_candidates_cost():
    said = splitjoin.explain(query(CONDITIONS["dot product"]), probes=4, clock=100.0)
    assert "test        T0: (((r.x * s.a) + (r.y * s.b)) > 300), computed in the circuit in 2 cycles" in said
    assert " and 4 formulas of 2 stages a region; " in said and "verified" not in said.split("cpu  ")[0]
    host = splitjoin.explain(query(CONDITIONS["dot product"]), probes=4, verify="host")
    assert "verified    on the host" in host and "candidates  take 9 bytes each on the link" in host
    types = "int16", "int16", "float32"
    schemas = [pa.schema([pa.field(name, type_, False) for name, type_ in zip(names, types, strict=True)])
               for names in ("xyv", "abv")]
    dot = CONDITIONS["dot product"]
    for on, verify, words in (
            (dot, "auto", r"core: it computes all of it, with .*; by verify='host' each pair .* 9 bytes on the link, "),
            (dot, "host", r"host, as asked, with .*; by verify='auto' only pairs of the answer leave, with .* DSPs$"),
            (f"{dot} AND r.v * s.v > 2", "auto", r"core, and host for the reasons above, with "),
            (f"{dot} AND r.v * s.v > 2", "host", r"host, as asked, with .*; by verify='auto' fewer pairs leave, with "),
            ("r.v * s.v > 2", "auto", r"host, for the reasons above: circuits compute no part of it$"),
            ("abs(r.x - s.a) <= 5", "auto", None)):
        said = splitjoin.explain(splitjoin.query(*schemas, on=on, window="ROWS 8"), verify=verify).split("\n")
        told = [line.removeprefix("verify").strip() for line in said if line.startswith("verify ")]
        assert len(told) == (words is not None) and all(re.match(words or "", line) for line in told), (on, told)


@pytest.mark.parametrize(("name", "lut4"), [("dot product", 282), ("no common bit", 44)])
def test_costs_are_those_of_synthesis(name, lut4):
    """Of a datapath of four probes at 100 MHz, as Yosys maps it (`bench.datapath.lut4`)."""
    asked, parameters = query(CONDITIONS[name]), CircuitParameters(capacity=64, probes=4, clock=100.0)
    predicted = datapath_cost(configure(asked, plan_for(asked, parameters), parameters), "s").total.lut
    assert abs(predicted - lut4) <= 0.15 * lut4


def test_a_formula_too_large_for_its_lanes_and_probes_is_left_to_the_host():
    asked, large = query(CONDITIONS["remainder by a value of both"]), {"lanes": 4, "probes": 16}
    plan = plan_for(asked, CircuitParameters(**large))
    assert plan.formula is None and "ask for fewer lanes and probes" in plan.reasons[-1]
    with pytest.raises(UnsupportedError, match="operations for each of 64 pairs a cycle, and a region has at most"):
        plan_for(asked, CircuitParameters(verify="core", **large))
