"""Annealed placements are legal, and no slower by the placer's own timing analysis."""

import copy
import json

import pytest

from splitjoin_boards.flow import ecp5
from splitjoin_boards.flow.design import part_design
from splitjoin_boards.flow.ecp5_placer.annealer import Annealer
from splitjoin_boards.flow.ecp5_placer.netlist import FF, LUT
from splitjoin_boards.flow.tools import NEXTPNR
from splitjoin_hw.link.counter import Counter

from .placements import OPTIONS, SEED, assert_legal


@pytest.mark.parametrize("mhz", [100, 250, 350])
def test_annealing_makes_the_clock_no_worse(routed_module, mhz):
    """100 MHz leaves slack everywhere, so that wire length decides; at 350 MHz most paths are late."""
    annealer = Annealer(copy.deepcopy(routed_module), 1e3 / mhz)
    before = annealer.timing.analyse()
    after = annealer.anneal(rounds=4, tries=40)
    assert after >= before
    assert after == annealer.timing.analyse()
    bels = annealer.bels()
    assert_legal(routed_module, bels)
    assert bels.keys() == {name for name, cell in routed_module["cells"].items()
                           if cell["type"] in ("TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "DP16KD")}


def test_same_input_and_seed_give_the_same_placement(routed_module):
    found = []
    for seed in (3, 3, 4):
        annealer = Annealer(copy.deepcopy(routed_module), 5.0)
        annealer.anneal(rounds=2, tries=20, seed=seed)
        found.append(annealer.bels())
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_accepted_move_is_legal(routed_module, seed):
    """The temperature is so high that every legal move is accepted."""
    annealer = Annealer(copy.deepcopy(routed_module), 5.0)
    c = annealer.netlist
    x, y = c.x.copy(), c.y.copy()
    annealer.timing.analyse()
    for n in range(3):
        annealer._anneal_round(20_000, tau=.5, temperature=1e9, radius=8, seed=10 * seed + n)
        assert_legal(routed_module, annealer.bels())
    moved = (c.x != x) | (c.y != y)
    assert all((moved & cells).any() for cells in (c.kind == LUT, c.kind == FF, c.carry, c.lut_ram))


def test_long_carry_chains_move_as_a_whole(tmp_path):
    """Counters have chains of four tiles, with a flip-flop at every bit."""
    (tmp_path / "netlist.json").write_text(ecp5.netlist(part_design(Counter(8), "ecp5"), wide=False).read_text())
    NEXTPNR.run([*OPTIONS, *SEED, "--no-route", "--json", "netlist.json", "--write", "placed.json"], tmp_path)
    module = json.loads((tmp_path / "placed.json").read_text())["modules"]["top"]
    annealer = Annealer(module, 5.0)
    c = annealer.netlist
    before = c.y[c.carry].copy()
    annealer.timing.analyse()
    annealer._anneal_round(20_000, tau=.5, temperature=1e9, radius=8, seed=1)
    assert_legal(module, annealer.bels())
    assert (c.y[c.carry] != before).any()


def test_repair_moves_few_cells_and_lowers_negative_slack(placed, annealer):
    timing = annealer.timing
    timing.period = 1e3 / 190
    timing.analyse()
    before, snapshot = timing.violations(), annealer.snapshot()
    annealer.repair()
    assert timing.violations()[1] < before[1]
    assert_legal(placed["modules"]["top"], annealer.bels())
    assert 0 < annealer.moved_since(snapshot).sum() < .5 * len(annealer.netlist.cell_names)
    annealer.restore(snapshot)
    assert timing.violations() == before
    assert not annealer.moved_since(snapshot).any()
