"""Circuits as RTLIL with a module for each kind of component, which synthesis maps once however often it is used."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.back import rtlil
from amaranth.lib import wiring

from splitjoin.circuit.wire import Configuration
from splitjoin_hw.circuit import circuit
from splitjoin_hw.core.core import Core
from splitjoin_hw.gather.merger import Merger
from splitjoin_hw.network.link import BroadcastRegister, CreditFifo
from splitjoin_hw.network.pipeline import PipelineRegister
from splitjoin_hw.parts import Instances, Reset
from splitjoin_hw.tech.target import Target
from splitjoin_hw.top import Top
from splitjoin_hw.verilog import TOP

from .harness import PinHarness


@dataclass(frozen=True)
class Design:
    """A circuit: RTLIL ``text``, name of the ``top`` module, and ``kept``, modules that mapping does not flatten."""

    text: str
    top: str
    kept: tuple[str, ...]


def part_design(part: wiring.Component, family: str) -> Design:
    """A component, as module ``part``, between the shift registers of a module ``harness``."""
    return _harnessed(_convert(part, "part", family), part, (), family)


def core_design(config: Configuration, family: str) -> Design:
    """One core of the circuit for ``config``, as `part_design`."""
    return part_design(Core(config), family)


def whole_design(config: Configuration, family: str) -> Design:
    """The whole circuit for ``config``, trees and registers included, as `part_design`."""
    text, top, kept = _whole(config, family, "part")
    return _harnessed(text, top, kept, family)


def bare_design(config: Configuration, family: str) -> Design:
    """The whole circuit for ``config`` with its own ports, as module `splitjoin_hw.verilog.TOP`."""
    text, _, kept = _whole(config, family, TOP)
    return Design(text, TOP, kept)


def _whole(config: Configuration, family: str, name: str) -> tuple[str, Top, tuple[str, ...]]:
    parts = Instances(TOP)
    top = circuit(config, parts)
    text = _convert(top, name, family)  # this elaborates the top, which adds the modules that it instantiates to parts
    modules = sorted(parts.modules.items())
    # Mergers are mapped together: they are small, and their critical paths lead from one to the next. Cores are mapped
    # once each. Pipeline registers and resets must stay separate: mapping would merge equal registers.
    registers = BroadcastRegister | CreditFifo | PipelineRegister | Reset
    kept = tuple(name for name, part in modules if isinstance(part, Core | registers))
    # So must the gates behind the comparisons of mergers.
    kept += ("*.compare_select*",) if any(isinstance(part, Merger) and part.inputs > 1 for _, part in modules) else ()
    return "\n".join([text, *(_convert(part, name, family) for name, part in modules)]), top, kept


def _harnessed(text: str, part: wiring.Component, kept: tuple[str, ...], family: str) -> Design:
    harness = _convert(PinHarness(part, "part"), "harness", family)
    return Design(f"{text}\n{harness}", "harness", ("part", *kept))


def _convert(part: wiring.Component, name: str, family: str) -> str:
    text: str = rtlil.convert(part, name=name, platform=Target(family), emit_src=False)
    # The scripts name the top. With this attribute on every module Yosys would take the first.
    return text.replace("attribute \\top 1\n", "")
