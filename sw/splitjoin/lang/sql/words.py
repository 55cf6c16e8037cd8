"""Words of conditions that stand for longer ones in SQL: `near`, `in_network` and `contains`. The parser puts these in
their place, so that nothing else knows of them; DuckDB computes what they say of one table, once per tuple.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp

from splitjoin.base.errors import PredicateError

__all__ = ["WORDS"]

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


def _filled(template: str, args: Sequence[Any]) -> exp.Expr:
    """``template``, DuckDB's SQL, with ``args`` in place of its columns a, b, c, …"""
    made: exp.Expr = _parsed(template).transform(
        lambda node: exp.Paren(this=args["abcde".index(node.name)].copy()) if isinstance(node, exp.Column) else node)
    return exp.Paren(this=made)


def _near(args: list[Any]) -> exp.Expr:
    if len(args) != 5:
        raise PredicateError(f"near() takes latitude and longitude of two points in degrees, and kilometres, such as "
                             f"near(r.lat, r.lon, s.lat, s.lon, 2), not {len(args)} values")
    if args[4].find(exp.Column):
        return _filled(f"{_LINE} <= CASE WHEN e >= 0 THEN pow(2 * sin(least(e / {_DIAMETER}, pi() / 2)), 2) "
                       "ELSE -1 END", args)
    if not isinstance(args[4], exp.Literal) or args[4].is_string:
        raise PredicateError(f"near() takes kilometres as a number from 0 on or a column, such as 2.5, not "
                             f"{args[4].sql('duckdb')}")
    return _filled(f"{_LINE} <= {(2 * math.sin(min(float(args[4].name) / _DIAMETER, math.pi / 2))) ** 2!r}", args)


def _in_network(args: list[Any]) -> exp.Expr:
    if len(args) != 2:
        raise PredicateError(f"in_network() takes an address and a network of IPv4 as texts, such as in_network(r.ip, "
                             f"s.cidr), not {len(args)} values")
    return _filled(f"{_NUMBER.format(of='a')} BETWEEN {_FIRST} AND {_LAST}", args)


def _contains(args: list[Any]) -> exp.Expr:
    if len(args) == 2:  # DuckDB's, of texts, lists and maps
        return exp.Anonymous(this="contains", expressions=args)
    if len(args) not in (3, 4):
        raise PredicateError(f"contains() takes start and end of an interval, and a point or an interval in it, such "
                             f"as contains(r.start, r.end, s.at), not {len(args)} values")
    return _filled("a <= c AND c < b" if len(args) == 3 else "a <= c AND d <= b", args)


#: What makes the longer condition, by the word as sqlglot has it.
WORDS: dict[str, Any] = {
    "NEAR": _near, "IN_NETWORK": _in_network, "CONTAINS": _contains}
