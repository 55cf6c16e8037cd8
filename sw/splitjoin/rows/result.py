"""`JoinResult`: the rows of a join, in memory or in a file, for every library that takes tables."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import InputError, SchemaError, plural
from splitjoin.base.memory import check_memory
from splitjoin.base.safe_text import printable
from splitjoin.engines.device import Items
from splitjoin.engines.effectiveness import effectiveness, effectiveness_text
from splitjoin.lang.layouts import empty_table
from splitjoin.lang.schema import suggest
from splitjoin.tables import StoredTable

from .exports import to_duckdb, to_pandas, to_polars

#: Rows of a batch, unless the caller wants others.
_BATCH = 1 << 16
#: Rows and columns that are shown of a result, and characters of a value.
_SHOWN_ROWS, _SHOWN_COLUMNS, _SHOWN_WIDTH = 5, 8, 32


class JoinResult:
    """The rows of a join, and what its device counted.

    It offers ``__arrow_c_stream__``, so libraries that take Arrow read it as a table (``pa.table(result)``,
    ``polars.DataFrame(result)``, DuckDB). `to_pandas` makes a DataFrame of pandas. Iteration gives record batches. If
    the join wrote its rows to a file (``to=``), they are read from there, and `batches` never holds more than a batch
    in memory.

    Attributes:
        counters: Named counters of the device, for example ``comparisons`` and ``matches``.
        plan: The engine that the device has chosen, in words; empty where it has no choice.
        latencies: Cycles per probe in arrival order, int64 (n,); None where the device does not measure them.
        region_counters: As of `Session.region_counters`.
    """

    def __init__(self, rows: pa.Table | StoredTable, items: Items | Callable[[], Items] | None,
                 counters: dict[str, int], *, plan: str = "", latencies: Ints | None = None,
                 region_counters: dict[str, Ints] | None = None):
        self._rows, self._items = rows, items
        self.counters, self.plan = counters, plan
        self.latencies, self.region_counters = latencies, region_counters

    @property
    def path(self) -> Path | None:
        """The file that holds the rows; None if they are in memory."""
        return self._rows.path if isinstance(self._rows, StoredTable) else None

    @property
    def effectiveness(self) -> float | None:
        """Pairs that are results per pair that was compared (ESJ's ϱ); None where the device does not count both."""
        return effectiveness(self.counters)

    @property
    def items(self) -> Items:
        """The result items: the row ids of every row, and the stars. Raises `InputError` if the rows are in a file."""
        if self._items is None:
            raise InputError("the items of a join are kept where its rows are the result and stay in memory; leave out "
                             "to= and what is no join, or select columns that number the rows")
        if callable(self._items):
            self._items = self._items()
        return self._items

    @property
    def table(self) -> pa.Table:
        """The rows as an Arrow table; the same as `to_arrow`."""
        return self.to_arrow()

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return self._rows.schema

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in their order."""
        return list(self.schema.names)

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self._rows.rows if isinstance(self._rows, StoredTable) else len(self._rows)

    def __len__(self) -> int:
        return self.num_rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches()

    def batches(self, rows: int = _BATCH) -> Iterator[pa.RecordBatch]:
        """The rows in batches of at most ``rows`` (from 1), in order."""
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise InputError(f"a batch must have at least 1 row, not {rows!r}")
        if isinstance(self._rows, StoredTable):
            return self._rows.batches(rows)
        return iter(self._rows.to_batches(max_chunksize=rows))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table. Raises `CapacityError` for rows in a file that do not fit into memory."""
        if isinstance(self._rows, StoredTable):
            check_memory(self._rows.rows, self._rows.nbytes)
            return self._rows.read()
        return self._rows

    def to_pandas(self, **options: Any) -> Any:
        """The rows as a pandas DataFrame; ``options`` are those of `pyarrow.Table.to_pandas`.

        A column of whole numbers with NULL holds floats, as pandas makes of it, or where these would round a number,
        pandas' Int64 or UInt64.
        """
        return to_pandas(self.to_arrow(), **options)

    def to_polars(self) -> Any:
        """The rows as a Polars DataFrame. Raises `InputError` for columns that Polars does not take as they are."""
        return to_polars(self.to_arrow())

    def to_duckdb(self, connection: Any = None) -> Any:
        """The rows as a DuckDB relation, of ``connection`` or of DuckDB's default one.

        Raises `InputError` for columns with values that DuckDB does not hold.
        """
        return to_duckdb(self.to_arrow(), connection)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as a list of dicts."""
        found: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return found

    def to_pydict(self) -> dict[str, list[Any]]:
        """The columns as a dict of lists."""
        found: dict[str, list[Any]] = self.to_arrow().to_pydict()
        return found

    def head(self, rows: int = _SHOWN_ROWS) -> pa.Table:
        """The first ``rows`` (from 1) as an Arrow table, or all if there are fewer. Of a file, no more are read."""
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise InputError(f"head gives 1 row or more, not {rows!r}")
        first = next(self.batches(rows), None)
        return empty_table(self.schema) if first is None else pa.Table.from_batches([first])

    def text(self, rows: int = _SHOWN_ROWS) -> str:
        """The first ``rows`` and columns as a text of aligned columns, and how many more there are."""
        names, values, more = self._shown(rows)
        widths = [max(map(len, column)) for column in zip(names, *values, strict=True)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
                 for row in (names, *values)]
        return printable("\n".join([*lines, *([more] if more else [])]))

    def column(self, name: str | int) -> pa.ChunkedArray:
        """The column ``name``, or the one at this place.

        Raises `SchemaError` if there is none, and `InputError` for what is neither a name nor a place.
        """
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise InputError(f"a column is chosen by its name or its place, not by {name!r}; head() and batches() give "
                             f"rows")
        names = self.column_names
        if (isinstance(name, str) and name not in names) or (isinstance(name, int) and not -len(names) <= name
                                                             < len(names)):
            raise SchemaError(f"the result has no column {name!r}{suggest(str(name), names)}; its columns are "
                              f"{', '.join(names)}")
        return self.to_arrow().column(name)

    def __getitem__(self, name: str | int) -> pa.ChunkedArray:
        """`column`, as of an Arrow table."""
        return self.column(name)

    def select(self, columns: Sequence[str]) -> pa.Table:
        """The rows with only these columns."""
        return self.to_arrow().select(columns)

    def equals(self, other: JoinResult | pa.Table) -> bool:
        """True if ``other`` has the same rows in the same order, and columns of the same names and types."""
        table = other.to_arrow() if isinstance(other, JoinResult) else other
        return bool(self.to_arrow().equals(table))

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, (JoinResult, pa.Table)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equal rows are equal results

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows as an Arrow C stream (the Arrow PyCapsule interface)."""
        if isinstance(self._rows, StoredTable):
            return pa.RecordBatchReader.from_batches(self.schema, self.batches()).__arrow_c_stream__(requested_schema)
        return self._rows.__arrow_c_stream__(requested_schema)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Raises TypeError: rows of several types are no array. pandas' constructor asks for one, not for Arrow."""
        raise TypeError("a JoinResult does not convert to an array, by which pandas.DataFrame(result) would lose the "
                        "types and names of its columns; write result.to_pandas(), or result.column(name).to_numpy() "
                        "for the values of a column")

    def __repr__(self) -> str:
        return printable("JoinResult: " + "; ".join(self._facts())) + f"\n{self.text()}"

    def _repr_html_(self) -> str:
        names, rows, more = self._shown()

        def cells(tag: str, values: Sequence[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(value)}</{tag}>" for value in values) + "</tr>"

        body = "".join(cells("td", row) for row in rows)
        return (f"<div><p><b>JoinResult</b>: {html.escape('; '.join(self._facts()))}</p><table><thead>"
                f"{cells('th', names)}</thead><tbody>{body}</tbody></table>"
                + (f"<p>{html.escape(more)}</p>" if more else "") + "</div>")

    def _facts(self) -> Iterator[str]:
        """The sizes, counts and the plan, in words."""
        n, columns = self.num_rows, len(self.schema)
        yield f"{n:,} {plural(n, 'row')}, {columns} {plural(columns, 'column')}" + (
            "" if self.path is None else f" in {self.path}")
        if "comparisons" in self.counters:
            pairs = self.counters["comparisons"]
            yield f"{pairs:,} {plural(pairs, 'pair')} within the windows"
        if (share := self.effectiveness) is not None:
            yield f"{effectiveness_text(share)} results per comparison"
        if self.counters.get("cycles"):
            yield f"{self.counters['cycles']:,} {plural(self.counters['cycles'], 'cycle')}"
        if self.plan:
            yield self.plan

    def _shown(self, count: int = _SHOWN_ROWS) -> tuple[list[str], list[list[str]], str]:
        """The names and values of the first rows and columns as text, and a remark on what is not among them."""
        first = next(self.batches(count), None)
        names = self.column_names[:_SHOWN_COLUMNS]
        rows = [] if first is None else [[_value(first.column(at)[row]) for at in range(len(names))]
                                         for row in range(len(first))]
        hidden = [f"{count:,} more {plural(count, what)}" for count, what in (
            (self.num_rows - len(rows), "row"), (len(self.schema) - len(names), "column")) if count > 0]
        return names, rows, f"… {' and '.join(hidden)}" if hidden else ""


def _value(scalar: pa.Scalar) -> str:
    """A value as text, on one line of limited length."""
    if not scalar.is_valid:
        return "NULL"
    try:
        text = str(scalar.as_py())
    except Exception:  # times that Python does not have, and several others of Arrow
        text = str(scalar)
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_WIDTH else text[:_SHOWN_WIDTH - 1] + "…"
