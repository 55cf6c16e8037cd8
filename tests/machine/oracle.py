"""The rows of a query by brute force over plain lists, from sections 2 to 8, 10 and 12 of docs/semantics.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from .oracle_input import Arrival, R, S

Row = tuple[object, ...]
_INF = 1 << 60


@dataclass(frozen=True)
class Condition:
    """A condition: its text, whether a pair of values satisfies it, and whether a value alone rules its tuple out."""

    text: str
    holds: Callable[[int | None, int | None], bool]
    r_out: Callable[[int | None], bool]
    s_out: Callable[[int | None], bool]

    def __repr__(self) -> str:
        return f"Condition({self.text!r})"


def _null(value: int | None) -> bool:
    return value is None


def _never(value: int | None) -> bool:
    del value
    return False


#: Conditions over ``r.x`` and ``s.a``.
CONDITIONS = [
    Condition("abs(r.x - s.a) <= 1", lambda x, a: x is not None and a is not None and abs(x - a) <= 1, _null, _null),
    Condition("r.x = s.a", lambda x, a: x is not None and x == a, _null, _null),
    Condition("r.x < s.a AND r.x > 1", lambda x, a: x is not None and a is not None and 1 < x < a,
              lambda x: x is None or x <= 1, _null),
    Condition("(r.x * s.a) % 3 = 1", lambda x, a: x is not None and a is not None and x * a % 3 == 1, _null, _null),
    Condition("TRUE", lambda x, a: True, _never, _never),
]


@dataclass(frozen=True)
class Window:
    """ROWS ``rows`` and RANGE ``length``, None for no such limit."""

    rows: int | None = None
    length: int | None = None

    def __str__(self) -> str:
        return " ".join([f"ROWS {self.rows}"] * (self.rows is not None)
                        + [f"RANGE {self.length}"] * (self.length is not None))


@dataclass(frozen=True)
class Spec:
    """A query: its condition, the windows of R and of S, the kind of join, and its terms."""

    condition: Condition
    windows: tuple[Window, Window]
    how: str = "inner"
    direction: str = "backward"
    allow_exact: bool = True
    aggregate: bool = False
    k: int = 1
    ties: str = "backward"

    @property
    def chooses_late(self) -> bool:
        """Whether partners are chosen once nothing can meet a tuple any more, not at the first that is good enough."""
        return self.k > 1 or (self.direction == "nearest" and self.ties == "last")


@dataclass
class Lost:
    """A core of ``cores`` that stood still: of the next probe of each stream it gave the ``kept`` oldest pairs, and
    then none. It had stored the tuples of R and of S whose row ids have these ``remainders``, known once that is told.
    """

    cores: int
    kept: int
    remainders: tuple[int, int] | None = None
    first: tuple[int, int] = (0, 0)

    def without(self, probe: _Stored, met: list[_Stored]) -> list[_Stored]:
        """The tuples of ``met`` whose pairs with ``probe`` were given."""
        if self.remainders is None:
            return met
        mine = [q for q in met if q.number % self.cores == self.remainders[q.at.side]]
        given = mine[:self.kept] if probe.number == self.first[probe.at.side] else []
        return [q for q in met if q not in mine or q in given]


@dataclass(frozen=True)
class Change:
    """A change behind the first ``place`` tuples of the sequence: other windows, masked sub-windows, a precision, a
    core that is lost, or ``mended``: a fresh device that has all cores.

    ``reached`` is the least time of what could still come there, if that is later than the last tuple.
    """

    place: int
    reached: int = -_INF
    windows: tuple[Window, Window] | None = None
    masked: tuple[frozenset[int], int] | None = None
    precision: int | None = None
    lost: Lost | None = None
    mended: bool = False


@dataclass(eq=False)
class _Stored:
    """A tuple of the sequence as the join has it: its row id, its partners so far, and whether its row was given."""

    at: Arrival
    number: int
    partners: list[_Stored] = field(default_factory=list)
    decided: bool = False
    expired: bool = False
    followers: int = 0  # later tuples of its own stream
    old: bool = False  # from before the query began


class _Join:
    def __init__(self, spec: Spec, changes: Sequence[Change], history: Sequence[Arrival]):
        self.spec, self.changes = spec, list(changes)
        self.windows = spec.windows
        self.masked: tuple[frozenset[int], int] = frozenset(), 1
        self.lost: list[Lost] = []
        self.stored: tuple[list[_Stored], list[_Stored]] = [], []
        self.rows: list[Row] = []
        self.now = -_INF
        for at in history:
            self._store(at, old=True)
        self.begun = len(self.stored[R]), len(self.stored[S])

    def run(self, sequence: Sequence[Arrival], *, flushed: bool) -> None:
        for place, at in enumerate(sequence):
            self._change(place)
            self._arrive(at)
        self._change(len(sequence))
        if flushed:
            self._decide_by_time(_INF)

    def _store(self, at: Arrival, *, old: bool = False) -> _Stored:
        own = self.stored[at.side]
        for earlier in own:
            earlier.followers += 1
        own.append(_Stored(at, len(own), old=old))
        return own[-1]

    # Which rows a kind has.

    def _has_pairs(self) -> bool:
        return self.spec.how in ("inner", "left", "right", "full") and not self.spec.aggregate

    def _waits(self, tuple_: _Stored) -> bool:
        """Whether a tuple has a row that must be decided."""
        if tuple_.decided or tuple_.old:
            return False
        if self.spec.aggregate or self.spec.how in ("asof", "asof_left"):
            return tuple_.at.side == R
        kept = {"left": (R,), "anti": (R,), "right": (S,), "full": (R, S)}.get(self.spec.how, ())
        return tuple_.at.side in kept and not tuple_.partners

    def _give(self, tuple_: _Stored) -> None:
        """The row of a tuple that is decided."""
        tuple_.decided = True
        name = tuple_.at.name
        if self.spec.aggregate:
            values = [s.at.value for s in tuple_.partners if s.at.value is not None]
            if tuple_.partners or self.spec.how == "left":
                self.rows.append((name, len(tuple_.partners), sum(values) if values else None,
                                  max(values, default=None)))
        elif self.spec.how in ("asof", "asof_left"):
            chosen = self._chosen(tuple_)
            self.rows += [(name, one.at.name) for one in chosen] or [(name, None)] * (self.spec.how == "asof_left")
        elif self.spec.how == "anti":
            self.rows.append((name,))
        else:
            self.rows.append((name, None) if tuple_.at.side == R else (None, name))

    def _chosen(self, r: _Stored) -> list[_Stored]:
        """The partners of a tuple of R in an as-of join, among those it has met."""
        allowed = sorted((s for s in r.partners if self.spec.allow_exact or s.at.ts != r.at.ts),
                         key=lambda s: (s.at.ts, s.number))
        before = [s for s in reversed(allowed) if s.at.ts <= r.at.ts]
        if self.spec.direction == "backward":
            return before[:self.spec.k]
        if self.spec.direction == "forward":
            return [s for s in allowed if s.at.ts >= r.at.ts][:self.spec.k]
        near = sorted(allowed, key=lambda s: -s.number) if self.spec.ties == "last" else [
            *before, *(s for s in allowed if s.at.ts > r.at.ts)]
        return sorted(near, key=lambda s: abs(s.at.ts - r.at.ts))[:self.spec.k]

    # When a row is decided.

    def _time_from(self, tuple_: _Stored) -> int:
        """The time from which on an arrival or a heartbeat decides a tuple's row."""
        length = self.windows[tuple_.at.side].length
        times = [_INF if length is None else tuple_.at.ts + length + 1]
        if self.spec.how in ("asof", "asof_left") and not self.spec.chooses_late:
            if self.spec.direction == "backward":
                times.append(tuple_.at.ts + 1)
            if self.spec.direction == "nearest" and (best := self._chosen(tuple_)):
                distance = tuple_.at.ts - best[0].at.ts
                times.append(max(tuple_.at.ts + 1, tuple_.at.ts + distance))
        return min(times)

    def _decide_by_time(self, now: int) -> None:
        due = sorted((self._time_from(t), t.at.side, t.number, i) for side in self.stored
                     for i, t in enumerate(side) if self._waits(t))
        for time, side, _, i in due:
            if time <= now:
                self._give(self.stored[side][i])

    def _arrival_decides(self, p: _Stored, t: _Stored, met: list[_Stored]) -> bool:
        rows = self.windows[t.at.side].rows
        if rows is not None and t is not p and t.at.side == p.at.side and t.followers >= rows:
            return True
        if self.spec.aggregate or self.spec.chooses_late:
            return False
        if t is p:
            out = self.spec.condition.r_out if p.at.side == R else self.spec.condition.s_out
            if self.spec.how in ("asof", "asof_left") and self.spec.direction == "backward" \
                    and not self.spec.allow_exact:
                return True
            return out(p.at.value)
        if self.spec.how in ("asof", "asof_left") and self.spec.direction != "backward" and t in met:
            later = p.at.ts > t.at.ts
            return later or (self.spec.direction == "forward" and self.spec.allow_exact)
        return False

    def _is_masked(self, q: _Stored) -> bool:
        cores, of = self.masked
        return (q.number - self.begun[q.at.side]) % of in cores

    def _sees(self, p: Arrival, q: _Stored) -> bool:
        window = self.windows[q.at.side]
        if q.expired:
            return False
        if window.rows is not None and q.followers >= window.rows:
            return False
        return window.length is None or p.ts - q.at.ts <= window.length

    def _arrive(self, at: Arrival) -> None:
        self.now = at.ts
        self._decide_by_time(at.ts)
        p = self._store(at)
        met = []
        for q in self.stored[1 - at.side]:
            r, s = (p, q) if at.side == R else (q, p)
            if self._sees(at, q) and self.spec.condition.holds(r.at.value, s.at.value):
                met.append(q)
        for lost in self.lost:
            met = lost.without(p, met)
        met = [q for q in met if not self._is_masked(q)]
        first = [q for q in met if not q.partners]
        lone = not p.partners
        for q in met:
            q.partners.append(p)
            p.partners.append(q)
        due = [t for side in self.stored for t in side if self._waits(t) and self._arrival_decides(p, t, met)]
        for t in due:
            self._give(t)
        if self._has_pairs():
            self.rows += [(p.at.name, q.at.name) if at.side == R else (q.at.name, p.at.name) for q in met]
        if self.spec.how == "semi":
            matched = [p] * bool(met and lone) if at.side == R else first
            self.rows += [(r.at.name,) for r in matched if not r.old]

    # Changes while it runs.

    def _change(self, place: int) -> None:
        for change in self.changes:
            if change.place != place:
                continue
            if change.masked is not None:
                self.masked = change.masked
            if change.lost is not None:
                self.lost.append(replace(change.lost, first=(len(self.stored[R]), len(self.stored[S]))))
            if change.mended:
                self.lost = []
            if change.windows is not None:
                self.now = max(self.now, change.reached)
                self._change_windows(change.windows)

    def _passed(self, t: _Stored) -> bool:
        """Whether no later tuple can meet a stored one under the present windows."""
        window = self.windows[t.at.side]
        return t.expired or (window.rows is not None and t.followers >= window.rows) or (
            window.length is not None and t.at.ts + window.length < self.now)

    def _change_windows(self, windows: tuple[Window, Window]) -> None:
        for side in self.stored:
            for t in side:
                t.expired = self._passed(t)
        self.windows = windows
        for side in self.stored:
            for t in side:
                if self._waits(t) and self._passed(t):
                    self._give(t)


