"""ScaleGate by its definition: a tuple at a time, and readiness by looking at every other source."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Model", "ModelSource"]

#: A tuple: event time, number of its stream, index of its source, position among the source's tuples of its time, name.
Tuple = tuple[int, int, int, int, str]


@dataclass
class ModelSource:
    number: int
    index: int
    promise: float = float("-inf")
    top: float = float("-inf")
    closed: bool = False
    delivered: int = 0

    def least(self, lateness: int) -> float:
        """The least event time that the source can still deliver."""
        return max(self.promise, self.top - lateness)


@dataclass
class Model:
    lateness: int
    sources: list[ModelSource] = field(default_factory=list)
    waiting: list[Tuple] = field(default_factory=list)
    given: list[Tuple] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    reached: tuple[float, int, int] = (float("-inf"), -1, -1)  # no later source may precede this

    def add(self, number: int) -> ModelSource:
        source = ModelSource(number, sum(s.number == number for s in self.sources))
        ts, *rank = self.reached
        source.promise = ts if (number, source.index) > tuple(rank) else ts + 1
        self.sources.append(source)
        self._note()
        return source

    def push(self, source: ModelSource, ts: int, name: str) -> None:
        if ts < source.least(self.lateness):
            self.late.append(name)
            return
        self.waiting.append((ts, source.number, source.index, source.delivered, name))
        source.delivered += 1
        source.top = max(source.top, ts)

    def ready(self) -> list[str]:
        """The names of the tuples that are ready now and were not before, in arrival order."""
        self._note()
        if {s.number for s in self.sources} != {0, 1}:
            return []
        found = sorted(t for t in self.waiting if all(
            self._follows(t, s) for s in self.sources if not s.closed))
        self.waiting = [t for t in self.waiting if t not in found]
        self.given += found
        assert self.given == sorted(self.given), "the definition itself gave a wrong order"
        return [t[-1] for t in found]

    def _follows(self, t: Tuple, s: ModelSource) -> bool:
        """True if every tuple that ``s`` can still deliver follows ``t``."""
        return t[:3] <= (s.least(self.lateness), s.number, s.index)

    def _note(self) -> None:
        if {s.number for s in self.sources} != {0, 1}:
            return
        still = [(s.least(self.lateness), s.number, s.index) for s in self.sources if not s.closed]
        tops = [s.top for s in self.sources]
        self.reached = max(self.reached, min(still) if still else (max(tops), 2, 0))
