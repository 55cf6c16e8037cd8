"""Bitstreams of boards: for each the largest design for a band join that a limit of time allows.

``python -m bench.boards [--board NAME …] [--luts N] [--seconds S] [--again] [--flights]`` writes
bench/results/boards.json, a part for each board as soon as it is built, and the tables in docs/boards.md. Boards that
have a part are left out, so that a run that was ended goes on where it was; ``--again`` builds them too. Without
``--board`` all boards are built for which bitstreams can be made here, those with fewer LUTs first.

For an ECP5 the tuner proposes the design, with as many cores as ``--luts`` LUT4 hold by its own cost model: larger ones
take hours to place and route with the tools from PyPI. iCE40 and Gowin get a small circuit whose windows fill the block
RAM. ``--sdram`` builds circuits whose windows lie in the boards' SDRAM, ``--flights`` the query of `examples.flights`
for one board of each family. ``--quick``: a window of 64 tuples for the smallest board.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from examples.flights.data import CONDITION, MINUTES

from splitjoin.base.errors import SplitJoinError
from splitjoin.circuit.cost.circuit import circuit_cost
from splitjoin.circuit.lowering import configure, plan_for
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.tuner import tune
from splitjoin.circuit.tuner.workload import Workload
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.tables.schema_text import parse_schema
from splitjoin_boards.catalog import CATALOG, Board
from splitjoin_boards.flow.bitstream import TOOLS
from splitjoin_boards.flow.report import BuildReport
from splitjoin_boards.join import build_join, default_baud

from .record import RESULTS, Recorder, options_of

PAGE = Path(__file__).parents[1] / "docs" / "boards.md"
_BEGIN, _END = "<!-- table: python -m bench.boards -->\n", "<!-- end of the table -->\n"
_BEGIN_FLIGHTS = "<!-- table: python -m bench.boards --flights -->\n"
#: Boards that the flights query is built for.
_FLIGHTS = ("ulx3s_85f", "icebreaker", "tang_nano_9k")
_BEGIN_SDRAM = "<!-- table: python -m bench.boards --sdram -->\n"
#: Starts of the names of parts with the flights query, and with windows in SDRAM.
_FLIGHTS_PART, _SDRAM_PART = "flights ", "sdram "
#: Boards with windows in SDRAM that are built, and the logarithm of the longest windows that it holds.
_SDRAM = {"ulx3s_85f": 19, "icepi_zero": 19, "icesugar_pro": 19, "colorlight_5a75b_r7_0": 16}
#: Results and stars a tuple that rates are predicted for.
_ITEMS = 2.0
#: Defaults of ``--seconds`` and ``--luts``.
_SECONDS, _LUTS = 7200, 12_000
#: Families whose boards get a small circuit.
_SMALL = ("ice40", "gowin", "gw5a", "gatemate")
#: Row ids of 16 bits: an item has five bytes on the link.
_ROW_BITS = 16
#: Words of a block RAM → bits of a word, by its size in Kbit.
_SHAPES = {4: {256: 16, 512: 8, 1024: 4, 2048: 2}, 18: {512: 32, 1024: 16, 2048: 8, 4096: 4, 8192: 2, 16384: 1}}
#: Families whose boards get windows of 64 tuples: routing takes long, and with long windows GateMate's router failed.
_SHORT = ("gw5a", "gatemate")
#: Bytes of the link's buffers, as (words, bits): the ring of records, and the slots of replies.
_BUFFERS = [(2048, 8), (2048, 8)]


def query(rows: int) -> Query:
    """A band join of 32-bit keys over ``rows`` tuples."""
    sides = [Schema.from_arrow(side, parse_schema(text)) for side, text in (("r", "x:int32"), ("s", "a:int32"))]
    return Query.make(*sides, on="abs(r.x - s.a) <= 10", window=f"ROWS {rows}", order="total")


def window_that_fits(board: Board) -> int:
    """The longest window, a power of two, of a small circuit of `query` on ``board``, by its block RAM."""
    def blocks(words: int, bits: int) -> int:
        shapes = _SHAPES[board.fpga.ram_kbit]
        return min(-(-words // rows) * -(-bits // width) for rows, width in shapes.items())

    rows = 64
    while True:
        wanted = 2 * rows
        memories = [*_BUFFERS, (64, 32), (2 * wanted, 32), (wanted, (wanted - 1).bit_length())]
        if sum(blocks(*memory) for memory in memories) > board.fpga.block_ram:
            return rows
        rows = wanted


def design(board: Board, luts: int, quick: bool) -> tuple[Query, dict[str, Any], str]:
    """The query, the circuit's parameters, and how they were chosen."""
    if board.family in _SMALL or quick:
        short = quick or board.family in _SHORT
        rows = 64 if short else window_that_fits(board)
        small = {"small": True, "cores": 1, "capacity": rows, "row_bits": _ROW_BITS}
        return query(rows), small, "short windows" if short else "windows as long as fit"
    of = query(1024)
    proposed = tune(of, board=board.name).options
    chosen, cores = proposed, proposed["cores"]
    while cores > 1 and _luts(of, chosen) > luts:
        cores -= 1
        chosen = tune(of, board=board.name, cores=cores).options
    probes = chosen["probes"]
    while probes > 1 and _luts(of, chosen) > luts:
        probes //= 2
        chosen = tune(of, board=board.name, cores=cores, probes=probes).options
    how = "by the tuner" if chosen == proposed else (
        f"the part of the tuner's {_shape(proposed)} that {luts:,} LUT4 hold")
    return of, {**chosen, "row_bits": _ROW_BITS}, how


