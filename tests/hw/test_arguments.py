# amaranth: UnusedElaboratable=no
"""Components refuse wrong arguments by name, and the right ones can be read back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from splitjoin.circuit.wire import Configuration
from splitjoin_hw.core.core import Core
from splitjoin_hw.core.region import Region
from splitjoin_hw.gate.gate import ScaleGate
from splitjoin_hw.gather.lookahead import LookaheadFifo
from splitjoin_hw.gather.merger import Merger
from splitjoin_hw.gather.root import Root, RowCombiner
from splitjoin_hw.gather.rows import RowQueue
from splitjoin_hw.gather.tree import GatherTree
from splitjoin_hw.link.registers import Counter
from splitjoin_hw.network.block_fifo import BlockFifo, HalfRateFifo
from splitjoin_hw.network.distributor import Distributor
from splitjoin_hw.network.link import BroadcastRegister, CreditFifo
from splitjoin_hw.network.queue import Queue
from splitjoin_hw.network.tree import DistributionTree
from splitjoin_hw.tech.ram import Ram

CONFIG = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=4, time_bits=16)
#: What makes a component of one argument, wrong values of it, and what must hold.
WRONG: list[tuple[Callable[[Any], Any], tuple[Any, ...], str]] = [
    (partial(Queue, 8), (1, 0, -3, "16", 2.0), "Depth must be an integer of at least 2"),
    (partial(Ram, 8), (1, 0, "4"), "Depth must be an integer of at least 2"),
    (partial(BlockFifo, 8), (3, 2, 0, -4, "16", 16.0), "Depth must be a power of two of at least 4"),
    (partial(HalfRateFifo, 8), (3, 2, 0, -4, "16", 16.0), "Depth must be a power of two of at least 4"),
    (partial(Distributor, 8), (0, -1, "2", 1.5), "Children must be a positive integer"),
    (partial(BroadcastRegister, 8), (0, -1, "2", None), "Children must be a positive integer"),
    (partial(CreditFifo, 8), (-1, "1", None, 1.0), "Stages must be an integer of at least 0"),
    (lambda n: DistributionTree(8, leaves=n, fanout=2), (0, -2, "4", 2.0), "Leaves must be a positive integer"),
    (lambda n: DistributionTree(8, leaves=4, fanout=n), (1, 0, "2", None), "Fan-out must be an integer of at least 2"),
    (lambda n: GatherTree(leaves=n, fanin=2), (0, -2, "4", 2.0), "Leaves must be a positive integer"),
    (lambda n: GatherTree(leaves=4, fanin=n), (1, 0, "2", None), "Fan-in must be an integer of at least 2"),
    (Merger, (0, -1, "3", 2.5), "Inputs must be a positive integer"),
    (partial(Merger, 2), (1, 0, 33, "8", 2.0), "Bits to compare must be an integer from 2 to 32"),
    (LookaheadFifo, (-1, 33, "8", 2.0), "Bits of a row id must be an integer from 0 to 32"),
    (Counter, (0, 33, 2.0), "Bits of a step must be an integer from 1 to 32"),
    (Root, (1, 3, "2"), "Width must be 2 or 4"),
    (partial(RowCombiner, 4), (3,), "Ways must be 1 or 2"),
    (RowQueue, (1,), "Width must be an integer of at least 2"),
    (partial(ScaleGate, CONFIG), (0, -1, "3", 2.5, None), "Sources must be a positive integer"),
    (partial(Region, CONFIG), ("x", "", None, 0), "Side must be 'r' or 's'"),
]
#: Components, and properties of theirs with what was given.
READ_BACK: list[tuple[Any, dict[str, Any]]] = [
    (Distributor(8, 3), {"shape": 8, "children": 3}), (BroadcastRegister(8, 3), {"shape": 8, "children": 3}),
    (CreditFifo(8, 3), {"shape": 8, "stages": 3}), (GatherTree(leaves=7, fanin=2), {"leaves": 7}),
    (DistributionTree(8, leaves=5, fanout=3), {"leaves": 5, "fanout": 3}), (LookaheadFifo(7), {"bits": 7}),
    (Merger(3), {"inputs": 3, "bits": 32, "has_offer_input": False}),
    (Merger(2, 7, has_offer_input=True), {"bits": 7, "has_offer_input": True}),
    (ScaleGate(CONFIG, 3), {"config": CONFIG, "sources": 3, "latency": 3}),
    (Region(CONFIG, "s"), {"config": CONFIG, "side": "s"}), (Core(CONFIG), {"config": CONFIG}),
]


@pytest.mark.parametrize(("make", "values", "must"), WRONG)
def test_wrong_arguments_are_refused(make: Callable[[Any], Any], values: tuple[Any, ...], must: str) -> None:
    for value in values:
        with pytest.raises(ValueError, match=r"\S") as refused:
            make(value)
        assert str(refused.value) == f"{must}, not {value!r}"


def test_arguments_can_be_read_back() -> None:
    for part, given in READ_BACK:
        assert {name: getattr(part, name) for name in given} == given, type(part).__name__
