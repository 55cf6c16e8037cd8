"""The papers' band benchmark (SplitJoin, section 7): |x − a| ≤ 10 AND |y − b| ≤ 10, uniform in 1…10,000."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

ON = "abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10"


def streams(n: int, seed: int = 1) -> tuple[pa.Table, pa.Table]:
    """R(x int32, y float32) and S(a int32, b float32), ``n`` tuples each."""
    random = np.random.default_rng(seed)

    def whole() -> np.ndarray:
        return random.integers(1, 10_001, n).astype(np.int32)

    def part() -> np.ndarray:
        return random.uniform(1, 10_000, n).astype(np.float32)

    return pa.table({"x": whole(), "y": part()}), pa.table({"a": whole(), "b": part()})