def groups_of(spec: Spec, side: int, n: int, sequence: Sequence[Arrival], *, flushed: bool,
              changes: Sequence[Change] = ()) -> list[tuple[int, frozenset[Row]]]:
    """The groups of the inner join ``spec`` in order ``outer(n)`` with probes of one stream: the row id of the last
    probe, which its star has, and the pairs of row ids. Not ``flushed``: those whose stars have come.
    """
    numbers: dict[object, int] = {at.name: sum(one.side == at.side for one in sequence[:i])
                                  for i, at in enumerate(sequence)}
    places: dict[object, int] = {at.name: i for i, at in enumerate(sequence)}
    pairs = rows_of(spec, sequence, flushed=False, changes=changes)
    found: list[tuple[int, frozenset[Row]]] = []
    group: list[object] = []
    size = after = n  # probes of the group that is open, and of those behind it
    for place, at in enumerate(sequence):
        for change in changes:
            if change.place == place and change.precision is not None:
                after = change.precision
                size = size if group else after
        if at.side == side:
            group.append(at.name)
        if len(group) == size or (flushed and group and place == len(sequence) - 1):
            met = frozenset((numbers[r], numbers[s]) for r, s in pairs if max(r, s, key=places.__getitem__) in group)
            found.append((numbers[group[-1]], met))
            group, size = [], after
    return found


def rows_of(spec: Spec, sequence: Sequence[Arrival], *, flushed: bool, changes: Sequence[Change] = (),
            history: Sequence[Arrival] = ()) -> list[Row]:
    """The rows of ``spec`` in order ``total`` over ``sequence``, by the names of the tuples.

    ``history`` are tuples from before the query that its windows begin with. Not ``flushed``: what the arrivals alone
    have decided.
    """
    assert all(one[:4] < two[:4] for one, two in pairwise(sequence)), "the sequence is in arrival order"
    join = _Join(replace(spec), changes, history)
    join.run(sequence, flushed=flushed)
    return join.rows
