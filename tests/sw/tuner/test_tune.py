# amaranth: UnusedElaboratable=no
"""The tuner: what it proposes fits and meets the wishes, or names what binds; its speeds are those of simulation."""

import importlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import splitjoin
from splitjoin import Query, Schema
from splitjoin.arrival import arrivals
from splitjoin.cli import main
from splitjoin.sim.pysim import PysimDevice
from splitjoin.tuner import BOARDS, DEVICES, Proposal, tune
from splitjoin.tuner.clock import ROUTED, clock
from splitjoin.tuner.speed import Load, cycles_a_tuple, latency_cycles

R = Schema.from_arrow("r", pa.schema([("ts", pa.timestamp("ms")), ("n", pa.int64()), ("x", pa.int32())]))
S = Schema.from_arrow("s", pa.schema([("ts", pa.timestamp("ms")), ("n", pa.int64()), ("a", pa.int32())]))
BAND = "abs(r.x - s.a) <= 10"


def query(window: str = "ROWS 4096", on: str = BAND, **options: str) -> Query:
    return Query.make(R, S, on=on, window=window, **options)


def test_the_fastest_circuit_fits() -> None:
    found = tune(query())
    assert found.met
    assert found.design.fits
    assert max(found.design.shares.values()) > 0.8
    assert found.design.config.window_capacity >= 4096
    assert PysimDevice(**found.options).configuration(query()) == found.design.config  # type: ignore[arg-type]
    for wish in ({"cores": 1}, {"lanes": 1}, {"probes": 1}):
        fixed = tune(query(), **wish)  # type: ignore[arg-type]
        assert fixed.met
        assert fixed.options.items() >= wish.items()
        assert fixed.tuples_per_s <= found.tuples_per_s


def test_a_wished_rate_gets_the_smallest_circuit_that_has_it() -> None:
    small, large = (tune(query(), rate=rate) for rate in (2e5, 4e6))
    assert small.met
    assert large.met
    assert small.tuples_per_s >= 2e5
    assert large.tuples_per_s >= 4e6
    assert small.lut < large.lut


def test_a_wished_latency_is_kept_behind_a_pass() -> None:
    found = tune(query(), latency=5e-6)
    assert found.met
    assert found.latency_s < found.busy_latency_s <= 5e-6


@pytest.mark.parametrize(("wish", "missed", "binding"), [
    ({"rate": 1e8}, "rate", r"clock: whatever is compared, a circuit of \d+ MHz takes no more than [\d.]+ Mtuples/s"),
    ({"latency": 1e-8}, "latency", r"clock: at \d+ MHz no number of cores, lanes and probes that can be built has it"),
    ({"cores": 256}, "cores", r"(LUT4|flip-flops): 256 cores with lanes 1, probes 1 would need [\d,]+, and 71,094 of "
                              r"the device's 83,640 can be used"),
    ({"latency": 4e-7}, "latency", r"(LUT4|flip-flops|block RAMs): \d+ cores with lanes 8, probes 1 would need [\d,]+"),
    ({"lanes": 8, "probes": 16, "cores": 8}, "lanes|cores|probes", r"LUT4: 8 cores with lanes 8, probes 16 would need"),
])
def test_what_cannot_be_had_gets_the_nearest_circuit_and_what_binds(wish: dict[str, float], missed: str,
                                                                     binding: str) -> None:
    found = tune(query("ROWS 2048"), **wish)  # type: ignore[arg-type]
    assert not found.met
    assert found.design.fits
    assert set(found.misses) <= set(missed.split("|"))
    assert found.misses
    assert re.match(binding, found.binding), found.binding
    assert "not to be had; this comes nearest" in str(found)


def test_windows_too_large_for_the_board() -> None:
    with pytest.raises(splitjoin.CapacityError, match=r"no circuit for windows of 1,000,000 tuples fits ulx3s_85f; "
                       r"block RAMs: \d+ cores with lanes \d, probes 1 would need [\d,]+, and 208 of the device's 208 "
                       r"can be used; use a smaller window, a larger board or device='cpu'"):
        tune(query("ROWS 1000000"))


def test_range_windows_hold_what_arrives_in_them() -> None:
    assert tune(query("RANGE 2 SECONDS", time="ts"), rate=1000.0).tuples == 1001
    assert tune(query("RANGE 2 SECONDS ROWS 77", time="ts"), rate=1000.0).tuples == 77
    assert tune(query("RANGE 500", time="n"), window_tuples=300).tuples == 300
    with pytest.raises(splitjoin.WindowError, match=r"arrive in it: give window_tuples \(--window-tuples\), or rate"):
        tune(query("RANGE 2 SECONDS", time="ts"))
    with pytest.raises(splitjoin.WindowError, match=r"give window_tuples \(--window-tuples\)$"):
        tune(query("RANGE 500", time="n"), rate=1000.0)
    with pytest.raises(splitjoin.WindowError, match="window_tuples must be a number of tuples from 1, not 0"):
        tune(query("RANGE 500", time="n"), window_tuples=0)


@pytest.mark.parametrize(("options", "said"), [
    ({"board": "arty"}, "there is no board 'arty'; boards are butterstick, "),
    ({"rate": -1.0}, "rate must be a positive number, not -1.0"),
    ({"latency": float("nan")}, "latency must be a positive number, not nan"),
    ({"matches": -1}, "matches must be a number from 0, not -1"),
    ({"cores": 0}, "cores must be 1 to 1024, not 0"),
    ({"lanes": 3}, "lanes must be 1, 2, 4 or 8, not 3"),
])
def test_wrong_arguments(options: dict[str, float], said: str) -> None:
    with pytest.raises(splitjoin.SplitJoinError, match=re.escape(said)):
        tune(query(), **options)  # type: ignore[arg-type]


