"""Conditions that no interval or sum test decides, and rows for them: what formula tests are for."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

_NOT_NULL = {"x": pa.int16(), "y": pa.int16(), "u": pa.uint32(), "w": pa.uint8()}
_NULLABLE = {"k": pa.int8(), "p": pa.decimal128(5, 2), "f": pa.bool_(), "t": pa.string(), "d": pa.date32(),
             "z": pa.timestamp("ms")}
_R = [pa.field(name, type_, False) for name, type_ in _NOT_NULL.items()] + [
    pa.field(name, type_) for name, type_ in _NULLABLE.items()]
#: R has columns x, y, …, S columns a, b, c (from w), e (from u), and others of the same names.
_S_NAMES = {"x": "a", "y": "b", "w": "c", "u": "e"}
SCHEMAS = {"r": pa.schema(_R),
           "s": pa.schema([f.with_name(_S_NAMES.get(f.name, f.name)) for f in _R])}

_DOT = "r.x * s.a + r.y * s.b"
CONDITIONS = {
    "product of distances": "abs(r.x - s.a) * abs(r.y - s.b) <= 500",
    "remainder by a value": "r.x % (abs(s.a) + 1) = 0",
    "no common bit": "(r.x & s.a) = 0",
    "dot product": "r.x * s.a + r.y * s.b > 300",
    "cross product": "r.x * s.b - r.y * s.a > 0",
    "determinant beside a band": "r.x * s.b - r.y * s.a < 100 AND abs(r.x - s.a) <= 5",
    "weights in a distance": "s.c * (r.x - s.a) * (r.x - s.a) + 3 * (r.y - s.b) * (r.y - s.b) <= 9000",
    "remainder of a difference": "(r.x - s.a) % 7 * r.y < 3 * s.b",
    "mod of a difference": "mod(r.x - s.a, 7) > mod(r.y - s.b, -5) OR (r.x * s.b) % -6 = -2",
    "quotient": "(r.x - s.a) // 7 = (r.y - s.b) // 10",
    "quotient towards 0": "(r.x * s.a) DIV 6 > r.y",
    "remainder by a value of both": "(r.x * s.b) % (r.y - s.a) = 1",
    "div by a value": "(r.x + s.a) DIV s.b > 2",
    "mod by a nullable value": "mod(r.x + s.a, s.k) = 0",
    "parity": "bit_count(r.w ^ s.c) % 2 = 1",
    "odd weight": "3 * bit_count(r.x ^ s.a) <= 20",
    "bits": "((r.x | s.a) ^ (r.y & s.b)) > 6",
    "shifts": "((r.x ^ s.a) << 2) * r.y > 24 OR ((r.x & s.a) >> 3) * s.b = 2",
    "shifts by values": "(r.x >> (s.c & 7)) * s.a > 40 OR (s.a << (r.w & 3)) - r.x = 12",
    "shifts by nullable values": "(r.x << (s.k & 15)) - s.b * 3 > (r.u >> (s.k & 31)) + 500",
    "unsigned product": "r.u * s.e % 1000 < 300",
    "extremes": "greatest(r.x, s.a) * r.y - least(r.y, s.b) * s.a < 10",
    "extremes with NULL": "greatest(r.k, s.k, r.x) * s.b > least(s.a, r.k) * r.y",
    "choice": f"CASE WHEN r.x > s.a THEN {_DOT} WHEN r.y = s.b THEN r.x * s.b - s.a ELSE s.a + r.x END > 10",
    "choice with NULL": f"CASE WHEN r.k > s.k THEN {_DOT} ELSE r.k * s.b + r.x * s.k END > 5",
    "choice of conditions": f"CASE WHEN r.f THEN {_DOT} > 20 WHEN s.f THEN r.y * s.b > 20 ELSE r.x * s.b = r.y END",
    "product of nullable": "r.k * s.k + r.x * s.a >= 12",
    "not": "NOT (r.k * s.k + r.x * s.a >= 12)",
    "NULL of a product": f"(r.k * s.k IS NULL) = ({_DOT} > 10)",
    "NULL of a quotient": "(r.x DIV (r.x * s.a - r.y * s.b) IS NULL) OR r.x DIV (s.a - r.y) = 1",
    "coalesce": "coalesce(r.k, s.k, r.x * s.a) * 3 > s.b",
    "decimals": "r.p * s.p + r.x * s.a > 2.5",
    "decimals and numbers": "(r.p - s.a) * (s.p + 1.25) < r.y",
    "decimal remainder": "(r.p + s.p) % 1.5 * r.x < 0.25 * s.a",
    "bools": f"(r.f = s.f) = ({_DOT} > 0)",
    "bools or": f"(r.f AND {_DOT} > 0) OR (s.f AND r.y * s.b > 30)",
    "texts": f"r.t = s.t OR {_DOT} > 300",
    "chosen texts": f"CASE WHEN {_DOT} > 0 THEN r.t ELSE 'oak' END = s.t",
    "order of texts": f"CASE WHEN r.t < s.t THEN {_DOT} ELSE r.y * s.b END > 40",
    "not in order": f"NOT (r.t >= s.t OR {_DOT} > 0)",
    "greatest text": f"greatest(r.t, s.t) = CASE WHEN {_DOT} > 0 THEN r.t ELSE 'oak' END",
    "least of chosen texts": f"least(CASE WHEN {_DOT} > 0 THEN r.t ELSE s.t END, s.t, 'elm') <= r.t",
    "LIKE of chosen texts": f"CASE WHEN {_DOT} > 0 THEN r.t ELSE s.t END LIKE '%k' OR greatest(r.t, s.t) LIKE 'b%'",
    "LIKE": f"CASE WHEN r.t LIKE '%a%' THEN {_DOT} ELSE r.y * s.b END > 100",
    "dates": "(r.d - s.d) * r.x > s.a",
    "months of chosen dates": f"date_trunc('month', CASE WHEN {_DOT} > 0 THEN r.d ELSE s.d END)"
                              " = date_trunc('month', s.d)",
    "times": f"CASE WHEN r.z > s.z THEN {_DOT} ELSE r.y * s.b END > 40",
    "one-sided parts": "(r.x * r.x + r.y) * (s.a - 3) > 2 * s.b * s.b + 7",
}


def rows(side: str, n: int, seed: object) -> pa.Table:
    """``n`` rows of stream ``side``, for ``SCHEMAS``: small numbers, with the ends of types and NULL between them."""
    rng = random.Random(f"{side} {seed}")

    def value(field: pa.Field) -> Any:
        if field.nullable and rng.random() < 0.15:
            return None
        type_ = field.type
        if pa.types.is_integer(type_):
            signed, bits = pa.types.is_signed_integer(type_), type_.bit_width
            low, high = (-2**(bits - 1), 2**(bits - 1) - 1) if signed else (0, 2**bits - 1)
            return rng.choice([low, high]) if rng.random() < 0.05 else max(low, rng.randint(-12, 30))
        if pa.types.is_decimal(type_):
            return Decimal(rng.choice([rng.randint(-600, 600), rng.randint(-30, 30) * 25])).scaleb(-2)
        if pa.types.is_boolean(type_):
            return rng.random() < 0.5
        if pa.types.is_string(type_):
            return rng.choice(["ash", "oak", "birch", "", "elm"])
        if pa.types.is_date(type_):
            return dt.date(2024, 1, 1) + dt.timedelta(rng.randint(-20, 20))
        return dt.datetime(2024, 1, 1) + dt.timedelta(milliseconds=rng.randint(-50, 50))

    schema = SCHEMAS[side]
    return pa.table([pa.array([value(f) for _ in range(n)], f.type) for f in schema], schema=schema)
