"""The engine that folds a query's aggregates on the CPU, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from splitjoin.base.errors import UnsupportedError
from splitjoin.base.processors import processors
from splitjoin.engines.device import HostFolds
from splitjoin.lang.query import Query

from .baseline.key_oij import KeyOijEngine
from .baseline.scale_oij import ScaleOijEngine
from .folder import Engine, IntervalFolder
from .form import IntervalForm, folding, interval_form, no_interval
from .sliding import SlidingEngine

_ENGINES: dict[str, Callable[[IntervalForm, int, HostFolds, bool], Engine]] = {
    SlidingEngine.name: lambda form, workers, *_: SlidingEngine(form, workers),
    KeyOijEngine.name: lambda form, workers, _, in_order: KeyOijEngine(form, workers, in_order=in_order),
    ScaleOijEngine.name: lambda form, workers, asked, _: ScaleOijEngine(form, workers, period=asked.schedule_arrivals)}


@dataclass(frozen=True)
class IntervalChoice:
    """An engine by its ``name``, for a query of this ``form``, with this number of ``workers``, as ``asked``."""

    name: str
    form: IntervalForm
    workers: int
    asked: HostFolds

    def folder(self) -> IntervalFolder:
        """A fresh folder."""
        return IntervalFolder(self.form, self.engine(), self.workers)

    def engine(self, *, in_order: bool = True) -> Engine:
        """A fresh engine. ``in_order``: False if S tuples come in any order, for those that sort them."""
        return _ENGINES[self.name](self.form, self.workers, self.asked, in_order)

    def __str__(self) -> str:
        shared = "one worker, as all tuples have one key" if not self.form.keys else (
            f"{self.workers} worker{'s' * (self.workers > 1)} by key")
        return f"{self.name}: {shared}; {folding(self.form, self.name)}"


def interval_choice(query: Query, asked: HostFolds) -> IntervalChoice | None:
    """The engine that folds the aggregates of ``query`` as ``asked``; None where none can, so that pairs are folded.
    Raises `UnsupportedError` where the engine that must fold cannot run the query.
    """
    form, name = interval_form(query), asked.engine
    if isinstance(form, str):
        if name == "auto":
            return None
        raise UnsupportedError(f"engine={name!r} finds partners by equal keys, and folds them without making pairs, "
                               f"but {form}; use engine='auto'")
    if name in ("key-oij", "scale-oij") and (reason := no_interval(query)):
        raise UnsupportedError(f"engine={name!r} keeps tuples by time, but {reason}; use engine='auto'")
    name = "sliding" if name == "auto" else name
    return IntervalChoice(name, form, _workers(form, name, asked.workers), asked)


def _workers(form: IntervalForm, name: str, most: int) -> int:
    """The number of workers that share the keys, at most ``most``."""
    # Where a tuple is one addition and one subtraction, one worker takes a sixth of a batch's time for them: less than
    # what several lose, as each reads memory that is in the order of arrival.
    is_quick = not form.users and all(primitive.kind in ("count", "int sum") for primitive in form.primitives)
    if not form.keys or (name == "sliding" and is_quick):
        return 1
    # Each worker goes past all rows of a batch: 16 of them on two processors take 1.3 times the CPU time of two.
    return min(most, processors()) if name == "key-oij" else most
