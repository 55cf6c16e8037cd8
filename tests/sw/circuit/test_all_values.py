"""Keys and bounds of all values of 8-bit columns, NULL among them: what a circuit decides by them is the condition.

The formal proofs show that a matcher decides by keys and bounds as `decided` does here (tests/formal/matcher.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from splitjoin.circuit.encode import Encoder, unpack
from splitjoin.circuit.lowering import configure, plan_for
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.wire import Configuration, Record
from splitjoin.engines.arrival import arrivals
from splitjoin.lang.eval.scalar import compile_condition
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema, other_side

from ...support.sampling import at_length

PARAMETERS = CircuitParameters(capacity=512, core="scan")

#: Truth per probe and stored tuple.
Grid = npt.NDArray[np.bool_]


def decided(config: Configuration, probe: str, probes: dict[str, Any], stored: dict[str, Any]) -> Grid:
    """The condition for each of ``probes`` of stream ``probe`` and each of ``stored``, bool (probes, stored), by the
    definition of the fields of their records, which are int64 (n,).
    """
    n = "rs".index(other_side(probe))
    bounds = dict(config.bounds(probe).fields)

    def of_stored(slot: int) -> Any:
        return stored[f"key{slot}"][None, :]

    def of_probe(name: str) -> Any:
        return probes[name][:, None]

    outcomes: list[Grid] = []
    for j, (test, wide) in enumerate(zip(config.tests, config.test_widths, strict=True)):
        key, low = of_stored(test[n]), of_probe(f"lo{j}")
        if wide is None:
            outcomes.append((low <= key) & (key <= of_probe(f"hi{j}")))
        else:
            outcomes.append((key - low) % 2**bounds[f"lo{j}"] <= wide)
    for j, sum_ in enumerate(config.sums):
        total: Any = 0
        for number, axis in enumerate(sum_.axes):
            key, place = of_stored((axis.r, axis.s)[n]), of_probe(f"at{j}_{number}")
            half = 2**(axis.bits - 1)
            difference = (key - place + half) % (2 * half) - half
            total = total + ({"square": difference**2, "absolute": abs(difference),
                              "differing": np.bitwise_count(key ^ place)}[axis.kind].astype(np.int64) << axis.shift)
        if (rest := sum_.rest[n]) is not None:
            total = total + of_stored(rest)
        below = total < of_probe(f"limit{j}") if sum_.limited else total <= sum_.limit
        outcomes.append(~below if sum_.above else below)

    def combined(tree: Any) -> Grid:
        if isinstance(tree, int):
            return outcomes[tree]
        op, *operands = tree
        parts = [combined(operand) for operand in operands]
        return np.logical_and.reduce(parts) if op == "and" else np.logical_or.reduce(parts)

    return combined(config.tree)


#: Conditions, the constant widths of their interval tests, and the number of sum tests. A NULL has a key outside all
#: intervals, which a band of constant width cannot leave out; beside sums, a test of its own tells that there is none.
#: Some sums are equal to their limits.
CONDITIONS = [
    ("abs(r.x - s.a) <= 10", False, (20,), 0), ("r.x < s.a OR r.x = s.a + 9", True, (None, 0), 0),
    ("(r.x - s.a - 3) * (r.x - s.a - 3) + abs(r.x - s.a) > 309", False, (), 2),
]
FURTHER = [
    ("abs(r.x - s.a) <= 10", True, (None,), 0), ("r.x = s.a", False, (0,), 0), ("r.x <= s.a - 200", False, (None,), 0),
    ("r.x BETWEEN s.a - 3 AND s.a + 100", False, (103,), 0), ("2 * r.x <= s.a + 7", True, (None,), 0),
    ("r.x BETWEEN s.a - 250 AND s.a - 240", False, (None,), 0), ("r.x * s.a <= 100", True, (None,), 0),
    ("bit_count(r.x ^ s.a) <= 2", True, (None,), 1),
    ("(r.x - s.a + 1) * (r.x - s.a + 1) + (r.x + s.a) * (r.x + s.a) <= 4 * r.x + 841", True, (None,), 1),
]


@pytest.mark.parametrize(("on", "nulls", "widths", "sums"), [
    *CONDITIONS, *(at_length(*case) for case in FURTHER)])
@pytest.mark.parametrize("type_", [pa.int8(), at_length(pa.uint8())], ids=str)
def test_keys_and_bounds_of_all_values(on: str, nulls: bool, widths: tuple[int | None, ...], sums: int,
                                       type_: pa.DataType) -> None:
    low = 0 if type_ == pa.uint8() else -128
    some = [*range(low, low + 256), *[None] * nulls]
    r, s = (pa.table({name: pa.array(some, type_)}) for name in ("x", "a"))
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window="ROWS 512")
    plan = plan_for(query, PARAMETERS)
    config = configure(query, plan, PARAMETERS)
    assert (config.test_widths, len(config.sums)) == (widths, sums)
    order = arrivals(query, r, s)
    words = Encoder(plan, config, None).encode(order)
    head = tuple(f for f in config.input_record.fields if f[0] != "body")
    records = {side: {name: values.astype(np.int64) for name, values in unpack(
        Record(head + config.body(side).fields), words[order.stream == n]).items()} for n, side in enumerate("rs")}
    holds = compile_condition(query.predicate)
    wanted = np.array([[holds({"x": x}, {"a": a}) is True for a in some] for x in some])
    assert plan.residual is None and wanted.any() and not wanted.all()
    for probe in "rs":
        found = decided(config, probe, records[probe], records[other_side(probe)])
        assert np.array_equal(found if probe == "r" else found.T, wanted)
