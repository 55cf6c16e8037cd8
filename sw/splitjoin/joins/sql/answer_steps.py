"""The steps of answers: functions of tables and of what other steps made, which hold no rows. Of each, what is known of
the statement comes first, then what runs a join.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from sqlglot import exp

from splitjoin.base.arrays import Ints
from splitjoin.lang.layouts import take

from .database import finished
from .plain_rows import plain_rows
from .steps import RunJoin
from .subqueries import has_no_null
from .table_join import JoinedTables, JoinStep
from .trees import named_column

#: The label of the columns that stand for SELECTs that are values.
VALUES = "splitjoin values"


def one_table(label: str, _: RunJoin, table: pa.Table) -> JoinedTables:
    """``table`` as a part of rows."""
    return JoinedTables({label: table})


def nearest_row(names: tuple[str, ...], called: tuple[str, ...], label: str, _: RunJoin, rows: JoinedTables
                ) -> JoinedTables:
    """``rows`` with the columns ``names`` of the last part, ``called`` so, as the part ``label``."""
    others = dict(rows.parts)
    found = others.popitem()[1]
    return JoinedTables({**others, label: found.select(list(names)).rename_columns(list(called))})


def without_null(column: exp.Column, _: RunJoin, rows: JoinedTables) -> JoinedTables | None:
    """The ``rows``; None where ``column`` of them has NULL, of which later steps know nothing."""
    return rows if has_no_null(column, {label.lower(): part for label, part in rows.parts.items()}) else None


def rows_of(_: RunJoin, rows: JoinedTables, numbers: Ints) -> JoinedTables:
    """Those of ``rows`` with these numbers."""
    return JoinedTables(rows.taken(pa.array(numbers)))


def numbers_left(step: JoinStep, run: RunJoin, rows: JoinedTables, partners: JoinedTables) -> Ints:
    """The numbers of the ``rows`` that a semi or anti join leaves."""
    left: Ints = step.numbers(run, rows, partners)[0].to_numpy()
    return left


def chosen(_: RunJoin, numbers: Ints, left: Ints) -> Ints:
    """Those of ``numbers`` at the places ``left``."""
    return numbers[left]


def truth_values(_: RunJoin, rows: JoinedTables, true: Ints, *false: Ints) -> pa.Table:
    """For each of the ``rows`` whether its number is in ``true``; NULL if it is not in ``false`` either."""
    found = [np.isin(np.arange(len(rows)), one) for one in (true, *false)]
    return pa.table({"v": pa.array(found[0], mask=~(found[0] | found[1]) if false else None)})


def nearest_value(step: JoinStep, name: str, run: RunJoin, rows: JoinedTables, partners: JoinedTables) -> pa.Table:
    """The column ``name`` of the partner that an as-of join gives each row."""
    (table,) = partners.parts.values()
    return values_in_order(*step.numbers(run, rows, partners), table.column(name))


def values_in_order(r: pa.Array, s: pa.Array | None, values: pa.ChunkedArray) -> pa.Table:
    """The values of the rows ``s`` in the order of ``r``, which has each row once."""
    assert s is not None
    at = np.empty(len(r), np.int64)
    at[r.to_numpy()] = np.arange(len(r))
    return pa.table({"v": take(values, s.take(pa.array(at)))})


def value_name(n: int) -> exp.Column:
    """The column that stands for the value of this number."""
    return named_column(VALUES, f"{VALUES} {n}")


def with_values(_: RunJoin, rows: JoinedTables, *columns: pa.Table) -> JoinedTables:
    """``rows`` with the columns that stand for SELECTs that are values."""
    fields = [of.schema.field(0).with_name(f"{VALUES} {n}") for n, of in enumerate(columns)]
    return JoinedTables({**rows.parts, VALUES: pa.table([of.column(0) for of in columns], schema=pa.schema(fields))})


def plain_part(rest: exp.Select, columns: Mapping[str, list[str]], distinct: bool, _: RunJoin, rows: JoinedTables
               ) -> pa.Table | None:
    """The rows of ``rest`` over these ``columns`` of the parts of ``rows``, as of `plain_rows`."""
    return plain_rows(rest, {label: rows.parts[label].select(names) for label, names in columns.items()},
                      distinct=distinct)


def with_names(names: list[str], _: RunJoin, rows: pa.Table) -> pa.Table:
    """``rows`` with these names."""
    return rows.rename_columns(names)


def appended(_: RunJoin, *operands: pa.Table) -> pa.Table:
    """The rows of ``operands`` one behind the other, under the names of the first."""
    fields = [of[0].with_nullable(any(field.nullable for field in of)) for of in zip(
        *(operand.schema for operand in operands), strict=True)]
    return pa.concat_tables([pa.table(of.columns, schema=pa.schema(fields)) for of in operands])


def finished_rows(_: RunJoin, rows: pa.Table) -> pa.Table:
    """``rows`` as of `finished`."""
    return finished(rows)
