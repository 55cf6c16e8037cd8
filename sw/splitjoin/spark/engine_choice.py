"""`chosen_engine`: whether a join of batch DataFrames runs as SQL of Spark's own or in Python workers, by ``engine``.

With ``engine="auto"`` it is decided by CPU seconds that both would take, estimated from the numbers of rows and of
pairs that share a bin or are results (`RewrittenJoin.candidates`, `RewrittenJoin.pairs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from splitjoin.base.errors import InputError, SplitJoinError
from splitjoin.lang.query import Query
from splitjoin.rows.output import OutputColumn

from .rewrite import ENGINE, RewrittenJoin

__all__ = ["AUTO", "EngineChoice", "chosen_engine", "is_rewritten", "may_be_rewritten"]

#: The engine that is Spark's join or the CPU engine in Python workers, whichever is estimated to take less.
AUTO = "auto"
#: CPU seconds, of runs with the bands of ``bench.spark``: in Spark's join, of a row that is in bins, of a pair that
#: shares a bin, and of one of the result; in Python, of the start, of a row, and of a pair of the result.
_COPY, _CANDIDATE, _GIVEN = 2e-6, 2e-8, 1e-7
_PYTHON, _ROW, _PAIR = 0.4, 5e-6, 1e-6


@dataclass(frozen=True)
class EngineChoice:
    """The join that Spark runs itself, None for the Python workers; and what `explain` says of the choice."""

    rewritten: RewrittenJoin | None
    reason: str = ""


def is_rewritten(options: Mapping[str, Any], device: object, refused: Mapping[str, object]) -> bool:
    """True if the device options choose ``engine="rewrite"``. ``refused``: arguments that it has not, by their names.

    Raises `InputError` for one of these, or a device or an option besides.
    """
    if options.get("engine") != ENGINE:
        return False
    if given := _besides(options, device, refused):
        raise InputError(f"engine='rewrite' is a join of Spark's own, without a device, so it has no "
                         f"{', '.join(given)}; leave it out, or leave engine out")
    return True


def may_be_rewritten(options: Mapping[str, Any], device: object, refused: Mapping[str, object],
                     left: DataFrame) -> bool:
    """True if `chosen_engine` has anything to choose. Raises what `is_rewritten` raises."""
    return is_rewritten(options, device, refused) or (options.get("engine") == AUTO and not left.isStreaming
                                                      and not _besides(options, device, refused))


def _besides(options: Mapping[str, Any], device: object, refused: Mapping[str, object]) -> list[str]:
    given = [name for name, value in refused.items() if value]
    given += [f"device={device!r}"] if device != "cpu" else []
    return given + [name for name in options if name != "engine"]


def chosen_engine(query: Query, left: DataFrame, right: DataFrame, gathered: Sequence[OutputColumn],
                  engine: object) -> EngineChoice:
    """The choice by ``engine``, "rewrite" or "auto"; runs jobs that count rows.

    Raises `SplitJoinError` for a join that cannot be written, with "rewrite".
    """
    if engine == ENGINE:
        return EngineChoice(RewrittenJoin.of(query, left, right, gathered))
    try:
        made = RewrittenJoin.of(query, left, right, gathered)
    except SplitJoinError as error:
        return EngineChoice(None, f"in Python workers, as {str(error).partition('; leave engine out')[0]}")
    candidates = made.candidates()
    pairs = made.pairs(candidates)
    own = made.copies * _COPY + candidates * _CANDIDATE + pairs * _GIVEN
    python = _PYTHON + sum(made.counts.values()) * _ROW + pairs * _PAIR
    said = (f"about {own:.2g} CPU s by Spark's own join in bins ({candidates:,.0f} pairs share one, {pairs:,.0f} are "
            f"results), {python:.2g} in Python workers")
    return EngineChoice(made, f"in Spark: {said}") if own < python else EngineChoice(None, f"in Python workers: {said}")
