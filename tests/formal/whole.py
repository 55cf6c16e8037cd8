"""Proofs of a whole core from power-up: the star of each probe leaves within a number of cycles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from unittest.mock import patch

from amaranth.hdl import Const, Mux, Signal, Value

from splitjoin.circuit.wire import Configuration, ItemKind, Op
from splitjoin_hw.core.core import Core
from splitjoin_hw.core.listing import ListEmitter

from .harness import Harness
from .monitors import assume_stable_offers
from .proofs import Fault, Proof

#: Bits of row ids in these proofs: enough for all records within the bound.
_ROW = 4


@contextmanager
def _narrow() -> Iterator[None]:
    with (patch("splitjoin_hw.layouts.ROW_BITS", _ROW), patch("splitjoin_hw.core.layouts.ROW_BITS", _ROW),
          patch("splitjoin_hw.core.emitter.ROW_BITS", _ROW), patch("splitjoin_hw.core.storage.ROW_BITS", _ROW),
          patch("splitjoin_hw.core.scanner.ROW_BITS", _ROW), patch("splitjoin_hw.core.region.ROW_BITS", _ROW),
          patch("splitjoin_hw.core.core.ROW_BITS", _ROW), patch("splitjoin.circuit.geometry.STORES", 2),
          patch("splitjoin.circuit.geometry.LISTED", 8), patch("splitjoin.circuit.geometry.SORTED", 2),
          patch("splitjoin.circuit.geometry.QUOTA", 2)):
        yield


def _leaves(within: int) -> str:
    """The name of the property."""
    return f"the star of a tuple leaves within {within} cycles"


@_narrow()
def core(probes: int, records: int, within: int) -> Harness:
    """The harness of the only core, with two live tuples a stream, whose outputs are taken at once.

    ``records``: most records that come. ``within``: cycles from a tuple's acceptance to its star.
    """
    config = Configuration(keys_r=(1,), keys_s=(1,), tests=((0, 0),), tree=0, cores=1, capacity=2, probes=probes,
                           region_counters=False)
    dut = Core(config)
    h = Harness(dut)
    m = h.m
    assume_stable_offers(h, "i", dut.i)
    settings = h.constant("settings_of_all", Value.cast(dut.settings).shape())
    h.assume("settings and the core's number are constant",
             (Value.cast(dut.settings) == settings) & (dut.index == 0))
    for name, window in (("r", dut.settings.r), ("s", dut.settings.s)):
        h.assume(f"a star follows each probe, and the window of {name} fits",
                 (window.precision == 1) & (window.slice == 0) & ~window.timed
                 & (window.rows != 0) & (window.rows <= 2))
    h.assume("the outputs are taken", dut.left.ready & dut.right.ready)
    record, taken = dut.i.payload, dut.i.valid & dut.i.ready
    came, cycles = Signal(range(records + 1), name="records_came"), Signal(2, name="cycles")
    m.d.sync += [came.eq(came + taken), cycles.eq(cycles + (cycles != 3))]
    h.assume("so many tuples come, and settings before them",
             ~dut.i.valid | ((came != records) & (record.op == Op.TUPLE) & (cycles == 3)))

    # The picked tuple: its stream, its number there, and the cycles since it was taken.
    mark, picked, side, number = h.free("mark"), Signal(name="picked"), Signal(name="side"), Signal(_ROW, name="number")
    accepted = [Signal(_ROW, name=f"accepted{n}") for n in range(2)]
    age = Signal(range(within + 2), name="age")
    out = [port.payload.probe for port in (dut.left, dut.right)]
    stars = [port.valid & (port.payload.kind == ItemKind.STAR) for port in (dut.left, dut.right)]
    for n, count in enumerate(accepted):
        m.d.sync += count.eq(count + (taken & (record.stream == n)))
    with m.If(picked):
        m.d.sync += age.eq(age + (age <= within))
    with m.If(Mux(side, stars[1] & (out[1] == number), stars[0] & (out[0] == number))):
        m.d.sync += picked.eq(0)
    with m.If(~picked & taken & mark):
        m.d.sync += [picked.eq(1), age.eq(1), side.eq(record.stream), number.eq(Mux(record.stream, *accepted[::-1]))]
    h.prove(_leaves(within), ~picked | (age <= within))
    h.output = SimpleNamespace(valid=stars[0] | stars[1], ready=Const(1))
    return h


_FAULTS = (
    Fault(_leaves(30), ListEmitter, "due & ~last", "due & self.batch.valid & ~last", "_walk"),
)
PROOFS = (
    Proof("core, a probe a batch", partial(core, 1, 3, 30), 38, inductive=False, faults=_FAULTS, search=38, first=34,
          quick=False),
)
