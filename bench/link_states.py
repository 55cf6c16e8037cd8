"""The link where all pairs leave a circuit, and where it folds them: bytes a tuple of each direction, and the rate.

Boards' driver runs a join with aggregates on a simulated circuit, behind a line in simulated time without faults; its
result is compared with the CPU's. ``python -m bench.link_states`` writes bench/results/link_states.json and the table
in docs/link.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.support.linked_circuit import LinkedDevice

import splitjoin
from bench.record import Recorder, arguments
from splitjoin.link.rate import BITS

PAGE = Path(__file__).parents[1] / "docs" / "link.md"
_BEGIN, _END = "<!-- table: python -m bench.link_states -->\n", "<!-- end of the table -->\n"
AGGREGATES = {"n": "count(*)", "total": "sum(s.price)", "high": "max(s.price)"}
#: Shares of pairs that match; of S's values, which are from 0 to below `_VALUES`.
SHARES = (0.0, 0.01, 0.1, 0.3)
_VALUES = 1000
_WINDOW = 128
_CIRCUIT: dict[str, Any] = {"cores": 1, "capacity": _WINDOW, "lanes": 2, "probes": 2, "core": "scan"}
#: What leaves the circuit: its parameter ``fold``, and whether items are packed.
LEAVING = {"pairs": ("never", False), "pairs, packed": ("never", True), "states": ("always", False),
           "states, packed": ("always", True)}
_BAUD = 3_000_000


def measure(out: Recorder, share: float, tuples: int) -> None:
    """The bytes of ``tuples`` of both streams, in turn, of whose pairs in the windows a ``share`` matches."""
    rng, n = np.random.default_rng(1), tuples // 2
    r = pa.table({"t": pa.array(np.full(n, round(share * _VALUES)), pa.int16())})
    s = pa.table({"a": pa.array(rng.integers(0, _VALUES, n), pa.int16()),
                  "price": pa.array(rng.integers(0, 2**15, n), pa.int16())})
    how: dict[str, Any] = {"on": "s.a < r.t", "window": f"ROWS {_WINDOW}", "aggregate": AGGREGATES, "how": "left"}
    expected = splitjoin.join(r, s, **how).table
    for leaves, (fold, pack) in LEAVING.items():
        found = splitjoin.join(r, s, device=LinkedDevice(fold=fold, pack=pack, **_CIRCUIT), **how)
        if not found.table.equals(expected):
            raise SystemExit("the answer differs from the CPU's")
        config = {"window": _WINDOW, "share": share, "leaves": leaves}
        counted = found.counters
        out.add("link_pairs", counted["matches"] / tuples, "pairs a tuple", config, "counted by the circuit")
        by = "boards' driver and a simulated circuit, on a line without faults in simulated time"
        for name in ("sent", "received"):
            out.add(f"link_{name}", counted[f"bytes_{name}"] / tuples, "bytes a tuple", config, by)
        most = max(counted["bytes_sent"], counted["bytes_received"]) / tuples
        out.add("link_rate", _BAUD / BITS / most, f"tuples/s at {_BAUD:,} baud", config,
                "from the bytes of the busier direction")


def table(rows: list[dict[str, Any]]) -> str:
    """The table of docs/link.md."""
    def value(metric: str, share: float, leaves: str) -> float:
        return next(float(row["value"]) for row in rows if row["metric"] == metric and row["config"] == {
            "window": _WINDOW, "share": share, "leaves": leaves})

    lines = [f"| pairs a tuple | {' | '.join(f'tuples/s, {leaves}' for leaves in LEAVING)} |",
             f"|{'---|' * (1 + len(LEAVING))}"]
    for share in dict.fromkeys(row["config"]["share"] for row in rows):
        cells = [f"{value('link_pairs', share, 'pairs'):.1f}"]
        cells += [f"{value('link_rate', share, leaves):,.0f}" for leaves in LEAVING]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure all, and write the results."""
    quick = arguments("bytes on the link, with pairs and with states").quick
    out = Recorder("link_states", quick=quick)
    for share in SHARES:
        measure(out, share, 200 if quick else 3_000)
    if not quick:
        text = PAGE.read_text(encoding="utf-8")
        before, rest = text.split(_BEGIN)
        PAGE.write_text(before + _BEGIN + table(out.rows) + _END + rest.split(_END, 1)[1], encoding="utf-8")
    print(f"wrote {out.write()}")


if __name__ == "__main__":
    main()
