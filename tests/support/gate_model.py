"""ScaleGate by its definition: a tuple at a time, and readiness by looking at every other source."""

from __future__ import annotations

from dataclasses import dataclass, field

#: A tuple: event time, number of its stream, index of its source, position among the source's tuples of its time, name.
Tuple = tuple[int, int, int, int, str]
_NEVER = float("-inf")


@dataclass
class ModelSource:
    number: int
    index: int
    promise: float = _NEVER
    top: float = _NEVER
    closed: bool = False
    idle: bool = False
    spoke: float = 0
    delivered: int = 0


@dataclass
class Model:
    delays: tuple[int | None, int | None]
    rule: str = "source"
    idle: float = float("inf")  # seconds
    now: float = 0
    sources: list[ModelSource] = field(default_factory=list)
    waiting: list[Tuple] = field(default_factory=list)
    given: list[Tuple] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    reached: tuple[float, int, int] = (_NEVER, -1, -1)  # no later source may precede this

    def add(self, number: int) -> ModelSource:
        source = ModelSource(number, sum(s.number == number for s in self.sources), spoke=self.now)
        source.promise = self._floor(source)
        self.sources.append(source)
        self._note()
        return source

    def speak(self, source: ModelSource) -> None:
        source.spoke, source.idle = self.now, False

    def push(self, source: ModelSource, ts: int, name: str) -> None:
        if ts < max(self._mark(source), self._floor(source)):
            self.late.append(name)
            return
        self.waiting.append((ts, source.number, source.index, source.delivered, name))
        source.delivered += 1
        source.top = max(source.top, ts)

    def ready(self) -> list[str]:
        """The names of the tuples that are ready now and were not before, in arrival order."""
        self._note()
        found = sorted(t for t in self.waiting if t[:3] <= self.reached)
        self.waiting = [t for t in self.waiting if t not in found]
        self.given += found
        assert self.given == sorted(self.given), "the definition itself gave a wrong order"
        return [t[-1] for t in found]

    def _floor(self, source: ModelSource) -> float:
        ts, *rank = self.reached
        return ts if (source.number, source.index) >= tuple(rank) else ts + 1

    def _own(self, source: ModelSource) -> float:
        delay = self.delays[source.number]
        return _NEVER if delay is None else source.top - delay + (self.rule == "spark")

    def _watermark(self) -> float:
        counted = [s for s in self.sources if self.delays[s.number] is not None]
        if self.rule == "max":
            return max(map(self._own, counted), default=_NEVER)
        lacking = any(self.delays[number] is not None for number in self._missing())
        marks = [max(self._own(s), s.promise) for s in counted if not s.closed and not s.idle]
        return _NEVER if lacking else min(marks, default=_NEVER)

    def _mark(self, source: ModelSource) -> float:
        """The least event time that the source can still deliver."""
        return max(source.promise, self._own(source) if self.rule == "source" else self._watermark())

    def _missing(self) -> list[int]:
        return [n for n in (0, 1) if all(s.number != n for s in self.sources) and self.now < self.idle]

    def _note(self) -> None:
        for s in self.sources:
            s.idle |= not s.closed and self.now - s.spoke >= self.idle
        places = [(self._mark(s), s.number, s.index) for s in self.sources if not s.closed and not s.idle]
        places += [(_NEVER if self.rule == "source" else self._watermark(), number, 0) for number in self._missing()]
        if places:
            self.reached = max(self.reached, min(places))
        elif all(s.closed for s in self.sources) and {s.number for s in self.sources} == {0, 1}:
            self.reached = max(self.reached, (max(s.top for s in self.sources), 2, 0))
        for s in self.sources:
            if s.idle:
                s.promise = max(s.promise, self._floor(s))
