"""Simulated circuits and emulated boards whose regions stop at a given cycle, and the answer that is due then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from amaranth.hdl import EnableInserter, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

import splitjoin
from splitjoin.circuit.driver import Transport
from splitjoin.circuit.encode import Words, pack
from splitjoin.circuit.wire import Configuration, Op
from splitjoin.engines.device import PAIR, STAR, Fault, Items, chosen_items
from splitjoin.lang.order import parse_order
from splitjoin.link.uart import UartDevice
from splitjoin_hw.core.region import Region
from splitjoin_hw.verilog import to_verilog
from splitjoin_sim.build import library_of
from splitjoin_sim.device import ModelTransport, SimDevice
from splitjoin_sim.emulated import EmulatedTop, Pins, linked_top
from splitjoin_sim.pysim import PysimDevice

from .conformance import assert_conforms
from .scenarios import Scenario

#: Bits of a number of cycles in a command.
_CYCLES = 12


@dataclass(frozen=True)
class Freeze:
    """Stop regions of ``core`` ``after`` so many cycles from the command on, for ``cycles``, or for good if 0.

    ``regions``: 1 for the one that stores S, 2 for that of R, 3 for both.
    """

    core: int
    after: int
    cycles: int = 0
    regions: int = 3


class _FrozenRegion(wiring.Component):
    """A region that stops when a command says so: it takes nothing, gives nothing, and keeps what it has.

    The command is a MASK record that unmasks the core, which changes nothing, with a `Freeze` in the upper bits of its
    body.
    """

    def __init__(self, config: Configuration, side: str):
        self._region, self.side = Region(config, side), side
        super().__init__(dict(self._region.signature.members))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        region, op = self._region, self.i.payload
        runs, armed = Signal(init=1), Signal()
        after, left = Signal(_CYCLES), Signal(_CYCLES)
        for_good = Signal()
        m.submodules.region = EnableInserter(runs)(region)
        for name, member in self.signature.members.items():
            if name in ("i", "o"):
                continue
            ours, theirs = getattr(self, name), getattr(region, name)
            if member.flow is In:
                m.d.comb += theirs.eq(ours)
            else:  # what it counts in this cycle counts no more
                stays = name.startswith(("overflow", "selected", "busy"))
                m.d.comb += ours.eq(theirs if stays else theirs & runs.replicate(len(theirs)))
        m.d.comb += [region.i.payload.eq(self.i.payload), region.i.valid.eq(self.i.valid),
                     self.i.ready.eq(region.i.ready & runs), self.o.payload.eq(region.o.payload),
                     self.o.valid.eq(region.o.valid & runs), region.o.ready.eq(self.o.ready & runs)]
        core_bits = len(self.index)
        regions, delay, cycles = (op.body[core_bits:][at:end] for at, end in (
            (0, 2), (2, 2 + _CYCLES), (2 + _CYCLES, 2 + 2 * _CYCLES)))
        told = (self.i.valid & self.i.ready & (op.op == Op.MASK) & (op.body[:core_bits] == self.index)
                & regions[self.side == "r"])
        with m.If(armed & (after == 0)):
            m.d.sync += [runs.eq(0), armed.eq(0)]
        with m.Elif(armed):
            m.d.sync += after.eq(after - 1)
        with m.If(told):
            m.d.sync += [armed.eq(1), after.eq(delay), left.eq(cycles), for_good.eq(cycles == 0)]
        with m.If(~runs & ~for_good):
            m.d.sync += [left.eq(left - 1), runs.eq(left == 1)]
        return m


@contextmanager
def _frozen() -> Iterator[None]:
    with patch("splitjoin_hw.core.core.Region", _FrozenRegion):
        yield


class PassedOn(Transport):
    """A transport that hands everything on to the ``inner`` one; subclasses change some of it."""

    def __init__(self, inner: Transport):
        self._inner = inner

    def transfer(self, records: Words, *, until_end: bool) -> Items:
        return self._inner.transfer(records, until_end=until_end)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def read(self, address: int) -> int:
        return self._inner.read(address)

    def write(self, address: int, word: int) -> None:
        self._inner.write(address, word)

    def close(self) -> None:
        self._inner.close()


class _Commanded(PassedOn):
    """Sends the commands of ``freezes`` ahead of the first records."""

    def __init__(self, inner: Transport, config: Configuration, freezes: Sequence[Freeze]):
        super().__init__(inner)
        bits = max(1, (config.cores - 1).bit_length())
        assert bits + 2 + 2 * _CYCLES <= dict(config.input_record.fields)["body"], "the records are too narrow"
        codes = [f.core | (f.regions | f.after << 2 | f.cycles << 2 + _CYCLES) << bits for f in freezes]
        self._first: Words | None = pack(config.input_record, {
            "op": Op.MASK, "stream": 0, "body": np.array(codes, np.uint64)}, len(codes)) if codes else None

    def transfer(self, records: Words, *, until_end: bool) -> Items:
        first, self._first = self._first, None
        if first is not None:
            records = np.concatenate([first, records])
        return self._inner.transfer(records, until_end=until_end)


@dataclass(frozen=True, kw_only=True)
class FrozenSim(SimDevice):
    """`SimDevice` with `Freeze` commands: those of one session after the other, and none once they are used up."""

    freezes: tuple[tuple[Freeze, ...], ...] = ()
    sessions: list[int] = field(default_factory=list)

    def _connect(self, config: Configuration) -> Transport:
        with _frozen():
            source = to_verilog(config)
        self.sessions.append(1)
        inner = ModelTransport(library_of(source, config), config, seed=self.seed, stall_in=self.stall_in,
                               stall_out=self.stall_out, pace=self.pace, patience=self.patience or 100_000)
        return _Commanded(inner, config, dict(enumerate(self.freezes, 1)).get(len(self.sessions), ()))


@dataclass(frozen=True, kw_only=True)
class FrozenPysim(PysimDevice):
    """`PysimDevice` with `Freeze` commands."""

    freezes: tuple[Freeze, ...] = ()

    def _connect(self, config: Configuration) -> Transport:
        with _frozen():
            return _Commanded(super()._connect(config), config, self.freezes)


@dataclass(frozen=True, kw_only=True)
class FrozenUart(UartDevice):
    """`UartDevice` with `Freeze` commands, as `FrozenSim` has them, for a board with a `frozen_top`."""

    freezes: tuple[tuple[Freeze, ...], ...] = ()
    sessions: list[int] = field(default_factory=list)

    def _connect(self, config: Configuration) -> Transport:
        inner = super()._connect(config)
        self.sessions.append(1)
        return _Commanded(inner, config, dict(enumerate(self.freezes, 1)).get(len(self.sessions), ()))


def frozen_top(config: Configuration, *, pack: bool = False) -> EmulatedTop:
    """The circuit of ``config`` for the emulator, with regions that stop at a command."""
    plain = linked_top(config, pack=pack)

    def make() -> tuple[str, Pins]:
        with _frozen():
            return plain.make()

    return EmulatedTop((*plain.key, "frozen"), make, plain.bit)


def check_isolated(items: Items, golden: Items, order: str, faults: Sequence[Fault]) -> int:
    """Fail unless ``items`` are ``golden`` as semantics, section 6 has it after ``faults``; returns the lost pairs.

    ``golden`` is the answer of a model with as many cores. In order ``inner`` the last slices of a probe may be missing
    where only the lost core had them.
    """
    hidden, partial = np.zeros(len(golden), np.bool_), np.zeros(len(golden), np.bool_)
    probe, stored = _rows(golden)
    side, is_pair = golden["side"], golden["kind"] == PAIR
    for fault in faults:
        row = np.where(side == 0, fault.r, fault.s)
        lost = is_pair & (stored % fault.cores == np.where(side == 0, fault.lost_s, fault.lost_r))
        hidden |= lost & (probe > row)
        partial |= lost & (probe == row)
    found = {(int(r), int(s)) for kind, _, r, s in items.tolist() if kind == PAIR}
    there = np.array([(int(r), int(s)) in found for _, _, r, s in golden.tolist()], np.bool_)
    for fault in faults:  # of the probe at which a core stopped, its oldest pairs are there
        for of in (0, 1):
            mine = partial & (side == of) & (stored % fault.cores == (fault.lost_s, fault.lost_r)[of])
            ages = np.argsort(stored[mine], kind="stable")
            kept = there[mine][ages]
            assert not (kept[1:] & ~kept[:-1]).any(), f"pairs of {fault} came before older ones"
    hidden |= partial & ~there
    expected = chosen_items(golden, ~hidden)
    if parse_order(order).kind == "inner":
        expected = _without_last_slices(expected, items, faults)
    assert_conforms(items, expected, order)
    return int(hidden.sum())


def _rows(items: Items) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The rows of the probes, and of the stored tuples."""
    return (np.where(items["side"] == 0, items["r"], items["s"]), np.where(items["side"] == 0, items["s"], items["r"]))


