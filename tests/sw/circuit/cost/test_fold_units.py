"""Predictions for the units that fold: near what synthesis maps, as committed, and stages by depth and not by words."""

import json
from pathlib import Path

import pytest
from bench.fold_units import Crc8, Flags, Top3, ordered_units, predicted, units

from splitjoin.circuit.cost.folding import ordered_folder
from splitjoin.hls.lut_network import FALSE, TRUE, LutNetwork
from splitjoin.hls.pipeline import scheduled
from splitjoin.hls.programs import build_graph

RESULTS = Path(__file__).parents[4] / "bench" / "results"


def test_predictions_are_within_a_few_percent_of_what_synthesis_reported() -> None:
    mapped = {(row["config"]["aggregate"], row["config"]["program"]): row["value"]
              for row in json.loads((RESULTS / "fold_units.json").read_text())["rows"] if row["metric"] == "ecp5_lut4"}
    found = {(name, program): predicted(graph).lut for name, program, graph in units()}
    assert found.keys() == mapped.keys()
    for unit, luts in found.items():
        assert luts == pytest.approx(mapped[unit], rel=0.06, abs=4), unit


def test_the_unit_that_folds_in_order_is_predicted() -> None:
    mapped = {(row["config"]["aggregate"], row["metric"]): row["value"]
              for row in json.loads((RESULTS / "fold_units.json").read_text())["rows"]
              if row["metric"].endswith("_in_order")}
    found = {(name, f"ecp5_{kind}_in_order"): getattr(cost, kind) for name, config in ordered_units()
             for cost in [ordered_folder(config, "ecp5")] for kind in ("lut", "ff", "dsp")}
    found = {(name, metric.replace("lut", "lut4")): value for (name, metric), value in found.items()}
    assert found == {key: pytest.approx(value, rel=0.11) for key, value in mapped.items()}


def test_stages_are_those_of_the_depth() -> None:
    """Flags are one LUT deep, and eight rounds of a CRC two, however many words their operations have."""
    assert scheduled(build_graph(Flags.fold.add), 200.0).ahead == 1
    assert scheduled(build_graph(Crc8.fold.add), 200.0).ahead == 1
    assert [scheduled(build_graph(Top3.fold.add), clock).ahead for clock in (None, 60.0, 150.0)] == [1, 1, 3]


def test_equal_chains_and_unread_bits_cost_nothing() -> None:
    luts = {(name, program): predicted(graph).lut for name, program, graph in units()}
    assert luts["Top3", "lift"] == 0  # the greatest of x and 0 is x
    assert luts["Extent", "merge"] == 2 * (18 + 16)


@pytest.mark.parametrize(("inputs", "signals", "luts"), [
    (4, 4, 1), (4, 5, 2), (4, 7, 8), (4, 16, 7), (6, 6, 1), (6, 7, 2), (6, 16, 5)])
def test_gates_of_many_signals(inputs: int, signals: int, luts: int) -> None:
    network = LutNetwork(inputs, 1.0, wide=True)
    assert network.luts([network.all([network.source() for _ in range(signals)])])[0] == luts


def test_rules_and_covers_of_a_network() -> None:
    network = LutNetwork(6, 1.0)
    a, b, c, d, e, f, g = (network.source() for _ in range(7))
    assert network.both(a, a ^ 1) == FALSE
    assert network.either(a, TRUE) == TRUE
    assert network.differ(a ^ 1, b) == network.differ(a, b) ^ 1
    assert network.choose(a, b, network.both(a ^ 1, b)) == b
    parity = network.differ(network.differ(network.differ(a, b), network.differ(c, d)), network.differ(e, f))
    assert network.time(parity) == 1.0
    assert network.luts([parity]) == (1, {x >> 1 for x in (a, b, c, d, e, f)})
    deeper = network.choose(parity, g, a)
    assert network.time(deeper) == 2.0
    assert network.luts([deeper, parity])[0] == 2
    assert network.luts([a, FALSE]) == (0, {a >> 1, 0})


def test_wide_functions_of_small_luts_are_taken_where_they_are_sooner() -> None:
    network = LutNetwork(4, 1.0, wide=True)
    early, late = [network.source() for _ in range(3)], [network.source(5.0) for _ in range(4)]
    found = network.choose(late[0], late[1], network.choose(network.all(early), late[2], late[3]))
    assert network.time(found) == 5.0 + 1.083  # of what is late and of one signal more
    assert network.luts([found])[0] == 3
