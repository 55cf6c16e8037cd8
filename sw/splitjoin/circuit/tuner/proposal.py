"""The tuner's proposal: a design and its predicted figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..cost.circuit import resources_text
from ..parameters import BuildParameters, offered
from .arrival import ARRIVING
from .boards import Fpga
from .core_kinds import CORE_SPEEDS
from .sample import SampleFigures
from .search import DesignPoint, Requirements
from .text import quantity, requirements_text, shares_text

__all__ = ["Proposal"]


@dataclass(frozen=True)
class Proposal:
    """A design for a query, and its predicted figures.

    Attributes:
        board, fpga: The target board, and its FPGA.
        design: Its configuration, cost and shares of the FPGA.
        others: Other kind of core → the best design with it, or None if none fits. ``refused``: kind → the reason why
            the condition cannot have it.
        assumed: True if neither selectivity nor matches were given.
        requirements: The requirements of the design.
        misses: Requirement that is missed → the factor by which it is.
        binding: The resource that limits the design, in words; empty if the requirements are met.
        sample: The figures of a sample of the data, None if none was given.
    """

    board: str
    fpga: Fpga
    design: DesignPoint
    others: dict[str, DesignPoint | None]
    refused: dict[str, str]
    assumed: bool
    requirements: Requirements
    misses: dict[str, float]
    binding: str
    sample: SampleFigures | None = None

    @property
    def kind(self) -> str:
        """The kind of the cores: "scan" compares every probe with every stored tuple, "hash" and "bucket" look
        candidates up.
        """
        return self.design.config.core

    @property
    def kind_reason(self) -> str:
        """The reason for that kind, in words."""
        if not self.others:
            if self.requirements.tables and self.refused:
                return "of all kinds the one that has tables"
            if len(self.refused) == 2:
                return "the condition has nothing for an index"
            return "it was asked for"
        if not self.met:
            return "of all kinds it comes nearest"
        if self.requirements.rate is None:
            return "of all kinds the fastest"
        return "of all kinds that meet the requirements the smallest"

    @property
    def tuples(self) -> int:
        """The tuples of the longer window that the prediction assumes."""
        return self.design.load.tuples

    @property
    def met(self) -> bool:
        """True if all requirements are met."""
        return not self.misses

    @property
    def options(self) -> dict[str, int | str]:
        """The options of `splitjoin.circuit.driver.CircuitDevice` and the command line for this design."""
        built = ((found.name, getattr(self.design.config, found.name)) for found, _ in offered(BuildParameters))
        off = ("queue", 0), ("architecture", "splitjoin")
        return {name: value for name, value in built if value is not False and (name, value) not in off}

    @property
    def tuples_per_s(self) -> float:
        """Predicted tuples a second, both streams together."""
        return self.design.rate

    @property
    def latency_s(self) -> float:
        """Predicted seconds from a probe to its star, on an idle circuit."""
        return self.design.latency(busy=False)

    @property
    def busy_latency_s(self) -> float:
        """Predicted seconds from a probe to its star, if the probe arrives when a pass has just begun."""
        return self.design.latency(busy=True)

    @property
    def lut(self) -> int:
        """Predicted LUTs."""
        return self.design.cost.total.lut

    @property
    def block_ram(self) -> int:
        """Predicted block RAMs of 18 Kbit."""
        return self.design.cost.total.block_ram

    def __str__(self) -> str:
        return "\n".join(f"{label:12}{said}" for label, said in self._lines())

    def _lines(self) -> Iterator[tuple[str, str]]:
        design, config, load = self.design, self.design.config, self.design.load
        yield "board", (f"{self.board}: {self.fpga.name}, {self.fpga.lut:,} LUT4, {self.fpga.block_ram} block "
                        f"RAMs of 18 Kbit")
        by = f" by {', '.join(f'T{j}' for j in config.index)}" if config.index else ""
        yield "cores", f"{config.cores} of kind {self.kind}{by}: {self.kind_reason}"
        for kind, other in self.others.items():
            yield "instead", f"{kind}: {_other(other)}"
        for kind, why in self.refused.items():
            yield "instead", f"{kind}: no, {why}"
        window = f"{load.r:,} a window" if load.r == load.s else f"{load.r:,} and {load.s:,} in the windows of R and S"
        yield "design", (f"lanes {config.lanes}, probes {config.probes}, {config.capacity} tuples a stream and core "
                         f"({window}), fan-out {config.fanout}, fan-in {config.fanin}")
        if config.queue:
            yield "queues", f"{config.queue} records ahead of each region: {ARRIVING[load.arrival]}"
        if config.tables:
            looked_up = ", ".join(f"T{j}" for j, wide in enumerate(config.test_widths) if wide is not None)
            yield "tables", f"{looked_up} looked up in LUT RAM instead of computed"
        if config.kind.has_index:
            assumed = ("given" if not self.assumed else "measured" if self.sample is not None
                       else "assumed where nothing is given")
            few = max(CORE_SPEEDS[config.core].candidates(config, load))
            share = "no pair meets" if not load.selectivity else f"one pair in {1 / load.selectivity:,.0f} meets"
            yield "index", f"{few:.2g} candidates a probe and core are expected, where {share} its tests ({assumed})"
        if self.sample is not None:
            yield "sample", str(self.sample)
        yield "clock", f"{design.clock.mhz:.0f} MHz, {design.clock.source}"
        most = ""
        if not config.kind.has_index:
            most = (f", {design.cost.comparisons} comparisons a cycle "
                    f"({quantity(design.cost.comparisons * design.clock.mhz * 1e6, 'comparisons/s')} at most)")
        yield "speed", (f"{quantity(self.tuples_per_s, 'tuples/s')} sustained with {load.matches:.3g} results a tuple, "
                        f"{ARRIVING[load.arrival]}{most}")
        yield "latency", f"{quantity(self.latency_s, 's')} idle, {quantity(self.busy_latency_s, 's')} behind a pass"
        yield "cost", resources_text(design.cost.total, self.fpga.family)
        yield "shares", shares_text(design)
        required = requirements_text(self.requirements)
        if self.met:
            yield "required", f"{required}, met" if required else "nothing: the fastest that fits"
        else:
            yield "required", f"{required}: not met by any design that fits; this comes nearest"
            yield "binding", self.binding


def _other(design: DesignPoint | None) -> str:
    if design is None:
        return "no circuit fits"
    total = design.cost.total
    return (f"{quantity(design.rate, 'tuples/s')}, {quantity(design.latency(busy=True), 's')} behind a pass, with "
            f"{total.lut:,} LUT4, {total.block_ram:,} block RAMs")
