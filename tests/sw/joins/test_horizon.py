"""`splitjoin.horizon` beside a look at every row of s for each row of r and each offset."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import InputError, OptionError, SchemaError, WindowError

from ...support.sampling import examples

TYPES = {"int": pa.int64(), "float": pa.float64(), "timestamp": pa.timestamp("ms"), "date": pa.date32(),
         "duration": pa.duration("s")}


def spelled(offset: int, kind: str, rng: random.Random) -> Any:
    if kind in ("int", "float") or not offset:
        return offset
    unit, step = {"timestamp": ("MILLISECONDS", dt.timedelta(milliseconds=1)), "date": ("DAYS", dt.timedelta(1)),
                  "duration": ("SECONDS", dt.timedelta(seconds=1))}[kind]
    return rng.choice([f"{offset} {unit}", offset * step, np.timedelta64(offset * step)])


@pytest.mark.parametrize("seed", range(examples(12)))
def test_every_row_at_every_offset(seed: int) -> None:
    rng = random.Random(seed)
    kind = rng.choice(list(TYPES))
    times = [rng.choice([rng.randrange(30), rng.randrange(30), None]) for _ in range(rng.randrange(9))]
    sorted_times = sorted(rng.randrange(30) for _ in range(rng.randrange(12)))
    r_keys, s_keys = ([rng.randrange(2) for _ in of] for of in (times, sorted_times))
    offsets = [rng.randrange(-12, 13) for _ in range(rng.randrange(1, 5))]
    limit = rng.choice([None, rng.randrange(9)])

    def typed(numbers: list[int | None]) -> pa.Array:
        plain = pa.array(numbers, pa.int32() if kind == "date" else pa.int64())
        return plain.cast(TYPES[kind])

    r = pa.table({"ts": typed(times), "k": pa.array(r_keys, pa.int64())})
    s = pa.table({"ts": typed(list(sorted_times)), "k": pa.array(s_keys, pa.int64()), "n": pa.array(
        range(len(sorted_times)), pa.int64())})
    options: dict[str, Any] = {
        "offsets": [spelled(o, kind, rng) for o in offsets], "time": "ts", "on": "r.k = s.k",
        "tolerance": None if limit is None else spelled(limit, kind, rng) if limit or kind in ("int", "float") else
        dt.timedelta(0)}
    made = splitjoin.horizon(r, s, **options)
    some = splitjoin.horizon(r, s, select=["n", "offset", "r.ts"], **options)
    assert some.equals(made.select(["n", "offset", "ts_r"]))
    wanted = [max((n for n, (at, key) in enumerate(zip(sorted_times, s_keys, strict=True))
                   if t is not None and key == k and at <= t + o and (limit is None or at >= t + o - limit)),
                  default=None)
              for t, k in zip(times, r_keys, strict=True) for o in offsets]
    assert made.column_names == ["ts_r", "k_r", "offset", "ts_s", "k_s", "n"]
    assert made["n"].to_pylist() == wanted
    assert made["ts_r"].to_pylist() == [t for t in r["ts"].to_pylist() for _ in offsets]
    shown = made["offset"].to_pylist()
    step = 1 if kind in ("int", "float") else {"timestamp": dt.timedelta(milliseconds=1), "date": dt.timedelta(1),
                                               "duration": dt.timedelta(seconds=1)}[kind]
    assert shown == [o * step for _ in times for o in offsets]


R = {"ts": pa.array([1, 2**62], pa.int64())}
DAYS = {"ts": pa.array([1, 2], pa.int32()).cast(pa.date32())}


def test_an_empty_list_of_times_has_the_other_table_s_type() -> None:
    found = splitjoin.horizon({"ts": []}, {"at": [1, 2]}, offsets=[0], time=("ts", "at"))
    assert found.schema.names == ["ts", "offset", "at"]
    assert len(found) == 0


@pytest.mark.parametrize(("table", "more", "error", "message"), [
    (R, {"offsets": []}, OptionError, "a list of one offset at least"),
    (R, {"offsets": "5"}, OptionError, "a list of one offset at least"),
    (R, {"offsets": [0], "name": "ts"}, SchemaError, "'ts' is a column of r or s"),
    (R, {"offsets": [2**62]}, InputError, "r.ts plus an offset must fit its type, int64"),
    (R, {"offsets": ["5 SECONDS"]}, WindowError, "r.ts is int64, and the offset '5 SECONDS'"),
    (R, {"offsets": [1.5]}, WindowError, "a whole number of the units of r.ts"),
    (R, {"offsets": ["ROWS 5"]}, WindowError, "offset 'ROWS 5' of a horizon join"),
    (R, {"offsets": [True]}, WindowError, "offset True of a horizon join"),
    (DAYS, {"offsets": ["36 HOURS"]}, WindowError, r"a whole number of the units of r.ts, which is date32\[day\]"),
    (DAYS, {"offsets": [5]}, WindowError, "and the offset 5"),
    (DAYS, {"offsets": ["5 DAYS OPEN"]}, WindowError, "a span of time"),
    ({"ts": ["a", "b"]}, {"offsets": [1]}, SchemaError, "r.ts is string"),
    ({"ts": ["a", "b"]}, {"offsets": [0]}, SchemaError, "r.ts is string"),
    (R, {"offsets": 5}, OptionError, "a list of one offset at least"),
    (R, {"offsets": [0], "others": [R]}, OptionError, "others must be a mapping from names to tables, not list"),
])
def test_what_cannot_be_is_refused(table: Any, more: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        splitjoin.horizon(table, table, time="ts", **more)


def test_several_tables_in_one_call_and_in_sql() -> None:
    r = pa.table({"ts": [1, 4, 9], "k": ["a", "b", "a"], "price": [10, 20, 30]})
    s = pa.table({"ts": [0, 3, 5, 8], "k": ["a", "b", "a", "b"], "bid": [1, 2, 3, 4]})
    news = pa.table({"ts": [2, 6], "k": ["a", "b"], "text": ["x", "y"]})
    options: dict[str, Any] = {"offsets": [-3, 0, 3], "time": "ts", "on": "r.k = s.k"}
    found = splitjoin.horizon(r, s, others={"news": news, "again": s}, **options)
    first, second = (splitjoin.horizon(r, one, **options) for one in (s, news))
    assert found.select(first.column_names).equals(first)
    assert found["text"].equals(second["text"])
    assert found["bid_again"].equals(first["bid"])
    assert found["ts_news"].equals(second["ts_s"])
    text = ("SELECT price, h.off, bid, text FROM r CROSS JOIN (VALUES (-3), (0), (3)) h(off) "
            "ASOF LEFT JOIN s ON r.k = s.k AND r.ts + h.off >= s.ts "
            "ASOF LEFT JOIN news n ON r.k = n.k AND r.ts + h.off >= n.ts ORDER BY price, h.off")
    in_sql = splitjoin.sql(text, r=r, s=s, news=news).to_pydict()
    assert list(in_sql.values()) == [found[name].to_pylist() for name in ("price", "offset", "bid", "text")]
    with pytest.raises(SchemaError, match="'ts_news' would occur more than once"):
        splitjoin.horizon(r.append_column("ts_news", r["k"]), s, others={"news": news}, **options)
