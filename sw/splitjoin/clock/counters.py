"""Counters that begin anew: of 32 bits at 90 kHz or 1 MHz, the time of a GPS week, its week of ten bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import InputError, OptionError

from .arrays import Numbers, column_of, numbers


def unwrap(counts: Any, modulo: int, *, near: Any = None) -> pa.Array:
    """Counts that go on, of ``counts`` that begin anew at ``modulo``.

    Without ``near``, each count lies less than half of ``modulo`` from the one before it, in the order of the rows: so
    it may go back a little, as late rows do, and the first count stays as it is. A pause of half of ``modulo`` or more
    is not seen; for these there is ``near``.

    Args:
        counts: Whole numbers from 0 to ``modulo`` - 1, in any form: Arrow, pandas, Polars, NumPy, a list. NULL stays.
        modulo: The number that the counter never reaches, at least 2: ``2**32``, or 604,800,000 milliseconds.
        near: For each count, roughly what it should become, such as the host's time in the counter's unit: the result
            is the nearest one that the counter may mean, so it must be right by less than half of ``modulo``. With it,
            each row stands for itself, in any order.

    Returns:
        int64, as many.

    Raises:
        SplitJoinError: If a count is out of range, ``near`` has another length, or a result is beyond int64.
    """
    if near is None:
        return Unwrapper(modulo)(counts)
    found, known, _ = _counted(counts, _modulo(modulo))
    roughly, there, _ = numbers(near, "near")
    if len(roughly) != len(found):
        raise InputError(f"near must have a value for each count: {len(found)}, not {len(roughly)}")
    step = _steps(found - roughly % modulo, modulo)
    if len(step) and (int(roughly.max()) + modulo > np.iinfo(np.int64).max or
                      int(roughly.min()) - modulo < np.iinfo(np.int64).min):
        raise InputError("near must be within int64 by more than modulo")
    return column_of(roughly + step, known & there, pa.int64())


class Unwrapper:
    """`unwrap` for a stream: each call goes on where the one before ended.

    Args:
        modulo: As for `unwrap`.
    """

    def __init__(self, modulo: int):
        self._modulo = _modulo(modulo)
        self._last: int | None = None

    def __call__(self, counts: Any) -> pa.Array:
        """The counts that go on, of the next ``counts``; the arguments, result and errors are those of `unwrap`."""
        found, known, _ = _counted(counts, self._modulo)
        values = found[known]
        if not len(values):
            return column_of(found, known, pa.int64())
        first = int(values[0])
        if self._last is not None:
            first = self._last + _steps(np.array([first - self._last % self._modulo]), self._modulo).item()
        steps = _steps(np.diff(values), self._modulo)
        bound = abs(first) + int(np.abs(steps).sum(dtype=np.float64)) + 1
        if bound > 2**62:
            raise InputError("the counts together go beyond int64")
        going = np.concatenate([[first], first + np.cumsum(steps)]) if len(steps) else np.array([first])
        self._last = int(going[-1])
        result = found.copy()
        result[known] = going
        return column_of(result, known, pa.int64())


def _modulo(modulo: int) -> int:
    if isinstance(modulo, bool) or not isinstance(modulo, int) or not 2 <= modulo <= 2**62:
        raise OptionError(f"modulo must be a whole number from 2 to 2**62, not {modulo!r}")
    return modulo


def _counted(counts: Any, modulo: int) -> tuple[Numbers, Any, pa.DataType]:
    """The counts as `numbers` gives them. Raises `InputError` for one that the counter never has."""
    found, known, type_ = numbers(counts, "counts")
    wrong = known & ((found < 0) | (found >= modulo))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(f"a count must be from 0 to {modulo - 1:,}, not {found[at]:,} (row {at:,})")
    return found, known, type_


def _steps(differences: Numbers, modulo: int) -> Numbers:
    """The shortest way that the counter may have gone; forward, if it is half of ``modulo`` both ways."""
    half = (modulo - 1) // 2
    return (differences + half) % modulo - half
