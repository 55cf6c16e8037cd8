"""Equivalent writings of conditions over whole tables: CPU time and candidates of each. Run: python -m bench.writings

The writings of a condition take turns, on one thread; beside each, both tables as int32, and an inner join also with
the tables swapped.
"""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pyarrow as pa

import splitjoin
from bench.record import Recorder, options_of

__all__ = ["WRITINGS", "forms", "intervals"]

#: Condition → its writings: as an equality or two inequalities, as BETWEEN or comparisons, with keys folded by hand,
#: and with a bound that others imply.
WRITINGS: dict[str, tuple[str, ...]] = {
    "equality": ("r.st = s.st", "r.st <= s.st AND r.st >= s.st", "r.st - s.st = 0", "r.st BETWEEN s.st AND s.st",
                 "r.st = s.st AND r.st <= s.st + 5"),
    "two keys": ("r.c = s.c AND r.st = s.st", "r.c * 1000000 + r.st = s.c * 1000000 + s.st",
                 "r.c = s.c AND r.st <= s.st AND r.st >= s.st"),
    "point in interval": ("r.st BETWEEN s.st AND s.en", "r.st >= s.st AND r.st <= s.en",
                          "NOT (r.st < s.st OR r.st > s.en)", "r.st BETWEEN s.st AND s.en AND r.st - s.en <= 0"),
    "band": ("abs(r.st - s.st) <= 9", "r.st BETWEEN s.st - 9 AND s.st + 9",
             "r.st - s.st <= 9 AND s.st - r.st <= 9", "abs(r.st - s.st) <= 9 AND r.st <= s.st + 30"),
    "overlap by key": ("r.c = s.c AND r.st < s.en AND s.st < r.en",
                       "r.c <= s.c AND r.c >= s.c AND r.en > s.st AND s.en > r.st",
                       "r.c * 1000000 + r.st < s.c * 1000000 + s.en AND s.c * 1000000 + s.st < r.c * 1000000 + r.en",
                       "r.c = s.c AND r.st < s.en AND s.st < r.en AND r.st - s.en <= 0"),
    "one inequality": ("r.st > s.st + :far", "s.st + :far < r.st", "r.st - s.st > :far",
                       "r.st - :far > s.st AND r.st > s.st"),
}
HOWS = ("inner", "left", "semi")


def intervals(seed: int, n: int) -> pa.Table:
    """Intervals of 1 to 60 with a key of 5 values, of which about six overlap each."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 10 * n, n)
    return pa.table({"c": rng.integers(0, 5, n), "st": start, "en": start + rng.integers(1, 60, n)})


def forms(condition: str, how: str, n: int) -> dict[str, tuple[pa.Table, pa.Table, str]]:
    """The tables and the condition of each equivalent writing of a join, ``n`` rows a side, by the writing's name."""
    r, s = intervals(3, n), intervals(4, n)
    narrow = [t.cast(pa.schema([(name, pa.int32()) for name in t.column_names])) for t in (r, s)]
    found = {}
    for number, text in enumerate(WRITINGS[condition]):
        on = text.replace(":far", str(10 * n - n // 20))
        found[f"{number}"] = r, s, on
        found[f"{number}, int32"] = narrow[0], narrow[1], on
        if how == "inner":
            found[f"{number}, swapped"] = s, r, re.sub(r"\b[rs]\.", lambda m: {"r.": "s.", "s.": "r."}[m[0]], on)
    return found


def main() -> None:
    """All figures."""
    options = options_of(__doc__ or "").parse_args()
    rows, turns = (20_000, 2) if options.quick else (100_000, 4)
    out = Recorder("writings", quick=options.quick)
    how_measured = f"the least of {turns} turns after a first one, one thread, loops compiled before"
    for condition in WRITINGS:
        for how in HOWS:
            took: dict[str, list[float]] = {}
            tried: dict[str, Any] = {}
            joins = forms(condition, how, rows)
            for _ in range(1 + turns):
                for name, (r, s, on) in joins.items():
                    begin = time.process_time()
                    found = splitjoin.join(r, s, on=on, how=how, threads=1)
                    took.setdefault(name, []).append(time.process_time() - begin)
                    tried[name] = found.counters["candidates"]
            least = sorted(min(seconds[1:]) for seconds in took.values())
            config = {"condition": condition, "how": how, "rows": rows, "writings": len(joins)}
            for metric, value in (("writing_seconds_least", least[0]), ("writing_seconds_most", least[-1])):
                out.add(metric, value, "s", config, how_measured)
            out.add("writing_candidates_ratio", max(tried.values()) / max(1, min(tried.values())), "times", config,
                    "candidates of the writing with the most over those of the one with the fewest")
    print(out.write())


if __name__ == "__main__":
    main()
