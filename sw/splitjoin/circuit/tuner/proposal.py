"""The tuner's proposal: a design and its predicted figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from splitjoin.base.errors import plural

from ..cost.circuit import resources_text
from ..parameters import BuildParameters, offered
from .boards import Fpga
from .core_kinds import CORE_SPEEDS
from .sample import SampleFigures
from .search import FULL, DesignPoint, Requirements
from .workload import ARRIVING

_NAMES = {"lut": "LUT4", "ff": "flip-flops", "block_ram": "block RAMs", "dsp": "DSPs"}


def quantity(value: float, unit: str) -> str:
    """``value`` with three digits and a prefix: 12.3 M tuples/s, 4.5 µs."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")):
        if value >= factor or factor == 1e-9:
            return f"{value / factor:.3g} {prefix}{unit}"
    raise AssertionError


def shares_text(design: DesignPoint) -> str:
    """The shares of the FPGA that the design takes."""
    total = design.cost.total
    used = [f"{getattr(total, name) / getattr(design.fpga, name):.0%} of the {_NAMES[name]}"
            for name in ("lut", "ff", "block_ram")]
    return f"{', '.join(used)}; up to {FULL['lut']:.0%} of LUT4 and flip-flops have been routed"


def requirements_text(requirements: Requirements) -> str:
    """``requirements`` in words."""
    said = [] if requirements.rate is None else [quantity(requirements.rate, "tuples/s")]
    said += [] if requirements.latency is None else [f"latency {quantity(requirements.latency, 's')}"]
    fixed = {name: getattr(requirements, name) for name in ("cores", "lanes", "probes")}
    said += [f"{name} {value}" for name, value in fixed.items() if value is not None]
    said += [] if requirements.queue is None else [f"queues of {requirements.queue}"]
    said += [] if requirements.tables is None else ["with tables" if requirements.tables else "without tables"]
    return ", ".join(said)


def binding_text(wanted: DesignPoint | None, requirements: Requirements, best: DesignPoint | None = None) -> str:
    """The limit in words: for ``wanted``, the smallest design that meets the requirements, the resource that it exceeds
    most; without such a design, the clock or the input of the nearest design ``best``.
    """
    if wanted is not None:
        name = max(wanted.shares, key=wanted.shares.__getitem__)
        needs, has = getattr(wanted.cost.total, name), getattr(wanted.fpga, name)
        config = wanted.config
        what = f"of kind {config.core}"
        if not config.kind.has_index:
            what = f"with lanes {config.lanes}, probes {config.probes}"
        return (f"{_NAMES[name]}: {config.cores} {plural(config.cores, 'core')} {what} would need {needs:,}, "
                f"and {int(FULL[name] * has):,} of the FPGA's {has:,} can be used")
    if best is None:
        return "memory: a core holds 65,536 tuples of a stream, and there are 1,024 cores at most"
    if requirements.rate is not None and requirements.rate > best.input_rate:
        return (f"clock: whatever is compared, a circuit of {best.clock.mhz:.0f} MHz takes no more than "
                f"{quantity(best.input_rate, 'tuples/s')}")
    return (f"clock: at {best.clock.mhz:.0f} MHz no number of cores, lanes and probes that can be built has it "
            f"({quantity(best.rate, 'tuples/s')} and {quantity(best.latency(busy=True), 's')} come nearest)")


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
        verified: True if the host verifies what a formula could decide in the cores.
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
    verified: bool = False

    @property
    def kind(self) -> str:
        """The kind of the cores: "scan" compares every stored tuple, the others look candidates up."""
        return self.design.config.core

    @property
    def kind_reason(self) -> str:
        """The reason for that kind, in words."""
        if not self.others:
            if self.requirements.tables and self.refused:
                return "of all kinds the one that has tables"
            if len(self.refused) == len(CORE_SPEEDS) - 1:
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
        verify = {"verify": "host"} if self.verified else {}
        return {name: value for name, value in built if value is not False and (name, value) not in off} | verify

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
        if self.verified:
            yield "verified", (f"on the host: formulas in the cores fit worse, although {load.matches:.3g} candidates "
                               f"a tuple leave the circuit")
        elif config.formula is not None:
            pairs = config.lanes * config.probes
            yield "verified", (f"in the cores, by {pairs} {plural(pairs, 'formula')} a region: only pairs of the "
                               "answer leave")
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
