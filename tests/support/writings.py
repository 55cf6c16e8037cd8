"""Random conditions over two tables, each in several equivalent writings, for tests of what writings cost.

A condition is a conjunction of parts, and a part is a list of writings that are true of the same pairs. A writing of
the condition takes one of each part, in any order, and may negate, nest, repeat or imply what it has.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

_HOUR, _MINUTES = "INTERVAL '1 HOUR'", "INTERVAL '20 MINUTES'"


def tables(rows: int, *, nulls: bool = False) -> tuple[pa.Table, pa.Table]:
    """R and S, whose columns differ in how far they spread: 0 to 499 twice, 0 to 8, texts in mixed case, times that are
    whole minutes, quarters and rising times. With ``nulls``, some values of each column but the last are NULL.
    """
    made = list[pa.Table]()
    for seed, names in ((1, ("x", "y", "k", "t", "d", "f")), (2, ("a", "b", "j", "u", "e", "g"))):
        numbers = [seed * 7919 + 104729 * i for i in range(rows)]
        values: list[list[Any]] = [
            [n % 499 for n in numbers], [n // 7 % 499 for n in numbers], [n // 3 % 9 for n in numbers],
            [f"{'tT'[n % 2]}{n // 5 % 40}" for n in numbers], [n % 499 * 420_000_000 for n in numbers],
            [n % 499 / 4 for n in numbers]]
        kinds = (pa.int64(), pa.int64(), pa.int64(), pa.string(), pa.timestamp("us"), pa.float64())
        columns: dict[str, pa.Array] = {name: pa.array([None if nulls and (n + at) % 23 == 0 else v for n, v in zip(
            numbers, of, strict=True)], kind) for at, (name, of, kind) in enumerate(zip(
                names, values, kinds, strict=True))}
        made.append(pa.table({**columns, "ts": pa.array(range(rows), pa.int64())}))
    return made[0], made[1]


def _equal(a: str, b: str) -> list[str]:
    return [f"{a} = {b}", f"{b} = {a}", f"{a} <= {b} AND {a} >= {b}", f"{a} BETWEEN {b} AND {b}", f"NOT ({a} <> {b})",
            f"{a} IN ({b})", f"{a} = {b} AND {a} <= {b}", f"NOT ({a} < {b} OR {a} > {b})",
            f"{a} = {b} AND {b} IS NOT NULL", f"({a} = {b}) IS TRUE"]


def _equal_numbers(a: str, b: str) -> list[str]:
    return [*_equal(a, b), f"{a} - {b} = 0", f"{a} + 3 = {b} + 3", f"abs({a} - {b}) <= 0", f"2 * {a} = 2 * {b}",
            f"({a} - {b}) * ({a} - {b}) = 0", f"least({a}, {b}) = greatest({a}, {b})", f"abs({a} - {b}) < 1",
            f"NOT (abs({a} - {b}) >= 1)", f"{a} ^ {b} = 0", f"-{a} = -{b}"]


def _band(a: str, b: str, by: str) -> list[str]:
    return [f"abs({a} - {b}) <= {by}", f"{a} BETWEEN {b} - {by} AND {b} + {by}",
            f"{b} BETWEEN {a} - {by} AND {a} + {by}", f"NOT (abs({a} - {b}) > {by})",
            f"{a} - {b} <= {by} AND {b} - {a} <= {by}",
            f"{a} >= {b} - {by} AND {a} <= {b} + {by}", f"NOT ({a} < {b} - {by} OR {a} > {b} + {by})",
            f"abs({a} - {b}) <= {by} AND {a} <= {b} + {by} + {by}",
            f"{a} NOT BETWEEN {b} - {by} AND {b} + {by} IS FALSE", f"abs({b} - {a}) <= {by} AND NOT ({a} - {b} > {by})"]


def _band_numbers(a: str, b: str, by: int) -> list[str]:
    return [*_band(a, b, str(by)), f"{a} - {b} BETWEEN -{by} AND {by}", f"abs({a} - {b}) < {by + 1}",
            f"2 * abs({a} - {b}) <= {2 * by + 1}", f"({a} - {b}) * ({a} - {b}) <= {by * by}",
            f"greatest({a}, {b}) - least({a}, {b}) <= {by}", f"greatest({a} - {b}, {b} - {a}) <= {by}",
            f"sqrt(({a} - {b}) * ({a} - {b})) <= {by}"]


def _outside(a: str, b: str, by: int) -> list[str]:
    return [f"abs({a} - {b}) >= {by}", f"{a} - {b} >= {by} OR {b} - {a} >= {by}", f"NOT (abs({a} - {b}) < {by})",
            f"{a} NOT BETWEEN {b} - {by - 1} AND {b} + {by - 1}", f"({a} - {b}) * ({a} - {b}) >= {by * by}",
            f"{a} <= {b} - {by} OR {a} >= {b} + {by}", f"greatest({a}, {b}) - least({a}, {b}) >= {by}",
            f"CASE WHEN {a} > {b} THEN {a} - {b} ELSE {b} - {a} END >= {by}"]


def _below(a: str, b: str) -> list[str]:
    return [f"{a} < {b}", f"{b} > {a}", f"NOT ({a} >= {b})", f"{a} < {b} AND {a} <= {b}", f"{a} < {b} OR {a} < {b}",
            f"NOT ({b} <= {a})", f"{a} <= {b} AND {a} <> {b}"]


def _below_numbers(a: str, b: str) -> list[str]:
    return [*_below(a, b), f"{a} - {b} < 0", f"{a} + 1 <= {b}", f"2 * {a} < 2 * {b}", f"{a} < {b} AND {a} < {b} + 3",
            f"greatest({a}, {b}) > {a}", f"-{a} > -{b}"]


#: Parts of conditions by name; those with few matches may stand alone, others stand beside them.
SHAPES: dict[str, Sequence[str]] = {
    "equal": _equal_numbers("r.x", "s.a"),
    "equal keys": _equal_numbers("r.k", "s.j"),
    "equal floats": [*_equal("r.f", "s.g"), "r.f - s.g = 0.0", "abs(r.f - s.g) <= 0.0"],
    "equal texts": [*_equal("r.t", "s.u"), "starts_with(r.t, s.u) AND r.t = s.u"],
    "equal computed texts": [*_equal("lower(r.t)", "lower(s.u)"), "upper(s.u) = upper(r.t)",
                             "lower(r.t) || '!' = lower(s.u) || '!'"],
    "equal times": [*_equal("r.d", "s.e"), "r.d - s.e = INTERVAL '0' SECOND", "epoch(r.d) = epoch(s.e)"],
    "equal hours": [*_equal("date_trunc('hour', r.d)", "date_trunc('hour', s.e)"), "date_diff('hour', r.d, s.e) = 0",
                    "NOT (abs(date_diff('hour', r.d, s.e)) > 0)"],
    "equal parts": ["r.x // 10 = s.a // 10", "r.x - r.x % 10 = s.a - s.a % 10"],
    "equal ends": ["r.x % 10 = s.a % 10", "s.a % 10 = r.x % 10", "NOT (r.x % 10 <> s.a % 10)"],
    "equal or null": ["r.k IS NOT DISTINCT FROM s.j", "r.k = s.j OR (r.k IS NULL AND s.j IS NULL)",
                      "coalesce(r.k, -1) = coalesce(s.j, -1)", "NOT (r.k IS DISTINCT FROM s.j)"],
    "band": _band_numbers("r.x", "s.a", 5),
    "wide band": _band_numbers("r.y", "s.b", 50),
    "band of floats": _band("r.f", "s.g", "1.5"),
    "band of times": [*_band("r.d", "s.e", _MINUTES), "abs(epoch(r.d) - epoch(s.e)) <= 1200",
                      f"r.d - s.e BETWEEN -{_MINUTES} AND {_MINUTES}", f"s.e - r.d BETWEEN -{_MINUTES} AND {_MINUTES}",
                      "abs(date_diff('minute', r.d, s.e)) <= 20",
                      "epoch(r.d) BETWEEN epoch(s.e) - 1200 AND epoch(s.e) + 1200"],
    "below": _below_numbers("r.x", "s.a"),
    "other below": _below_numbers("r.y", "s.b"),
    "floats below": _below("r.f", "s.g"),
    "texts below": _below("r.t", "s.u"),
    "times below": [*_below("r.d", "s.e"), "r.d - s.e < INTERVAL '0' SECOND"],
    "twice below": ["2 * r.x < s.a", "r.x + r.x < s.a", "r.x < s.a - r.x"],
    "sum below": ["r.x + r.y < s.a + s.b", "r.x - s.a < s.b - r.y"],
    "contained": ["r.x BETWEEN s.a AND s.b", "s.a <= r.x AND s.b >= r.x", "NOT (r.x < s.a OR r.x > s.b)",
                  "r.x - s.a >= 0 AND r.x - s.b <= 0"],
    "overlap": ["r.x <= s.b AND s.a <= r.y", "NOT (r.x > s.b OR s.a > r.y)", "r.y >= s.a AND s.b >= r.x",
                "r.x <= s.b AND s.a - r.y <= 0"],
    "outside": _outside("r.x", "s.a", 400),
    "either equal": ["r.k = s.j OR r.x = s.a", "NOT (r.k <> s.j AND r.x <> s.a)", "r.x = s.a OR s.j = r.k",
                     "NOT (NOT (r.k = s.j) AND NOT (r.x - s.a = 0))",
                     "CASE WHEN r.x = s.a THEN TRUE ELSE r.k = s.j END"],
    "of r": ["r.k > 3", "NOT (r.k <= 3)", "r.k >= 4", "r.k IN (4, 5, 6, 7, 8)", "r.k BETWEEN 4 AND 8"],
    "of s": ["s.u LIKE 't%'", "starts_with(s.u, 't')", "NOT (s.u NOT LIKE 't%')"],
    "texts of r": ["r.t LIKE 't1%'", "starts_with(r.t, 't1')"],
    "verified": ["(r.y * s.b) % 3 = 1", "1 = (s.b * r.y) % 3", "NOT ((r.y * s.b) % 3 <> 1)"],
}


#: Parts that most pairs are true of, and that stand beside others.
_BESIDE = ("of r", "of s", "texts of r", "verified")
_ALONE = [name for name in SHAPES if name not in _BESIDE]


class Writer:
    """Writes conditions, by ``seed``: of one to three parts, some with an OR of two more. ``nulls``: leave out what is
    equivalent only where nothing is NULL.
    """

    def __init__(self, seed: int, *, nulls: bool = False):
        self._chance, self._nulls = random.Random(seed), nulls
        self._names = self._chance.sample(_ALONE, self._chance.choice((1, 1, 2, 2, 3)))
        if self._chance.random() < 0.3:
            self._names.append(self._chance.choice(_BESIDE))
        self._either = self._chance.sample(_ALONE, 2) if self._chance.random() < 0.25 else []

    def writing(self) -> str:
        """The next one of the condition's writings."""
        chance, parts = self._chance, [self._part(name) for name in self._names]
        if chance.random() < 0.3:
            parts.append(self._part(chance.choice(self._names)))  # the same once more
        chance.shuffle(parts)
        if self._either:
            a, b = map(self._part, chance.sample(self._either, 2))
            if chance.random() < 0.5:
                return self._all([*parts, chance.choice((f"({a} OR {b})", f"(NOT (NOT {a} AND NOT {b}))"))])
            return f"({self._all([*parts, a])}) OR ({self._all([b, *parts])})"
        whole = self._all(parts)
        if chance.random() < 0.15:  # with an alternative that implies it
            return f"({whole}) OR ({self._all([*parts, self._part(chance.choice(_ALONE))])})"
        return whole

    def _part(self, name: str) -> str:
        return f"({self._chance.choice([text for text in SHAPES[name] if not (self._nulls and 'least(' in text)])})"

    def _all(self, parts: Sequence[str]) -> str:
        """The conjunction of ``parts``."""
        how = self._chance.random()
        if how < 0.15 and len(parts) > 1:
            first, *others = parts
            return f"CASE WHEN {first} THEN {' AND '.join(others)} ELSE FALSE END"
        return f"NOT ({' OR '.join(f'NOT {part}' for part in parts)})" if how < 0.3 else " AND ".join(parts)
