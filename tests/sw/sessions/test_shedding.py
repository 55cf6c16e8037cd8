"""Load shedding: exact on the tuples that are kept, the same drops on all devices, and no window that overflows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import InputError, Shedding, UnsupportedError, WindowOverflow
from splitjoin.engines.golden import GoldenDevice
from splitjoin.sessions.shedding import Shedder

from ...support.feeding import Feed, answer, feed, feeds, stream_query, whole
from ...support.lagging import LaggingDevice
from ...support.sampling import examples
from ...support.sessions import query, r, s

SCHEMA = pa.schema([("ts", pa.int64()), ("id", pa.int64())])


def stream(times: list[int]) -> pa.Table:
    """Tuples at ``times``, numbered."""
    return pa.table({"ts": sorted(times), "id": range(len(times))}, schema=SCHEMA)


def kept(of: pa.Table, shed: pa.Table) -> list[int]:
    gone = set(shed["id"].to_pylist())
    assert len(gone) == len(shed)
    return [n for n in range(len(of)) if n not in gone]


TIMES = st.lists(st.integers(0, 60), min_size=8, max_size=40)
RULES = st.builds(Shedding, capacity=st.integers(4, 12), threshold=st.sampled_from([None, 0, 3]),
                  curve=st.sampled_from(["linear", "quadratic"]), base=st.sampled_from([0.0, 0.3]),
                  seed=st.integers(0, 3))


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), TIMES, TIMES, RULES, st.sampled_from(["RANGE 9", "ROWS 5", "ROWS 9 RANGE 20"]))
def test_the_answer_is_exact_on_what_is_kept(data: st.DataObject, a: list[int], b: list[int], rule: Shedding,
                                             window: str) -> None:
    tables = stream(a), stream(b)
    asked = stream_query(*tables, on="abs(r.id - s.id) <= 8", window=window, time="ts", order="total")
    how = data.draw(feeds(len(a), len(b)))
    shed = []
    for devices in (["cpu", "golden"], ["golden"], [LaggingDevice(lag=3), "cpu"]):
        mine = Feed(how.sources, how.deal, how.turns)
        session = feed(mine, [lambda d=d: splitjoin.open(asked, d, when_full="shed", shedding=rule, punctuation=True)
                              for d in devices], *tables, "ts")
        dropped = session.shed_r(), session.shed_s()
        assert [session.counters()[f"shed_{side}"] for side in "rs"] == [len(t) for t in dropped]
        left = [kept(table, gone) for table, gone in zip(tables, dropped, strict=True)]
        want = answer(asked, whole(asked, Feed(how.sources, tuple([deal[n] for n in of] for deal, of in zip(
            how.deal, left, strict=True)), []), *(t.take(pa.array(of, pa.int64())) for t, of in zip(
                tables, left, strict=True))))
        assert np.array_equal(np.concatenate(mine.items), want[0])
        assert pa.Table.from_batches(mine.rows, want[1].schema).equals(want[1])
        shed.append(dropped)
    assert all(found == shed[0] for found in shed), "what is dropped depends on the calls alone"


def burst(session: splitjoin.StreamJoin, seed: int) -> None:
    """Both streams, a few tuples at a time, with bursts of which a window of 8 holds a part."""
    rng = np.random.default_rng(seed)
    now, ids = 0, [0, 0]
    for _ in range(5):
        for n, push in enumerate((session.push_r, session.push_s)):
            count = int(rng.choice([1, 3, 12]))
            times = sorted(int(now + t) for t in rng.integers(0, 6, count))
            push(pa.table({"ts": times, "id": range(ids[n], ids[n] + count)}, schema=SCHEMA))
            ids[n] += count
        now += 6


@pytest.mark.long
def test_a_circuit_drops_in_place_of_an_overflow() -> None:
    seed = 0
    asked = splitjoin.query(SCHEMA, SCHEMA, on="abs(r.id - s.id) <= 9", window="RANGE 10", time="ts")
    circuit: dict[str, Any] = {"device": "pysim", "cores": 1, "capacity": 8}
    with splitjoin.open(asked, **circuit, patience=1500) as session, pytest.raises(WindowOverflow):
        burst(session, seed)
    full = Shedding(threshold=7, seed=seed)  # as many as can be kept
    with splitjoin.open(asked, **circuit, when_full="shed", shedding=full) as session:
        burst(session, seed)
        found = [session.poll().to_pylist(), session.flush().to_pylist()]
        gone = {side: set(t["id"].to_pylist()) for side, t in (("r", session.shed_r()), ("s", session.shed_s()))}
    assert all(gone.values())
    every: dict[str, list[pa.Table]] = {"r": [], "s": []}

    class Listed:
        push_r, push_s = every["r"].append, every["s"].append

    burst(Listed, seed)  # type: ignore[arg-type]  # only the pushes
    left = {side: pa.concat_tables(every[side]).filter(pa.array(
        [row not in gone[side] for row in pa.concat_tables(every[side])["id"].to_pylist()])) for side in "rs"}
    want = splitjoin.join(left["r"], left["s"], on=asked.predicate, window="RANGE 10", time="ts", device="golden")
    assert [*found[0], *found[1]] == want.table.to_pylist()


def test_time_goes_on_while_all_are_dropped() -> None:
    with splitjoin.open(query(window="RANGE 10"), when_full="shed", shedding=Shedding(capacity=2)) as session:
        for time in range(0, 100, 4):
            session.push_r(r(time, time, time))
            session.push_s(s(time))
        counters = session.counters()
        assert counters["tuples_r"] > 10
        assert counters["shed_r"] > 40
        assert counters["shed_r"] + counters["tuples_r"] + counters["waiting"] >= 75
        assert session.shed_r()["ts"].to_pylist()[-1] == 96
        assert len(session.shed_r()) == 0, "each is handed out once"


def test_results_that_nobody_reads_shed_too() -> None:
    with splitjoin.open(query(), "golden", limit=3, when_full="shed", shedding=Shedding(capacity=5)) as session:
        for time in range(40):
            session.push_r(r(time))
            session.push_s(s(time))
        assert session.counters()["unread_rows"] < 40
        assert session.counters()["shed_s"] > 20


def test_without_times_what_is_held_up_counts() -> None:
    asked = splitjoin.query(SCHEMA, SCHEMA, on="TRUE", window="ROWS 4")
    with splitjoin.open(asked, "golden", limit=3, when_full="shed", shedding=Shedding(capacity=6)) as session:
        for at in range(30):
            session.push_r(pa.table({"ts": [0], "id": [at]}, schema=SCHEMA))
            session.push_s(pa.table({"ts": [0], "id": [at]}, schema=SCHEMA))
        saved, counters = session.snapshot(), session.counters()
        dropped = session.shed_r()
    assert 30 > len(dropped) == counters["shed_r"] > 15
    with splitjoin.open(asked, "cpu", limit=3, when_full="shed", shedding=Shedding(capacity=6)) as session:
        session.restore(saved)
        assert session.counters()["shed_r"] == len(dropped)
        assert session.shed_r() == dropped


def test_late_tuples_are_late_and_not_dropped() -> None:
    with splitjoin.open(query(), lateness=0, when_full="shed", shedding=Shedding(capacity=1)) as session:
        session.push_s(s(5, 6, 9))
        session.push_r(r(9, 9, 3))
        assert (len(session.late_r()), len(session.shed_r()), len(session.shed_s())) == (1, 1, 2)


@pytest.mark.parametrize(("rule", "load", "want"), [
    (Shedding(capacity=10), 4, 0), (Shedding(capacity=10), 5, 0), (Shedding(capacity=10), 7, 0.4),
    (Shedding(capacity=10, curve="quadratic"), 7, 0.16), (Shedding(capacity=10, threshold=0, base=0.5), 5, 0.75),
    (Shedding(capacity=10, base=0.5), 4, 0), (Shedding(capacity=10, base=0.5), 5, 0.5),
    (Shedding(capacity=10), 10, 1), (Shedding(capacity=10), 99, 1)])
def test_the_factor_is_esj_s(rule: Shedding, load: int, want: float) -> None:
    assert Shedder(rule, query(), GoldenDevice(), in_order=True).probability(load) == pytest.approx(want)


def test_the_draws_have_the_probability_and_belong_to_tuples() -> None:
    shedder = Shedder(Shedding(capacity=1001, threshold=1, base=0.25, seed=7), query(), GoldenDevice(), in_order=True)
    each = np.array([shedder.dropped("r", i, 1, 1)[0] for i in range(2000)])
    assert abs(each.mean() - 0.25) < 0.04  # of a fixed seed
    assert [shedder.dropped("r", i, 1, 1)[0] for i in range(100, 120)] == each[100:120].tolist()
    assert [shedder.dropped("s", i, 1, 1)[0] for i in range(100)] != each[:100].tolist()


@pytest.mark.parametrize(("options", "error", "text"), [
    ({"shedding": Shedding(capacity=4)}, InputError, "shedding must be a splitjoin.Shedding, with when_full='shed'"),
    ({"when_full": "shed", "shedding": 4}, InputError, "shedding must be a splitjoin.Shedding"),
    ({"when_full": "shed"}, InputError, "when_full='shed' needs a capacity, as the device 'cpu' has no bound"),
    ({"when_full": "shed", "device": "pysim", "cores": 1, "capacity": 4, "shedding": Shedding(capacity=5)}, InputError,
     "the capacity of shedding must be at most 4"),
    ({"when_full": "shed", "device": "pysim", "cores": 1, "capacity": 4, "shedding": Shedding(threshold=4)}, InputError,
     "the threshold of shedding must be below 4"),
])
def test_what_open_refuses(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        splitjoin.open(query(), **options)


def test_a_circuit_refuses_to_shed_without_an_order_and_a_session_to_move_there() -> None:
    with pytest.raises(UnsupportedError, match="in order 'none' tuples reach a device as they come"):
        splitjoin.open(query(order="none"), "pysim", cores=1, capacity=4, when_full="shed")
    with splitjoin.open(query(), when_full="shed", shedding=Shedding(capacity=9)) as session:
        with pytest.raises(InputError, match="the capacity of shedding must be at most 4"):
            session.restart("pysim", cores=1, capacity=4)
        session.push_r(r(1))


@pytest.mark.parametrize(("wrong", "text"), [
    ({"capacity": 0}, "the capacity of shedding must be a whole number from 1, or None, not 0"),
    ({"capacity": 4, "threshold": 4}, "the threshold of shedding must be below its capacity, 4, but is 4"),
    ({"curve": "cubic"}, "the curve of shedding must be 'linear' or 'quadratic', not 'cubic'"),
    ({"base": 1.5}, "the base of shedding must be a number from 0 to 1, not 1.5"),
    ({"seed": None}, "the seed of shedding must be a whole number from 0, not None"),
])
def test_what_a_rule_refuses(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as caught:
        Shedding(**wrong)
    assert str(caught.value) == text


def test_a_tuple_has_its_draw_however_batches_are_cut() -> None:
    rule = Shedding(capacity=10**9, threshold=0, base=0.5)
    want = np.flatnonzero(Shedder(rule, query(), GoldenDevice(), in_order=True).dropped("r", 0, 40, 0))
    for cut in (1, 7, 40):
        with splitjoin.open(splitjoin.query(SCHEMA, SCHEMA, on="TRUE", window="ROWS 4"), "golden", when_full="shed",
                            shedding=rule) as session:
            for at in range(0, 40, cut):
                ids = range(at, min(at + cut, 40))
                session.push_r(pa.table({"ts": [0] * len(ids), "id": ids}, schema=SCHEMA))
            assert session.shed_r()["id"].to_pylist() == want.tolist()
