"""Random joins that the CPU engine and the golden model must answer alike: drawn cases, and those of whole tables.

What hypothesis draws in other tests is minimal and shrinks; these joins are larger and of the shapes for which the
engine has ways of its own, so that many thousands of them can run on each change of the engine.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

import splitjoin
from splitjoin.base.errors import SplitJoinError


class Difference(Exception):
    """Two engines gave different answers; the text says of what, and where they part."""


#: Types of the columns that conditions compare, and how wide the range of ordinary values is.
_TYPES = (pa.int64(), pa.int64(), pa.int32(), pa.int16(), pa.int8(), pa.uint8(), pa.uint32(), pa.uint64(), pa.float64(),
          pa.float64(), pa.float32(), pa.timestamp("us"), pa.date32(), pa.decimal128(12, 2), pa.string())
#: Conditions over x, y, k of R and a, b, j of S. "{c}" and "{d}" are small constants of the type of x and a.
_CONDITIONS = (
    "r.x = s.a", "r.x = s.a AND r.k = s.j", "r.k = s.j AND r.x < s.a", "r.k = s.j AND r.x >= s.a AND r.y <= s.b",
    "r.x < s.a", "r.x <= s.a", "r.x > s.a", "r.x >= s.a", "r.x <> s.a", "r.x <= s.b AND s.a <= r.y",
    "r.x < s.b AND s.a < r.y", "r.k = s.j AND r.x < s.b AND s.a < r.y", "r.x BETWEEN s.a AND s.b",
    "s.a BETWEEN r.x AND r.y", "r.k = s.j AND r.x BETWEEN s.a AND s.b", "r.x < s.a AND r.y > s.b",
    "r.x < s.a OR r.k = s.j", "r.x IS NOT DISTINCT FROM s.a", "r.x IS NOT DISTINCT FROM s.a AND r.y < s.b",
    "r.x = s.a OR r.y = s.b", "TRUE", "r.k = 2 AND r.x < s.a", "s.j <> 1 AND r.x >= s.a", "r.k < s.j AND r.x = s.a",
)
#: Conditions over numbers only.
_NUMBERS = (
    "abs(r.x - s.a) <= {c}", "abs(r.x - s.a) < {c} AND r.k = s.j", "r.x BETWEEN s.a - {c} AND s.a + {d}",
    "abs(r.x - s.a) <= {c} AND abs(r.y - s.b) <= {d}", "r.x < s.a AND r.y BETWEEN s.b AND s.b + {c}",
    "r.x > s.a + {c}", "r.x - s.a < {c} AND r.y > s.b", "r.x BETWEEN s.a - {c} AND s.a + {c} AND r.y <> s.b",
    "abs(r.x - s.a) <= {c} OR abs(r.y - s.b) <= {d}", "r.x + r.y < s.a + s.b", "r.k = s.j AND abs(r.x - s.a) <= {c}",
    "r.k = s.j AND r.x > s.a + {c}", "r.x * 2 < s.a AND r.y >= s.b", "r.x + {c} = s.a", "r.k = s.j AND r.x + r.y = s.a",
)
_AGGREGATES = ("count(*)", "count(s.a)", "sum(s.j)", "min(s.a)", "max(s.a)", "first(s.j)", "last(s.a)", "avg(s.j)",
               "argmin(s.j, s.a)", "argmax(s.j, s.a)", "count(DISTINCT s.j)", "list(s.j)", "median(s.j)", "mode(s.j)")
_KINDS = ("inner", "inner", "inner", "left", "right", "full", "semi", "anti", "asof", "asof_left")


@dataclass
class Case:
    """The arguments of a join."""

    r: pa.Table
    s: pa.Table
    on: str
    time: str | None
    window: Any
    how: str
    more: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        types = [f"{name}: {', '.join(f'{f.name} {f.type}' for f in table.schema)} ({len(table)} rows)"
                 for name, table in (("r", self.r), ("s", self.s))]
        return f"on={self.on!r}, time={self.time!r}, window={self.window!r}, how={self.how!r}, {self.more}; " + \
            "; ".join(types)


def _value(chance: random.Random, type_: pa.DataType, wide: int) -> Any:
    n = chance.randint(0, wide) if pa.types.is_unsigned_integer(type_) else chance.randint(-wide, wide)
    if pa.types.is_integer(type_):
        if chance.random() < 0.02:
            low = 0 if pa.types.is_unsigned_integer(type_) else -(2 ** (type_.bit_width - 1))
            return chance.choice([low, low + 1, low + 2**type_.bit_width - 1])
        return n
    if pa.types.is_floating(type_):
        if chance.random() < 0.06:
            return chance.choice([math.nan, math.inf, -math.inf, -0.0, 0.0, 1e30, 5e-324])
        return n / chance.choice([1, 1, 4])
    if pa.types.is_string(type_):
        return chance.choice(["", "a", "b", "ab", "long text ", "a much longer text "]) + str(n)
    if pa.types.is_decimal(type_):
        return Decimal(n) / chance.choice([1, 4])
    return n


def _column(chance: random.Random, type_: pa.DataType, size: int, wide: int) -> pa.Array:
    nulls = chance.choice([0.0, 0.0, 0.1, 0.5, 1.0 if chance.random() < 0.1 else 0.0])
    if chance.random() < 0.08:
        some: list[Any] = [_value(chance, type_, wide)] * size
    else:
        some = [None if chance.random() < nulls else _value(chance, type_, wide) for _ in range(size)]
    if chance.random() < 0.2:
        some.sort(key=lambda v: (v is None, 0 if v is None or v != v else v))
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return pa.array(some, pa.int64() if pa.types.is_timestamp(type_) else pa.int32()).cast(type_)
    return pa.array(some, type_)


def _size(chance: random.Random) -> int:
    return chance.choice([0, 1, 2, chance.randint(0, 12), chance.randint(10, 60), chance.randint(40, 300)])


def _times(chance: random.Random, size: int, reach: int) -> pa.Array:
    return pa.array(sorted(chance.randint(0, reach) for _ in range(size)), pa.int64())


def _tables(chance: random.Random, x: pa.DataType, y: pa.DataType, timed: bool) -> tuple[pa.Table, pa.Table]:
    wide, keys = chance.choice([3, 10, 40, 100]), chance.choice([1, 3, 8])
    reach = chance.choice([0, 5, 40, 1000])
    out = []
    for names in (("x", "y", "k"), ("a", "b", "j")):
        size = _size(chance)
        columns = {names[0]: _column(chance, x, size, wide), names[1]: _column(chance, y, size, wide),
                   names[2]: _column(chance, pa.int64(), size, keys)}
        out.append(pa.table({"ts": _times(chance, size, reach), **columns} if timed else columns))
    return out[0], out[1]


def drawn_window(chance: random.Random, timed: bool) -> str:
    """The text of a window with random bounds."""
    rows, range_ = f"ROWS {chance.randint(1, 60)}", f"RANGE {chance.choice([0, 1, 3, 20, 2000])}"
    return chance.choice([rows, range_, range_, f"{rows} {range_}"]) if timed else rows


def drawn(chance: random.Random, *, streams: bool) -> Case:
    """A random case, over whole tables or ``streams``."""
    x = chance.choice(_TYPES)
    y = x if chance.random() < 0.6 else chance.choice(_TYPES)
    numbers = all(pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t) for t in (x, y))
    on = chance.choice(_CONDITIONS + (_NUMBERS * 2 if numbers else ())).format(
        c=chance.choice([0, 1, 2, 5]), d=chance.choice([0, 1, 4]))
    if x != y and ("r.x <= s.b" in on or "s.a <= r.y" in on or "s.b AND s.a < r.y" in on or "BETWEEN s.a AND s.b" in on
                   or "BETWEEN r.x AND r.y" in on or "r.x + r.y" in on):
        y = x  # these compare x with b, which need like types
    how = chance.choice(_KINDS)
    timed = how.startswith("asof") or chance.random() < 0.7
    r, s = _tables(chance, x, y, timed)
    window: Any = None
    if streams or chance.random() < 0.4:
        window = drawn_window(chance, timed)
        if chance.random() < 0.3:
            window = (window, drawn_window(chance, timed))
    case = Case(r, s, on, "ts" if timed else None, window, how)
    if how.startswith("asof"):
        case.more["direction"] = chance.choice(["backward", "forward", "nearest"])
        if chance.random() < 0.3:
            case.more["allow_exact"] = False
        if chance.random() < 0.4:
            case.more["k"] = chance.randint(1, 4)
        if case.more["direction"] == "nearest" and chance.random() < 0.4:
            case.more["ties"] = "last"
        if chance.random() < 0.25:
            case.more["tolerance"] = chance.choice([0, 2, 30])
    elif how in ("inner", "left") and chance.random() < 0.3:
        some = chance.sample(_AGGREGATES, chance.randint(1, 3))
        case.more |= {"by": "r", "aggregate": {f"c{i}": text for i, text in enumerate(some)}}
    return case


def outcome(answer: Callable[[], pa.Table]) -> pa.Table | str:
    """The table, or the class of the error of splitjoin, which the other engine must raise too."""
    try:
        return answer()
    except SplitJoinError as error:
        return type(error).__name__


def check_same(case: Case, of: str, got: pa.Table | str, wanted: pa.Table | str, *, ordered: bool = True) -> None:
    """Raise `Difference` unless answer ``got`` is ``wanted``."""
    if isinstance(got, str) or isinstance(wanted, str):
        if not (isinstance(got, str) and isinstance(wanted, str)):
            raise Difference(f"{of} {got if isinstance(got, str) else 'rows'}, golden "
                             f"{wanted if isinstance(wanted, str) else 'rows'}: {case}")
        return
    rows = [[repr(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]
            for table in (got, wanted)]
    if not ordered:
        rows = [sorted(some) for some in rows]
    if got.schema != wanted.schema or rows[0] != rows[1]:
        at = next((i for i, (a, b) in enumerate(zip(*rows, strict=False)) if a != b), min(map(len, rows)))
        here = [some[at] if at < len(some) else "the end" for some in rows]
        raise Difference(f"{of} gives {len(rows[0])} rows, golden {len(rows[1])}; row {at} is {here[0]}, "
                         f"golden's {here[1]}: {case}")


def cpu_options(chance: random.Random) -> dict[str, Any]:
    """Random options of the CPU engine."""
    engine = chance.choice(["auto", "auto", "auto", "nested", "index", "sorted"])
    return {"engine": engine, "threads": chance.choice(["auto", 1, 2, 3, 4])}


def of_tables(chance: random.Random) -> None:
    """Compare the CPU's join of two random tables with golden's."""
    case = drawn(chance, streams=False)
    if "aggregate" in case.more or chance.random() < 0.5:
        order = None
    else:
        order = chance.choice(["total", "left", "none", "outer(7)", "inner(2)"])
    options = cpu_options(chance)
    given = {"on": case.on, "time": case.time, "window": case.window, "how": case.how, **case.more}
    if order is not None:
        given["order"] = order
    case.more |= {"order": order, **options}
    wanted = outcome(lambda: splitjoin.join(case.r, case.s, device="golden", **given).table)
    if isinstance(wanted, str):
        options["engine"] = "auto"  # an engine may refuse a condition before golden's reason is found
    got = outcome(lambda: splitjoin.join(case.r, case.s, **given, **options).table)
    if got == "UnsupportedError" and options["engine"] != "auto":
        return  # this engine has no way for the condition, and says so
    check_same(case, "the CPU", got, wanted, ordered=order not in ("none", "outer(7)", "inner(2)"))
