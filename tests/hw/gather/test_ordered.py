# amaranth: UnusedElaboratable=no
"""The unit that folds in order gives the states of one partner after the other, of random classes, under stalls."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import splitjoin
from splitjoin import UnsupportedError
from splitjoin.circuit.folding import payload_fields
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import QueryCircuit, folding_circuit
from splitjoin.circuit.wire import ItemKind, Op, Record
from splitjoin.lang.fold import Fold, Overflow
from splitjoin_hw.gather.ordered import OrderedFolder
from splitjoin_hw.hls.ordered import PartnerPipeline
from tests.testbench.models import Item, packed_item
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import Stalls

from ...formal.proofs import Fault, planted
from ...support.random_aggregates import RandomAggregate, random_aggregates
from ...support.sampling import at_length, examples
from ...support.user_aggregates import Checksum, Rises, Smoothed

#: ROWS of R's window, its RANGE, and the tuples of a core, of which there are two.
_SHAPES = {"rows": (3, None, 4), "range": (None, 6, 8), "full": (8, None, 4)}
_R = pa.schema([("ts", pa.int64()), ("x", pa.int8())])


def circuit_of(calls: dict[str, Any], shape: str, clock: float | None) -> QueryCircuit:
    """The circuit that folds ``calls`` in order, of columns x and y of S that may be NULL."""
    rows, length, capacity = _SHAPES[shape]
    s = pa.schema([("ts", pa.int64()), ("x", pa.int8()), ("y", pa.int8())])
    query = splitjoin.query(_R, s, on="r.x = s.x", how="left", aggregate=calls, time="ts", window=(
        f"RANGE {length}" if length else f"ROWS {rows}"))
    # Clocks that a class cannot have are left out.
    for one in (clock, 60.0):
        try:
            made = folding_circuit(query, CircuitParameters(cores=2, capacity=capacity, fold="always", clock=one))
            break
        except UnsupportedError as error:
            assert "clock must be at most" in str(error)
    return made


def packed(record: Record, fields: dict[str, int]) -> int:
    """The bits of ``fields`` in ``record``."""
    return sum((fields.get(name, 0) & (1 << width) - 1) << at for name, (at, width) in record.offsets().items())


class Schedule:
    """Random operations, the results of their probes, and the states that are to leave, by plain Python.

    A tuple of R has each tuple of S that both windows hold as a partner by chance, in order of arrival.
    """

    def __init__(self, circuit: QueryCircuit, folds: list[Fold | None], shape: str, seed: int, n: int):
        rng = random.Random(seed)
        config, (rows, length, capacity) = circuit.config, _SHAPES[shape]
        self.config, self.folds, choice = config, folds, circuit.folding
        assert choice is not None
        limits = [a.width.range for f in folds if f for a in f.arguments]
        low, high = max((a for a, _ in limits), default=-8), min((b for _, b in limits), default=7)

        def value() -> int | None:
            return None if rng.random() < 0.1 else rng.randint(max(-128, low - (rng.random() < 0.03)), min(127, high))

        self.s = pa.table({"ts": np.arange(n), "x": pa.array([value() for _ in range(n)], pa.int8()),
                           "y": pa.array([value() for _ in range(n)], pa.int8())})
        payload = config.payload("s")
        values = {name: np.asarray(v).tolist() for name, v in payload_fields(choice, self.s).items()}
        log = Record((("op", 2), ("stream", 1), *((("ts", config.time_bits),) if config.time_bits else ()),
                      ("values", max(1, payload.width))))
        self.operations: list[int] = []
        self.sides: list[list[int]] = [[], []]
        self.states: list[int | None] = []  # None: an END
        live: list[list[list[int]]] = [[], []]  # of R and of S: row id, time, and of R the partners
        partners: list[list[int]] = []
        count, now = [0, 0], 0

        def expire(side: int, more: int) -> None:
            while live[side] and ((rows is not None and len(live[side]) + more > rows) or (
                    length is not None and (now - live[side][0][1] > length or len(live[side]) > 2 * capacity - 1))):
                gone = live[side].pop(0)
                if side == 0:
                    self.states.append(gone[0])

        def send(op: Op, stream: int = 0, at: int = 0) -> None:
            given = {name: v[at] for name, v in values.items()} if op == Op.TUPLE and stream else {}
            self.operations.append(packed(log, {"op": op, "stream": stream, "ts": now, "values": packed(payload,
                                                                                                      given)}))

        while count[1] < n:
            if rng.random() < 0.1:
                now += rng.randint(0, 3)
                send(Op.TICK) if config.time_bits and rng.random() < 0.5 else send(Op.FLUSH)
                if self.operations[-1] & 3 == Op.TICK:
                    expire(0, 0)
                else:
                    self._ends()
                continue
            side = int(rng.random() < 0.5)
            # Where time limits windows, it goes on before they are too full for the circuit.
            now += rng.randint(0, 2) if length is None or len(live[side]) < 2 * capacity - 1 else length + 1
            expire(0, side == 0)
            expire(1, side == 1)
            send(Op.TUPLE, side, count[side])
            chance = rng.choice([0.0, 0.3, 1.0])
            for other in live[1 - side]:
                if rng.random() < chance:
                    self.sides[side].append(packed_item(Item(ItemKind.PAIR, count[side], other[0])))
                    if side == 0:
                        partners += [[]] if len(partners) == count[0] else []
                        partners[count[0]].append(other[0])
                    else:
                        partners[other[0]].append(count[1])
            self.sides[side].append(packed_item(Item(ItemKind.STAR, count[side])))
            partners += [[]] if side == 0 and len(partners) == count[0] else []
            live[side].append([count[side], now])
            count[side] += 1
        send(Op.FLUSH, 1)
        self.states += [row for row, _ in live[0]]
        self._ends()
        self.partners = partners

    def _ends(self) -> None:
        self.states.append(None)
        for side in self.sides:
            side.append(packed_item(Item(ItemKind.END)))

    def expected(self, row: int) -> list[list[int] | None]:
        """Of each fold the slots of R's tuple ``row``; None where one leaves its width."""
        return [None if f is None else self._folded(f, self.partners[row]) for f in self.folds]

    def _folded(self, fold: Fold, partners: list[int]) -> list[int] | None:
        add, state = fold.add.evaluator(), list(fold.init)
        for n in partners:
            values = [self.s[a.name][n].as_py() for a in fold.arguments]
            if None in values:
                continue
            whole = [a.width.whole(v) for a, v in zip(fold.arguments, values, strict=True)]
            try:
                if None in whole:
                    raise Overflow(0, 0)
                state = list(fold.checked(add(fold.row(state), dict(zip((a.name for a in fold.arguments), whole,
                                                                        strict=True)))))
            except Overflow:
                return None
        return state


