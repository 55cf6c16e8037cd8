"""Counters of a probe's time in each stage of a SplitJoin circuit, under any load."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value

from splitjoin.circuit.registers import COUNTER_BITS, STAGES
from splitjoin.circuit.wire import ItemKind, Op

#: Bits of the number of probes in a stage of one core.
_PROBES = 16


def occupancy(m: Module, name: str, enters: Value, leaves: Value) -> Signal:
    """The probes in a stage: those that entered it up to this cycle, and have not left it up to this cycle.

    What leaves an empty stage is no probe, but the end of the input, behind all probes.
    """
    held, now = Signal(_PROBES, name=f"{name}_held"), Signal(_PROBES, name=name)
    there = Signal(_PROBES, name=f"{name}_there")
    m.d.comb += [there.eq(held + enters), now.eq(Mux(there == 0, 0, there - leaves))]
    m.d.sync += held.eq(now)
    return now


def _offered(m: Module, name: str, port: Any) -> Signal:
    """True in the cycle in which a star is first offered at ``port``."""
    first, stays = Signal(name=f"{name}_offered"), Signal(name=f"{name}_stays")
    m.d.sync += stays.eq(port.valid & ~port.ready)
    m.d.comb += first.eq(port.valid & ~stays & (port.payload.kind == ItemKind.STAR))
    return first


def stage_occupancies(m: Module, record: Any, source: Any, sink: Any, cores: list[Any],
                      trees: tuple[Any, Any]) -> dict[str, list[Value]]:
    """Stage → the numbers of probes in it, of each core and stream, or of each stream.

    By Little's law the sum of such a number over all cycles is the sum of the probes' times. ``record``: the input at
    ``source``. ``sink``: the items, `splitjoin.circuit.wire.Configuration.item_record`. ``trees``: those of R's and of
    S's probes. Every probe must have a star.
    """
    found: dict[str, list[Value]] = {name: [] for name in STAGES}
    for stream, tree in enumerate(trees):
        side = "rs"[stream]
        probes = (record.op == Op.TUPLE) & (record.stream == stream)
        accepted, gathered, left = (Signal(name=f"{name}_{side}") for name in ("accepted", "gathered", "left"))
        m.d.comb += [
            accepted.eq(source.valid & source.ready & probes), gathered.eq(_offered(m, f"root_{side}", tree.o)),
            left.eq(sink.valid & sink.ready & (sink.payload[:2] == ItemKind.STAR) & (sink.payload[2] == stream)),
        ]
        for n, core in enumerate(cores):
            name = f"{side}{n}"
            arrives, began, scans, ended, is_probe, emitted = (Signal(name=f"{what}_{name}") for what in (
                "arrives", "began", "scans", "ended", "is_probe", "emitted"))
            i, out = core.i, (core.left, core.right)[stream]
            m.d.comb += [
                arrives.eq(i.valid & i.ready & (i.payload.op == Op.TUPLE) & (i.payload.stream == stream)),
                ended.eq(scans & (~core.scanning[stream] | began)),
                emitted.eq(_offered(m, f"star_{name}", out)),
            ]
            waiting = occupancy(m, f"waiting_{name}", arrives, began)
            m.d.sync += [began.eq(core.takes[stream]), scans.eq(core.scanning[stream])]
            with m.If(core.takes[stream]):  # a pass of the end of the input has no probe
                m.d.sync += is_probe.eq(waiting != 0)
            probe_ended = Signal(name=f"probe_ended_{name}")  # the last pass's kind, as a new one may have begun
            was_probe = Signal(name=f"was_probe_{name}")
            m.d.sync += was_probe.eq(is_probe)
            m.d.comb += probe_ended.eq(ended & was_probe)
            found["distribution"].append(occupancy(m, f"distribution_{name}", accepted, arrives))
            found["waiting"].append(waiting)
            found["scan"].append(core.scanning[stream] & is_probe)
            found["emitting"].append(occupancy(m, f"emitting_{name}", probe_ended, emitted))
            found["gather"].append(occupancy(m, f"gather_{name}", emitted, gathered))
        found["combiner"].append(occupancy(m, f"combiner_{side}", gathered, left))
    return found


def sums(m: Module, totals: dict[str, Value]) -> list[Signal]:
    """The sums over all cycles of the numbers of each of `STAGES`."""
    found = []
    for name in STAGES:
        value = Signal(COUNTER_BITS, name=f"{name}_sum")
        m.d.sync += value.eq(value + totals[name])
        found.append(value)
    return found
