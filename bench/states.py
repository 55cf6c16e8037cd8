"""Aggregates that circuits fold: cycles a probe and bytes that leave, beside the circuit whose pairs leave; and cells
and clocks of the part that folds, beside those of the model.

R's tuples probe full windows of S; a share of the pairs from none to all of them meets the condition. The circuit that
ships pairs and finds none is the scan without aggregates, which folding must keep up with. Then tuples of both streams
arrive in turn; and so they do where partners come before and after a base tuple, whose state leaves whole, and for semi
and as-of joins, of which a circuit gives the pairs that decide. At the end the part that keeps states beside stored
tuples is mapped, beside the model.

Run: python -m bench.states
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from tests.support.user_aggregates import Extent, Variance

import splitjoin
from bench.place_and_route import ecp5
from bench.place_and_route.design import part_design
from bench.record import Recorder, arguments
from splitjoin.base.errors import UnsupportedError
from splitjoin.circuit.cost.folding import folding_emitter, stored_states
from splitjoin.circuit.folding import fold_choice
from splitjoin.circuit.geometry import outcome_latency
from splitjoin.circuit.lowering import configure, plan_for
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.wire import Configuration, item_record
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.device import PAIR
from splitjoin_hw.core.folder import FoldingEmitter
from splitjoin_hw.core.stored_states import StoredStates
from splitjoin_sim.device import SimDevice

#: Shares of pairs that meet the condition.
SHARES = (0.0, 0.01, 0.1, 0.3, 1.0)
#: S's tuples have values from 0 to below this.
_VALUES = 1000
AGGREGATES = {"n": "count(*)", "total": "sum(s.price)", "high": "max(s.price)"}
#: Aggregates whose circuits are placed and routed, and the lanes and probes of the regions.
ROUTED: dict[str, dict[str, Any]] = {
    "count": {"n": "count(*)"}, "sum": {"t": "sum(s.price)"}, "max": {"high": "max(s.price)"},
    "avg, with NULL": {"mean": "avg(s.other)"}, "count, sum and max": AGGREGATES, "Extent": {"e": Extent("s.price")},
    "Variance": {"v": Variance("s.price")},
}
REGIONS = ((1, 1), (4, 4))
#: Bytes of an item on the link.
_BYTES = -(-item_record().width // 8)


@dataclass(frozen=True)
class Shape:
    """A circuit, full of ``window`` tuples of S, and the number of probes that are measured."""

    cores: int
    lanes: int
    probes: int
    window: int
    count: int


def streams(shape: Shape, share: float) -> tuple[splitjoin.Query, Arrivals, Arrivals]:
    """The query, the arrivals that fill the window of S, and probes of R of which ``share`` of the pairs match."""
    rng = np.random.default_rng(1)
    n, count = shape.window, shape.count
    s = pa.table({"ts": np.arange(n), "a": pa.array(np.arange(n) * 7919 % _VALUES, pa.int16()),
                  "price": pa.array(rng.integers(0, 2**15, n), pa.int16())})
    r = pa.table({"ts": n + np.arange(count), "t": pa.array(np.full(count, round(share * _VALUES)), pa.int16())})
    query = splitjoin.query(r.schema, s.schema, on="s.a < r.t", window={"r": "RANGE 0", "s": f"ROWS {n}"}, time="ts",
                            aggregate=AGGREGATES, how="left")
    fill = Arrivals(np.ones(n, np.uint8), s["ts"].to_numpy(), r.slice(0, 0), s)
    return query, fill, Arrivals(np.zeros(count, np.uint8), r["ts"].to_numpy(), r, s.slice(0, 0))


def alternating(shape: Shape, probes: Arrivals) -> Arrivals:
    """``probes``, with a tuple of S behind each."""
    count, n = shape.count, shape.window
    s = pa.table({"ts": n + np.arange(count), "a": pa.array((n + np.arange(count)) * 7919 % _VALUES, pa.int16()),
                  "price": pa.array(np.full(count, 7), pa.int16())})
    return Arrivals(np.tile(np.array([0, 1], np.uint8), count), np.repeat(n + np.arange(count), 2), probes.r, s)


def measure(shape: Shape, share: float, fold: str, *, both: bool = False) -> tuple[float, float, int]:
    """Cycles a tuple, bytes that leave for each tuple, and pairs found. ``both``: of both streams in turn."""
    device = SimDevice(cores=shape.cores, capacity=shape.window // shape.cores, lanes=shape.lanes, probes=shape.probes,
                       core="scan", fold=fold)
    query, fill, probes = streams(shape, share)
    if both:
        probes = alternating(shape, probes)
    with device.open(query if fold == "always" else query.pairs) as session:
        session.push(fill)
        # Cycles and items from one barrier to another, so that those of filling do not count.
        session.settle()
        start = session.counters()
        session.push(probes)
        items = session.settle()
        end = session.counters()
        folded = len(session.states()) if fold == "always" else 0
        beats = session.config.beats if fold == "always" else 0
    records = len(items) + folded * beats
    found = end["matches"] - start["matches"]
    if fold != "always":
        assert found == int(np.count_nonzero(items["kind"] == PAIR))
    return (end["cycles"] - start["cycles"]) / len(probes), records * _BYTES / len(probes), found


def compare(out: Recorder, shape: Shape, shares: tuple[float, ...]) -> None:
    """Both circuits at every share of ``shares``."""
    config = {"cores": shape.cores, "lanes": shape.lanes, "probes": shape.probes, "window": shape.window}
    scan, _, none = measure(shape, 0.0, "never")
    assert not none
    out.add("scan_cycles", scan, "cycles a probe", config, "simulation: no pair matches, nothing is folded")
    for share in shares:
        counted = set()
        for fold, name in (("always", "states"), ("never", "pairs")):
            cycles, nbytes, found = measure(shape, share, fold)
            counted.add(found)
            this = {**config, "share": share, "leaves": name}
            out.add("fold_cycles", cycles, "cycles a probe", this, "simulation: R probes a full window of S")
            out.add("fold_bytes", nbytes, "bytes a probe", this, f"items that leave, of {_BYTES} bytes")
            if fold == "always":
                out.add("fold_against_scan", cycles / scan, "times", this, "cycles a probe over those of the scan")
        assert len(counted) == 1, counted
    scan, _, none = measure(shape, 0.0, "never", both=True)
    assert not none
    for share in shares:
        cycles, _, _ = measure(shape, share, "always", both=True)
        this = {**config, "share": share, "leaves": "states"}
        out.add("alternating_cycles", cycles, "cycles a tuple", this, "simulation: R, S in turn, full windows")
        out.add("alternating_against_scan", cycles / scan, "times", this, "cycles a tuple over those of the scan")


def decide(out: Recorder, how: str, share: float, shape: Shape) -> None:
    """A join of kind ``how`` over two streams in turn, with the pairs that decide, and with all of them."""
    rng, n = np.random.default_rng(1), shape.count
    r, s = (pa.table({"ts": np.arange(n), name: pa.array(rng.integers(0, _VALUES, n), pa.int16())}) for name in "xa")
    query = splitjoin.query(r.schema, s.schema, on=f"r.x <= s.a AND s.a < r.x + {round(share * _VALUES)}", time="ts",
                            window=f"ROWS {shape.window}", how=how)
    for fold, leaves in (("always", "deciding pairs"), ("never", "pairs")):
        device = SimDevice(cores=shape.cores, capacity=shape.window // shape.cores, lanes=shape.lanes,
                           probes=shape.probes, core="scan", fold=fold)
        with device.open_deciding(query) as session:
            session.push(arrivals(query, r, s))
            items, cycles = session.flush(), session.counters()["cycles"]
        config = {"kind": how, "share": share, "leaves": leaves, "cores": shape.cores, "lanes": shape.lanes,
                  "probes": shape.probes, "window": shape.window}
        out.add("kind_cycles", cycles / (2 * n), "cycles a tuple", config, "simulation: R, S in turn")
        out.add("kind_pairs", int(np.count_nonzero(items["kind"] == PAIR)) / n, "pairs a tuple of R", config,
                "pairs that leave the circuit, those in states among them")


def whole(out: Recorder, share: float, shape: Shape) -> None:
    """Windows of both streams full, in turn, so that half of the partners come after their base tuple; one state leaves
    for each base tuple, or all pairs. Neither filling the windows nor the end of the input counts as cycles.
    """
    rng, n = np.random.default_rng(1), shape.count
    r = pa.table({"ts": np.arange(n), "t": pa.array(np.full(n, round(share * _VALUES)), pa.int16())})
    s = pa.table({"ts": np.arange(n), "a": pa.array(rng.integers(0, _VALUES, n), pa.int16()),
                  "price": pa.array(rng.integers(0, 2**15, n), pa.int16())})
    query = splitjoin.query(r.schema, s.schema, on="s.a < r.t", window=f"ROWS {shape.window}", time="ts",
                            aggregate=AGGREGATES, how="left")
    fill, rest = arrivals(query, r, s).split(2 * shape.window)
    assert rest is not None
    rates = {}
    for leaves in ("states", "pairs"):
        device = SimDevice(cores=shape.cores, capacity=shape.window // shape.cores, lanes=shape.lanes,
                           probes=shape.probes, core="scan")
        with device.open(query if leaves == "states" else query.pairs) as session:
            session.push(fill)
            records = len(session.settle())
            start = session.counters()["cycles"]
            session.push(rest)
            records += len(session.settle())
            rates[leaves] = (session.counters()["cycles"] - start) / len(rest)
            records += len(session.flush())
            if leaves == "states":
                assert session.config.whole_states
                assert not records
                records = len(session.states()) * (session.config.beats + 1)
        config = {"share": share, "leaves": leaves, "cores": shape.cores, "lanes": shape.lanes, "probes": shape.probes,
                  "window": shape.window}
        out.add("whole_cycles", rates[leaves], "cycles a tuple", config, "simulation: R, S in turn, full windows")
        out.add("whole_bytes", records * _BYTES / (2 * n), "bytes a tuple", config, f"items of {_BYTES} bytes")
    if not share:
        config = {"cores": shape.cores, "lanes": shape.lanes, "probes": shape.probes, "window": shape.window}
        out.add("whole_against_scan", rates["states"] / rates["pairs"], "times", config,
                "cycles a tuple over those of the circuit whose pairs leave, where there are none")


def configuration(name: str, lanes: int, probes: int, *, whole: bool) -> Configuration:
    """The circuit of a core of 1,024 tuples of each stream that folds the aggregates ``name`` of `ROUTED`."""
    s = pa.schema([pa.field("a", pa.int16(), False), pa.field("price", pa.int16(), False), ("other", pa.int32())])
    query = splitjoin.query(pa.schema({"x": pa.int16()}), s, on="abs(r.x - s.a) <= 4", window="ROWS 4096",
                            aggregate=ROUTED[name])
    parameters = CircuitParameters(cores=4, capacity=1024, lanes=lanes, probes=probes, core="scan")
    plan = plan_for(query.pairs, parameters)
    return configure(query.pairs, plan, parameters, fold_choice(query, plan, parameters, whole=whole))


def route(out: Recorder, name: str, lanes: int, probes: int) -> None:
    """The part of a region that folds, placed and routed alone."""
    config = configuration(name, lanes, probes, whole=False)
    design = part_design(FoldingEmitter(config, latency=outcome_latency(config)), "ecp5")
    model, cells = folding_emitter(config, "ecp5"), ecp5.utilization(design)["part"]
    out.add("states_mhz", ecp5.route(design).mhz, "MHz", {
        "aggregates": name, "lanes": lanes, "probes": probes, "state_bits": config.state.width, "lut4": cells.lut4,
        "lut4_model": model.lut, "ff": cells.ff, "ff_model": model.ff, "dsp": cells.dsp, "dsp_model": model.dsp},
        "nextpnr-ecp5, timing weight 25, default router, seed 1, LFE5U-85F speed grade 6, no clock asked for")


def stored(out: Recorder, name: str, lanes: int, probes: int) -> None:
    """The part of a region that keeps a state beside each stored tuple, mapped alone."""
    try:
        config = configuration(name, lanes, probes, whole=True)
    except UnsupportedError:  # its states do not leave whole with as many partners as ROWS allows
        return
    cells = ecp5.utilization(part_design(StoredStates(config, latency=outcome_latency(config)), "ecp5"))["part"]
    model = stored_states(config, "ecp5")
    out.add("stored_states_ff", cells.ff, "flip-flops", {
        "aggregates": name, "lanes": lanes, "probes": probes, "state_bits": config.state.width, "ff_model": model.ff,
        "lut4": cells.lut4, "lut4_model": model.lut, "block_ram": cells.block_ram,
        "block_ram_model": model.block_ram}, "mapped by Yosys for ECP5; _model: predicted by the cost model")


def main() -> None:
    """Measure all, and write the results."""
    quick = arguments("aggregates that circuits fold").quick
    out = Recorder("states", quick=quick)
    shapes = [Shape(2, 2, 4, 1024, 128)] if quick else [Shape(4, 4, 4, 4096, 512), Shape(4, 8, 16, 8192, 1024),
                                                        Shape(8, 1, 1, 4096, 256), Shape(4, 4, 4, 512, 512)]
    for shape in shapes:
        compare(out, shape, (0.01, 1.0) if quick else SHARES)
    for how in ("semi", "asof"):
        for share in (0.01,) if quick else (0.0, 0.01, 0.3):
            decide(out, how, share, Shape(2, 2, 4, 1024, 200 if quick else 3000))
    for share in (0.3,) if quick else (0.0, 0.01, 0.1, 0.3, 1.0):
        whole(out, share, Shape(2, 2, 4, 1024, 1200 if quick else 4000))
    if not quick:
        whole(out, 0.0, Shape(4, 4, 4, 4096, 8192))
    for name in ["count"] if quick else ROUTED:
        for lanes, probes in REGIONS[:1] if quick else REGIONS:
            route(out, name, lanes, probes)
            stored(out, name, lanes, probes)
    print(f"wrote {out.write()}")


if __name__ == "__main__":
    main()
