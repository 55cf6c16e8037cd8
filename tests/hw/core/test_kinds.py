# amaranth: UnusedElaboratable=no
"""Core kinds: every layer knows all of them, and their components keep the interfaces of a region."""

from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import Fragment
from amaranth.lib import wiring

from splitjoin.circuit.core_kinds import KINDS
from splitjoin.circuit.cost.core_kinds import CORE_COSTS
from splitjoin.circuit.parameters import CORE_KINDS
from splitjoin.circuit.registers import REGION_COUNTERS
from splitjoin.circuit.tuner.core_kinds import CORE_SPEEDS
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.core.emitter import Emitter
from splitjoin_hw.core.interfaces import OutcomeSignature, ProcessingSignature, RingSignature, interface
from splitjoin_hw.core.kinds import CORE_COMPONENTS
from splitjoin_hw.core.storage import Storage
from tests.testbench.core_kinds import CORE_MODELS

SCAN = Configuration(keys_r=(4,), keys_s=(4,), tests=((0, 0),), tree=0, capacity=16)
CONFIGS = {name: replace(SCAN, core=name, index=(0,) * kind.has_index) for name, kind in KINDS.items()}


def parts_of(name: str, side: str) -> tuple[Any, Emitter, Storage]:
    """The processing side, the emitter and the storage of a region, elaborated once, as Amaranth asks for."""
    config, components = CONFIGS[name], CORE_COMPONENTS[name]
    processing = components.processing(config, side)
    parts = (processing, components.emitter(config, processing.latency), Storage(config, side))
    for part in parts:
        Fragment.get(part, None)
    return parts


def test_every_layer_knows_every_kind() -> None:
    for table in (CORE_COSTS, CORE_SPEEDS, CORE_COMPONENTS, CORE_MODELS):
        assert list(table) == list(KINDS)
    assert ("auto", *KINDS) == CORE_KINDS
    assert all(kind.name == name for name, kind in KINDS.items())


@pytest.mark.parametrize("name", KINDS)
def test_components_keep_the_interfaces_of_a_region(name: str) -> None:
    config, (processing, emitter, storage) = CONFIGS[name], parts_of(name, "r")
    for part, signature in ((processing, ProcessingSignature(config, "r")), (processing, RingSignature(config, "r")),
                            (storage, RingSignature(config, "r").flip()), (emitter, OutcomeSignature(config).flip())):
        assert dict(signature.members) == {member: part.signature.members[member] for member in signature.members}
        assert signature.is_compliant(interface(part, signature))
    assert isinstance(processing, wiring.Component)


def test_region_counters_are_declared_by_the_parts_that_count() -> None:
    known = {counter.name for counter in REGION_COUNTERS}
    declared = {"comparisons", "matches"}
    for name in CORE_COMPONENTS:
        for part in parts_of(name, "s"):
            assert set(part.counters) <= known & set(part.signature.members)
            # No counter is missing: no port has the name of a counter that its part does not declare.
            assert known & set(part.signature.members) == set(part.counters)
            declared |= set(part.counters)
    assert declared == known