def flights_design(board: Board) -> tuple[Query, dict[str, Any], str]:
    """As `design`, for the query of `examples.flights`, whose windows hold up to 37 departures."""
    columns = parse_schema("departed:timestamp[us, UTC], origin:string, east:int32, north:int32")
    of = Query.make(*(Schema.from_arrow(side, columns) for side in ("r", "s")), on=CONDITION,
                    window=f"RANGE {MINUTES} MINUTES", time="departed", order="total")
    small = {"small": True, "row_bits": _ROW_BITS} if board.family in _SMALL else {}
    return of, {"cores": 1, "capacity": 64, **small}, "flights"


def sdram_design(board: Board) -> tuple[Query, dict[str, Any], str]:
    """As `design`, with windows in the board's SDRAM, as long as it holds."""
    rows = 2**_SDRAM[board.name]
    return query(rows), {"cores": 1, "memory": "sdram", "contexts": 8, "capacity": rows}, "windows in SDRAM"


def _shape(options: dict[str, Any]) -> str:
    return " x ".join(str(options[name]) for name in ("cores", "lanes", "probes"))


def _luts(of: Query, options: dict[str, Any]) -> int:
    parameters = CircuitParameters(**options)
    return circuit_cost(configure(of, plan_for(of, parameters), parameters)).total.lut


