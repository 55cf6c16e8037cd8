# amaranth: UnusedElaboratable=no
"""A region with states beside its stored tuples folds as one partner after the other does, under stalls; planted faults
show.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest
from amaranth.hdl import ResetInserter, Signal

from splitjoin.circuit.fold_parts import FoldValue, count_part, extreme_part, sum_part
from splitjoin.circuit.wire import Configuration, Op
from splitjoin_hw.core import states
from splitjoin_hw.core.region import Region
from splitjoin_hw.core.stored_states import StoredStates
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import Stalls

from ...formal.proofs import Fault, planted
from ...support.sampling import at_length

#: Count, sum and maximum of a value of four bits with a sign; the sum as it is with up to 63 partners.
_FOLDS = (count_part((), 63), sum_part(0, -8, 7, 63), extreme_part(0, -8, 7, "max"))
_STALLED = Stalls(True, True)
#: A window, and the shape of a region.
Shape = tuple[int, int, int, int]
_SHORT, _LONG = (1, 2, 3, 4), (16, 1, 1, 16)  # ROWS, lanes, probes, capacity


def records(config: Configuration, seed: int, rows: int, n: int) -> tuple[list[int], list[tuple[int, ...]]]:
    """Random records with a FLUSH that drains behind them; and the states, by a fold of one partner after the other."""
    rng, window, made = random.Random(seed), deque[tuple[int, list[int]]](), list[int]()
    states: list[list[int]] = []
    body_at = config.input_record.offsets()["body"][0]
    for _ in range(n):
        is_r, key, value = rng.random() < 0.5, rng.randrange(2), rng.randint(-8, 7)
        body = config.body("r" if is_r else "s").offsets()
        fields = {"key0": key, "lo0": key, "hi0": key, "value0": value & 15}
        made.append(Op.TUPLE | (not is_r) << 2 | sum(fields[name] << at for name, (at, _) in body.items()) << body_at)
        if is_r:
            states.append([0, 0, 0, 0])
            window.append((key, states[-1]))
            if len(window) > rows:
                window.popleft()
            continue
        for mine, state in window:
            if mine == key:
                state[:] = [1, state[1] + 1, state[2] + value, max(state[3], value) if state[0] else value]
    return [*made, Op.FLUSH | 1 << 2], [tuple(state) for state in states]


def found(config: Configuration, items: list[int]) -> list[tuple[int, ...]]:
    """The fields of states of stored tuples; the least value where there is no partner is left out."""
    out = []
    for bits in items:
        fields = {}
        for name, (at, width) in config.state.offsets().items():
            value = bits >> 1 + at & (1 << width) - 1
            is_signed = name in ("slot1_0", "slot2_0")
            fields[name] = value - (1 << width) if is_signed and value >> width - 1 else value
        some = fields["any"]
        out.append((some, fields["slot0_0"], fields["slot1_0"], fields["slot2_0"] if some else 0))
    return out


def configured(shape: Shape) -> Configuration:
    _, lanes, probes, capacity = shape
    return Configuration(keys_r=(2,), keys_s=(2,), tests=((0, 0),), tree=0, cores=1, capacity=capacity, lanes=lanes,
                         probes=probes, values=(FoldValue(4, True, False),), folds=_FOLDS, whole_states=True)


def same(shape: Shape, seed: int, stalls: Stalls, n: int = 130) -> bool:
    """True if the region's states are those of the fold, and an END follows them."""
    rows, config = shape[0], configured(shape)
    region = Region(config, "r")
    made, expected = records(config, seed, rows, n)
    got: list[int] = []

    async def body(tb: Any) -> None:
        tb.set("window__rows", rows)
        await tb.steps(8)
        source = tb.source("i", made, stalls.source(seed))
        sink = tb.sink("o", stalls.sink(seed))
        await tb.run(lambda: bool(sink.items) and bool(sink.items[-1] & 1), limit=30000)
        await tb.steps(20)
        got.extend(sink.items)
        assert len(source.cycles) == len(made)

    try:
        simulate(region, body)
    except AssertionError:
        return False
    return bool(got[-1] & 1) and found(config, got[:-1]) == expected


@pytest.mark.parametrize("shape", [_SHORT, _LONG, at_length((16, 8, 16, 16)), at_length((8, 4, 1, 8))])
def test_states_are_those_of_one_partner_after_the_other(shape: Shape) -> None:
    for seed, stalls in enumerate((Stalls(False, False), _STALLED)):
        assert same(shape, seed, stalls)


@pytest.mark.parametrize(("shape", "old", "new", "method"), [
    (_LONG, "same & was_valid[n]", "same & 0", "newest"),
    (_SHORT, "after.eq(Mux(clears, initial, Cat(summed)))", "after.eq(Cat(summed))", "elaborate"),
    (_LONG, "~unread_yet & (limit != leaving)", "limit != leaving", "_leave"),
    at_length(_SHORT, "Cat(self.take, self.load)", "Cat(self.load.any(), self.load)", "_deltas"),
    at_length(_LONG, "Mux(drained, self.written, self.head)", "self.head", "_leave"),
])
def test_planted_faults_show(shape: Shape, old: str, new: str, method: str) -> None:
    part = StoredStates if hasattr(StoredStates, method) else states
    with planted(Fault("", part, old, new, method)):
        assert not all(same(shape, seed, stalls) for seed in range(2) for stalls in (_STALLED, Stalls(False, False)))


class Restarted(Region):
    """A region that ``restart`` resets."""

    def __init__(self, config: Configuration):
        super().__init__(config, "r")
        self.restart = Signal()

    def elaborate(self, platform: Any) -> Any:
        return ResetInserter(self.restart)(super().elaborate(platform))


def same_after_a_reset(cut: int) -> bool:
    """True if the states are those of the fold though the region was reset behind record ``cut`` of the same input."""
    rows, config = _SHORT[0], configured(_SHORT)
    region, (made, expected) = Restarted(config), records(config, cut, rows, 60)
    got: list[int] = []

    async def body(tb: Any) -> None:
        tb.set("window__rows", rows)
        await tb.steps(8)
        source, sink = tb.source("i", made[:cut], Stalls(False, False).source()), tb.sink("o")
        await tb.run(lambda: len(source.cycles) == cut, limit=3000)
        tb.set("restart", 1)
        await tb.steps(2)
        tb.set("restart", 0)
        sink.items.clear()
        source.queue.extend(made)
        await tb.run(lambda: bool(sink.items) and bool(sink.items[-1] & 1), limit=3000)
        got.extend(sink.items)

    try:
        simulate(region, body)
    except AssertionError:
        return False
    return found(config, got[:-1]) == expected


def test_a_reset_leaves_no_state() -> None:
    """In the middle of a run, with states in the memories; it shows if they are not cleared."""
    assert all(same_after_a_reset(cut) for cut in (23, 40))
    with planted(Fault("", StoredStates, "Signal(init=1), Signal(range(ring_rows(config)))",
                       "Signal(), Signal(range(ring_rows(config)))", "elaborate")):
        assert not all(same_after_a_reset(cut) for cut in (23, 40))
