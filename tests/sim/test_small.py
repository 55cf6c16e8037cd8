"""Small circuits: the golden model's answer to every scenario, with row ids that wrap around."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from splitjoin.base.errors import OrderError, UnsupportedError, WindowOverflow
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.registry import device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import assert_conforms, run, slices
from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS

SMALL: dict[str, Any] = {"cores": 1, "small": True, "row_bits": 8}
ORDERS = ("total", "none", "outer(1)", "inner(3)", "outer(3)", "inner(1)")


def some(chosen: set[str]) -> list[Any]:
    return [case if case.name in chosen else at_length(case) for case in SCENARIOS]


def tables(n: int, seed: int, keys: int = 40) -> tuple[pa.Table, pa.Table]:
    """R and S of ``n`` tuples each: event times, a key of 8 bits, and one of 16."""
    chance = random.Random(seed)

    def table(key: str, other: str) -> pa.Table:
        return pa.table({"ts": pa.array(sorted(chance.randrange(3 * n) for _ in range(n)), pa.int64()),
                         key: pa.array([chance.randrange(keys) for _ in range(n)], pa.int8()),
                         other: pa.array([chance.randrange(keys) for _ in range(n)], pa.int16())})

    return table("x", "y"), table("a", "b")


def query(order: str, on: str = "abs(r.x - s.a) <= 2 OR r.y = s.b", window: str = "ROWS 20 RANGE 90",
          time: str | None = "ts") -> Query:
    r, s = tables(1, 0)
    return Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window=window, time=time,
                      order=order)


@pytest.mark.parametrize("order", ["total", "none", "outer(3)", "outer(255)", "inner(2)"])
def test_row_ids_wrap_around_many_times(order: str) -> None:
    """1,000 tuples of each stream, and row ids of 8 bits; one model for all orders."""
    r, s = tables(1000, 1)
    of = query(order)
    assert_conforms(run(SimDevice(capacity=64, stall_out=0.1, **SMALL), of, r, s, [750, 751]),
                    run(GoldenDevice(), of, r, s), order)


@pytest.mark.parametrize(("cores", "order"), [(2, "none"), *(at_length(3, order) for order in ORDERS)])
def test_narrow_row_ids_of_other_circuits(cores: int, order: str) -> None:
    r, s = tables(600, 2)
    of = query(order)
    assert_conforms(run(SimDevice(cores=cores, capacity=16, row_bits=8), of, r, s, [100, 700]),
                    run(GoldenDevice(cores=cores), of, r, s), order)


def test_the_first_tuple_without_room_is_named() -> None:
    r, s = tables(300, 3)
    of = query("total", window="RANGE 200")
    with pytest.raises(WindowOverflow) as caught:
        run(PysimDevice(capacity=16, **SMALL), of, r, s)
    incoming = arrivals(of, r, s)
    live: dict[int, list[int]] = {0: [], 1: []}
    rows = [0, 0]
    assert incoming.ts is not None
    for side, ts in zip(incoming.stream.tolist(), incoming.ts.tolist(), strict=True):
        live = {n: [at for at in times if ts - at <= 200] for n, times in live.items()}
        if len(live[side]) == 16:
            break
        live[side].append(ts)
        rows[side] += 1
    assert (caught.value.stream, caught.value.row) == ("rs"[side], rows[side])


def test_masks_settling_and_counters() -> None:
    r, s = tables(60, 4)
    of = query("total")
    parts = list(slices(arrivals(of, r, s), [30, 60, 90, 120]))
    with (device("pysim", capacity=32, **SMALL).open(of) as small, device("golden").open(of) as golden):
        for n, core in enumerate(([], [0], [0], [])):
            for session in (small, golden):
                session.mask(core)
                session.push(parts[n])
            assert_conforms(small.settle(), golden.settle(), "total")
        assert np.array_equal(small.flush(), golden.flush())
        counters = small.counters()
        assert (counters["tuples_r"], counters["tuples_s"]) == (60, 60)
        assert "matches" not in counters and "cycles" not in counters


def test_the_registers_hold_what_was_written() -> None:
    of = query("inner(2)", window="ROWS 20 RANGE 90")
    with device("pysim", capacity=32, **SMALL).open(of) as session:
        for name, value in {"order": 3, "precision": 1, "slice": 2, "rows_r": 20, "range_s": 90}.items():
            assert session._read(name) == value
        session._transport.write(0, 7)  # the ID cannot be written
        session._check_abi()


def test_candidates_are_verified() -> None:
    r, s = tables(100, 5)
    of = query("none", on="abs(r.x - s.a) <= 2 AND r.y * s.b % 3 = 1", window="ROWS 20", time=None)
    with device("pysim", capacity=32, verify="host", **SMALL).open(of) as session:
        session.push(arrivals(of, r, s))
        found, matches = session.flush(), session.counters()["matches"]
    assert_conforms(found, run(GoldenDevice(), of, r, s), "none")
    assert matches == len(found)


_SQUARES = "(r.x - s.a) * (r.x - s.a) + (r.y - s.b) * (r.y - s.b) <= 25"


def test_sums_are_decided_in_the_circuit() -> None:
    r, s = tables(60, 6)
    of, small = query("total", on=_SQUARES), PysimDevice(capacity=32, **SMALL)
    assert small.plan(of).sums and small.plan(of).residual is None
    assert_conforms(run(small, of, r, s), run(GoldenDevice(), of, r, s), "total")


@pytest.mark.parametrize(("on", "datapaths"), [("abs(r.x - s.a) <= 2", ("s",)), ("r.x < s.b", ("r", "s")),
                                               (_SQUARES, ("r", "s"))])
def test_one_datapath_serves_both_streams_where_it_can(on: str, datapaths: tuple[str, ...]) -> None:
    of = query("total", on=on)
    config = PysimDevice(capacity=32, **SMALL).configuration(of)
    assert config.structure.datapaths(config) == datapaths


@pytest.mark.parametrize(("options", "message"), [
    ({"cores": 2}, "cores of a small circuit must be 1, not 2"),
    ({"lanes": 2, "capacity": 16}, "lanes of a small circuit must be 1, not 2"),
    ({"core": "hash"}, "core of a small circuit must be auto or scan, not 'hash'"),
    ({"tables": True}, "tables of a small circuit must be False, as it has none, not True"),
    ({"queue": 64}, "queue of a small circuit must be 0, as it processes a tuple at a time, not 64"),
    ({"row_bits": 7}, "row_bits must be 8 to 32, not 7"),
])
def test_wrong_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=f"^{message}$"):
        PysimDevice(**SMALL | options)


def test_windows_and_orders_that_row_ids_are_too_narrow_for() -> None:
    with pytest.raises(UnsupportedError, match="row_bits with windows of up to 256 tuples must be 9 or more, not 8"):
        PysimDevice(capacity=256, **SMALL).configuration(query("total"))
    with pytest.raises(OrderError, match=r"the n of outer\(n\) must be 1 to 255 with row ids of 8 bits, not 256"):
        PysimDevice(capacity=64, **SMALL).open(query("outer(256)"))
