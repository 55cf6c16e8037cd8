"""The columns of tables as a user states them: the types of CSV columns, and values that stand for NULL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.errors import InputError, SchemaError
from splitjoin.lang.layouts import is_encoded, take
from splitjoin.lang.schema import suggest
from splitjoin.lang.types import plain

from .type_names import named_type
from .values import typed

#: Column → the type of its cells in CSV: of Arrow, or a name such as "decimal(9, 2)".
Types = Mapping[str, Union[str, pa.DataType]]
#: The key of a field's metadata.
_KEY = b"splitjoin.null"
#: Column → the value, or the values, that stand for NULL.
NullValues = Mapping[str, Any]


class StatedColumns:
    """The types and the values for NULL of the columns of one table, by their names."""

    def __init__(self, types: Mapping[str, pa.DataType], nulls: Mapping[str, Sequence[Any]], found: set[str] | None,
                 prefix: str):
        self.types, self.nulls = types, nulls
        self._found, self._prefix = found, prefix

    def check_types(self, schema: pa.Schema, *, csv: bool) -> None:
        """Note which columns ``schema`` has. Raises `InputError` for a type of one that is not from CSV."""
        self._note(schema)
        for name in ([] if csv else schema.names):
            if name in self.types:
                raise InputError(f"types says how the cells of CSV files are read, but {self._prefix}{name} comes with "
                                 f"the type {schema.field(name).type}; leave {name!r} out of types, or cast the column")

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """``schema``, its columns with values for NULL nullable."""
        self._note(schema)
        return pa.schema([field.with_nullable(field.nullable or field.name in self.nulls) for field in schema],
                         schema.metadata)

    def declared(self, schema: pa.Schema) -> pa.Schema:
        """``schema`` of a stream, likewise; `nulls_of` tells these values of it. Raises `SchemaError` like `table`."""
        self._note(schema)
        fields = []
        for field in schema:
            if field.name in self.nulls:
                values = _texts(null_array(f"{self._prefix}{field.name}", self.nulls[field.name], _inner(field.type)))
                fields.append(field.with_nullable(True).with_metadata({**(field.metadata or {}),
                                                                       _KEY: json.dumps(values).encode()}))
            else:
                fields.append(field)
        return pa.schema(fields, schema.metadata)

    def table(self, table: pa.Table) -> pa.Table:
        """``table`` with NULL in place of the values for it. Raises `SchemaError` for values of another type."""
        self._note(table.schema)
        return with_nulls(table, self.nulls, self._prefix)

    def _note(self, schema: pa.Schema) -> None:
        if self._found is not None:
            self._found.update(schema.names, (f"{self._prefix}{name}" for name in schema.names))


#: Nothing is stated.
UNSTATED = StatedColumns({}, {}, None, "")


class Stated:
    """``types`` and ``null_values`` of a call over the tables ``names``: of the column ``"x"`` of each table that has
    one, of ``"r.x"`` of the table r. Raises `InputError` and `SchemaError` for what is none.
    """

    def __init__(self, types: Types | None, null_values: NullValues | None, names: Sequence[str]):
        for what, given in (("types", types), ("null_values", null_values)):
            if given is not None and not (isinstance(given, Mapping) and all(isinstance(n, str) for n in given)):
                raise InputError(f"{what} must be a mapping of names of columns, such as "
                                 + ("{'zip': 'string', 'price': 'decimal(9, 2)'}" if what == "types" else
                                    "{'ts': 18446744073709551615}") + f", not {given!r}")
        self._types = {name: type_ if isinstance(type_, pa.DataType) else named_type(str(type_).strip(), name)
                       for name, type_ in (types or {}).items()}
        self._nulls = {name: tuple(values) if isinstance(values, (list, tuple, set, frozenset)) else (values,)
                       for name, values in (null_values or {}).items()}
        self._names, self._found = [name.lower() for name in names], set[str]()

    def __bool__(self) -> bool:
        return bool(self._types or self._nulls)

    @property
    def alike(self) -> bool:
        """True if the same is stated of each table."""
        return not any(map(self._table, (*self._types, *self._nulls)))

    def of(self, name: str) -> StatedColumns:
        """What is stated of the table ``name``."""
        return StatedColumns(self._of(name.lower(), self._types), self._of(name.lower(), self._nulls), self._found,
                             f"{name.lower()}.")

    def _of(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        every = {column: value for column, value in given.items() if not self._table(column)}
        return every | {column.partition(".")[2]: value for column, value in given.items()
                        if self._table(column) == name}

    def _table(self, column: str) -> str:
        """The table whose column ``column`` is; empty for that of every table."""
        table, dot, _ = column.partition(".")
        return table.lower() if dot and table.lower() in self._names else ""

    def check(self) -> None:
        """Raise `SchemaError` for a column that no table has, once all of them are known."""
        for what, given in (("types", self._types), ("null_values", self._nulls)):
            for column in given:
                table = self._table(column)
                name = f"{table}.{column.partition('.')[2]}" if table else column
                if name not in self._found:
                    known = sorted(one for one in self._found if ("." in one) == bool(table))
                    raise SchemaError(f"{what} names the column {column!r}, but no table has it"
                                      f"{suggest(name, known)}; leave it out, or give the name of a column")


#: Of no table.
NOTHING = Stated(None, None, ())


def nulls_of(schema: pa.Schema) -> dict[str, list[Any]]:
    """The values that stand for NULL in batches of a stream of ``schema``, which `StatedColumns.declared` made."""
    return {field.name: json.loads(field.metadata[_KEY]) for field in schema if _KEY in (field.metadata or {})}


def with_nulls(table: pa.Table, nulls: Mapping[str, Sequence[Any]], prefix: str) -> pa.Table:
    """``table`` with NULL in place of the values ``nulls`` of columns. ``prefix``: of their names in messages.

    Raises `SchemaError` for a value that is none of the type of its column.
    """
    for at, field in enumerate(table.schema):
        if field.name not in nulls:
            continue
        column = table.column(at)
        values = plain(pa.chunked_array([null_array(f"{prefix}{field.name}", nulls[field.name], _inner(field.type))]))
        cells = plain(column)
        hits = np.zeros(len(table), np.bool_)
        for value in values.combine_chunks():
            same = pc.equal(cells, value)
            if pa.types.is_floating(cells.type):
                same = pc.or_(same, pc.and_(pc.is_nan(cells), pc.is_nan(value)))
            hits |= pc.fill_null(same, False).to_numpy()
        if hits.any():
            column = take(column, pa.array(np.arange(len(table)), mask=hits))
        table = table.set_column(at, field.with_nullable(True), column)
    return table


def _inner(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if is_encoded(type_) else type_


def _texts(values: pa.Array) -> list[Any]:
    """``values`` as `null_array` reads them: texts, and times as whole numbers."""
    whole = pa.int32() if pa.types.is_temporal(values.type) and values.type.bit_width == 32 else pa.int64()
    return list(values.cast(whole if pa.types.is_temporal(values.type) else pa.string()).to_pylist())


def null_array(name: str, values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """``values``, which stand for NULL in the column ``name``, as an array of its ``type_``: a text is read as one, and
    a whole number counts the unit of a time. Raises `SchemaError` for others.
    """
    made = []
    for value in values:
        is_text = isinstance(value, str) and not (pa.types.is_string(type_) or pa.types.is_large_string(type_)
                                                  or pa.types.is_string_view(type_))
        is_count = pa.types.is_temporal(type_) and isinstance(value, (int, np.integer))
        if value is None:
            raise SchemaError(f"the values that stand for NULL must be values of the type {type_}, but {name} has None "
                              f"among them; leave it out, as it is NULL")
        try:
            if is_text or is_count:
                whole = pa.int32() if is_count and type_.bit_width == 32 else pa.int64()
                made.append(pa.array([value], pa.string() if is_text else whole).cast(type_))
            else:
                made.append(typed(name, [value], type_))
        except (pa.ArrowException, OverflowError) as error:
            raise SchemaError(f"the values that stand for NULL in {name} must be of the type {type_}, not {value!r}"
                              ) from error
    return pa.concat_arrays(made) if made else pa.array([], type_)
