"""A condition is compiled once: the query carries its plan, and nothing makes one that is not asked for."""

import pickle
from collections import Counter

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.recent import forget
from splitjoin.circuit import driver, lowering
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.passes import compiler as pipeline

R = pa.table({"ts": [1, 4, 9, 10], "x": [10, 20, 30, 5]})
S = pa.table({"ts": [2, 5, 9, 9], "a": [12, 70, 31, 4]})
ON = "abs(r.x - s.a) <= 5"
TIMED = {"window": "RANGE 4", "time": "ts"}


@pytest.fixture
def compiled(monkeypatch):
    """The conditions that were compiled, of which nothing is kept that other tests of this process have left."""
    forget()
    found, compiled = [], pipeline.compiled
    monkeypatch.setattr(pipeline, "compiled", lambda e, *args: found.append(e) or compiled(e, *args))
    return found


@pytest.mark.parametrize("options", [{}, {"engine": "index"}])
def test_join_compiles_its_condition_once(compiled, options):
    splitjoin.join(R, S, on=ON, **TIMED, **options)
    assert len(compiled) == 1


@pytest.mark.parametrize("clauses", ["ON abs(r.x - s.a) <= 5", "ON abs(r.x - s.a) <= 5 AND x < 40 WHERE r.ts < s.ts"])
def test_sql_compiles_no_more_than_join(compiled, clauses):
    splitjoin.sql(f"SELECT r.ts, x, a FROM r JOIN s {clauses}", r=R, s=S, **TIMED)
    assert len(compiled) == 1


def test_schemas_alone_compile_nothing_and_an_explanation_each_term_once(compiled):
    made = splitjoin.sql("SELECT x, a FROM r JOIN s ON x < a AND r.ts = s.ts", r=R.schema, s=S.schema, window="ROWS 9")
    assert not compiled
    assert made.placement.main is made.placement.terms[1]
    assert len(compiled) == 3  # and the whole condition


def test_plan_belongs_to_the_object_as_equal_conditions_may_differ(compiled):
    r, s = (Schema.from_arrow(side, pa.schema({"x": pa.float64()})) for side in "rs")
    plus, minus = (Query.make(r, s, on=f"r.x + s.x < {zero}", window="ROWS 9").predicate for zero in ("0e0", "-0e0"))
    assert plus == minus
    plans = [pipeline.make_plan(e) for e in (plus, minus, plus, minus)]
    assert plans[0] is plans[2] is not plans[1] is plans[3]
    assert len(compiled) == 2


def test_pickled_condition_leaves_its_plan_behind():
    query = Query.make(Schema.from_table("r", R), Schema.from_table("s", S), on=ON, window="ROWS 9")
    before = pickle.dumps(query)
    plan = pipeline.make_plan(query.predicate)
    assert pickle.dumps(query) == before
    assert pipeline.make_plan(pickle.loads(before).predicate) == plan


@pytest.fixture
def counted(monkeypatch):
    """The number of runs of each step towards a circuit, by its name."""
    found = Counter()
    def count(module, name):
        of = getattr(module, name)

        def call(*args, **options):
            found[f"{module.__name__}.{name}"] += 1
            return of(*args, **options)

        monkeypatch.setattr(module, name, call)

    for module, name in ((pipeline, "compiled"), (lowering, "compiled"), (lowering, "fold_choice"),
                         (driver, "folding_circuit")):
        count(module, name)
    return found


def test_circuit_that_folds_is_chosen_once(counted):
    aggregate = {"n": "count(*)", "most": "max(s.a)"}
    found = splitjoin.join(R, S, on=ON, by="r", aggregate=aggregate, device="pysim", cores=1, core="scan",
                           capacity=64, **TIMED)
    assert found.table.equals(splitjoin.join(R, S, on=ON, by="r", aggregate=aggregate, device="golden", **TIMED).table)
    assert counted == dict.fromkeys(("splitjoin.circuit.lowering.compiled", "splitjoin.circuit.lowering.fold_choice",
                                   "splitjoin.circuit.driver.folding_circuit"), 1)
