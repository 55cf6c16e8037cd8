import re
from itertools import pairwise, product

import pytest
from bench.place_and_route.floorplan import floorplan


def netlist(cores, blocks):
    cells = {f"part.core{core}.{side}.storage.bank{n}.block0": {"type": "DP16KD"}
             for core, side, n in product(range(cores), ("left", "right"), range(blocks))}
    cells |= {"part.core0.left.storage.head": {"type": "TRELLIS_FF"}, "part.queue.block0": {"type": "DP16KD"}}
    return {"modules": {"harness": {"cells": cells}}}


def places(cores, blocks):
    """(core, side) → column and row of each of its block RAMs."""
    found = {}
    for name, bel in floorplan(netlist(cores, blocks), "harness").items():
        core, side = re.match(r"part\.core(\d+)\.(\w+)\.storage", name).groups()
        column, row = re.fullmatch(r"X(\d+)/Y(\d+)/EBR\d", bel).groups()
        found.setdefault((int(core), side), []).append((int(column), int(row)))
    return found


@pytest.mark.parametrize(("cores", "blocks"), [(1, 6), (2, 22), (3, 20), (8, 6), (16, 6), (17, 6)])
def test_every_block_ram_of_a_region_has_its_own_bel(cores, blocks):
    found = places(cores, blocks)
    assert len(found) == 2 * cores
    assert all(len(bels) == blocks for bels in found.values())
    assert len({bel for bels in found.values() for bel in bels}) == 2 * cores * blocks


def test_cores_do_not_overlap():
    """Eight cores: two rows of four, the two regions of each beside each other."""
    found = places(8, 6)
    assert {row for (core, _), bels in found.items() for _, row in bels if core < 4} == {22}
    assert {row for (core, _), bels in found.items() for _, row in bels if core >= 4} == {70}
    spans = [[column for column, _ in found[core, side]] for core in range(4) for side in ("left", "right")]
    assert all(max(a) < min(b) for a, b in pairwise(spans))


def test_three_cores_are_in_one_row():
    """The regions of each core above each other."""
    found = places(3, 20)
    assert all((row < 48) == (side == "left") for (_, side), bels in found.items() for _, row in bels)


def test_block_rams_outside_regions_are_left_to_the_placer():
    assert "part.queue.block0" not in floorplan(netlist(2, 4), "harness")
