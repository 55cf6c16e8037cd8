"""Designs for the cocotb benches: our Verilog of components, several of a kind side by side in one module.

A build takes seconds, so trees of all shapes share one. Names of ports begin with the component's name:
``b2k5__o__3__valid`` is leaf 3 of the tree with fan-out 2 and 5 leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib.wiring import Component, In, Out

from splitjoin.circuit.wire import Configuration
from splitjoin_hw.backend.library import Converted, Library
from splitjoin_hw.core.region import Region
from splitjoin_hw.gate.gate import ScaleGate
from splitjoin_hw.gather.combiner import Combiner
from splitjoin_hw.gather.merger import Merger
from splitjoin_hw.gather.tree import GatherTree
from splitjoin_hw.network.tree import DistributionTree
from splitjoin_hw.verilog import TOP, to_verilog

from .driver import top_configuration
from .gating import GATE

__all__ = ["DESIGNS", "GATES", "MERGERS", "REGIONS", "TOPS", "TREES", "TREE_BITS", "design"]

#: Width of the payload in the distribution trees.
TREE_BITS = 12
#: Name → (fan-out, leaves).
TREES = {f"b{b}k{k}": (b, k) for b, leaves in ((2, range(1, 10)), (3, (1, 3, 4, 9)), (4, (1, 4, 5, 9))) for k in leaves}
#: Name → sources.
GATES = {f"n{n}": n for n in (1, 2, 3, 5, 8)}
#: Name → (fan-in, leaves); one merger where they are equal.
MERGERS = {f"c{c}k{k}": (c, k) for c, k in ((2, 2), (3, 3), (4, 4), (2, 5), (3, 9))}
#: Name → (configuration, side).
REGIONS = {
    f"{side}{cores}x{capacity}t{time_bits}l{lanes}p{probes}": (
        Configuration(keys_r=(3, 4), keys_s=(4,), tests=((0, 0), (1, 0)), tree=("or", 0, 1), cores=cores,
                      capacity=capacity, time_bits=time_bits, lanes=lanes, probes=probes), side)
    for side, cores, capacity, time_bits, lanes, probes in (
        ("r", 1, 4, 0, 1, 1), ("s", 3, 2, 9, 1, 3), ("r", 2, 8, 12, 4, 2), ("s", 1, 32, 12, 1, 8), ("s", 2, 8, 0, 2, 4),
        ("r", 3, 32, 12, 4, 8))
} | {
    f"{side}{cores}x{capacity}t{time_bits}l{lanes}p{probes}tables": (
        Configuration(keys_r=(3, 4), keys_s=(4,), tests=((0, 0), (1, 0)), tree=("or", 0, 1), cores=cores,
                      capacity=capacity, time_bits=time_bits, lanes=lanes, probes=probes, widths=(0, 4), tables=True),
        side)
    for side, cores, capacity, time_bits, lanes, probes in (("r", 2, 8, 12, 2, 3), ("s", 1, 32, 0, 1, 8))
} | {
    f"{side}{cores}x{capacity}{core}": (
        Configuration(keys_r=(3, 4), keys_s=(4,), tests=((0, 0), (1, 0)), tree=("and", 0, 1), cores=cores,
                      capacity=capacity, time_bits=9, core=core, index=index), side)
    for side, cores, capacity, core, index in (("s", 2, 8, "hash", (1,)), ("r", 3, 16, "bucket", (0, 1)))
}
#: Name → configuration.
TOPS = {f"k{k}b{b}c{c}l{lanes}p{probes}": top_configuration(k, b, c, 4 * lanes, lanes, probes)
        for k, b, c, lanes, probes in ((1, 2, 2, 1, 1), (5, 2, 3, 2, 3))}


class _SideBySide(Component):
    """Independent components, each with its ports under its name."""

    def __init__(self, parts: Mapping[str, Component]):
        self._parts = parts
        super().__init__({name: Out(part.signature) for name, part in parts.items()})

    def elaborate(self, platform) -> Module:
        m = Module()
        for name, part in self._parts.items():
            m.submodules[name] = part
            for (_, member, port), (_, _, inner) in zip(part.signature.flatten(getattr(self, name)),
                                                        part.signature.flatten(part), strict=True):
                target, value = (inner, port) if member.flow == In else (port, inner)
                m.d.comb += Value.cast(target).eq(Value.cast(value))
        return m


def _parts(name: str) -> dict[str, Any]:
    """The components of design ``name``."""
    if name == "tree":
        return {n: DistributionTree(TREE_BITS, leaves=k, fanout=b) for n, (b, k) in TREES.items()}
    if name == "gate":
        return {n: ScaleGate(GATE, sources) for n, sources in GATES.items()}
    if name == "merger":
        return {n: Merger(k) if k == c else GatherTree(leaves=k, fanin=c) for n, (c, k) in MERGERS.items()}
    if name == "region":
        return {n: Region(config, side) for n, (config, side) in REGIONS.items()}
    return {"c": Combiner()}


#: All designs: one for each kind of component, and the whole circuit in each of `TOPS`.
DESIGNS = ("gate", "tree", "merger", "region", "combiner", *(f"top-{name}" for name in TOPS))


def design(name: str) -> tuple[str, str]:
    """Verilog and top module of a design."""
    if name not in DESIGNS:
        raise ValueError(f"Design must be one of {', '.join(DESIGNS)}, not {name!r}")
    if name.startswith("top-"):
        return to_verilog(TOPS[name.removeprefix("top-")]), TOP
    library = Library(name)
    library.add(Converted.of(_SideBySide(_parts(name)), name))
    return library.text(), name
