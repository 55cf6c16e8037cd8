"""Circuits that give only the pairs that decide a semi, anti or as-of join: the golden model's rows, and few pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin import UnsupportedError
from splitjoin.circuit.deciding_pairs import deciding_pairs
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import PAIR
from splitjoin.engines.golden import GoldenDevice
from splitjoin.joins.explain import explain
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.deciding import decide
from ..support.kinds import KINDS
from ..support.sampling import at_length

STALLS = {"stall_in": 0.3, "stall_out": 0.3}
FEW = [kind for kind in KINDS if kind["how"] in ("semi", "anti", "asof")]
WINDOWS: list[Any] = ["RANGE 6", "ROWS 9", {"r": "RANGE 2", "s": "RANGE 10"}, "ROWS 17 RANGE 9"]
#: Cores, lanes and probes.
SHAPES = [(2, 2, 3), (1, 1, 1), (1, 4, 2), (3, 1, 4)]


def tables(n: int, seed: int) -> tuple[pa.Table, pa.Table]:
    rng = np.random.default_rng(seed)
    times = [np.sort(rng.integers(0, n // 2, n)) for _ in range(2)]
    key = [pa.array(rng.integers(-20, 20, n).tolist(), pa.int16(), mask=rng.random(n) < 0.1) for _ in range(2)]
    return pa.table({"ts": times[0], "x": key[0]}), pa.table({"ts": times[1], "a": key[1]})


def same(device: Any, r: pa.Table, s: pa.Table, reach: int, **how: Any) -> Any:
    """The result of ``device``, which is that of the golden model."""
    given = {"on": f"abs(r.x - s.a) <= {reach}", "time": "ts", **how}
    expected = splitjoin.join(r, s, device="golden", **given)
    found = splitjoin.join(r, s, device=device, **given)
    assert found.items.tolist() == expected.items.tolist()
    assert found.table.equals(expected.table)
    return found


@pytest.mark.long  # long streams on Verilator, and sessions on this one, are below
@pytest.mark.parametrize("number", range(len(FEW)))
def test_every_kind_on_pysim(number: int) -> None:
    for seed in (number, number + 5):
        cores, lanes, probes = SHAPES[seed % 4]
        device = PysimDevice(cores=cores, capacity=32, lanes=lanes, probes=probes, seed=seed, fold="always", **STALLS,
                             queue=64 * (seed % 2))
        window = WINDOWS[seed // 2 % 4]
        same(device, *tables(12, seed), 9, window=window, **FEW[number])


@pytest.mark.parametrize("kind", [FEW[0], *map(at_length, FEW[1:])], ids=lambda kind: "-".join(map(str, kind.values())))
def test_long_streams_on_sim(kind: dict[str, Any], tmp_path: Any) -> None:
    """Rings that wrap around many times, with passes of one read and of many, and stores without probes between."""
    cases: list[tuple[int, Any, tuple[int, int], tuple[int, int]]] = [
        (900, "RANGE 40", (0, 900), (0, 900)), (700, {"r": "RANGE 30", "s": "ROWS 100"}, (0, 200), (0, 700)),
        (700, {"r": "ROWS 100", "s": "RANGE 3"}, (0, 700), (300, 350)), (300, "ROWS 5 RANGE 9", (0, 0), (0, 9)),
    ]
    for seed, (n, window, of_r, of_s) in enumerate(cases):
        r, s = tables(n, seed)
        r, s = r.slice(of_r[0], of_r[1] - of_r[0]), s.slice(of_s[0], of_s[1] - of_s[0])
        device = SimDevice(cores=3, capacity=64, lanes=2, probes=2, seed=seed, fold="always", **STALLS)
        found = same(device, r, s, 3, window=window, **kind)
    file = tmp_path / "rows.parquet"
    splitjoin.join(r, s, on="abs(r.x - s.a) <= 3", time="ts", window=window, device=device, to=file, **kind)
    assert pa.parquet.read_table(file).equals(found.table)


@pytest.mark.parametrize("kind", [
    {"how": "asof", "direction": "nearest"}, at_length({"how": "anti"}),
    at_length({"how": "semi"}), at_length({"how": "asof_left", "direction": "backward"}),
    at_length({"how": "asof_left", "direction": "forward", "allow_exact": False})],
    ids=lambda kind: "-".join(map(str, kind.values())))
def test_sessions(kind: dict[str, Any]) -> None:
    """In parts, moved to another circuit and to the CPU in between; rows come in the order of the golden model."""
    r, s = tables(24, 3)
    of = {"on": "abs(r.x - s.a) <= 4 AND r.x <> 5", "window": "RANGE 6", "time": "ts", **kind}
    query = splitjoin.query(r.schema, s.schema, **of)
    device = PysimDevice(cores=2, capacity=32, lanes=2, probes=3, fold="always")
    rows = []
    with splitjoin.open(query, device=device) as session:
        for at in range(0, 24, 8):
            session.push_r(r.slice(at, 8))
            session.push_s(s.slice(at, 8))
            rows.append(session.poll())
            if at:
                session.restart(device=device if at == 8 else "cpu")
        rows.append(session.flush())
        found = pa.Table.from_batches(rows, session.schema)
    assert found.to_pylist() == splitjoin.join(r, s, device="golden", **of).to_pylist()
    assert len(found) > 2


def test_few_pairs_leave() -> None:
    """All tuples match: two pairs of each tuple of R leave, or one, and not one of each pair."""
    r, s = tables(16, 1)
    device = PysimDevice(cores=1, capacity=32, lanes=2, probes=2, fold="always")
    of = {"on": "TRUE", "window": "RANGE 100", "time": "ts"}
    for how, most in (("semi", 2), ("asof", 1)):
        query = splitjoin.query(r.schema, s.schema, how=how, **of)
        assert query.needs_few_pairs
        with device.open_deciding(query) as session:
            session.push(arrived := arrivals(query, r, s))
            items = session.flush()
        pairs = items[items["kind"] == PAIR]
        ties = sum(t == u for t in s["ts"].to_pylist() for u in r["ts"].to_pylist())
        assert len(pairs) <= most * 16 + (ties if how == "asof" else 0)
        expected = splitjoin.join(r, s, device="golden", how=how, **of).items
        assert decide(query, arrived, items).tolist() == expected.tolist()
    with device.open_deciding(splitjoin.query(r.schema, s.schema, how="left", **of)) as session:
        session.push(arrivals(query, r, s))
        items = session.flush()
    assert np.count_nonzero(items["kind"] == PAIR) == 256


def test_masked_cores_have_no_first_hits() -> None:
    r, s = tables(30, 2)
    query = splitjoin.query(r.schema, s.schema, on="TRUE", window="RANGE 5", time="ts", how="semi")
    found = []
    for device in (PysimDevice(cores=3, capacity=32, probes=2, fold="always"), GoldenDevice(cores=3)):
        with device.open_deciding(query) as session:
            arrived = arrivals(query, r, s)
            head, tail = arrived.split(25)
            session.mask([1])
            session.push(head)
            session.mask([2])
            session.push(tail)
            found.append(decide(query, arrived, session.flush()).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize(("options", "reason"), [
    ({"core": "bucket"}, "cores of kind bucket do not fold; core='scan' does; so all pairs leave"),
    ({"small": True, "cores": 1}, "a small circuit does not fold; so all pairs leave"),
    ({"row_bits": 16}, "states leave in items with row ids of 32 bits, and row_bits is 16; so all pairs leave"),
])
def test_what_ships_all_pairs_is_told_and_refused(options: dict[str, Any], reason: str) -> None:
    r, s = tables(8, 1)
    query = splitjoin.query(r.schema, s.schema, on="abs(r.x - s.a) <= 6", window="RANGE 6", time="ts", how="semi")
    assert f"folded      not in circuits: {reason}" in explain(query, capacity=64, **options)
    with pytest.raises(UnsupportedError, match="fold='always' needs a circuit that gives only the pairs that decide"):
        SimDevice(capacity=64, fold="always", **options).open_deciding(query)


def test_explain_tells_what_leaves() -> None:
    r, s = tables(8, 1)

    def told(**kind: Any) -> str:
        query = splitjoin.query(r.schema, s.schema, on="abs(r.x - s.a) <= 6", window="RANGE 6", time="ts", **kind)
        return explain(query, capacity=64, core="scan")

    assert ("folded      in the circuit: of the partners that come before a tuple of R, whether there is one "
            "leaves; of those that come after it, the first one leaves; 1 bit of state, which leaves in 1 "
            "item") in told(how="anti")
    text = told(how="asof")
    assert "the newest one leaves; of those that come after it, those of the same time leave" in text
    assert "kind        asof backward, decided on the host from pairs\n" in text
    assert "kind        full, decided on the host from all pairs, which are rows\n" in (text := told(how="full"))
    assert "folded" not in text
    narrow = deciding_pairs(splitjoin.query(r.schema, s.schema, on="TRUE", window="RANGE 6", time="ts", how="asof",
                                            direction="forward", allow_exact=False))
    assert (str(narrow.query.predicate), narrow.query.window_s.length) == ("(TRUE AND (s.ts > r.ts))", 0)
