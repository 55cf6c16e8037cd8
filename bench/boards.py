"""Bitstreams of boards: for each the design that the tuner proposes for a band join, or the smallest one.

``python -m bench.boards [--board NAME …] [--smallest]`` writes bench/results/boards.json, a part for each board, and
the table in docs/boards.md. Without ``--board`` all boards are built whose family can hold a join, smaller ones first.
``--smallest`` builds one core with a window of 64 tuples. ``--quick`` does so too, for the smallest board only.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from splitjoin.boards.catalog import CATALOG, Board
from splitjoin.boards.flow.report import BuildReport
from splitjoin.boards.join import build_join, default_baud
from splitjoin.circuit.lowering import configure, plan_for
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.errors import SplitJoinError
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.schema_text import parse_schema
from splitjoin.tuner import BOARDS, tune
from splitjoin.tuner.workload import Workload

from .record import Recorder, options_of

PAGE = Path(__file__).parents[1] / "docs" / "boards.md"
_BEGIN, _END = "<!-- table: python -m bench.boards -->\n", "<!-- end of the table -->\n"
#: Results and stars a tuple that rates are predicted for.
_ITEMS = 2.0
_SECONDS = 7200
_SMALLEST = {"cores": 1, "capacity": 64, "lanes": 1, "probes": 1}


def query(wide: bool) -> Query:
    """A band join of 32-bit keys over 1,024 tuples; the smallest design has an equality of bytes over 64."""
    r, s, on, window = (("x:int32", "a:int32", "abs(r.x - s.a) <= 10", "ROWS 1024") if wide else
                        ("x:int8", "a:int8", "r.x = s.a", "ROWS 64"))
    sides = [Schema.from_arrow(side, parse_schema(text)) for side, text in (("r", r), ("s", s))]
    return Query.make(*sides, on=on, window=window, order="total")


def built(board: Board, recorder: Recorder, smallest: bool) -> None:
    """Build for one board, and record its figures, or why it cannot be built."""
    wide = not smallest and board.name in BOARDS
    of = query(wide)
    options: dict[str, Any] = tune(of, board=board.name).options if wide else _SMALLEST
    parameters = CircuitParameters(**options)
    config = configure(of, plan_for(of, parameters), parameters)
    held = config.cores * config.capacity
    where = {"board": board.name, "condition": str(of.predicate), **options}
    with tempfile.TemporaryDirectory() as folder:
        try:
            report = build_join(board, config, Path(folder), load=Workload(held, held, 1.0), items=_ITEMS,
                                baud=default_baud(board), seed=1, seconds=_SECONDS, progress=print)
        except SplitJoinError as error:
            recorder.add("built", 0, "", where, str(error))
            return
    assert isinstance(report, BuildReport)
    assert report.prediction is not None
    recorder.add("built", 1, "", where, "Yosys, nextpnr and packer from PyPI")
    for kind, (used, available) in report.used.items():
        recorder.add("used", used, kind, {**where, "available": available}, "nextpnr")
    for reached, demanded in report.mhz.values():
        recorder.add("mhz", reached, "MHz", {**where, "demanded": demanded}, "nextpnr, after routing")
    for tool, seconds in report.seconds.items():
        recorder.add("seconds", seconds, "s", {**where, "tool": tool}, "wall clock, beside other work")
    recorder.add("tuples", report.prediction.rate, "tuples/s", where, "predicted: the lower of circuit and link")


def table(rows: list[dict[str, Any]]) -> str:
    """The table of docs/boards.md."""
    lines = ["| board | circuit | logic | block RAM | MHz reached (demanded) | seconds | predicted tuples/s |",
             "|---|---|---|---|---|---|---|"]
    logic, memory = ("TRELLIS_COMB", "LUT4", "ICESTORM_LC"), ("DP16KD", "BSRAM", "ICESTORM_RAM")
    for name in dict.fromkeys(row["config"]["board"] for row in rows):
        own = [row for row in rows if row["config"]["board"] == name]
        made = next(row for row in own if row["metric"] == "built")
        circuit = ", ".join(f"{key} {value}" for key, value in made["config"].items() if key != "board")
        if not made["value"]:
            lines.append(f"| {name} | {circuit} | {made['how'].split(';')[0]} | | | | |")
            continue
        cells = [next((f"{row['value']:,} of {row['config']['available']:,}" for row in own
                       if row["metric"] == "used" and row["unit"] in kinds), "") for kinds in (logic, memory)]
        clock = next(row for row in own if row["metric"] == "mhz")
        seconds = sum(row["value"] for row in own if row["metric"] == "seconds")
        rate = next(row["value"] for row in own if row["metric"] == "tuples")
        lines.append(f"| {name} | {circuit} | {' | '.join(cells)} | {clock['value']:.1f} "
                     f"({clock['config']['demanded']:g}) | {seconds:.0f} | {rate:,.0f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    assert __doc__
    parser = options_of(__doc__)
    parser.add_argument("--board", action="append", choices=CATALOG, help="a board; may be repeated (all)")
    parser.add_argument("--smallest", action="store_true", help="one core with a window of 64 tuples")
    args = parser.parse_args()
    every = sorted((board for board in CATALOG.values() if board.family in ("ecp5", "gowin")),
                   key=lambda board: board.fpga.lut)
    boards = [CATALOG[name] for name in args.board] if args.board else every[:1] if args.quick else every
    for board in boards:
        recorder = Recorder("boards", quick=args.quick, part=board.name)
        built(board, recorder, args.smallest or args.quick)
        path = recorder.write()
        if not args.quick:
            rows = json.loads(path.read_text())["rows"]
            before, rest = PAGE.read_text(encoding="utf-8").split(_BEGIN)
            PAGE.write_text(before + _BEGIN + table(rows) + _END + rest.split(_END)[1], encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
