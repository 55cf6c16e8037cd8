"""Words of conditions that stand for longer ones in SQL: `near`, `in_network` and `contains`. The parser puts these in
their place, so that nothing else knows of them; DuckDB computes what they say of one table, once per tuple.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp

from splitjoin.base.errors import PredicateError

#: Kilometres of the Earth's mean diameter (IUGG).
_DIAMETER = 2 * 6371.0088
#: The square of the straight line between two points of the unit sphere, by the differences of their coordinates.
_LINE = " + ".join(f"({first} - {second}) * ({first} - {second})" for first, second in (
    ("cos(radians(a)) * cos(radians(b))", "cos(radians(c)) * cos(radians(d))"),
    ("cos(radians(a)) * sin(radians(b))", "cos(radians(c)) * sin(radians(d))"), ("sin(radians(a))", "sin(radians(c))")))
#: The number of an address, the size of a network and its first and last number; NULL for what is none.
_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_NUMBER = f"CASE WHEN regexp_full_match({{of}}, '{_BYTE}([.]{_BYTE}){{{{3}}}}') THEN " + " + ".join(
    f"CAST(split_part({{of}}, '.', {n + 1}) AS BIGINT) * {256 ** (3 - n)}" for n in range(4)) + " END"
_SIZE = ("CASE WHEN b NOT LIKE '%/%' THEN 1 WHEN regexp_full_match(split_part(b, '/', 2), '[12]?[0-9]|3[0-2]') AND "
         "b NOT LIKE '%/%/%' THEN CAST(1 AS BIGINT) << (32 - CAST(split_part(b, '/', 2) AS BIGINT)) END")
_BASE = _NUMBER.format(of="split_part(b, '/', 1)")
_FIRST = f"({_BASE}) - ({_BASE}) % ({_SIZE})"
_LAST = f"{_FIRST} + ({_SIZE}) - 1"


@lru_cache(maxsize=16)
def _parsed(template: str) -> Any:
    return sqlglot.parse_one(template, dialect="duckdb")


def _word(usage: str, **templates: str) -> Callable[[list[Any]], exp.Expr]:
    """A word that takes values as ``usage`` says: by their number, behind a letter, the SQL of DuckDB that stands for
    it, with the columns a, b, c, … in place of the values.
    """
    def made(args: list[Any]) -> exp.Expr:
        template = templates.get(f"n{len(args)}")
        if template is None:
            raise PredicateError(f"{usage}, not {len(args)} values")
        return exp.Paren(this=_parsed(template).transform(lambda node: exp.Paren(
            this=args["abcde".index(node.name)].copy()) if isinstance(node, exp.Column) else node))

    return made


def _near(args: list[Any]) -> exp.Expr:
    if len(args) == 5 and not args[4].find(exp.Column):  # a constant, which the language knows
        if not isinstance(args[4], exp.Literal) or args[4].is_string:
            raise PredicateError(f"near() takes kilometres as a number from 0 on or a column, such as 2.5, not "
                                 f"{args[4].sql('duckdb')}")
        line = (2 * math.sin(min(float(args[4].name) / _DIAMETER, math.pi / 2))) ** 2
        return _word("", n4=f"{_LINE} <= {line!r}")(args[:4])
    return _word("near() takes latitude and longitude of two points in degrees, and kilometres, such as near(r.lat, "
                 "r.lon, s.lat, s.lon, 2)", n5=f"{_LINE} <= CASE WHEN e >= 0 THEN pow(2 * sin(least(e / {_DIAMETER}, "
                 f"pi() / 2)), 2) ELSE -1 END")(args)


#: What makes the longer condition, by the word as sqlglot has it. With two values, `contains` is DuckDB's.
WORDS: dict[str, Any] = {
    "NEAR": _near,
    "IN_NETWORK": _word("in_network() takes an address and a network of IPv4 as texts, such as in_network(r.ip, s.net)",
                        n2=f"{_NUMBER.format(of='a')} BETWEEN {_FIRST} AND {_LAST}"),
    "CONTAINS": _word("contains() takes start and end of an interval, and a point or an interval in it, such as "
                      "contains(r.start, r.end, s.at)", n2="contains(a, b)", n3="a <= c AND c < b",
                      n4="a <= c AND d <= b")}
