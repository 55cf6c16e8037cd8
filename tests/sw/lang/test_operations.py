"""Operations on integers: values, their range and type, and their names in all front ends, are as declared."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.engines.compiled.atoms import AtomLanes
from splitjoin.engines.compiled.expression_source import compile_pair
from splitjoin.engines.cpu.residual import make_kernel
from splitjoin.lang.eval.scalar import compile_condition
from splitjoin.lang.eval.vector import Vector, evaluate_columns
from splitjoin.lang.functions import operation
from splitjoin.lang.ir import Call, Col
from splitjoin.lang.operations import OPERATIONS, Operation, functions, operators
from splitjoin.lang.properties import value_range
from splitjoin.lang.query import Query, predicate
from splitjoin.lang.schema import Column, Schema
from splitjoin.lang.types import Int
from tests.support.compiled_conditions import holds, lanes_of
from tests.support.sampling import examples

TYPES = [Int(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)]
EVERY = [pytest.param(o, id=o.name) for o in OPERATIONS.values()]


def columns(t: Int) -> tuple[Col, Col]:
    return Col(t, "r", "x", True), Col(t, "s", "a", True)


def text_of(o: Operation) -> str:
    if o.is_function:
        return f"{o.name}({', '.join(('r.x', 's.a')[:o.operands])})"
    return f"(r.x {o.name} s.a)"


def test_names_are_of_one_kind_each() -> None:
    assert {o.name for o in functions()} | {o.name for o in operators()} == set(OPERATIONS)
    assert all(o.sql and o.python for o in operators())
    assert all(not o.sql and not o.python and not o.numpy for o in functions())


@pytest.mark.parametrize("o", EVERY)
@settings(max_examples=examples(200))
@given(t=st.sampled_from(TYPES), data=st.data())
def test_values(o: Operation, t: Int, data: st.DataObject) -> None:
    """Rows and arrays have the same values, within the range; NULL gives NULL."""
    value = st.none() | st.integers(*t.range)
    rows = data.draw(st.lists(st.tuples(value, value), min_size=1, max_size=8))
    e = operation(o.name, columns(t)[:o.operands], "here")
    assert isinstance(e, Call)
    row = compile_condition(e)
    expected = [row({"x": x}, {"a": a}) for x, a in rows]
    low, high = value_range(e)
    for found, (x, a) in zip(expected, rows, strict=True):
        assert (found is None) == (None in (x, a)[:o.operands])
        assert found is None or low <= found <= high
    for dtype in (np.int64, object) if t.range[1] < 2**63 else (object,):
        vectors = {c: Vector(np.array([r[n] or 0 for r in rows], dtype), np.array([r[n] is not None for r in rows]))
                   for n, c in enumerate(columns(t))}
        v = evaluate_columns(e, vectors, len(rows))
        assert [int(i) if ok else None for i, ok in zip(v.values, v.valid, strict=True)] == expected


@pytest.mark.parametrize("o", EVERY)
def test_front_ends_agree(o: Operation) -> None:
    r, s = (Schema(side, [Column(name, Int(32), False)]) for side, name in (("r", "x"), ("s", "a")))
    sql = f"{text_of(o)} = 3"
    from_sql = predicate(sql, r, s)
    if o.is_function:
        from_python = predicate(lambda r, s: getattr(r.x, o.name)(*(s.a,)[:o.operands - 1]) == 3, r, s)
    else:
        from_python = predicate(lambda r, s: getattr(operator, f"__{o.python}__")(r.x, s.a) == 3, r, s)
    assert from_sql == from_python
    assert str(from_sql) == f"({text_of(o)} = 3)"


@pytest.mark.parametrize("o", [p for p in EVERY if p.values[0].numpy])  # type: ignore[attr-defined]  # an Operation
def test_numpy_functions(o: Operation) -> None:
    r, s = (Schema(side, [Column(name, Int(32), False)]) for side, name in (("r", "x"), ("s", "a")))
    assert predicate(lambda r, s: getattr(np, o.numpy)(np.int32(6), s.a) == 3, r, s) == predicate(
        f"({text_of(o).replace('r.x', '6')}) = 3", r, s)


@pytest.mark.parametrize("o", EVERY)
def test_declared_identities(o: Operation) -> None:
    for t, (a, b) in itertools.product(TYPES[:2], itertools.product((0, 1, 5, 127), repeat=2)):
        if o.operands == 2 and o.commutative:
            assert o.value(t, a, b) == o.value(t, b, a)
        if o.neutral is not None:
            assert o.value(t, a, o.neutral) == a
        if o.absorbing is not None:
            assert o.value(t, a, o.absorbing) == o.absorbing


@pytest.mark.parametrize("o", EVERY)
@pytest.mark.parametrize("t", TYPES, ids=str)
def test_compiled_code_has_the_values_of_rows(o: Operation, t: Int) -> None:
    """Operands at both ends of the range and around zero; within ±2**61, as NumPy evaluates what needs more bits."""
    low, high = max(t.range[0], -2**61), min(t.range[1], 2**61)
    values = sorted({low, low + 1, low // 2, max(low, -1), 0, 1, 5, high // 2 + 1, high - 1, high})
    kind = pa.type_for_alias(f"{'' if t.signed else 'u'}int{t.bits}")
    r, s = pa.table({"x": pa.array(values, kind)}), pa.table({"a": pa.array(values, kind)})
    text = text_of(o) if o.operands == 2 else f"{o.name}(r.x ^ s.a)"
    for on in (f"{text} < s.a", f"{text} = r.x", f"{text} > {max(low, -2)}"):
        condition = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window="ROWS 8").predicate
        lanes, scalar = AtomLanes(condition), compile_condition(condition)
        arrays = {"r": lanes.encode("r", r), "s": lanes.encode("s", s)}
        code = compile_pair(condition, lanes.atoms, lanes.ranges({"r": 0, "s": 0}), 32 if t.bits < 32 else 64)
        for (i, x), (j, a) in itertools.product(enumerate(values), repeat=2):
            row = lanes_of(lanes.atoms, "r", arrays["r"], i) | lanes_of(lanes.atoms, "s", arrays["s"], j)
            assert holds(code, row) == scalar({"x": x}, {"a": a}), (on, x, a, code)


@pytest.mark.parametrize("o", EVERY)
def test_the_cpu_engine_compiles_it(o: Operation) -> None:
    x, a = pa.table({"x": pa.array([1, 2], pa.int32())}), pa.table({"a": pa.array([3, 4], pa.int32())})
    on = f"{text_of(o)} = s.a" if o.operands == 2 else f"{o.name}(r.x ^ s.a) = 1"
    query = Query.make(Schema.from_table("r", x), Schema.from_table("s", a), on=on, window="ROWS 8")
    lanes = AtomLanes(query.predicate)
    lanes.encode("r", x)
    lanes.encode("s", a)
    kernel = make_kernel(query.predicate, lanes.atoms, lanes.ranges({"r": 0, "s": 0}))
    assert kernel.width == 32
