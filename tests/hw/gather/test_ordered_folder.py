# amaranth: UnusedElaboratable=no
"""The unit that folds in order gives the states of one partner after the other, of random classes, under stalls."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bench.place_and_route.design import part_design
from hypothesis import HealthCheck, given, settings, strategies as st

import splitjoin
from splitjoin import UnsupportedError
from splitjoin.circuit.folding import payload_fields
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import QueryCircuit, folding_circuit
from splitjoin.circuit.wire import Configuration, ItemKind, Op, Record
from splitjoin.lang.fold import Fold, Overflow
from splitjoin_hw.backend.library import Converted, Library
from splitjoin_hw.gather.ordered_folder import OrderedFolder
from splitjoin_hw.hls.ordered_pipeline import PartnerPipeline
from splitjoin_hw.layouts import window_layout
from tests.testbench.folding import check_ordered
from tests.testbench.models import Item, packed_item
from tests.testbench.netlists import mapped_verilog
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import MATRIX, Stalls
from tests.testbench.runner import run_bench

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
    config, expected = case(calls, folds, shape=shape, clock=clock, seed=seed, n=n)
    try:
        simulate(OrderedFolder(config), lambda tb: check_ordered(tb, stalls=stalls, **expected))
    except AssertionError:
        return False
    return True


def case(calls: dict[str, Any], folds: list[Fold | None], *, shape: str, clock: float | None, seed: int,
         n: int = 30) -> tuple[Configuration, dict[str, Any]]:
    """The configuration of a unit, and the arguments of `check_ordered`."""
    circuit = circuit_of(calls, shape, clock)
    config, made = circuit.config, Schedule(circuit, folds, shape, seed, n)
    assert config.in_order
    rows, length, _ = _SHAPES[shape]
    window = {"rows": 2**32 - 1 if rows is None else rows, "timed": length is not None} | (
        {"range": length} if config.time_bits else {})
    states = [(1, 1) if row is None else _masked(made, row) for row in made.states]
    return config, {"operations": made.operations, "left": made.sides[0], "right": made.sides[1], "states": states,
                    "window": window_layout(config).const(window).as_value().value}


def _masked(made: Schedule, row: int) -> tuple[int, int]:
    """The bits of what leaves for R's tuple ``row`` that are known, as a mask, and their values."""
    wanted = {"any": int(bool(made.partners[row]))}
    for n, (part, fold, slots) in enumerate(zip(made.config.folds, made.folds, made.expected(row), strict=True)):
        if fold is None:  # the number of partners
            wanted[f"slot{n}_0"] = len(made.partners[row])
        elif slots is None:
            wanted[f"over{n}"] = 1
        else:
            wanted |= {f"slot{n}_{i}": v & (1 << slot.bits) - 1 for i, (slot, v) in enumerate(zip(part.slots, slots,
                                                                                                  strict=True))}
            wanted |= {f"over{n}": 0} if part.checked else {}
    mask, value = 1, 0
    for name, (at, width) in made.config.state.offsets().items():
        if name in wanted:
            mask, value = mask | (1 << width) - 1 << at + 1, value | wanted[name] << at + 1
    return mask, value


#: A fold whose state takes several cycles, a checksum, and one by gates alone, with their parts of the state.
_CALLS: dict[str, Any] = {"a": Rises("s.x"), "b": Checksum("s.x"), "c": Smoothed("s.x"), "n": "count(*)"}
_FOLDS = [Rises.fold, Checksum.fold, Smoothed.fold, None]


@pytest.mark.parametrize(("simulator", "mapped"), [
    ("verilator", False), at_length("icarus", False), at_length("verilator", True)])
def test_other_simulators_and_the_mapped_netlist_give_the_same(simulator: Any, mapped: bool, tmp_path: Path) -> None:
    config, expected = case(_CALLS, _FOLDS, shape="range", clock=200.0, seed=1, n=30)
    if mapped:
        text = mapped_verilog(replace(part_design(OrderedFolder(config), "ecp5"), top="part"))
    else:
        library = Library("part")
        library.add(Converted.of(OrderedFolder(config), "part"))
        text = library.text()
    assert run_bench("ordered", tmp_path, built=(text, "part"), simulator=simulator,
                     environment={"SPLITJOIN_CASE": json.dumps(expected)}) == len(MATRIX)


@settings(max_examples=examples(30, long=1000), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(aggregate=random_aggregates(), shape=st.sampled_from(sorted(_SHAPES)), seed=st.integers(0, 10**6),
       clock=st.sampled_from([None, 100.0, 160.0, 220.0]), stalled=st.booleans())
def test_random_classes_fold_in_order(aggregate: RandomAggregate, shape: str, seed: int, clock: float | None,
                                      stalled: bool) -> None:
    fold = aggregate.compiled.fold
    call = aggregate.compiled(*(f"s.{a.name}" for a in fold.arguments))
    assert agrees({"a": call, "n": "count(*)"}, [fold, None], shape=shape, clock=clock, seed=seed,
                  stalls=Stalls(stalled, stalled, seed), n=18), aggregate.source


def _examples(clock: float | None, seeds: int = 2) -> bool:
    return all(agrees(_CALLS, _FOLDS, shape=shape, clock=clock, seed=seed, stalls=Stalls(bool(seed), bool(seed), seed))
               for shape in _SHAPES for seed in range(seeds))


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
