"""The circuit of a configuration: the top of its architecture, behind a gate where it has several sources."""

from __future__ import annotations

import importlib

from amaranth.lib import wiring

from splitjoin.circuit.wire import Configuration

from .gate.gated import GatedTop, gated_ports
from .parts import Submodules
from .top import Top, top_ports


def circuit_ports(config: Configuration) -> dict[str, wiring.Member]:
    """The ports of `circuit`: of `Top`, or with several sources of `GatedTop`."""
    return top_ports(config) if config.sources == 1 else gated_ports(config)


def circuit(config: Configuration, parts: Submodules | None = None) -> Top:
    """The top of the circuit for ``config``, of its architecture. ``parts`` as of `Top`."""
    module, name = config.structure.component
    top = getattr(importlib.import_module(module), name)(config, parts)
    assert isinstance(top, Top)
    return top if config.sources == 1 else GatedTop(top)
