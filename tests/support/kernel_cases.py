"""Expected outputs of simulated typed functions, computed by Python itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Const, Value

from splitjoin import hls

from .random_kernels import results


def kernel_case(fn: Any, rows: Sequence[dict[str, Any]], **how: Any) -> tuple[Any, dict[str, Any]]:
    """The component, and the arguments of `tests.testbench.kernels.check_kernel` for the operands ``rows``."""
    part = hls.component(fn, **how)
    inputs, outputs = part.i.payload.shape(), part.o.payload.shape()
    bits = len(Value.cast(part.o.payload))

    def result(value: Any) -> int:
        fields = dict(zip(outputs.members, value, strict=True)) if isinstance(value, tuple) else value
        return _packed(outputs, fields) % 2**bits

    given = results(fn, rows)
    fields = [{n: v._asdict() if hasattr(v, "_asdict") else v for n, v in row.items()} for row in rows]
    return part, {"operands": [_packed(inputs, row) for row in fields], "results": [result(v) for v in given],
                  "latency": part.latency, "interval": part.interval, "every": len(given) == len(rows), "bits": bits}


def _packed(shape: Any, value: Any) -> int:
    return Const.cast(shape.const(value) if hasattr(shape, "const") else Const(value, shape)).value
