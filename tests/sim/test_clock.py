"""Pipeline registers for a clock change the latency, not the results: against the golden model, on both simulators."""

import random

import pyarrow as pa
import pytest

from splitjoin import UnsupportedError
from splitjoin.circuit.schedule import PipelineRegisters
from splitjoin.cli import main
from splitjoin.engines.golden import GoldenDevice
from splitjoin.joins.explain import explain
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import assert_conforms, run
from ..support.sampling import at_length

SQUARES = "(r.x - s.a) * (r.x - s.a) + (r.y - s.b) * (r.y - s.b)"
BOXES = " OR ".join(f"(abs(r.x - s.a) <= {n} AND r.y >= s.b - {n} AND r.n <> s.m)" for n in (1, 3, 4))
#: Condition, clock, and stages that it takes.
ASKED = [
    ("abs(r.x - s.a) <= 3 AND abs(r.y - s.b) <= 4", 200, 3),
    ("abs(r.x - s.a) <= 3 AND abs(r.y - s.b) <= 4", 280, 5),
    ("abs(r.x - s.a) <= 3 AND abs(r.y - s.b) <= 4", 290, 7),
    (BOXES, 250, 4),
    (BOXES, 290, 9),
    (f"{SQUARES} <= 25", 130, 6),
    (f"{SQUARES} <= 3000000000 + r.n", 140, 7),
    (f"{SQUARES} > 40000000000000000 OR abs(r.n - s.m) <= 2", 140, 7),
    ("abs(r.x - s.a) + abs(r.y - s.b) + abs(r.x - s.b) + abs(r.y + s.a) <= 12 AND r.n <= s.m", 150, 7),
]


def table(side, rng):
    names = "xyn" if side == "r" else "abm"
    low, high = -2**31, 2**31 - 1
    return pa.table([pa.array([rng.choice([low, low + 1, 0, high - 1, high]) if rng.random() < 0.15
                               else None if name in "nm" and rng.random() < 0.1 else rng.randint(-6, 6)
                               for _ in range(40)], pa.int32()) for name in names],
                    schema=pa.schema([pa.field(name, pa.int32(), name in "nm") for name in names]))


#: Cores, capacity, lanes and probes: the datapath of one comparison is the same in all, so most run in a small circuit.
SMALL, SEVERAL = {"cores": 1, "capacity": 16, "probes": 2}, {"cores": 2, "capacity": 8, "lanes": 2, "probes": 3}


@pytest.mark.parametrize(("make", "shape", "on", "clock", "stages"), [
    *((PysimDevice, SMALL, *asked) if n in (4, 8) else at_length(PysimDevice, SMALL, *asked)
      for n, asked in enumerate(ASKED)), (SimDevice, SEVERAL, *ASKED[2]),
    *(at_length(make, SEVERAL, *asked) for asked in ASKED for make in (PysimDevice, SimDevice)
      if asked is not ASKED[2])])
def test_the_answer_is_the_same_at_any_clock(make, shape, on, clock, stages):
    rng = random.Random(f"{on} {clock}")
    r, s = table("r", rng), table("s", rng)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window="ROWS 14")
    golden = run(GoldenDevice(), query, r, s)
    assert len(golden) > 84
    engine = make(**shape, clock=clock, stall_in=0.3, stall_out=0.3, seed=4)
    assert engine.configuration(query).stages == stages
    assert_conforms(run(engine, query, r, s, [5, 31]), golden, "total")


@pytest.mark.parametrize("core", [at_length("hash"), "bucket"])
def test_cores_with_an_index(core):
    rng = random.Random(core)
    r, s = table("r", rng), table("s", rng)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), window="ROWS 14",
                       on="r.x = s.a AND (r.y <= s.b OR r.n <> s.m)")
    engine = PysimDevice(cores=1, capacity=16, core=core, clock=285, stall_out=0.3, seed=2)
    assert engine.configuration(query).stages > 3
    assert_conforms(run(engine, query, r, s, [7]), run(GoldenDevice(), query, r, s), "total")


def bands(**options):
    r, s = (Schema.from_arrow(side, pa.schema([pa.field(n, pa.int32(), False) for n in names]))
            for side, names in (("r", "xyn"), ("s", "abm")))
    return Query.make(r, s, on=options.pop("on", ASKED[0][0]), window="ROWS 64"), PysimDevice(**options)


def test_the_driver_knows_of_registers():
    """Two clocks with the same registers are one circuit; with other registers it is another, to the driver too."""
    found = {}
    for clock in (None, 100, 200, 290):
        query, device = bands(clock=clock)
        found[clock] = device.configuration(query)
    assert found[None] == found[100] and found[None].widths == (6, 8)
    # A subtraction takes longer than 5 ns.
    assert found[200].registers == PipelineRegisters() and not found[200].widths and found[290].registers.chain < 32
    assert len({config.abi_hash for config in found.values()}) == 3


def test_a_clock_beyond_the_datapath_is_refused_with_the_nearest():
    for on, clock, slowest, nearest in ((ASKED[0][0], 400, "a comparison of 5 bits takes 3.35 ns", 298),
                                        (f"{SQUARES} <= 25", 150, "a multiplication takes 6.90 ns", 144)):
        why = f"{slowest}; the nearest clock that it can have is {nearest} MHz"
        query, device = bands(on=on, clock=clock)
        with pytest.raises(UnsupportedError, match=why):
            device.open(query)
        assert why in explain(query, clock=clock)
        device = PysimDevice(clock=nearest)
        assert device.configuration(query).registers != PipelineRegisters()


@pytest.mark.parametrize("clock", [0, -3, float("nan"), float("inf"), True, "fast"])
def test_device_wrong_clock(clock):
    with pytest.raises(UnsupportedError, match="clock must be a number of MHz above 0, not "):
        PysimDevice(clock=clock)


def test_explain_says_the_stages_and_the_clock(capsys):
    command = ["explain", "--schema-r", "x:int32, y:int32", "--schema-s", "a:int32, b:int32", "--on", ASKED[0][0]]
    assert main([*command, "--clock", "280", "--passes"]) == 0
    printed = capsys.readouterr().out
    assert "\nclock       for 280 MHz, registers after 15 bits of a comparison\n" in printed
    assert "\nstages      5 in each datapath, for 280 MHz on ECP5\n" in printed
    assert "\npass        clock: the datapath gets registers for a clock\n" in printed
    assert main(command) == 0
    assert "MHz" not in capsys.readouterr().out
