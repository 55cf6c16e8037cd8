"""The geometry of circuits: what must hold of it, and that components and cost are made of the same one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from amaranth.hdl import Fragment, Module
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.geometry import (
    levels,
    links,
    list_depth,
    outcome_latency,
    probe_groups,
    reads_under_way,
    ring_rows,
    split,
    stack_depth,
    tree_nodes,
)
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.gather.tree import GatherTree
from splitjoin_hw.network.tree import DistributionTree
from splitjoin_hw.parts import Submodules
from tests.support.sampling import examples

SMALL = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=2, capacity=16)


@given(st.integers(1, 5000), st.integers(2, 16))
def test_levels_is_the_logarithm_rounded_up(leaves: int, fanout: int) -> None:
    depth = levels(leaves, fanout)
    assert fanout**depth >= leaves
    assert depth == 0 or fanout ** (depth - 1) < leaves


@given(st.integers(2, 3000), st.integers(2, 16))
def test_groups_are_even_and_no_deeper_than_the_tree(count: int, fanout: int) -> None:
    groups = split(count, fanout)
    assert sum(groups) == count
    assert 2 <= len(groups) <= fanout
    assert max(groups) - min(groups) <= 1
    assert 1 + levels(max(groups), fanout) == levels(count, fanout)


class _Counted(Submodules):
    """Counts the parts by kind, and makes one of each in the whole test, for its ports."""

    ports: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        self.kinds: dict[str, int] = {}

    def add(self, m: Module, name: str, kind: str, make: Callable[[], Any]) -> Any:
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if kind not in self.ports:
            self.ports[kind] = super().add(m, name, kind, make).signature
        return self.ports[kind].create(path=(name,))


@given(st.integers(1, 40), st.integers(2, 5))
@settings(max_examples=examples(20))
def test_trees_have_the_nodes_that_are_counted(leaves: int, fan: int) -> None:
    parts = _Counted()
    Fragment.get(DistributionTree(8, leaves=leaves, fanout=fan, parts=parts), None)
    broadcasts, fifos = links(leaves, fan)
    assert parts.kinds == ({f"broadcast{children}": n for children, n in broadcasts.items()}
                           | {f"credit_fifo{stages}": n for stages, n in fifos.items()})
    parts = _Counted()
    Fragment.get(GatherTree(leaves=leaves, fanin=fan, parts=parts), None)
    nodes: dict[int, int] = {}
    for kind, n in parts.kinds.items():
        if kind.startswith("merger"):
            inputs = int(kind.removeprefix("merger").partition("_")[0])
            nodes[inputs] = nodes.get(inputs, 0) + n
    assert nodes == tree_nodes(leaves, fan)


@pytest.mark.parametrize("lanes", [1, 2, 8])
@pytest.mark.parametrize("capacity", [16, 64, 512])
def test_rings_and_lists_have_room(capacity: int, lanes: int) -> None:
    config = replace(SMALL, capacity=capacity, lanes=lanes)
    assert ring_rows(config) * lanes >= capacity + 16
    latency = outcome_latency(config)
    assert list_depth(config, latency) > capacity // lanes + reads_under_way(latency)
    assert stack_depth(config, latency) > capacity + latency


@given(st.integers(1, 16))
def test_groups_of_probes(probes: int) -> None:
    assert sum(probe_groups(probes)) == probes
    assert all(size == 4 for size in probe_groups(probes)[:-1])