def agrees(calls: dict[str, Any], folds: list[Fold | None], *, shape: str, clock: float | None, seed: int,
           stalls: Stalls, n: int = 30) -> bool:
    """True if the unit's states are those of plain Python; ``folds``: of each part of the state, None if built in."""
    circuit = circuit_of(calls, shape, clock)
    config, made = circuit.config, Schedule(circuit, folds, shape, seed, n)
    assert config.in_order
    rows, length, _ = _SHAPES[shape]
    got: list[int] = []

    async def body(tb: Any) -> None:
        tb.set("window__rows", 2**32 - 1 if rows is None else rows)
        tb.set("window__timed", length is not None)
        if length is not None:
            tb.set("window__range", length)
        tb.source("operation", made.operations, stalls.source(0))
        for side, (port, items) in enumerate(zip(("left", "right"), made.sides, strict=True)):
            tb.source(port, items, stalls.source(1 + side))
        sink = tb.sink("o", stalls.sink())
        await tb.run(lambda: len(sink.items) == len(made.states), limit=20000)
        await tb.steps(20)
        got.extend(sink.items)

    try:
        simulate(OrderedFolder(config), body)
    except AssertionError:
        return False
    return [item & 1 for item in got] == [row is None for row in made.states] and all(
        _same(made, row, item >> 1) for row, item in zip(made.states, got, strict=True) if row is not None)


