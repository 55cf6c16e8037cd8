"""Precisions of order ``inner`` that change, by hand or by themselves: golden's answer with the same changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import splitjoin
from splitjoin import AdaptivePrecision, InputError, OrderError
from splitjoin.base.errors import DeviceError
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.cpu.device import CpuDevice
from splitjoin.engines.device import Items, Session
from splitjoin.sessions.precision import PrecisionControl

from ...support.changes import SCHEMA, Change, golden, run, stream
from ...support.conformance import assert_conforms
from ...support.sessions import query

#: Devices with as many cores as golden is to have.
DEVICES: dict[str, tuple[int, dict[str, Any]]] = {
    "golden": (2, {"cores": 2}), "cpu": (1, {}), "threads": (2, {"engine": "threads", "threads": 2}),
    "pysim": (1, {"cores": 1, "capacity": 16, "core": "scan"})}
ASKED = splitjoin.query(SCHEMA, SCHEMA, on="r.x <= s.x", window="ROWS 16", time="ts", order="inner(1)")
#: Streams of which tuples come by turns.
TABLES = {side: stream([(2 * n + of, n * 7 % 5) for n in range(64)]) for of, side in enumerate("rs")}


def opened(device: str, **more: Any) -> splitjoin.StreamJoin:
    return splitjoin.open(ASKED, "cpu" if device == "threads" else device, punctuation=True,
                          device_options=DEVICES[device][1], **more)


def assert_golden(device: str, items: Items, changes: list[Change]) -> None:
    whole = arrivals(ASKED, TABLES["r"], TABLES["s"])
    assert_conforms(items, golden(ASKED, whole, changes, DEVICES[device][0]), ASKED.order)


@pytest.mark.parametrize("device", ["golden", "cpu", "threads"])
def test_slices_change_between_two_tuples(device: str) -> None:
    how: list[Any] = [("r", 20), ("s", 20), ("precision", 3), ("r", 6), ("s", 6), ("precision", 2)]
    kept = [("snapshot", 0), ("r", 4), ("s", 4), ("restart", 0)]
    items, changes = run(lambda _: opened(device), TABLES, [*how, *(kept if device in ("golden", "cpu") else [])])
    assert [change.n for change in changes] == [3, 2]
    assert_golden(device, items, changes)


class Clock:
    """A push takes ``seconds`` between two looks at it."""

    now = seconds = 0.0

    def __call__(self) -> float:
        self.now += self.seconds
        return self.now


def fed(device: str, seconds: list[float], coarsest: int) -> list[int]:
    """The precisions behind pushes that take so many ``seconds``, within ``coarsest`` and a second."""
    clock, changes, part = Clock(), list[Change](), len(TABLES["s"]) // len(seconds)
    with opened(device, precision=AdaptivePrecision(coarsest=coarsest, latency=1.0), clock=clock) as session:
        session.push_r(TABLES["r"])
        for n, clock.seconds in enumerate(seconds):
            session.push_s(TABLES["s"].slice(part * n, part))
            counters = session.counters()
            changes.append(Change(counters["tuples_r"] + counters["tuples_s"], n=counters["precision"]))
        session.push_s(TABLES["s"].slice(part * len(seconds)))
        items = session.poll_items()[0]
        session.close_r()
        session.close_s()
        assert_golden(device, np.concatenate([items, session.poll_items()[0]]), changes)
    return [change.n or 0 for change in changes]


def test_the_precision_follows_the_load() -> None:
    seconds = [0.1, 2.0, 2.5, 2.0, *[0.5] * 15, 0.7, *[0.1] * 17]
    assert fed("golden", seconds, coarsest=6) == [1, 2, 6, 6, *[6] * 15, 6, *[6] * 15, 3, 3]


@pytest.mark.long
def test_a_circuit_s_slices_follow_the_load() -> None:
    found = fed("pysim", [2.0] * 8, coarsest=64)
    assert found == sorted(found)
    assert 1 < found[-1] < 64


def test_a_coarser_precision_is_chosen_only_if_results_are_waited_for() -> None:
    control = PrecisionControl(AdaptivePrecision(coarsest=64, latency=1.0), 4, Clock())
    assert [control.chosen(8, seconds, waiting) for seconds, waiting in (
        (2.0, 0.5), (2.1, None), (2.0, 0.01), (0.9, 0.5))] == [16, 24, 8, 8]


def test_a_snapshot_keeps_the_precision() -> None:
    with opened("golden") as session:
        session.precision(5)
        saved = session.snapshot()
    with opened("cpu") as session:
        session.restore(saved)
        assert session.counters()["precision"] == 5


def test_what_is_refused() -> None:
    for arguments, error, said in (
            ({"coarsest": 0, "latency": 1.0}, OrderError, "the precision of order 'inner' must be 1 to"),
            ({"coarsest": 4, "latency": 0}, InputError, "must be seconds, more than 0, not 0")):
        with pytest.raises(error, match=said):
            AdaptivePrecision(**arguments)
    rule = AdaptivePrecision(coarsest=4, latency=1.0)
    for order, said in (("outer(2)", "is of order 'inner\\(n\\)', as its stars .* but the order is 'outer\\(2\\)'"),
                        ("inner(8)", "must be the n of order 'inner\\(8\\)', or more, not 4")):
        with pytest.raises(OrderError, match=said):
            splitjoin.open(query(order=order), precision=rule)
    with pytest.raises(InputError, match="precision must be a splitjoin\\.AdaptivePrecision, or None, not 4"):
        splitjoin.open(query(order="inner(2)"), precision=4)  # type: ignore[arg-type]  # wrong on purpose
    with (CpuDevice().open(query(order="outer(2)")) as session,
          pytest.raises(OrderError, match="a precision is of order 'inner\\(n\\)', but the order is 'outer")):
        session.precision(3)
    with pytest.raises(DeviceError, match="keeps the slices that it was opened with"):
        Session.precision(session, 2)
