"""Columns on their way to DuckDB and back: ordered categories as its ENUMs, integers of 128 bits and bit strings as
what they were there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlglot.tokenizer_core import Token, TokenType

from splitjoin.base.errors import InputError, StatementError
from splitjoin.lang.types import Opaque, OrderedText, column_type
from splitjoin.rows.exports import in_microseconds, to_duckdb
from splitjoin.tables.peers import of_duckdb

from .clauses import quoted, tokens_of, words

__all__ = ["check_order", "create_view", "finished", "taken", "with_enum_literals"]

T = TokenType
#: The key of the metadata of a field that DuckDB has as another type than what Arrow has; and these types.
_KEY, _THERE = b"splitjoin.duckdb", ("hugeint", "uhugeint", "bit")
_LESS = {T.LT, T.LTE, T.GT, T.GTE}
#: What makes another value of the column or the constant beside it.
_BINDS = {T.DPIPE, T.DCOLON, T.PLUS, T.DASH, T.L_PAREN, T.L_BRACKET, T.COLLATE, T.DOT}
#: Functions that give one of their arguments, or compare them.
_MIXING = {"coalesce", "greatest", "ifnull", "least"}
Categories = tuple[str, ...]


def create_view(db: Any, name: str, table: pa.Table, text: str) -> None:
    """Give ``table`` to DuckDB as ``name`` for the statement ``text``.

    Raises `StatementError` for a column that ``text`` names whose order of categories is not known, and `InputError`
    for one whose values DuckDB does not hold.
    """
    casts = list[str]()
    for field, column in zip(table.schema, table.columns, strict=True):
        found = _categories(column)
        if found is None and _has_own_order(field.type) and field.name.lower() in words(tokens_of(text)):
            check_order(name, table.select([field.name]))
        there = (field.metadata or {}).get(_KEY, b"")
        if found or there:
            type_ = _enum(found) if found else str(there, "ascii")
            casts.append(f"CAST({quoted(field.name)} AS {type_}) AS {quoted(field.name)}")
    given = to_duckdb(_holdable(table, text), db)
    (given.project(f"* REPLACE ({', '.join(casts)})") if casts else given).create_view(name, replace=True)


def check_order(label: str, table: pa.Table) -> None:
    """Raise `StatementError` for a column of ``table`` in an order that DuckDB cannot be told."""
    for field, column in zip(table.schema, table.columns, strict=True):
        if _has_own_order(field.type) and _categories(column) is None:
            type_ = column_type(field.type, column)
            if isinstance(type_, Opaque) or (isinstance(type_, OrderedText) and type_.categories is None):
                raise StatementError(f"{label}.{field.name} has ordered categories, whose order DuckDB takes only of "
                                     f"text, and if it is the same in all rows; give the column as its values")


def taken(relation: Any, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The rows of DuckDB's ``relation`` over ``tables``, in which ENUMs have the type of their columns in these."""
    made = of_duckdb(relation)
    known = dict[Categories, pa.Field]()
    for at, type_ in enumerate(relation.types):
        field = made.schema.field(at)
        if type_.id in _THERE:
            made = made.set_column(at, field.with_metadata({_KEY: type_.id.upper()}), made.column(at))
        elif type_.id == "enum":
            known = known or {found: of for table in tables.values()
                              for of, column in zip(table.schema, table.columns, strict=True)
                              if (found := _categories(column))}
            categories = tuple(dict(type_.children)["values"])
            like = known.get(categories, pa.field("", pa.dictionary(field.type.index_type, pa.string(), ordered=True)))
            named = pa.array(categories, like.type.value_type)
            chunks = [pa.DictionaryArray.from_arrays(chunk.indices.cast(like.type.index_type), named, ordered=True)
                      for chunk in made.column(at).chunks or [pa.array([], field.type)]]
            made = made.set_column(at, like.with_name(field.name).with_nullable(True), pa.chunked_array(chunks))
    return made


