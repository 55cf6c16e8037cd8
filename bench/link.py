"""The link: bytes a tuple before and after packing, what each board's link carries, and a long run with faults.

``python -m bench.link`` writes bench/results/link.json and the tables in docs/link.md. The run with faults joins
100,000 tuples on an emulated small circuit over a line on which one byte in a hundred is lost, flipped or doubled, and
checks the answer against the golden model. ``--quick``: 1,000 tuples.
"""

from __future__ import annotations

import random
import resource
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.circuit.wire import Configuration
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import PAIR, Items
from splitjoin.engines.registry import device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.link.rate import link_cost
from splitjoin.tables.schema_text import parse_schema
from splitjoin_boards.catalog import CATALOG
from splitjoin_boards.join import default_baud
from splitjoin_sim.emulator import Emulator, Faults

from .record import Recorder, arguments

PAGE = Path(__file__).parents[1] / "docs" / "link.md"
_BEGIN, _END = "<!-- table: python -m bench.link -->\n", "<!-- end of the table -->\n"
#: Bytes of faulty ones, in all.
_SHARE = 0.01
_EIGHT = "i0:int64, i1:int64, i2:int64, i3:int64, "
#: Name → schemas of R and S, condition, window, time column, circuit.
QUERIES: dict[str, tuple[str, str, str, str, str | None, dict[str, int]]] = {
    "equality of bytes": ("x:int8", "y:int8", "r.x = s.y", "ROWS 512", None, {"cores": 1, "capacity": 512}),
    "a band": ("x:int32", "a:int32", "abs(r.x - s.a) <= 10", "ROWS 4096", None, {"cores": 2, "capacity": 2048}),
    "two bands in time": ("ts:int64, x:int32, y:float32", "ts:int64, a:int32, b:float32",
                          "abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10", "RANGE 1000", "ts",
                          {"cores": 2, "capacity": 2048}),
    "a band in wide rows": (f"{_EIGHT}ts:int64, x:int32", f"{_EIGHT}ts:int64, a:int32", "abs(r.x - s.a) <= 10",
                            "RANGE 1000", "ts", {"cores": 2, "capacity": 2048}),
}
#: Name → distinct values of the keys of "a band" in the table of packed items.
PACKED = {"few": 1_000_000, "one or two": 40_000, "many": 4_000}
#: Results and stars a tuple that the table assumes.
_ITEMS = 2.0


def configured(name: str) -> tuple[Query, Configuration]:
    """A query of `QUERIES`, and its circuit."""
    r, s, on, window, at, options = QUERIES[name]
    sides = [Schema.from_arrow(side, parse_schema(text)) for side, text in (("r", r), ("s", s))]
    query = Query.make(*sides, on=on, window=window, time=at, order="total")
    return query, device("uart:none", **options).configuration(query)


