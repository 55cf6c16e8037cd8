# amaranth: UnusedElaboratable=no
"""The cost model against what synthesis reports: on the committed results, and on a few small circuits mapped anew."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from splitjoin import UnsupportedError
from splitjoin.boards.flow import ecp5, ultrascale
from splitjoin.boards.flow.design import part_design, whole_design
from splitjoin.cli import main
from splitjoin.cost import FAMILIES, Cells, circuit, datapath
from splitjoin.cost.cells import combine
from splitjoin.cost.text import cost_lines
from splitjoin.device.wire import Configuration
from splitjoin.hw.hls.matcher import Matcher
from splitjoin.hw.tech.target import FAMILIES as BUILT_FOR

RESULTS = Path(__file__).parents[3] / "bench" / "results"
BANDS = Configuration(keys_r=(32, 32), keys_s=(32, 32), tests=((0, 0), (1, 1)), tree=("and", 0, 1), probes=4)
MIXED = Configuration(keys_r=(1, 9, 17), keys_s=(12, 3), tests=((0, 1), (1, 0), (2, 0), (1, 0)), lanes=2, probes=3,
                      tree=("or", ("and", 0, 1), ("and", 2, 3)))
SMALL = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=2, capacity=64, time_bits=32)


def test_committed_predictions_are_near_what_synthesis_reported() -> None:
    rows = [row for row in json.loads((RESULTS / "predicates.json").read_text())["rows"] if "lut4" in row["config"]]
    assert len(rows) >= 45
    for row in rows:
        c = row["config"]
        assert c["lut4_predicted"] == pytest.approx(c["lut4"], rel=0.2), c
        assert c["stages"] == 3


def test_committed_predictions_of_cores_and_circuits_are_near_too() -> None:
    rows = json.loads((RESULTS / "costs.json").read_text())["rows"]
    assert {row["config"]["part"] for row in rows} == {"core", "whole circuit"}
    assert {row["config"]["family"] for row in rows} == set(FAMILIES)
    for row in rows:
        assert row["config"]["predicted"] == pytest.approx(row["value"], rel=0.2), row


def test_two_bands_of_32_bits() -> None:
    rows = [row for row in json.loads((RESULTS / "predicates.json").read_text())["rows"]
            if row["metric"] == "band_lut4_per_comparison"]
    (alone,) = (row["value"] for row in rows if row["config"]["codes"] == "not counted")
    assert alone <= 130
    whole = {(row["config"]["lanes"], row["config"]["probes"]): row["value"] for row in rows
             if row["config"]["codes"] == "included"}
    assert whole[1, 4] <= 130
    for (lanes, probes), value in whole.items():
        predicted = datapath(replace(BANDS, lanes=lanes, probes=probes), "s").lut_per_comparison
        assert predicted == pytest.approx(value, rel=0.2)


@pytest.mark.parametrize(("config", "side"), [(BANDS, "s"), (MIXED, "r"), (MIXED, "s")])
def test_a_datapath_mapped_anew(config: Configuration, side: str) -> None:
    found = ecp5.cells(part_design(Matcher(config, side), "ecp5"))["part"]
    predicted = datapath(config, side)
    assert predicted.total.lut == pytest.approx(found.lut4, rel=0.1)
    assert predicted.total.ff == found.ff
    assert (predicted.total.block_ram, predicted.total.dsp) == (found.block_ram, 0)
    assert predicted.stages == config.stages


def test_a_datapath_for_ultrascale() -> None:
    config = replace(MIXED, lanes=1, probes=2)
    found = ultrascale.mapped_cells(part_design(Matcher(config, "r"), "ultrascale"))
    predicted = datapath(config, "r", "ultrascale").total
    assert predicted.lut == pytest.approx(found.lut, rel=0.2)
    assert predicted.ff == pytest.approx(found.ff, rel=0.05)


def test_a_whole_circuit_mapped_anew() -> None:
    found = ecp5.cells(whole_design(SMALL, "ecp5"))["part"]
    predicted = circuit(SMALL).total
    assert predicted.lut == pytest.approx(found.lut4, rel=0.2)
    assert predicted.ff == pytest.approx(found.ff, rel=0.2)
    assert predicted.block_ram == found.block_ram


@pytest.mark.parametrize(("tree", "luts"), [
    (0, 1), (("and", 0, 1), 1), (("and", 0, 1, 2), 2), (("and", 0, ("and", 1, 2)), 2), (("or", 0, 1, 2, 3, 4), 3),
    (("or", ("and", 0, 1), ("and", 2, 3)), 3)])
def test_luts_of_a_tree(tree: object, luts: int) -> None:
    assert combine("ecp5", tree) == luts


def test_more_of_everything_costs_more() -> None:
    small = circuit(SMALL)
    for more in ({"cores": 3}, {"lanes": 2}, {"probes": 2}, {"capacity": 1024}, {"time_bits": 64},
                 {"keys_r": (16,)}, {"region_counters": True}):
        large = circuit(replace(SMALL, **more))  # type: ignore[arg-type]
        assert large.total.lut > small.total.lut, more
        assert large.total.ff > small.total.ff, more
    assert circuit(replace(SMALL, cores=3)).comparisons == 6


def test_cells_add_up() -> None:
    assert Cells(1, 2, 3, 4, 5) + Cells(lut=1) * 3 == Cells(4, 2, 3, 4, 5)
    whole = circuit(SMALL)
    assert whole.total.lut == sum(part.count * part.each.lut for part in whole.parts.values())


def test_families_are_those_that_circuits_are_built_for() -> None:
    assert {*FAMILIES, "generic"} == set(BUILT_FOR)
    for call in (lambda: circuit(SMALL, "gowin"), lambda: datapath(SMALL, "r", "generic")):
        with pytest.raises(UnsupportedError, match="the cost model's family must be one of ecp5, ultrascale, not '"):
            call()


def test_explain_tells_the_cost(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["explain", "--schema-r", "x:int32, y:int32", "--schema-s", "a:int32, b:int32", "--probes", "4",
               "--on", "abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    whole = circuit(replace(BANDS, cores=4, capacity=1024))
    assert ("\ndatapath    where R is stored: 97 LUT4 a comparison, 36 a lane and 72 a region for codes; 496 LUT4 and "
            "1,579 flip-flops in a region, 3 stages, 0 DSPs\n") in printed
    assert (f"\ncost        on ECP5 {whole.total.lut:,} LUT4, {whole.total.ff:,} flip-flops, {whole.total.block_ram} "
            f"block RAMs of 18 Kbit, 0 DSPs; {whole.total.ram_bits:,} bits of memory\n") in printed
    assert "\ncomparing   32 comparisons a cycle (2 streams × 4 cores × lanes 1 × probes 4), " in printed
    assert main([*command, "--family", "ultrascale"]) == 0
    assert "\ncost        on UltraScale+ " in capsys.readouterr().out


def test_other_kinds_of_core_are_not_modelled() -> None:
    config = replace(SMALL, core="hash", index=(0,))
    with pytest.raises(UnsupportedError, match="the cost model knows cores that scan, not cores of kind 'hash'"):
        circuit(config)
    said, *lines = cost_lines(config, "ecp5")
    assert said == "cost        not known of cores of kind hash; what follows is of cores that scan"
    assert lines == list(cost_lines(SMALL, "ecp5"))