def _without_last_slices(expected: Items, items: Items, faults: Sequence[Fault]) -> Items:
    """``expected`` without the last stars of probes behind ``faults``, as far as ``items`` lack them."""
    def stars(of: Items) -> dict[tuple[int, int], int]:
        probe, found = _rows(of)[0], dict[tuple[int, int], int]()
        for side, row in zip(of["side"][of["kind"] == STAR].tolist(), probe[of["kind"] == STAR].tolist(), strict=True):
            found[side, row] = found.get((side, row), 0) + 1
        return found

    wanted, found = stars(expected), stars(items)
    first = [min((f.r for f in faults), default=2**40), min((f.s for f in faults), default=2**40)]
    keep = np.ones(len(expected), np.bool_)
    probe = _rows(expected)[0]
    for (side, row), count in wanted.items():
        if row < first[side]:
            continue
        for at in np.flatnonzero((expected["side"] == side) & (probe == row))[::-1].tolist()[:count - found.get(
                (side, row), 0)]:
            if expected["kind"][at] == STAR and found.get((side, row), 0) > 0:
                keep[at] = False
    return chosen_items(expected, keep)


def session_run(scenario: Scenario, device: Any, order: str, **options: Any) -> tuple[
        Items, tuple[Fault, ...], dict[str, int]]:
    """The items of a session over ``scenario``, ten tuples of each stream at a time, its faults and its counters."""
    with splitjoin.open(scenario.query(order), device, punctuation=True, **options) as session:
        found = []
        for at in range(0, max(len(scenario.r), len(scenario.s)), 10):
            session.push_r(scenario.r.slice(at, 10))
            session.push_s(scenario.s.slice(at, 10))
            found.append(session.poll_items()[0])
        session.close_r()
        session.close_s()
        while not session.finished:
            found.append(session.poll_items()[0])
        return np.concatenate(found), session.faults, session.counters()
