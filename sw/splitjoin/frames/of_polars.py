"""``frame.splitjoin`` of Polars, with `join_asof` by the names and the columns of ``DataFrame.join_asof``."""

from __future__ import annotations

import importlib
import re
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import InputError
from splitjoin.rows.result import JoinResult
from splitjoin.tables.inputs import as_table
from splitjoin.tables.peers import collected

from .keys import FrameKeys, found_column, frames_of, names, nearest_rows, one_name, pair_of
from .methods import FrameJoin

#: Nanoseconds of the units in which Polars writes durations; those of the calendar have no fixed length.
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9,
          "w": 7 * 86400 * 10**9}


class PolarsJoin(FrameJoin):
    """``frame.splitjoin``, of a DataFrame or LazyFrame of Polars. A LazyFrame is collected."""

    def join_asof(self, other: Any, *, left_on: Any = None, right_on: Any = None, on: Any = None, by_left: Any = None,
                  by_right: Any = None, by: Any = None, strategy: str = "backward", suffix: Any = "_right",
                  tolerance: Any = None, coalesce: bool = True, allow_exact_matches: bool = True,
                  condition: str | None = None, ties: str | None = None) -> Any:
        """Append the columns of the row of ``other`` that is nearest to each row, as ``join_asof`` of Polars does.

        Args:
            other: A frame; or a list of them, each of which gives the columns of its own nearest row.
            left_on: The column of this frame by which rows are near: a name or an expression. Numbers, times,
                durations or text, in any order, with NULL or without.
            right_on: The same for ``other``; a column must be in all frames of a list.
            on: The column of both, in place of ``left_on`` and ``right_on``.
            by_left: The columns of this frame that must be equal, one name or several. NULL equals nothing.
            by_right: Their names in ``other``.
            by: Their names in both.
            strategy: ``"backward"``, ``"forward"`` or ``"nearest"``.
            suffix: What is appended to names of ``other`` that this frame, or an earlier one of several, has already;
                a text, or of several frames one for each.
            tolerance: How far a partner may be: as in Polars, such as ``"3d12h"``, or as in `splitjoin.join`.
            coalesce: False to keep the column ``on`` of ``other`` too.
            allow_exact_matches: False to leave out partners at exactly the same time.
            condition: What must hold besides, in SQL over this frame, ``r``, and the other one, ``s``, such as
                ``"s.size >= r.quantity"``.
            ties: As in `splitjoin.join`; by default ``"last"`` for ``"nearest"``, as in Polars.

        Returns:
            A frame like this one, with a row for each of its rows, in its order.

        Raises:
            SplitJoinError: With what must hold, what came and what to do.
        """
        others = frames_of(other)
        left_time, right_time = pair_of(on, left_on, right_on, ("on", "left_on", "right_on"))
        if left_time is None:
            raise InputError("an as-of join needs a column by which rows are near: give on, or left_on and right_on")
        left_by, right_by = map(names, pair_of(by, by_left, by_right, ("by", "by_left", "by_right")))
        for one in (*left_by, *right_by):
            if not isinstance(one, str):
                raise InputError(f"by must name columns, not {type(one).__name__}; add what is computed as a column")
        if len(left_by) != len(right_by):
            raise InputError(f"by_left and by_right must name as many columns, not {len(left_by)} and {len(right_by)}")
        suffixes = [suffix] * len(others) if isinstance(suffix, str) else list(suffix)
        if len(suffixes) != len(others) or not all(isinstance(one, str) for one in suffixes):
            raise InputError(f"suffix must be a text, or one for each of the {len(others)} frames, not {suffix!r}")
        options = {"tolerance": _span(tolerance), "allow_exact": allow_exact_matches, "direction": strategy,
                   "ties": "last" if ties is None and strategy == "nearest" else ties}
        made = left = _collected(self._frame, "left")
        mine, left_time = _keys(left, left_time, left_by, "left")
        polars = importlib.import_module("polars")
        for one, suffix_of_one in zip(others, suffixes, strict=True):
            frame = _collected(one, "right")
            theirs, name = _keys(frame, right_time, right_by, "right")
            rows = nearest_rows(mine, theirs, condition, nulls_equal=False, **options)
            dropped = [*right_by, *([name] if coalesce and name is not None and name == left_time else [])]
            wanted = polars.Series(rows, dtype=polars.Int64).replace(-1, None).cast(polars.get_index_type())
            part = frame.drop(dropped).select(polars.all().gather(wanted))
            part = part.rename({name: f"{name}{suffix_of_one}" for name in part.columns if name in made.columns})
            twice = [name for name in part.columns if name in made.columns or part.columns.count(name) > 1]
            if twice:
                raise InputError(f"the result would have two columns {twice[0]!r}; give a suffix that tells them apart")
            made = made.with_columns(part.get_columns())
        return made.lazy() if type(self._frame).__name__ == "LazyFrame" else made

    def _to_frame(self, found: JoinResult) -> Any:
        return found.to_polars().lazy() if type(self._frame).__name__ == "LazyFrame" else found.to_polars()


def _collected(frame: Any, what: str) -> Any:
    made = collected(frame)
    if not hasattr(made, "get_columns"):
        raise InputError(f"the {what} frame must be a DataFrame or LazyFrame of Polars, not {type(frame).__name__}")
    return made


def _keys(frame: Any, time: Any, by: list[str], what: str) -> tuple[FrameKeys, str | None]:
    """The keys of ``frame``, and the name of the column by which rows are near; None where it is an expression."""
    time = one_name(time, f"{what}_on")
    name = time if isinstance(time, str) else _column_name(time, what)
    for one in (*([] if name is None else [name]), *by):
        found_column(frame.columns, one, what)
    times = frame.select(time)
    if times.width != 1 or times.height != frame.height:
        raise InputError(f"{what}_on must give one value for each of the {frame.height} rows")
    return FrameKeys(_array(times.to_series(), f"{what} time"), [_array(frame[one], repr(one)) for one in by],
                lambda: as_table(frame, what)), name


def _array(series: Any, what: str) -> pa.ChunkedArray | pa.Array:
    if str(series.dtype) in ("Int128", "UInt128"):  # which Arrow lacks
        polars = importlib.import_module("polars")
        for narrow in (polars.Int64, polars.UInt64, polars.Decimal(38, 0)):
            with suppress(polars.exceptions.PolarsError):
                return pa.chunked_array(series.cast(narrow))
    try:
        return pa.chunked_array(series)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(f"the key {what}, {series.dtype}, has no such type in Arrow: {error}; cast it") from error


def _column_name(expression: Any, what: str) -> str | None:
    """The name of the column that is ``expression``; None for what is computed."""
    if not hasattr(expression, "meta"):
        raise InputError(f"{what}_on must be the name of a column or an expression of Polars, not "
                         f"{type(expression).__name__}")
    return expression.meta.output_name() if expression.meta.is_column() else None


def _span(tolerance: Any) -> Any:
    """A duration as Polars writes it, such as "3d12h"; anything else as it is."""
    if not isinstance(tolerance, str) or not re.fullmatch(r"(\d+(ns|us|ms|s|m|h|d|w))+", tolerance):
        return tolerance
    return np.timedelta64(sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([a-z]+)", tolerance)),
                          "ns")
