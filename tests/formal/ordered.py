"""A proof of the unit that folds in order: a tuple's state is that of its partners, one after the other.

The state has two bits, which each partner's bit shifts, so their order shows.
"""

from __future__ import annotations

from unittest.mock import patch

from amaranth.hdl import Array, Mux, Signal, Value

from splitjoin.circuit.fold_parts import NO_MERGE, FoldPart, FoldValue, StateSlot, scheduled_add
from splitjoin.circuit.wire import Configuration, ItemKind, Op
from splitjoin.hls.graph import Graph, Node
from splitjoin_hw.gather.ordered_folder import OrderedFolder
from splitjoin_hw.hls.ordered_pipeline import PartnerPipeline
from splitjoin_hw.layouts import STREAM_R, STREAM_S

from .harness import Harness
from .monitors import assume_stable_offers, prove_stable_offers
from .proofs import Fault, Proof

#: Bits of row ids: enough for those within the bound.
_ROW = 4
_SHIFTED = Graph((Node("input", (), 0, 3, "r", "slot0"), Node("input", (), 0, 1, "s", "argument0"),
                  Node("shift", (0,), 0, 6, places=1), Node("bits", (2,), 0, 3, places=2),
                  Node("^", (3, 1), 0, 3)), (4,))
_PART = FoldPart((0,), (StateSlot(2, False),), *NO_MERGE, scheduled_add(_SHIFTED, None))


@patch("splitjoin_hw.layouts.ROW_BITS", _ROW)
def folder() -> Harness:
    """The harness of the unit from power-up, with windows of one or two tuples, and a FLUSH that drains it."""
    config = Configuration(keys_r=(1,), keys_s=(1,), tests=((0, 0),), tree=0, values=(FoldValue(1, False, False),),
                           folds=(_PART,), whole_states=True, region_counters=False, capacity=2, cores=1)
    dut = OrderedFolder(config)
    h = Harness(dut)
    m = h.m
    assume_stable_offers(h, "i", dut.operation, dut.left, dut.right)
    window = h.constant("settings", dut.window.shape())
    h.assume("settings are constant, and the window fits",
             (Value.cast(dut.window) == Value.cast(window)) & (window.rows != 0) & (window.rows <= 2))
    now, drained = Signal(dut.operation.payload.shape(), name="now_done"), Signal(name="drained")
    offered = dut.operation.payload
    h.assume("operations are tuples, and in the end a FLUSH", ~dut.operation.valid | (~drained & (
        (offered.op == Op.TUPLE) | ((offered.op == Op.FLUSH) & (offered.stream == STREAM_S)))))
    with m.If(dut.operation.valid & dut.operation.ready):
        m.d.sync += [now.eq(offered), drained.eq(offered.op == Op.FLUSH)]

    # Results are those that a probe may have: stored tuples in their windows, oldest first, up to a star.
    counts = [Signal(_ROW, name=f"count_{side}") for side in "rs"]
    reach = [window.rows, 2]
    model, some = Signal(2, name="model"), Signal(name="some")
    values = Array(Signal(name=f"stored{n}") for n in range(4))
    picked = h.constant("picked", _ROW)
    value = now["values"].value0

    def partner(bit: Value) -> None:
        m.d.sync += [model.eq((model << 1)[:2] ^ bit), some.eq(1)]

    for stream, port in ((STREAM_R, dut.left), (STREAM_S, dut.right)):
        other, item, taken = 1 - stream, port.payload, port.valid & port.ready
        age, least = (counts[other] - item.stored)[:_ROW], Signal(_ROW, name=f"least_{'rs'[stream]}")
        h.assume(f"results of {'RS'[stream]} are a probe's", ~taken | Mux(
            drained, item.kind == ItemKind.END, (item.kind == ItemKind.STAR) | (
                (item.kind == ItemKind.PAIR) & (age != 0) & (age <= reach[other]) & (item.stored < counts[other])
                & (item.stored >= least))))
        h.prove(f"results of {'RS'[stream]} are taken in its turn", ~taken | drained | (now.stream == stream))
        pair = taken & (item.kind == ItemKind.PAIR)
        with m.If(taken):
            m.d.sync += least.eq(Mux(pair, item.stored + 1, 0))
        if stream == STREAM_R:
            with m.If(pair & (counts[0] == picked)):
                partner(values[item.stored[:2]])
        else:
            with m.If(pair & (item.stored == picked)):
                partner(value)
        with m.If(taken & (item.kind == ItemKind.STAR)):
            m.d.sync += counts[stream].eq(counts[stream] + 1)
            if stream == STREAM_S:
                m.d.sync += values[counts[1][:2]].eq(value)

    left, item = Signal(_ROW, name="left_count"), dut.o.payload
    with m.If(dut.o.valid & dut.o.ready & ~item.end):
        m.d.sync += left.eq(left + 1)
    prove_stable_offers(h, "o", dut.o)
    h.prove("a state leaves when its tuple expires or a FLUSH has come, and an END after all states",
            ~dut.o.valid | Mux(item.end, drained & (left == counts[0]), (left < counts[0]) & (
                drained | ((now.stream == STREAM_R) & ((counts[0] - left)[:_ROW] >= window.rows)))))
    h.prove("a tuple's state is that of its partners in their order",
            ~(dut.o.valid & ~item.end & (left == picked)) | ((item.state.slot0_0 == model) & (item.state.any == some)))
    return h


_FAULTS = (
    Fault("offers at o are stable", OrderedFolder, "self.o.valid.eq(1)", "self.o.valid.eq(~self.left.valid)"),
    Fault("results of R are taken in its turn", OrderedFolder, "is_r & (pair | star)", "pair | star"),
    Fault("results of S are taken in its turn", OrderedFolder, "~is_r & (pair | star)", "pair | star"),
    Fault("a state leaves when its tuple expires or a FLUSH has come, and an END after all states", OrderedFolder,
          "window.rows == live", "window.rows > live", "_expires"),
    Fault("a tuple's state is that of its partners in their order", PartnerPipeline,
          "self._way[_AHEAD + read - 1][1]", "self._way[_AHEAD + read][1]", "_follow"),
)

PROOFS = (Proof("unit that folds in order", folder, 26, inductive=False, faults=_FAULTS, search=24, first=16,
                quick=False),)
