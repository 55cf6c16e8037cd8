"""Forty-nine conditions on every engine: who agrees with the golden model, what plan each gets, and what it costs.

Conditions, columns and data are described in bench/predicates/*.toml. Run: python -m bench.predicates
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from tests.support.oracle import oracle

import splitjoin
from bench.datapath import HOW, PARAMETERS, bands, figures
from bench.record import RESULTS, Recorder
from splitjoin.circuit.lowering import plan_for
from splitjoin.circuit.plan import CircuitPlan
from splitjoin.engines.device import PAIR, Items
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema

BENCH = Path(__file__).parent
PAGE = BENCH.parent / "docs" / "predicates.md"
#: Tuples of each stream, and of its window.
TUPLES, WINDOW = 72, 24
BACK_ENDS = ("duckdb", "cpu", "pysim", "sim")
#: The conditions in the page's table, one of each kind; the file of figures has all.
SHOWN = ("band-int", "band-both", "band-time", "equal-and-band", "congruent", "remainder-below", "differing-bits",
         "euclid", "manhattan", "hamming", "product", "case-width", "text-order", "mix")
HEAD = """# Conditions and their plans

Written by `python -m bench.predicates`: each of the {count} conditions in `bench/predicates/*.toml` runs over the same
random data on the golden model, DuckDB, the CPU engine, Amaranth's simulator and Verilator. {agree}
The table has some of them, [`predicates.csv`](figures/predicates.csv) all, with widths of keys, pipeline stages and
multipliers.

*Pairs* are those of the answer. A number in brackets counts the candidates that the interval tests let through, which
the host verifies; without one the circuit's tests decide. Circuits decide *sums* of squares, absolute values and
differing bits as well as interval tests; the CPU engine verifies sums. *LUT4* is the number to which Yosys maps the
datapaths of a core for ECP5 (two regions of one lane and four probes: eight comparisons a cycle), with the logic that
codes keys and bounds, but without the rest of the core; in brackets, what the [cost model](cost.md) predicts.

| condition | pairs | LUT4 | tests |
|---|---|---|---|
"""
BANDS = """
On ECP5, a comparison of two 32-bit bands takes {alone:.0f} LUT4 for its comparators and Boolean tree. Keys are
coded once for each lane, and bounds once for each region. With the logic for codes the numbers are

| lanes | probes | LUT4 | LUT4 a comparison |
|---|---|---|---|
"""


@dataclass(frozen=True)
class Case:
    """One condition with its data. ``oracle``: the condition in DuckDB's SQL."""

    name: str
    group: str
    on: str
    oracle: str
    r: pa.Table
    s: pa.Table

    def query(self) -> Query:
        """The join, windows of `WINDOW` tuples."""
        return Query.make(Schema.from_table("r", self.r), Schema.from_table("s", self.s), on=self.on,
                          window=f"ROWS {WINDOW}")


def cases() -> Iterator[Case]:
    """All conditions of all files, with their data: the same in every run."""
    for path in sorted((BENCH / "predicates").glob("*.toml")):
        content = tomllib.loads(path.read_text())
        for p in content["predicate"]:
            r, s = (pa.table({name: column(spec, Random(f"{p['name']} {side}.{name}")) for name, spec
                              in content[side].items()}) for side in "rs")
            yield Case(p["name"], path.stem, p["on"], p.get("duckdb", p["on"]), r, s)


def column(spec: dict[str, Any], random: Random) -> pa.Array:
    """A random column as a file describes it."""
    type_ = _type(spec["type"])
    values = [None if random.random() < spec.get("nulls", 0) else _value(spec, type_, random) for _ in range(TUPLES)]
    if pa.types.is_temporal(type_):
        return pa.array(values, pa.int32() if pa.types.is_date(type_) else pa.int64()).cast(type_)
    return pa.array(values, type_)


def _type(name: str) -> pa.DataType:
    if name.startswith("decimal128("):
        return pa.decimal128(*map(int, name[11:-1].split(",")))
    if name.startswith("fixed_size_binary["):
        return pa.binary(int(name[18:-1]))
    if name.startswith("timestamp["):
        return pa.timestamp(name[10:-1])
    return pa.type_for_alias(name.split("[")[0])


def _value(spec: dict[str, Any], type_: pa.DataType, random: Random) -> Any:
    if "values" in spec:
        value = random.choice(spec["values"])
        return bytes.fromhex(value) if pa.types.is_fixed_size_binary(type_) else value
    if pa.types.is_boolean(type_):
        return random.random() < 0.5
    value = random.randint(spec["low"], spec["high"])
    if pa.types.is_decimal(type_):
        return Decimal(value).scaleb(-type_.scale)
    if pa.types.is_floating(type_):
        special = spec.get("special") and random.random() < 0.15
        return random.choice([float("nan"), float("inf"), -float("inf"), -0.0]) if special else value / 10
    return value


def pairs(items: Items) -> list[tuple[int, int]]:
    """The pairs in order."""
    return [(int(i["r"]), int(i["s"])) for i in items if i["kind"] == PAIR]


def _device(name: str) -> splitjoin.engines.device.Device:
    from splitjoin.engines.cpu import CpuDevice
    from splitjoin_sim.device import SimDevice
    from splitjoin_sim.pysim import PysimDevice

    circuit = {"cores": 2, "capacity": 16}
    makers: dict[str, Callable[[], Any]] = {"cpu": CpuDevice, "sim": lambda: SimDevice(**circuit),
                                            "pysim": lambda: PysimDevice(**circuit)}
    return makers[name]()