def _same(made: Schedule, row: int, bits: int) -> bool:
    config, expected = made.config, made.expected(row)
    fields = {name: bits >> at & (1 << width) - 1 for name, (at, width) in config.state.offsets().items()}
    if fields["any"] != bool(made.partners[row]):
        return False
    for n, (part, fold, slots) in enumerate(zip(config.folds, made.folds, expected, strict=True)):
        if fold is None:  # the number of partners
            if fields[f"slot{n}_0"] != len(made.partners[row]):
                return False
        elif slots is None:
            if not fields[f"over{n}"]:
                return False
        elif fields.get(f"over{n}") or any(fields[f"slot{n}_{i}"] != v & (1 << slot.bits) - 1
                                           for i, (slot, v) in enumerate(zip(part.slots, slots, strict=True))):
            return False
    return True


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(aggregate=random_aggregates(), shape=st.sampled_from(sorted(_SHAPES)), seed=st.integers(0, 10**6),
       clock=st.sampled_from([None, 100.0, 160.0, 220.0]), stalled=st.booleans())
def test_random_classes_fold_in_order(aggregate: RandomAggregate, shape: str, seed: int, clock: float | None,
                                      stalled: bool) -> None:
    fold = aggregate.compiled.fold
    call = aggregate.compiled(*(f"s.{a.name}" for a in fold.arguments))
    assert agrees({"a": call, "n": "count(*)"}, [fold, None], shape=shape, clock=clock, seed=seed,
                  stalls=Stalls(stalled, stalled, seed)), aggregate.source


def _examples(clock: float | None, seeds: int = 2) -> bool:
    return all(agrees({"a": Rises("s.x"), "b": Checksum("s.x"), "c": Smoothed("s.x"), "n": "count(*)"},
                      [Rises.fold, Checksum.fold, Smoothed.fold, None], shape=shape, clock=clock, seed=seed,
                      stalls=Stalls(bool(seed), bool(seed), seed)) for shape in _SHAPES for seed in range(seeds))


@pytest.mark.parametrize("clock", [200.0, at_length(None), at_length(100.0)])
def test_examples_fold_in_order(clock: float | None) -> None:
    assert _examples(clock)


@pytest.mark.parametrize(("part", "old", "new", "method"), [
    (OrderedFolder, "times.r_addr.eq(head + leaves)", "times.r_addr.eq(head)", "_expires"),
    (OrderedFolder, "partners.begin.eq(~partners.busy)", "partners.begin.eq(1)", "elaborate"),
    at_length(OrderedFolder, "self.operation.ready.eq(~partners.busy)", "self.operation.ready.eq(1)", "elaborate"),
    at_length(OrderedFolder, "clears.eq(star & is_r & ~met)", "clears.eq(0)", "elaborate"),
    at_length(OrderedFolder, "full | drains | old", "full | old", "_expires"),
    at_length(OrderedFolder, "age > window.range", "age >= window.range", "_expires"),
    (PartnerPipeline, "self._way[_AHEAD + write][0]", "self._way[_AHEAD + read][0]", "_follow"),
    at_length(PartnerPipeline, "self._way[_AHEAD + read - 1][1]", "self._way[_AHEAD + read][1]", "_follow"),
    at_length(PartnerPipeline, "phase == -_AHEAD % interval", "phase == (1 - _AHEAD) % interval", "elaborate"),
])
def test_planted_faults_show(part: type, old: str, new: str, method: str) -> None:
    with planted(Fault("", part, old, new, method)):
        assert not _examples(200.0, seeds=3)
