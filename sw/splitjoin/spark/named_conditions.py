"""`NamedConditions`: several conditions of one streaming join, whose rows have the name of the one that they meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from splitjoin.base.errors import InputError, SchemaError, UnsupportedError
from splitjoin.lang import build
from splitjoin.lang.canonical import canonical
from splitjoin.lang.eval.vector import column, evaluate_columns
from splitjoin.lang.ir import Col, Expr, columns
from splitjoin.lang.query import Query, predicate
from splitjoin.lang.schema import Schema, Side
from splitjoin.plan.implication import weakest
from splitjoin.rows.output import OutputColumn, output_schema

from .columns import read_condition

#: The column that holds the name of a row's condition.
QUERY = pa.field("query", pa.string(), nullable=False)


@dataclass(frozen=True)
class NamedConditions:
    """Conditions by name, in the order in which a pair's rows come."""

    conditions: tuple[tuple[str, Expr], ...]

    @classmethod
    def read(cls, on: Mapping[str, Any], r: Schema, s: Schema, frames: Mapping[Side, DataFrame]) -> NamedConditions:
        """The conditions ``on``, each as `stream_join` takes one. Raises `InputError` for names that are none."""
        if not on or not all(isinstance(name, str) and name for name in on):
            raise InputError(f"on must have one condition at least, each by a name that is a text, not {list(on)!r}")
        return cls(tuple((name, predicate(read_condition(one, r, s, frames), r, s)) for name, one in on.items()))

    @property
    def any(self) -> Expr:
        """The condition that one of them is true: the join's own."""
        found = weakest([condition for _, condition in self.conditions])
        return found[0] if len(found) == 1 else build.or_(found, "on")

    def over(self, query: Query, chosen: Sequence[OutputColumn]) -> NamedRows:
        """What makes the rows of ``query``, the join's, which have the columns ``chosen``. Raises `SchemaError`."""
        names = [c.name for c in chosen if c.name.lower() == QUERY.name]
        if names:
            raise SchemaError(f"with several conditions the result has a column {QUERY.name!r}, which holds their "
                              f"names, but there is {names[0]!r} too; rename that input column, or leave it out with "
                              f"select")
        have = {(c.side, c.source): n for n, c in enumerate(chosen)}
        gathered = list(chosen)
        places: dict[Col, int] = {}
        for col in dict.fromkeys(c for _, condition in self.conditions for c in columns(condition)):
            key = col.side, col.name
            if key not in have:
                have[key] = len(gathered)
                schema = query.schema(col.side).arrow
                assert schema is not None
                gathered.append(OutputColumn(f"{col.side}.{col.name}", col.side, col.name, schema.field(col.name)))
            places[col] = have[key]
        return NamedRows(self.conditions, tuple(gathered), len(chosen), places)


@dataclass(frozen=True)
class NamedRows:
    """Makes the rows of each pair: one for each condition that is true of it. It is what a SELECT list is elsewhere.

    Attributes:
        conditions: The conditions by name.
        gathered: The columns of a pair: those of the result, and others that conditions test.
        given: The number of the former.
        places: Where each tested column is among them.
    """

    conditions: tuple[tuple[str, Expr], ...]
    gathered: tuple[OutputColumn, ...]
    given: int
    places: Mapping[Col, int]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return pa.schema([QUERY, *output_schema(self.gathered[:self.given])])

    @property
    def identity(self) -> str:
        """The conditions as text, which must not change while a query goes on."""
        return "; ".join(f"{name}: {canonical(condition)}" for name, condition in self.conditions)

    def result(self, of_pairs: StructType) -> StructType:
        """Spark's schema of the result, whose rows of pairs have the schema ``of_pairs``."""
        return StructType([StructField(QUERY.name, StringType(), False), *of_pairs])

    def rows(self, gathered: pa.Table) -> pa.Table:
        """The result rows for gathered pairs: pair by pair, and for each in the order of the conditions."""
        values = {col: column(gathered.column(at)) for col, at in self.places.items()}
        met = np.empty((len(gathered), len(self.conditions)), np.bool_)
        for n, (_, condition) in enumerate(self.conditions):
            value = evaluate_columns(condition, {c: values[c] for c in columns(condition)}, len(gathered))
            met[:, n] = value.valid & value.values
        pair, which = np.nonzero(met)
        names = pa.DictionaryArray.from_arrays(pa.array(which.astype(np.int32)), [n for n, _ in self.conditions])
        chosen = gathered.select(list(range(self.given))).take(pa.array(pair))
        return pa.table([names.cast(pa.string()), *chosen.columns], schema=self.schema)


def check_named(kind: Mapping[str, Any], *, streaming: bool, rewrite: bool, early: bool) -> None:
    """Raise `UnsupportedError` unless a join may have several conditions."""
    what = ("of batch DataFrames" if not streaming else "with engine='rewrite'" if rewrite else
            "with early=True" if early else "with aggregates" if kind["aggregate"] is not None else
            f"of kind {kind['how']!r}" if kind["how"] != "inner" else "")
    if what:
        raise UnsupportedError(f"several conditions in `on` are for inner joins of streaming DataFrames, as these keep "
                               f"one state for all, but the join is one {what}; give a stream_join for each condition")