def built(board: Board, recorder: Recorder, chosen: tuple[Query, dict[str, Any], str], seconds: float) -> None:
    """Build a `design` for one board, and record its figures, or why it cannot be built."""
    of, options, how = chosen
    parameters = CircuitParameters(**options)
    config = configure(of, plan_for(of, parameters), parameters)
    held = config.cores * config.capacity
    window = str(of.window_r.rows or f"{MINUTES} minutes")
    where = {"board": board.name, "window": window, "chosen": how, "limit_s": seconds, **options, "core": config.core}
    with tempfile.TemporaryDirectory() as folder:
        try:
            report = build_join(board, config, Path(folder), load=Workload(held, held, 1.0), items=_ITEMS,
                                baud=default_baud(board), seed=1, seconds=seconds, progress=print)
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
    """The table of docs/boards.md: of the boards with equal circuits in equal FPGAs, a line for the slowest clock."""
    lines = ["| board | circuit, tuples of a window | logic | MHz reached (demanded) | predicted tuples/s |",
             "|---|---|---|---|---|"]
    logic = ("TRELLIS_COMB", "LUT4", "ICESTORM_LC", "CPE_LT")
    slowest: dict[tuple[str, str], tuple[float, str]] = {}
    names: dict[tuple[str, str], list[str]] = {}
    for name in sorted({row["config"]["board"] for row in rows}, key=lambda name: (CATALOG[name].fpga.lut, name)):
        own = [row for row in rows if row["config"]["board"] == name]
        made = next(row for row in own if row["metric"] == "built")
        of = made["config"]
        sizes = [of["cores"], of.get("lanes", 1), of.get("probes", 1)]
        circuit = (f"small, {of['capacity']:,}" if of.get("small") else
                   f"{' x '.join(map(str, sizes))} {of['core']}, {of['cores'] * of['capacity']:,}")
        if not made["value"]:
            names[name, circuit] = [name]
            slowest[name, circuit] = 0, f"{circuit} | {made['how'].split(';')[0]} | | |"
            continue
        used, available = next(((f"{row['value']:,}", f"{row['config']['available']:,}") for row in own
                                if row["metric"] == "used" and row["unit"] in logic), ("", ""))
        clock = next(row for row in own if row["metric"] == "mhz")
        rate = next(row["value"] for row in own if row["metric"] == "tuples")
        names.setdefault((available, circuit), []).append(name)
        line = (f"{circuit} | {used} of {available} | {clock['value']:.1f} ({clock['config']['demanded']:g}) | "
                f"{rate:,.0f} |")
        slowest[available, circuit] = min(slowest.get((available, circuit), (clock["value"], line)),
                                          (clock["value"], line))
    lines += [f"| {', '.join(boards)} | {slowest[like][1]}" for like, boards in names.items()]
    return "\n".join(lines) + "\n"


def with_tables(page: str, rows: list[dict[str, Any]]) -> str:
    """The text of docs/boards.md with the tables that ``rows`` give."""
    prefixes = (_FLIGHTS_PART, _SDRAM_PART)
    for begin, prefix in ((_BEGIN, ""), (_BEGIN_FLIGHTS, _FLIGHTS_PART), (_BEGIN_SDRAM, _SDRAM_PART)):
        before, rest = page.split(begin)
        own = [row for row in rows if (row["part"].startswith(prefix) if prefix
                                       else not row["part"].startswith(prefixes))]
        page = before + begin + table(own) + _END + rest.split(_END, 1)[1]
    return page


def main() -> None:
    assert __doc__
    parser = options_of(__doc__)
    parser.add_argument("--board", action="append", choices=CATALOG, help="a board; may be repeated (all)")
    parser.add_argument("--luts", type=int, default=_LUTS, help=f"LUT4 of a design for an ECP5, at most ({_LUTS})")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help=f"limit of each tool in seconds ({_SECONDS})")
    parser.add_argument("--flights", action="store_true", help="the flights query, for a board of each family")
    parser.add_argument("--sdram", action="store_true", help="windows in SDRAM, for a board of each kind that has it")
    parser.add_argument("--again", action="store_true", help="build boards anew that have been built")
    args = parser.parse_args()
    every = sorted((board for board in CATALOG.values() if board.family in TOOLS), key=lambda board: board.fpga.lut)
    if args.board or args.flights or args.sdram:
        boards = [CATALOG[name] for name in args.board or (_SDRAM if args.sdram else _FLIGHTS)]
    else:
        boards = every[:1] if args.quick else every
    prefix = _FLIGHTS_PART if args.flights else _SDRAM_PART if args.sdram else ""
    done = RESULTS / "boards.json"
    if done.exists() and not (args.again or args.quick):
        parts = {row["part"] for row in json.loads(done.read_text())["rows"]}
        boards = [board for board in boards if prefix + board.name not in parts]
    for board in boards:
        recorder = Recorder("boards", quick=args.quick, part=prefix + board.name)
        chosen = (flights_design(board) if args.flights else sdram_design(board) if args.sdram
                  else design(board, args.luts, args.quick))
        built(board, recorder, chosen, args.seconds)
        path = recorder.write()
        if not args.quick:
            PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), json.loads(path.read_text())["rows"]),
                            encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
