"""Equalities of whole tables that NULL and NULL meet, as equalities of columns in which NULL is a number of its own."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from itertools import count

import numpy as np
import pyarrow as pa

from splitjoin.lang.ir import And, Cmp, Col, Expr, IsNull, Not, Or, rebuilt, sides
from splitjoin.lang.properties import causes
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.types import BOOL, Bool, Int, is_text

from ..arrival import Arrivals
from .hash_join import operands

_MOST = 2**63 - 1


def with_coded_nulls(query: Query, incoming: Arrivals) -> tuple[Query, Arrivals]:
    """``query`` with a plain equality for each that NULL and NULL meet, as of IS NOT DISTINCT FROM and ``r.k = s.k OR
    (r.k IS NULL AND s.k IS NULL)``, true of the same pairs; and ``incoming`` with the columns that these compare. They
    hold numbers or times as integers, and one more for NULL; equalities of texts and truth values stay.
    """
    tables = incoming.tables

    def coded(e: Expr) -> Expr:
        if isinstance(e, Not) and isinstance(e.a, Not):
            return coded(e.a.a)
        if not isinstance(e, (And, Or)):
            return e
        equal = _null_safe(e) if isinstance(e, Or) else None
        made = None if equal is None else _of_columns(equal, tables)
        return made or rebuilt(e, [coded(arg) for arg in e.args])

    predicate = coded(query.predicate)
    if predicate == query.predicate:
        return query, incoming
    with_columns = copy(incoming)
    vars(with_columns).update(r=tables["r"], s=tables["s"])
    return replace(query, predicate=predicate), with_columns


def _null_safe(e: Or) -> Cmp | None:
    """The equality of the two values of which ``e`` says that they are equal or both NULL; None if it does not."""
    for both, equal in (e.args, e.args[::-1]) if len(e.args) == len(SIDES) else ():
        if not (isinstance(both, And) and len(both.args) == len(SIDES)):
            continue
        there = [Not(BOOL, x) for x in both.args]
        compared, *others = sorted(equal.args if isinstance(equal, And) else (equal,), key=lambda x: x in there)
        if isinstance(compared, Cmp) and compared.op == "=" and all(x in there for x in others):
            lacking = {frozenset(causes(x.a)) for x in both.args if isinstance(x, IsNull)}
            of = {frozenset(causes(x)): "".join(sides(x)) for x in (compared.a, compared.b)}
            if lacking == of.keys() and sorted(of.values()) == list(SIDES):
                return compared
    return None


def _of_columns(equal: Cmp, tables: dict[Side, pa.Table]) -> Cmp | None:
    """``equal`` of columns that are added to ``tables``; None where its values have no numbers of 64 bits, or all of
    these are taken.
    """
    ordered = equal if sides(equal.a) == {"r"} else replace(equal, a=equal.b, b=equal.a)
    if is_text(equal.a.type) or isinstance(equal.a.type, Bool) or (found := operands(ordered, tables)) is None:
        return None
    if any(one.valid.all() for one in found):
        return equal  # of which one side is never NULL
    most = max(int(one.values.max(initial=-1, where=one.valid)) for one in found)
    null = most + 1 if most < _MOST else min(int(one.values.min(initial=0, where=one.valid)) for one in found) - 1
    if null < -_MOST:
        return None
    made = list[Col]()
    for side, one in zip(SIDES, found, strict=True):
        name = next(name for n in count() if (name := f"splitjoin nulls {n}") not in tables[side].column_names)
        tables[side] = tables[side].append_column(name, pa.array(np.where(one.valid, one.values, null)))
        made.append(Col(Int(64), side, name, False))
    return Cmp(BOOL, "=", *made)