def _duckdb(case: Case) -> list[tuple[int, int]]:
    with duckdb.connect(config={"threads": 1}) as db:
        found = oracle(db, case.r, case.s, on=case.oracle, window_r=(WINDOW, None), window_s=(WINDOW, None))
    return [(r, s) for r, s, _ in found]


def measure(out: Recorder, case: Case, back_ends: tuple[str, ...], *, mapped: bool) -> None:
    """One row: how many of ``back_ends`` give the golden model's answer; ``mapped``: Yosys maps the datapaths too."""
    golden = splitjoin.join(case.r, case.s, on=case.on, window=f"ROWS {WINDOW}")
    expected = pairs(golden.items)
    agree, candidates = {}, None
    for name in back_ends:
        if name == "duckdb":
            agree[name] = _duckdb(case) == expected
            continue
        result = splitjoin.join(case.r, case.s, on=case.on, window=f"ROWS {WINDOW}", device=_device(name))
        agree[name] = bool(np.array_equal(result.items, golden.items))
        if name != "cpu":
            candidates = result.counters.get("unverified", result.counters["matches"])
    query = case.query()
    plan = plan_for(query, PARAMETERS)
    config = {"predicate": case.name, "group": case.group, "on": case.on, "agree": agree, "plan": summary(plan),
              "pairs": len(expected), "candidates": candidates, **figures(query, plan, mapped=mapped)}
    out.add("agree", float(np.mean(list(agree.values()))), "of back ends", config,
            f"{TUPLES} tuples a stream, ROWS {WINDOW}: items equal to the golden model's (DuckDB: pairs in order); "
            f"lut4: {HOW}")


def summary(plan: CircuitPlan) -> str:
    """The plan in a line."""
    widths = {side: "+".join(str(slot.key.width) for slot in plan.slots(side)) for side in "rs"}
    counts = ((len(plan.tests), "test"), (len(plan.sums), "sum"))
    tests = " and ".join(f"{n} {name}{'s' if n > 1 else ''}" for n, name in counts if n)
    decided = "" if plan.residual is None else "; verified"
    return f"{tests}, keys of R {widths['r']}, of S {widths['s']} bits{decided}"


def page(data: dict[str, Any]) -> str:
    """docs/predicates.md."""
    parts, wrong = [], []
    of_bands = [r for r in data["rows"] if r["metric"] == "band_lut4_per_comparison"]
    configs = [row["config"] for row in data["rows"] if row["metric"] == "agree"]
    for c in configs:
        shown = c["on"].replace("|", "\\|")
        wrong += [f"`{shown}` on {name}" for name, agrees in c["agree"].items() if not agrees]
        candidates = f" ({c['candidates']})" if c["plan"].endswith("; verified") else ""
        tests = c["plan"].split(", keys of R ")[0]
        if c["predicate"] in SHOWN:
            parts.append(f"| `{shown}` | {c['pairs']}{candidates} | {c['lut4']} ({c['lut4_predicted']}) | {tests} |\n")
    (alone,) = (r["value"] for r in of_bands if r["config"]["codes"] == "not counted")
    agree = f"Another answer came for {', '.join(wrong)}." if wrong else "All answers are equal, order included."
    parts = [HEAD.format(agree=agree, count=len(configs)), *parts, BANDS.format(alone=alone)]
    for row in of_bands:
        c = row["config"]
        if c["codes"] == "included":
            parts.append(f"| {c['lanes']} | {c['probes']} | {c['lut4']} ({c['lut4_predicted']}) | "
                         f"{row['value']:.1f} |\n")
    return "".join(parts)


def _some(out: Recorder, names: list[str]) -> None:
    """Rows of conditions ``names`` in the place of those of the last run, in the files' order."""
    path = RESULTS / "predicates.json"
    data = json.loads(path.read_text())
    for case in cases():
        if case.name in names:
            measure(out, case, BACK_ENDS, mapped=True)
    kept = [row for row in data["rows"] if row["config"].get("predicate") not in names] + out.rows
    order = [case.name for case in cases()]
    kept.sort(key=lambda row: order.index(row["config"]["predicate"]) if "predicate" in row["config"] else len(order))
    path.write_text(json.dumps(data | {"rows": kept}, indent=1) + "\n")
    PAGE.write_text(page(data | {"rows": kept}))


def main() -> None:
    """Run all, write the results and the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="DuckDB and the CPU engine only, and no synthesis of "
                        "their datapaths; a minute; results go to build/bench/")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="these conditions alone; the rows "
                        "of others stay as they were")
    args = parser.parse_args()
    unknown = set(args.only) - {case.name for case in cases()}
    if unknown:
        parser.error(f"no condition is called {', '.join(sorted(unknown))}")
    out = Recorder("predicates", quick=args.quick)
    if args.only and not args.quick:
        _some(out, args.only)
        return
    for case in cases():
        if not args.only or case.name in args.only:
            measure(out, case, BACK_ENDS[:2] if args.quick else BACK_ENDS, mapped=not args.quick)
    if not args.only:
        bands(out)
    path = out.write()
    if args.quick:
        print(path)
    else:
        PAGE.write_text(page(json.loads(path.read_text())))


if __name__ == "__main__":
    main()
