"""``frame.splitjoin`` of pandas, with `merge_asof` by the names and the columns of ``pandas.merge_asof``."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import InputError
from splitjoin.rows.result import JoinResult
from splitjoin.tables.inputs import as_table
from splitjoin.tables.values import check_objects

from .keys import FrameKeys, found_column, frames_of, names, nearest_rows, one_name, pair_of
from .methods import FrameJoin


class PandasJoin(FrameJoin):
    """``frame.splitjoin``, of a DataFrame of pandas."""

    def merge_asof(self, right: Any, on: Any = None, *, left_on: Any = None, right_on: Any = None,
                   left_index: bool = False, right_index: bool = False, by: Any = None, left_by: Any = None,
                   right_by: Any = None, suffixes: Sequence[str | None] | None = None, tolerance: Any = None,
                   allow_exact_matches: bool = True, direction: str = "backward", condition: str | None = None,
                   ties: str | None = None) -> Any:
        """Append the columns of the row of ``right`` that is nearest to each row, as ``pandas.merge_asof`` does.

        Args:
            right: A DataFrame, or a Series with a name; or a list of them, each of which gives the columns of its own
                nearest row.
            on: The column of both frames by which rows are near, or an index level of this name: numbers, times,
                durations or text, in any order, with NULL or without.
            left_on: In place of ``on``, the column of this frame, or an array with a value for each of its rows.
            right_on: The same for ``right``; a column must be in all frames of a list.
            left_index: True to use the index of this frame in place of a column.
            right_index: True to use the index of ``right``.
            by: The columns of both frames that must be equal, one name or several; NULL equals NULL.
            left_by: Their names in this frame alone.
            right_by: Their names in ``right`` alone.
            suffixes: What is appended to names that occur in several frames, one for this frame and one for each other;
                None appends nothing. ``("_x", "_y")`` by default, and of several frames ``("", "_1", "_2", …)``.
            tolerance: How far a partner may be, as in `splitjoin.join`.
            allow_exact_matches: False to leave out partners at exactly the same time.
            direction: ``"backward"``, ``"forward"`` or ``"nearest"``.
            condition: What must hold besides, in SQL over this frame, ``r``, and the right one, ``s``, such as
                ``"s.size >= r.quantity"``.
            ties: As in `splitjoin.join`.

        Returns:
            A DataFrame with a row for each row of this frame, in its order. Columns keep their types, unless pandas
            needs another one for missing values. As in pandas, if this frame has no column for its times, and some row
            has no partner, the column of ``right`` has them. With ``left_index`` or ``right_index`` it has the index of
            this frame, else numbers from 0.

        Raises:
            SplitJoinError: With what must hold, what came and what to do.
        """
        rights = frames_of(right)
        left_time, right_time = _time_names(on, left_on, right_on, left_index, right_index)
        left_by, right_by = map(names, pair_of(by, left_by, right_by, ("by", "left_by", "right_by")))
        if len(left_by) != len(right_by):
            raise InputError(f"left_by and right_by must name as many columns, not {len(left_by)} and {len(right_by)}")
        options = {"tolerance": tolerance, "allow_exact": allow_exact_matches, "direction": direction, "ties": ties}
        left = _Frame.of(self._frame, left_time, left_by, "left")
        others = [_Frame.of(one, right_time, right_by, "right") for one in rights]
        parts = [left.frame]
        for one in others:
            rows = nearest_rows(left.keys, one.keys, condition, nulls_equal=True, **options)
            shared = [theirs for mine, theirs in zip((left.time, *left_by), (one.time, *right_by), strict=True)
                      if mine is not None and mine == theirs]
            part = one.frame.drop(columns=shared)
            # Rows of −1 have missing values.
            part = part.reset_index(drop=True).reindex(rows) if (rows < 0).any() else part.take(rows)
            if (left.time is None and one.time is not None and one.time not in left.frame.columns
                    and (rows < 0).any()):  # only then, as in pandas
                part[one.time] = getattr(left.times, "array", left.times)
            parts.append(part)
        _rename(parts, _suffixes(suffixes, len(rights)))
        index = self._frame.index if left_index or right_index else range(len(self._frame))
        pandas = importlib.import_module("pandas")
        filled = [part for part in parts if len(part.columns)] or parts[:1]
        return pandas.concat([part.set_axis(index, axis=0) for part in filled], axis=1)

    def _to_frame(self, found: JoinResult) -> Any:
        return found.to_pandas()


class _Frame:
    """A DataFrame, index levels that are keys among its columns, and its keys.

    Attributes:
        time: The name of the column by which rows are near; None for the index and for values that are no column.
        times: Its values.
    """

    def __init__(self, frame: Any, time: Any, times: Any, keys: FrameKeys):
        self.frame, self.time, self.times, self.keys = frame, time, times, keys

    @classmethod
    def of(cls, frame: Any, time: Any, by: Sequence[Any], what: str) -> _Frame:
        """``time``: a name, or values; None for the index. ``what``: "left" or "right"."""
        if not hasattr(frame, "columns") and getattr(frame, "name", None) is not None and hasattr(frame, "to_frame"):
            frame = frame.to_frame()  # a Series, which pandas takes by its name
        if not hasattr(frame, "columns"):
            raise InputError(f"the {what} frame must be a DataFrame of pandas, not {type(frame).__name__}")
        twice = frame.columns[frame.columns.duplicated()]
        if len(twice):
            raise InputError(f"the {what} frame must have a name for each column, but {twice[0]!r} occurs twice; "
                             f"rename one")
        named = time is not None and isinstance(time, Hashable)  # arrays are not
        levels = [name for name in (*([time] if named else []), *by)
                  if name in frame.index.names and name not in frame.columns]
        made = frame
        for level in reversed(levels):
            made = made.assign(**{level: frame.index.get_level_values(level)})
        made = made[[*levels, *frame.columns]] if levels else made
        for name in (*([time] if named else []), *by):
            found_column(made.columns, name, what)
        if time is None and frame.index.nlevels > 1:
            raise InputError(f"the index of the {what} frame must have one level to be a time, not "
                             f"{frame.index.nlevels}; name the level with {what}_on")
        times = frame.index if time is None else made[time] if named else time
        if len(times) != len(frame):
            raise InputError(f"{what}_on must have a value for each of the {len(frame)} rows, not {len(times)}")
        keys = FrameKeys(_array(times, f"{what} time"), [_array(made[name], repr(name)) for name in by],
                    lambda: as_table(made.reset_index(drop=True), what))
        return cls(made, time if named else None, times, keys)


def _array(values: Any, what: str) -> pa.Array | pa.ChunkedArray:
    try:
        made = pa.array(values, from_pandas=True)
        check_objects(what, list(values) if getattr(values, "dtype", None) == np.object_ else [], made)
        return made
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(f"the key {what} must hold values of one type: {error}") from error


def _time_names(on: Any, left_on: Any, right_on: Any, left_index: bool, right_index: bool) -> tuple[Any, Any]:
    """The column of either frame by which rows are near; None for the index.

    Raises `InputError` unless each frame has exactly one.
    """
    given = []
    for side, name, index in (("left", left_on, left_index), ("right", right_on, right_index)):
        chosen = [what for what, is_given in (("on", on is not None), (f"{side}_on", name is not None),
                                              (f"{side}_index", index)) if is_given]
        if len(chosen) != 1:
            raise InputError(f"the {side} frame needs one column by which rows are near: give on, {side}_on or "
                             f"{side}_index=True, not {' and '.join(chosen) or 'none of them'}")
        given.append(None if index else one_name(on if on is not None else name, chosen[0]))
    return given[0], given[1]


def _suffixes(given: Sequence[str | None] | None, rights: int) -> list[str]:
    if given is None:
        return ["_x", "_y"] if rights == 1 else ["", *(f"_{n}" for n in range(1, rights + 1))]
    if isinstance(given, str) or len(given) != rights + 1:
        raise InputError(f"suffixes must be {rights + 1} texts, one for each frame, not {given!r}")
    return [suffix or "" for suffix in given]


def _rename(parts: list[Any], suffixes: Sequence[str]) -> None:
    """Append the ``suffixes`` to names of the frames ``parts`` that occur in several. Raises `InputError` for names
    that occur twice even so.
    """
    before = [name for part in parts for name in part.columns]
    for n, suffix in enumerate(suffixes):
        parts[n] = parts[n].rename(columns={name: f"{name}{suffix}" for name in parts[n].columns
                                            if before.count(name) > 1})
    after = [name for part in parts for name in part.columns]
    twice = [name for name in after if after.count(name) > 1]
    if twice:
        raise InputError(f"the result would have two columns {twice[0]!r}; give suffixes that tell them apart")