def row_bytes(text: str) -> int:
    """Bytes of a row of the schema ``text`` as a table holds it."""
    return sum(field.type.bit_width // 8 for field in parse_schema(text))


def wire_bytes(recorder: Recorder) -> None:
    """Bytes a tuple to the device: a whole row, the circuit's fields in words of 32 bits, packed, and framed."""
    for name, (r, *_) in QUERIES.items():
        config = configured(name)[1]
        cost = link_cost(config, _ITEMS)
        for metric, value in (("row_bytes", row_bytes(r)), ("word_bytes", 4 * config.input_record.words),
                              ("packed_bytes", -(-config.input_record.width // 8)), ("sent_bytes", cost.sent),
                              ("received_bytes", cost.received),
                              ("result_row_bytes", sum(map(row_bytes, QUERIES[name][:2]))),
                              ("item_bytes", -(-config.item_record.width // 8))):
            recorder.add(metric, value, "B", {"query": name}, "computed (splitjoin.link.rate)")


def carried(recorder: Recorder) -> None:
    """Tuples a second that the link of each board carries, at the rate that it has by default and at its highest."""
    for board in CATALOG.values():
        for baud in sorted({default_baud(board), min(board.highest_baud, 12_000_000)}):
            if board.bridge.baud is None and baud != default_baud(board):
                continue
            for name in QUERIES:
                recorder.add("link_tuples", link_cost(configured(name)[1], _ITEMS).rate(baud), "tuples/s",
                             {"board": board.name, "baud": baud, "query": name}, "computed (splitjoin.link.rate)")


def carried_packed(recorder: Recorder) -> None:
    """The same with packed items, by rate."""
    for baud in sorted({row["config"]["baud"] for row in recorder.rows if row["metric"] == "link_tuples"}):
        for name in QUERIES:
            rate = link_cost(configured(name)[1], _ITEMS, pack=True).rate(baud)
            recorder.add("link_tuples_packed", rate, "tuples/s", {"baud": baud, "query": name},
                         "computed (splitjoin.link.rate)")


def packing(recorder: Recorder, tuples: int) -> None:
    """Bytes of results for each tuple, as they are and packed: alternating streams of ``tuples`` in all."""
    query, config = configured("a band")
    for name, values in PACKED.items():
        chance = random.Random(1)
        r, s = (pa.table({column: pa.array([chance.randrange(values) for _ in range(tuples // 2)], pa.int32())})
                for column in "xa")
        with device("golden", cores=config.cores).open(query) as golden:
            golden.push(arrivals(query, r, s))
            items = golden.flush()
        plain = -(-config.item_record.width // 8) * len(items)
        for metric, value in (("items_a_tuple", len(items)), ("plain", plain), ("packed", packed_size(items))):
            recorder.add(metric, value / tuples, "" if metric == "items_a_tuple" else "B/tuple", {"results": name},
                         "computed from the golden model's items")


def packed_size(items: Items) -> int:
    """Bytes of ``items`` with row ids of 32 bits, packed as `splitjoin.link.items` says."""
    size = len(items)
    for name, side in (("r", 0), ("s", 1)):
        sent = items[name][(items["kind"] == PAIR) | (items["side"] == side)].astype(np.int64)
        steps = np.diff(sent, prepend=0)
        size += sum(int((~((-limit <= steps) & (steps < limit))).sum()) * more
                    for limit, more in ((128, 1), (1 << 15, 2))) + int((steps != 0).sum())
    return size


def faulty(recorder: Recorder, tuples: int, share: float, seed: int) -> None:
    """The run with faults: ``tuples`` of both streams together."""
    chance = random.Random(seed)
    r, s = (pa.table({name: pa.array([chance.randrange(60) for _ in range(tuples // 2)], pa.int8())}) for name in "xy")
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="abs(r.x - s.y) <= 1", window="ROWS 8",
                       order="total")
    # The small circuit, as the emulator runs it five times as fast.
    options: dict[str, Any] = {"cores": 1, "capacity": 16, "small": True, "row_bits": 16}
    config = device("uart:none", **options).configuration(query)
    third, start = share / 3, time.monotonic()
    with (Emulator(config, Faults(drop=third, flip=third, double=third, seed=seed)) as board,
          device(f"uart:{board.path}", **options, timeout=60.0).open(query) as session):
        session.push(arrivals(query, r, s))
        found = session.flush()
        counters = session.counters()
    with device("golden").open(query) as golden:
        golden.push(arrivals(query, r, s))
        if not np.array_equal(found, golden.flush()):
            raise SystemExit("the answer differs from the golden model's")
    where = {"tuples": tuples, "faulty": f"{share:.1%}", "seed": seed, **options}
    for metric in ("retransmissions", "damaged_replies"):
        recorder.add(metric, counters[metric], "", where, "emulator; answer equal to the golden model's")
    for metric in ("bytes_sent", "bytes_received"):
        recorder.add(metric, counters[metric] / tuples, "B/tuple", where, "emulator")
    recorder.add("items", len(found), "", where, "emulator")
    recorder.add("seconds", time.monotonic() - start, "s", where, "wall clock, simulation included")
    recorder.add("peak_memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB", where, "getrusage")


def _value(rows: list[dict[str, Any]], metric: str, **config: object) -> float:
    return next(float(str(row["value"])) for row in rows if row["metric"] == metric and row["config"] == config)


def table(rows: list[dict[str, Any]]) -> str:
    """The tables of docs/link.md with bytes of tuples, and with rates: of items as they are, and packed."""
    value = partial(_value, rows)
    lines = ["| query | row | words | packed | on the wire, sent | received, 2 items a tuple |",
             "|---|---|---|---|---|---|"]
    for name in QUERIES:
        whole = [value(metric, query=name) for metric in ("row_bytes", "word_bytes", "packed_bytes")]
        framed = [value(metric, query=name) for metric in ("sent_bytes", "received_bytes")]
        lines.append(f"| {name} | " + " | ".join([*(f"{n:.0f}" for n in whole), *(f"{n:.1f}" for n in framed)]) + " |")
    lines += ["", f"| baud | {' | '.join(QUERIES)} |", f"|---|{'---|' * len(QUERIES)}"]
    for baud, board in sorted({row["config"]["baud"]: row["config"]["board"] for row in rows
                               if row["metric"] == "link_tuples"}.items()):
        rates = [(value("link_tuples", board=board, baud=baud, query=name),
                  value("link_tuples_packed", baud=baud, query=name)) for name in QUERIES]
        lines.append(f"| {baud:,} | " + " | ".join(f"{plain:,.0f} ({packed:,.0f})" for plain, packed in rates) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    assert __doc__
    args = arguments(__doc__)
    recorder = Recorder("link", quick=args.quick)
    wire_bytes(recorder)
    carried(recorder)
    carried_packed(recorder)
    packing(recorder, 200 if args.quick else 12_000)
    if not args.quick:
        text = PAGE.read_text(encoding="utf-8")
        before, rest = text.split(_BEGIN)
        PAGE.write_text(before + _BEGIN + table(recorder.rows) + _END + rest.split(_END, 1)[1], encoding="utf-8")
        recorder.write()
    faulty(recorder, 1_000 if args.quick else 100_000, _SHARE, 0)
    print(recorder.write())


if __name__ == "__main__":
    main()
