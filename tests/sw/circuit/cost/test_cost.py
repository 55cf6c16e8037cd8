# amaranth: UnusedElaboratable=no
"""The cost model against what synthesis reports: on the committed results, and on a few small circuits mapped anew."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from bench.place_and_route import ecp5, ultrascale
from bench.place_and_route.design import part_design, whole_design

from splitjoin import UnsupportedError
from splitjoin.circuit.cost import FAMILIES, Resources, circuit_cost, datapath_cost
from splitjoin.circuit.cost.region import region_cost
from splitjoin.circuit.cost.resources import combine
from splitjoin.circuit.schedule import PipelineRegisters
from splitjoin.circuit.wire import Axis, Configuration, Sum
from splitjoin.cli import main
from splitjoin_hw.core.region import Region
from splitjoin_hw.hls.matcher import Matcher
from splitjoin_hw.tech.target import FAMILIES as BUILT_FOR

from ....support.sampling import at_length

RESULTS = Path(__file__).parents[4] / "bench" / "results"
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
        assert c["stages"] >= 3


def test_committed_predictions_of_cores_and_circuits_are_near_too() -> None:
    rows = json.loads((RESULTS / "costs.json").read_text())["rows"]
    assert {row["config"]["part"] for row in rows} == {"core", "whole circuit"}
    assert {row["config"]["family"] for row in rows} == set(FAMILIES)
    assert {row["config"].get("core", "scan") for row in rows} == {"scan", "hash", "bucket"}
    for row in rows:
        assert row["config"]["predicted"] == pytest.approx(row["value"], rel=0.2), row


#: LUT4 and flip-flops of whole circuits without and with ``fault_timeout``, by cores, as Yosys mapped them for ECP5.
ISOLATING = {2: ((7858, 8302), (8306, 8602)), 4: ((14870, 14997), (16356, 15482))}


@pytest.mark.parametrize("cores", ISOLATING)
def test_what_watchdogs_cost(cores: int) -> None:
    config = Configuration(keys_r=(32,), keys_s=(32,), tests=((0, 0),), tree=0, cores=cores, capacity=64, time_bits=32)
    without, isolating = (circuit_cost(replace(config, fault_timeout=n)).total for n in (0, 20_000))
    (lut, ff), (more_lut, more_ff) = ISOLATING[cores]
    assert isolating.lut == pytest.approx(more_lut, rel=0.05)
    assert isolating.lut - without.lut == pytest.approx(more_lut - lut, rel=0.2)
    assert isolating.ff - without.ff == pytest.approx(more_ff - ff, rel=0.05)


def test_two_bands_of_32_bits() -> None:
    rows = [row for row in json.loads((RESULTS / "predicates.json").read_text())["rows"]
            if row["metric"] == "band_lut4_per_comparison"]
    (alone,) = (row["value"] for row in rows if row["config"]["codes"] == "not counted")
    assert alone <= 130
    whole = {(row["config"]["lanes"], row["config"]["probes"]): row["value"] for row in rows
             if row["config"]["codes"] == "included"}
    assert whole[1, 4] <= 130
    for (lanes, probes), value in whole.items():
        predicted = datapath_cost(replace(BANDS, lanes=lanes, probes=probes), "s").lut_per_comparison
        assert predicted == pytest.approx(value, rel=0.2)


@pytest.mark.parametrize(("config", "side"), [(BANDS, "s"), at_length(MIXED, "s"), at_length(MIXED, "r")])
def test_a_datapath_mapped_anew(config: Configuration, side: str) -> None:
    found = ecp5.utilization(part_design(Matcher(config, side), "ecp5"))["part"]
    predicted = datapath_cost(config, side)
    assert predicted.total.lut == pytest.approx(found.lut4, rel=0.1)
    assert predicted.total.ff == found.ff
    assert (predicted.total.block_ram, predicted.total.dsp) == (found.block_ram, 0)
    assert predicted.stages == config.stages


SUMS = Configuration(
    keys_r=(32, 16, 9), keys_s=(32, 16, 24), tests=((2, 2),), tree=("or", ("and", 0, 1), 2), lanes=2, probes=2,
    sums=(Sum((Axis("square", 0, 0, 33), Axis("square", 1, 1, 17)), 2**31), Sum((
        Axis("differing", 0, 0, 32), Axis("absolute", 1, 1, 17, 1)), 900, True, (2, None))))


@pytest.mark.parametrize("family", ["ecp5", at_length("ultrascale")])
def test_a_datapath_with_sums(family: str) -> None:
    design = part_design(Matcher(SUMS, "r"), family)
    if family == "ecp5":
        mapped = ecp5.utilization(design)["part"]
        lut, ff, dsp = mapped.lut4, mapped.ff, mapped.dsp
    else:
        cells = ultrascale.utilization(design)
        lut, ff, dsp = cells.lut, cells.ff, cells.dsp
    predicted = datapath_cost(SUMS, "r", family)
    assert predicted.total.lut == pytest.approx(lut, rel=0.2)
    assert predicted.total.ff == pytest.approx(ff, rel=0.05)
    assert predicted.total.dsp == dsp == 4 * 2
    assert predicted.stages == SUMS.stages == 5


@pytest.mark.parametrize(("config", "side", "registers"), [
    at_length(BANDS, "s", PipelineRegisters(chain=12)), (MIXED, "r", PipelineRegisters(chain=5, levels=1)),
    at_length(SUMS, "s", PipelineRegisters(chain=8, levels=1, sums=True))])
def test_registers_for_a_clock(config: Configuration, side: str, registers: PipelineRegisters) -> None:
    config = replace(config, registers=registers)
    found = ecp5.utilization(part_design(Matcher(config, side), "ecp5"))["part"]
    predicted = datapath_cost(config, side)
    assert predicted.total.lut == pytest.approx(found.lut4, rel=0.1)
    assert predicted.total.ff == pytest.approx(found.ff, rel=0.03)
    assert predicted.total.dsp == found.dsp
    assert predicted.stages == config.stages > replace(config, registers=PipelineRegisters()).stages


WIDTHS = Configuration(keys_r=(32, 32, 16), keys_s=(32, 32, 16), tests=((0, 0), (1, 1), (2, 2), (2, 2)), probes=3,
                       lanes=2, tree=("and", ("or", 0, 3), 1, 2), widths=(20, 0, 30000, None))


@pytest.mark.parametrize("registers", [at_length(PipelineRegisters()), PipelineRegisters(digits=True)])
def test_tests_of_constant_width(registers: PipelineRegisters) -> None:
    config = replace(WIDTHS, registers=registers)
    found = ecp5.utilization(part_design(Matcher(config, "s"), "ecp5"))["part"]
    predicted = datapath_cost(config, "s")
    assert predicted.total.lut == pytest.approx(found.lut4, rel=0.15)
    assert predicted.total.ff == pytest.approx(found.ff, rel=0.03)
    assert predicted.total.lut < datapath_cost(replace(config, widths=()), "s").total.lut
    assert predicted.total.ff < datapath_cost(replace(config, widths=()), "s").total.ff


@pytest.mark.parametrize("registers", [at_length(PipelineRegisters()), PipelineRegisters(sums=True)])
def test_a_small_limit_has_many_bits_to_be_alike(registers: PipelineRegisters) -> None:
    axes = Axis("square", 0, 0, 33), Axis("absolute", 1, 1, 17)
    near = Configuration(keys_r=(32, 16), keys_s=(32, 16), tests=(), tree=0, sums=(Sum(axes, 100),),
                         registers=registers)
    found = ecp5.utilization(part_design(Matcher(near, "s"), "ecp5"))["part"]
    predicted = datapath_cost(near, "s").total
    assert predicted.lut == pytest.approx(found.lut4, rel=0.1)
    assert predicted.ff == found.ff


def test_an_equality_has_inverters_for_what_a_probe_brings() -> None:
    equal = Configuration(keys_r=(32,), keys_s=(32,), tests=((0, 0),), tree=0, widths=(0,))
    found = ecp5.utilization(part_design(Matcher(equal, "s"), "ecp5"))["part"]
    assert datapath_cost(equal, "s").total.lut == found.lut4


@pytest.mark.parametrize(("cores", "architecture"), [
    at_length(1, "splitjoin"), at_length(2, "splitjoin"), at_length(1, "kang"), at_length(3, "chain"),
    at_length(2, "handshake"),
    at_length(2, "low-latency-handshake"), at_length(2, "celljoin")])
def test_a_whole_circuit_mapped_anew(cores: int, architecture: str) -> None:
    config = replace(SMALL, cores=cores, architecture=architecture)
    found = ecp5.utilization(whole_design(config, "ecp5"))["part"]
    predicted = circuit_cost(config).total
    assert predicted.lut == pytest.approx(found.lut4, rel=0.2)
    assert predicted.ff == pytest.approx(found.ff, rel=0.2)
    assert predicted.block_ram == found.block_ram


@pytest.mark.parametrize(("tree", "luts"), [
    (0, 1), (("and", 0, 1), 1), (("and", 0, 1, 2), 2), (("and", 0, ("and", 1, 2)), 2), (("or", 0, 1, 2, 3, 4), 3),
    (("or", ("and", 0, 1), ("and", 2, 3)), 3)])
def test_luts_of_a_tree(tree: object, luts: int) -> None:
    assert combine("ecp5", tree, [2] * 5) == luts


def test_more_of_everything_costs_more() -> None:
    small = circuit_cost(SMALL)
    for more in ({"cores": 3}, {"lanes": 2}, {"probes": 2}, {"capacity": 1024}, {"time_bits": 64},
                 {"keys_r": (16,)}, {"region_counters": True}):
        large = circuit_cost(replace(SMALL, **more))  # type: ignore[arg-type]  # fields of any type
        assert large.total.lut > small.total.lut, more
        assert large.total.ff > small.total.ff, more
    assert circuit_cost(replace(SMALL, cores=3)).comparisons == 6


def test_resources_add_up() -> None:
    assert Resources(1, 2, 3, 4, 5) + Resources(lut=1) * 3 == Resources(4, 2, 3, 4, 5)
    whole = circuit_cost(SMALL)
    assert whole.total.lut == sum(part.count * part.each.lut for part in whole.parts.values())


def test_families_are_those_that_circuits_are_built_for() -> None:
    assert {*FAMILIES, "generic"} == set(BUILT_FOR)
    for call in (lambda: circuit_cost(SMALL, "gowin"), lambda: datapath_cost(SMALL, "r", "generic")):
        with pytest.raises(UnsupportedError, match="the cost model's family must be one of ecp5, ultrascale, not '"):
            call()


def test_explain_tells_the_cost(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["explain", "--schema-r", "x:int32, y:int32", "--schema-s", "a:int32, b:int32", "--probes", "4",
               "--on", "abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    whole = circuit_cost(replace(BANDS, cores=4, capacity=1024, widths=(20, 20)))
    assert ("\ndatapath    where R is stored: 95 LUT4 a comparison; 380 LUT4 and 743 flip-flops in a region, 3 stages, "
            "0 DSPs\n") in printed
    assert (f"\ncost        on ECP5 {whole.total.lut:,} LUT4, {whole.total.ff:,} flip-flops, {whole.total.block_ram} "
            f"block RAMs of 18 Kbit, 0 DSPs; {whole.total.ram_bits:,} bits of memory\n") in printed
    assert "\ncomparing   32 comparisons a cycle (2 streams × 4 cores × lanes 1 × probes 4), " in printed
    assert main([*command, "--family", "ultrascale"]) == 0
    assert "\ncost        on UltraScale+ " in capsys.readouterr().out


HASH = replace(SMALL, core="hash", index=(0,), keys_r=(16,), keys_s=(16,), capacity=256)
ORDERED = replace(HASH, core="ordered")
BUCKETS = Configuration(keys_r=(12, 9), keys_s=(12, 9), tests=((0, 0), (1, 1)), tree=("and", 0, 1), cores=3,
                        capacity=1024, core="bucket", index=(1, 0))


@pytest.mark.parametrize(("config", "side"), [at_length(HASH, "s"), at_length(BUCKETS, "r"), (ORDERED, "r")])
def test_a_region_with_an_index_mapped_anew(config: Configuration, side: str) -> None:
    found = ecp5.utilization(part_design(Region(config, side), "ecp5"))["part"]
    parts = region_cost(config, side, "ecp5")
    prober = "range prober" if config.core == "ordered" else "prober"
    assert set(parts) == {"datapath", "storage", "index", prober, "emitter"}
    predicted = sum(parts.values(), Resources())
    assert predicted.lut == pytest.approx(found.lut4, rel=0.2)
    assert predicted.ff == pytest.approx(found.ff, rel=0.1)
    assert predicted.block_ram == found.block_ram


def test_wider_indexes_cost_more() -> None:
    for config, more in ((HASH, {"keys_s": (32,)}), (HASH, {"capacity": 1024}), (BUCKETS, {"capacity": 4096}),
                         (replace(BUCKETS, index=(0,)), {"index": (0, 1)})):
        small, large = (sum(region_cost(c, "s", "ecp5").values(), Resources())
                        for c in (config, replace(config, **more)))  # type: ignore[arg-type]  # fields of any type
        assert large.lut > small.lut, more
        assert large.ff > small.ff, more


def test_explain_tells_what_an_index_costs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--schema-r", "x:int32", "--schema-s", "a:int32", "--on", "r.x = s.a"]) == 0
    printed = capsys.readouterr().out
    whole = circuit_cost(Configuration(keys_r=(32,), keys_s=(32,), tests=((0, 0),), tree=0, core="hash", index=(0,)))
    assert f"\ncost        on ECP5 {whole.total.lut:,} LUT4, {whole.total.ff:,} flip-flops, " in printed
    assert (f"\ncomparing   a candidate in four cycles in each of 8 regions, and a tuple a cycle with a probe that "
            f"reaches too far; {whole.total.lut / 4:,.0f} LUT4 a core, everything counted\n") in printed