def finished(table: pa.Table) -> pa.Table:
    """``table``, the rows of a statement, with HUGEINTs of DuckDB, such as sums of integers, as int64.

    Raises `InputError` for a number that does not fit.
    """
    for at, field in enumerate(table.schema):
        there = (field.metadata or {}).get(_KEY)
        if there not in (None, b"HUGEINT"):
            table = table.set_column(at, field.remove_metadata(), table.column(at))
        elif there:
            try:
                made = table.column(at).cast(pa.int64())
            except pa.ArrowInvalid:
                raise InputError(f"the integers of {field.name!r}, which DuckDB computes, must fit int64, but one does "
                                 f"not; write CAST(… AS DECIMAL(38, 0)) or CAST(… AS DOUBLE) around them") from None
            table = table.set_column(at, pa.field(field.name, pa.int64(), field.nullable), made)
    return table


def with_enum_literals(text: str, tables: Mapping[str, pa.Table]) -> str:
    """``text`` with ENUMs in place of constants that are compared by < with ordered categories of ``tables``, as DuckDB
    compares those as text.

    Raises `StatementError` for a constant that is none of the categories, where it is not known which column is meant,
    and where a statement that names such a column compares a constant with more than a column.
    """
    orders = {name: {n.lower(): _own_order(column) for n, column in zip(table.column_names, table.columns, strict=True)}
              for name, table in tables.items()}
    if not any(found for columns in orders.values() for found in columns.values()):
        return text
    tokens = tokens_of(text)
    labels, compared = _labels(tokens, orders), list(_compared(tokens))
    known = {at for at, column in compared if any(column[-1].text.lower() in columns for columns in orders.values())}
    _check_plain(tokens, known, {name for columns in orders.values() for name, found in columns.items() if found})
    for at, column in reversed(compared):
        name, label = column[-1].text.lower(), column[0].text.lower() if len(column) > 1 else None
        found = {columns[name] for columns in (labels.get(label, orders.values()) if label else orders.values())
                 if name in columns}
        categories = next((one for one in found if one), None)
        if categories is None:
            continue
        if len(found) > 1:
            raise StatementError(f"{name} is compared with a constant by the order of its categories, but the tables "
                                 f"have several columns of this name; give one of them another name")
        token = tokens[at]
        if token.text not in categories:
            shown = ", ".join(map(repr, categories[:5])) + (", …" if len(categories) > 5 else "")
            raise StatementError(f"ordered categories are compared by their order, so a constant beside {name} must be "
                                 f"one of {shown}, not {token.text!r}; write one of them, or compare as text with "
                                 f"CAST(… AS VARCHAR)")
        text = f"{text[:token.start]}CAST({_literal(token.text)} AS {_enum(categories)}){text[token.end + 1:]}"
    return text


def _check_plain(tokens: Sequence[Token], known: set[int], ordered: set[str]) -> None:
    """Raise `StatementError` for a constant text that is compared by order, but not with a column as those at the
    places ``known``, or is beside others in such as ``least``, if ``tokens`` name a column of ``ordered`` categories:
    DuckDB would compare these as text.
    """
    lower = [t.text.lower() for t in tokens]
    named = next((name for name in lower if name in ordered), None)
    if named is None:
        return
    kinds = [None, *(t.token_type for t in tokens), None, None]
    mixed = {n for at, name in enumerate(lower) if name in _MIXING and kinds[at + 2] == T.L_PAREN
             for n in _arguments(kinds, at + 1) if ordered & {lower[m] for m in _arguments(kinds, at + 1)}}
    for at, kind in enumerate(kinds[1:-2]):
        if kind != T.STRING or at in known or kinds[at + 2] in (T.DCOLON, T.COLLATE):
            continue
        between = kinds[at] == T.AND and at > 2 and kinds[at - 1] == T.STRING and kinds[at - 2] == T.BETWEEN
        if at in mixed or between or kinds[at] in _LESS | {T.BETWEEN} or kinds[at + 2] in _LESS:
            raise StatementError(f"{tokens[at].text!r} must stand beside a column alone, as the statement names "
                                 f"{named!r}, whose categories have an order, and DuckDB would compare their texts; "
                                 f"write {_literal(tokens[at].text)}::VARCHAR for a text, or compare the column itself")


