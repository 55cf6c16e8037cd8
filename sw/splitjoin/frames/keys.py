"""As-of joins of a frame with one or several others: the keys by which rows are near, and the rows that are nearest."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import InputError, SchemaError, SplitJoinError, first_line
from splitjoin.joins.join import join
from splitjoin.lang.schema import suggest

#: Names of columns that hold keys, beside those of the user.
_TIME, _KEY = "splitjoin time", "splitjoin key {}"


@dataclass(frozen=True)
class FrameKeys:
    """Times and equal keys of a frame, as Arrow arrays.

    Attributes:
        frame: All columns of the frame as an Arrow table, which the user's condition may read.
    """

    time: pa.Array | pa.ChunkedArray
    equal: Sequence[pa.Array | pa.ChunkedArray]
    frame: Callable[[], pa.Table]

    def table(self, *, whole: bool) -> pa.Table:
        """The keys; ``whole``: and all columns of the frame."""
        made = {_TIME: self.time} | {_KEY.format(n): key for n, key in enumerate(self.equal)}
        try:
            table = self.frame() if whole else pa.table({})
        except (pa.ArrowException, TypeError) as error:
            raise InputError(f"a condition reads frames as Arrow tables, but a column has no type there: "
                             f"{first_line(error)}; drop the column, or cast it") from error
        return pa.table({name: table.column(name) for name in table.column_names} | made)


def nearest_rows(left: FrameKeys, right: FrameKeys, condition: str | None, *, nulls_equal: bool,
                 **options: Any) -> Ints:
    """For each row of ``left`` the row of ``right`` that is nearest in time among those with equal keys: (n,), −1 for
    none.

    ``condition``: what must hold besides, over all columns of the frames, r and s. ``nulls_equal``: whether NULL equals
    NULL. ``options``: those of an as-of join.
    """
    equals = "IS NOT DISTINCT FROM" if nulls_equal else "="
    terms = [f'r."{_KEY.format(n)}" {equals} s."{_KEY.format(n)}"' for n in range(len(left.equal))]
    if condition is not None:
        if not isinstance(condition, str):
            raise InputError(f"condition must be an SQL text over r and s, not {type(condition).__name__}")
        terms.append(f"({condition})")
    tables = [keys.table(whole=condition is not None) for keys in (left, right)]
    try:
        found = join(tables[0], tables[1], on=" AND ".join(terms) or "TRUE", time=_TIME, how="asof_left", order="left",
                     sort=True, select=[f"r.{_TIME}"], **options)
    except SplitJoinError as error:  # in the words of the user, who knows no such columns
        said = str(error)
        for side, frame in (("r", "left"), ("s", "right")):
            said = said.replace(f"the time column {side}.{_TIME}", f"the time column of the {frame} frame")
            said = said.replace(f"{side}.{_TIME}", f"that of the {frame} frame")
        raise type(error)(said) from None
    rows: Ints = found.items["s"].astype(np.int64)
    return rows


def frames_of(right: Any) -> list[Any]:
    """The right frames: one, or those of a list. Raises `InputError` for an empty list."""
    found = list(right) if isinstance(right, (list, tuple)) else [right]
    if not found:
        raise InputError("an as-of join needs a frame on the right, but the list of them is empty")
    return found


def names(given: Any) -> list[Any]:
    """The names that a user gives: none, one, or a list of them."""
    return [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]


def one_name(given: Any, what: str) -> Any:
    """``given``, or the only name of a list."""
    found = given[0] if isinstance(given, (list, tuple)) and len(given) == 1 else given
    if isinstance(found, (list, tuple)):
        raise InputError(f"{what} must be one column, by which rows are near, not {given!r}; name those that must be "
                         f"equal in by")
    return found


def pair_of(both: Any, left: Any, right: Any, what: tuple[str, str, str]) -> tuple[Any, Any]:
    """The arguments for the left and for the right frame: ``both`` for each, or ``left`` and ``right``. ``what``: the
    names of the three parameters.

    Raises `InputError` where both or neither are given.
    """
    if both is not None and (left is not None or right is not None):
        raise InputError(f"give {what[0]}, or {what[1]} and {what[2]}, not both")
    if (left is None) != (right is None):
        raise InputError(f"{what[1]} and {what[2]} belong together, but {what[2] if right is None else what[1]} is "
                         f"missing")
    return (both, both) if left is None else (left, right)


def found_column(columns: Sequence[Any], name: Any, what: str) -> None:
    """Raise `SchemaError` unless ``name`` is one of the ``columns`` of the frame ``what``."""
    known = list(columns)
    if not isinstance(name, Hashable) or not any(type(one) is type(name) and one == name for one in known):
        raise SchemaError(f"the {what} frame has no column {name!r}{suggest(str(name), list(map(str, known)))}; it has "
                          f"{', '.join(map(repr, known)) or 'none'}")