def test_the_kind_of_core_and_why() -> None:
    assert tune(query()).kind_reason == ("index cores, here of kind bucket by T0, are not in the tuner's "
                                         "models")
    assert "hash" in tune(query(on="r.x = s.a")).kind_reason
    assert tune(query(on="r.x <> s.a")).kind == "scan"


def test_order_inner_takes_no_batches() -> None:
    assert tune(query(order="inner(4)")).tuples_per_s < tune(query()).tuples_per_s
    assert tune(query(order="inner(4)")).design.config.probes == 1


def test_results_bound_the_rate() -> None:
    assert tune(query("ROWS 256"), matches=9).tuples_per_s <= tune(query("ROWS 256")).design.clock.mhz * 1e5


@pytest.mark.parametrize(("cores", "lanes", "probes", "window"), [(1, 1, 1, 32), (2, 1, 4, 64), (1, 2, 2, 32),
                                                                  (2, 2, 8, 16)])
def test_cycles_are_those_of_simulation(cores: int, lanes: int, probes: int, window: int) -> None:
    """Tuples of both streams in turn, input never lacking, from full windows on."""
    count = 64
    r, s = (pa.table({name: pa.array(range(k, 10**6, 10**6 // (window + count))[:window + count], pa.int32())})
            for k, name in ((0, "x"), (5000, "a")))
    asked = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="r.x = s.a", window=f"ROWS {window}")
    device = PysimDevice(core="scan", cores=cores, capacity=window // cores, lanes=lanes, probes=probes)
    with device.open(asked) as session:
        session.push(arrivals(asked, r.slice(0, window), s.slice(0, window)))
        before = session.counters()["cycles"]
        session.push(arrivals(asked, r.slice(window), s.slice(window)))
        cycles = session.counters()["cycles"] - before
        config = session.config  # type: ignore[attr-defined]
    assert cycles / (2 * count) == pytest.approx(cycles_a_tuple(config, Load(window)), rel=0.2)


def test_latency_is_that_of_simulation() -> None:
    window, config = 32, {"cores": 2, "capacity": 16, "lanes": 2, "probes": 2}
    r, s = (pa.table({name: pa.array([k] * (window + 8), pa.int32())}) for k, name in ((0, "x"), (1, "a")))
    asked = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="r.x = s.a", window=f"ROWS {window}")
    device = PysimDevice(core="scan", stall_in=0.99, **config)
    with device.open(asked) as session:
        session.push(arrivals(asked, r, s))
        session.flush()
        found = session.latencies()
        built = session.config  # type: ignore[attr-defined]
    assert found is not None
    measured = sorted(found[-12:].tolist())[6]
    assert measured == pytest.approx(latency_cycles(built, Load(window)), abs=4)


def test_boards_have_the_devices_of_amaranth_boards() -> None:
    for name, part in BOARDS.items():
        module, _, size = name.rpartition("_")
        classes = []
        for file in {name, module, *((f"{module}_r0_2",) if module == "orangecrab" else ())}:
            try:
                found = importlib.import_module(f"amaranth_boards.{file}")
            except ModuleNotFoundError:
                continue
            classes += [getattr(c, "device", None) for c in vars(found).values() if isinstance(c, type)]
        assert part in classes, (name, size)
        assert part in DEVICES


def test_clocks_are_committed_figures() -> None:
    rows = [row for path in (Path(__file__).parents[3] / "bench" / "results").glob("*.json")
            for row in json.loads(path.read_text())["rows"] if row["metric"] == "ecp5_mhz"]
    committed = {(r["config"]["part"], r["config"].get("cores", 1), r["config"]["lanes"], r["config"]["probes"],
                  round(r["value"], 1)) for r in rows}
    assert {(c.part, c.cores, c.lanes, c.probes, c.mhz) for c in ROUTED} <= committed
    config = tune(query()).design.config
    for routed in ROUTED:
        like = clock(replace(config, cores=routed.cores, lanes=routed.lanes, probes=routed.probes))
        assert like.mhz == routed.mhz
        assert like.source.startswith(f"routed figure of a {routed.part}")


COMMAND = ["tune", "--schema-r", "x:int32", "--schema-s", "a:int32", "--on", BAND, "--window", "ROWS 512"]


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--board", "ulx3s_25f", "--rate", "100k", "--latency", "0.1ms", "--matches", "0.5"]) == 0
    printed = capsys.readouterr().out
    r, s = (Schema.from_arrow(side, pa.schema([pa.field(name, pa.int32(), nullable=False)])) for side, name in
            ("rx", "sa"))
    same = tune(Query.make(r, s, on=BAND, window="ROWS 512"), board="ulx3s_25f", rate=1e5, latency=1e-4, matches=0.5)
    assert isinstance(same, Proposal)
    assert printed == f"{same}\n"
    assert "100 ktuples/s, latency 100 µs, met" in printed


@pytest.mark.parametrize(("options", "said"), [
    (["--rate", "2X"], "--rate must be a number with a unit of k, M, G or none, such as 500k or 2M, not '2X'"),
    (["--latency", "soon"], "--latency must be a number with a unit of s, ms, us, µs, ns or none, such as 5us"),
    (["--board", "de10"], "there is no board 'de10'"),
])
def test_wrong_options(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--board", "ulx3s_25f", *options]) == 1
    assert said in capsys.readouterr().err