def _arguments(kinds: Sequence[T | None], at: int) -> range:
    """The places between the parenthesis at place ``at`` and its end."""
    depth, end = 1, at + 1
    while depth and end + 1 < len(kinds):
        depth += (kinds[end + 1] == T.L_PAREN) - (kinds[end + 1] == T.R_PAREN)
        end += 1
    return range(at + 1, end - 1)


def _compared(tokens: Sequence[Token]) -> Iterator[tuple[int, Sequence[Token]]]:
    """The places of the constant texts that < and its like compare with a column, and the names of this column."""
    kinds = [None, *(t.token_type for t in tokens), None, None]
    for at, token in enumerate(tokens):
        if token.token_type != T.STRING or kinds[at + 2] in _BINDS:
            continue
        before = kinds[at]
        if before in _LESS or before == T.BETWEEN:
            end = at - 2 if kinds[at - 1] == T.NOT else at - 1
            yield from _column(tokens, at, end)
        elif before == T.AND and at > 3 and kinds[at - 1] == T.STRING and kinds[at - 2] == T.BETWEEN:
            yield from _column(tokens, at, at - 4 if kinds[at - 3] == T.NOT else at - 3)
        elif kinds[at + 2] in _LESS and before not in _BINDS - {T.L_PAREN, T.L_BRACKET}:
            names = tokens[at + 2:at + 5 if kinds[at + 4] == T.DOT else at + 3]
            if names and (kinds + [None] * 4)[at + 3 + len(names)] not in _BINDS - {T.PLUS, T.DASH}:
                yield at, names


def _column(tokens: Sequence[Token], at: int, end: int) -> Iterator[tuple[int, Sequence[Token]]]:
    """The names before the place ``end``, with the place ``at`` of what is compared with them."""
    begin = end - 3 if end > 2 and tokens[end - 2].token_type == T.DOT else end - 1
    if begin >= 0 and (begin == 0 or tokens[begin - 1].token_type not in _BINDS - {T.L_PAREN, T.L_BRACKET}):
        yield at, tokens[begin:end]


def _labels(tokens: Sequence[Token], orders: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The columns of the tables by the names that a statement has for them."""
    labels = dict[str, list[Any]]()
    for n, token in enumerate(tokens):
        if token.text in orders:
            behind = [t for t in tokens[n + 1:n + 3] if t.token_type != T.ALIAS][:1]
            for label in (token.text, *(t.text for t in behind)):
                labels.setdefault(label.lower(), []).append(orders[token.text])
    return labels


def _holdable(table: pa.Table, text: str) -> pa.Table:
    """``table`` without columns that DuckDB cannot hold and ``text`` does not name."""
    lost = [f.name for f, column in zip(table.schema, table.columns, strict=True)
            if (pa.types.is_interval(f.type) and not in_microseconds(column)) or (
                pa.types.is_decimal(f.type) and f.type.precision - min(f.type.scale, 0) > 38)]
    said = words(tokens_of(text)) if lost else {}
    star = any((before, after) != (T.L_PAREN, T.R_PAREN) for before, after in said.get("*", ()))
    return table.drop_columns([name for name in lost if not star and name.lower() not in said])


def _has_own_order(type_: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(type_) and type_.ordered)


def _own_order(column: pa.ChunkedArray) -> Categories | None:
    """The categories of ``column``, if their order is another one than that of text."""
    return _categories(column) if isinstance(column_type(column.type, column), OrderedText) else None


def _categories(column: pa.ChunkedArray) -> Categories | None:
    """The categories of ``column``, least first; None if it has none in an order, or not the same in all rows."""
    type_ = column.type
    if not _has_own_order(type_) or not column.chunks or not (
            pa.types.is_string(type_.value_type) or pa.types.is_large_string(type_.value_type)
            or pa.types.is_string_view(type_.value_type)):
        return None
    first = column.chunk(0).dictionary
    found = tuple(one for one in first.to_pylist() if one is not None)
    same = len(set(found)) == len(found) and all(chunk.dictionary.equals(first) for chunk in column.chunks[1:])
    return found if found and same else None


def _enum(categories: Categories) -> str:
    return f"ENUM({', '.join(map(_literal, categories))})"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
