"""numba-cuda has code for all that kernels call: it types them and makes LLVM IR, which needs no GPU.

Its simulator does not show that, as it runs kernels as Python, with any function of NumPy.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pyarrow as pa
import pytest

from splitjoin.engines.compiled.atoms import ValueRange, atoms
from splitjoin.engines.compiled.expression_source import compile_pair
from splitjoin.engines.compiled.jit import load
from splitjoin.engines.gpu.comparison import KernelComparison, of_expression, of_plan, plan_layout
from splitjoin.engines.gpu.driver import _row_stack
from splitjoin.engines.gpu.kernel_source import KernelShape, kernel_source, store_source
from splitjoin.engines.gpu.order import order_source
from splitjoin.engines.gpu.suits import check_compiled
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.passes.compiler import make_plan

#: A small kernel calls what a large one calls.
SHAPE = KernelShape(threads=2, probes=1, tile=4, unrolled=1)
#: The types of what kernels take, by name; all else are numbers.
KINDS = {"counters": "uint32", "hits": "uint64", "placed": "uint64", "counts": "uint32", "places": "int64",
         "out": "uint32", "ordered": "int64"}

R = pa.schema([("x", pa.int32()), ("n", pa.int64()), ("y", pa.float64()), ("f", pa.float32()), ("b", pa.bool_())])
S = pa.schema([("a", pa.int32()), ("m", pa.int64()), ("c", pa.float64()), ("g", pa.float32()), ("d", pa.bool_())])

#: Expressions that between them have each function and each operation that expressions on a GPU may have.
EXPRESSIONS = [
    "floor(r.y + s.c) = ceil(r.y - s.c) OR sqrt(r.y + s.c) / (r.y - s.c) < -abs(r.y + s.c)",
    "floor(r.f + s.g) = ceil(r.f - s.g) OR sqrt(r.f + s.g) < least(r.f, s.g, 1.5) OR greatest(r.y, s.c) > 0.5",
    "(r.x * s.a) % 3 = (r.n + s.m) // 5 OR r.x << 2 > s.a >> 1 OR abs(r.x - s.a) = greatest(r.n, s.m)",
    "bit_count(r.n ^ s.m) <= bit_count(r.x & s.a) OR (r.x | s.a) = 7 OR CAST(r.x + s.a AS double) > s.c",
    "coalesce(r.n, s.m, 3) = 5 OR CASE WHEN r.b THEN s.a ELSE r.x END = 3 OR r.b = s.d OR (r.y < s.c) IS NULL"]


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function that makes LLVM IR of a kernel; types are those of the arguments' names."""
    with _row_stack():
        cuda = importlib.import_module("numba.cuda")
        importlib.import_module("numba.cuda.np.arrayobj")
    nvvm = importlib.import_module("numba.cuda.cudadrv.nvvm")
    try:
        nvvm.NVVM()
    except Exception:  # the library that makes machine code of the IR is not here, and was only asked for its version
        monkeypatch.setattr(nvvm.NVVM, "__new__", object.__new__)
        monkeypatch.setattr(nvvm.NVVM, "get_ir_version", lambda self: (2, 0, 3, 2))

    def lower(kernel: Any, comparison: KernelComparison) -> None:
        numbers = {f"{name}_ring": kind.replace("bool", "uint32") for name, kind in comparison.stored} | KINDS
        types = []
        for name in inspect.signature(kernel.py_func).parameters:
            kind = numbers.get(name) or (name[:-1] if name.endswith(("32s", "64s")) else None)
            types.append(getattr(cuda.types, kind)[::1] if kind else cuda.types.int64)
        importlib.import_module("numba.cuda.compiler").compile_cuda(
            kernel.py_func, cuda.types.void, tuple(types), cc=(9, 0))

    return lower


@pytest.mark.parametrize("on", EXPRESSIONS)
def test_expressions(lowered: Any, on: str) -> None:
    predicate = Query.make(Schema.from_arrow("r", R), Schema.from_arrow("s", S), on=on, window="ROWS 8").predicate
    check_compiled(predicate)
    every = atoms(predicate)
    code = compile_pair(predicate, every, {a.expr: ValueRange(nulls=True, low=-9, high=9) for a in every}, 64)
    comparison = of_expression(code, "s")
    lowered(load(kernel_source(comparison, SHAPE)).count, comparison)  # the others have the same lines again


def test_tests_of_keys(lowered: Any) -> None:
    on = "abs(r.x - s.a) <= 2 AND r.n BETWEEN s.m AND s.m + 5 OR r.y = s.c"
    plan = make_plan(Query.make(Schema.from_arrow("r", R), Schema.from_arrow("s", S), on=on, window="ROWS 8").predicate)
    comparison = of_plan(plan, "s")
    module = load(kernel_source(comparison, SHAPE))
    for kernel in module.append, module.count, module.write:
        lowered(kernel, comparison)
    numbers = [(name, kind) for name, kind, _ in plan_layout(plan).stored["s"]]
    lowered(load(store_source(numbers)).store, comparison)
    lowered(load(order_source(SHAPE)).order, comparison)
