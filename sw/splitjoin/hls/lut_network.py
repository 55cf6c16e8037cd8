"""Logic covered by LUTs: a network of gates of two signals, and the LUTs and the time that it takes.

Gates are ANDs whose operands may be negated, equal ones once (an and-inverter graph). A LUT computes a gate from a
*cut*: up to K signals on which it depends. Each gate keeps the few cuts that are earliest and smallest (priority cuts);
the cover starts from the earliest ones, and then takes smaller ones where that costs no time (Mishchenko, Cho,
Chatterjee, Brayton: Combinational and sequential mapping with priority cuts, ICCAD 2007). Where LUTs of four inputs are
joined to wider ones by multiplexers beside them, a gate may take two, four or eight of them: later than one, but sooner
than two in a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: The constant signals. A signal is twice the number of its gate or source, plus 1 if it is negated.
FALSE, TRUE = 0, 1
#: Cuts that a gate keeps.
_CUTS = 8
#: Rounds in which the cover is improved.
_ROUNDS = 2
#: Inputs of a LUT → signals of a function → LUTs that it takes, and its delay in those of one: ECP5's with PFUMX and
#: L6MUX21, as Yosys has them with a wire of 800 ps in front of each (its abc9 library).
_WIDE: dict[int, dict[int, tuple[int, float]]] = {4: {5: (2, 1.083), 6: (4, 1.2), 7: (8, 1.32)}}

#: What a function of several LUTs must save, in delays of a LUT: mapping knows the delay of each input, and takes no
#: eight LUTs for two in a row that are hardly later.
_LEAST_SAVED = 0.2

Cut = frozenset[int]


class LutNetwork:
    """Sources and gates. ``inputs``: of a LUT; ``ns``: its delay; ``wide``: with functions of several LUTs."""

    def __init__(self, inputs: int, ns: float, *, wide: bool = False):
        self._wide = _WIDE.get(inputs, {}) if wide else {}
        self._widest = max(self._wide, default=inputs)
        self._sizes = [self._wide.get(n, (1, 1.0)) for n in range(self._widest + 1)]
        self._delays = [delay * ns for _, delay in self._sizes]
        self._operands: list[tuple[int, int] | None] = [None]  # of each gate; None for a source
        self._times = [0.0]
        self._cuts: list[list[Cut]] = [[frozenset()]]
        self._gates: dict[tuple[int, int], int] = {}

    def source(self, time: float = 0.0) -> int:
        """A signal that is there at ``time`` in ns."""
        self._operands.append(None)
        self._times.append(time)
        self._cuts.append([frozenset((len(self._times) - 1,))])
        return 2 * (len(self._times) - 1)

    def time(self, signal: int) -> float:
        """When ``signal`` is there, in ns, behind as few LUTs as possible."""
        return self._times[signal >> 1]

    def is_source(self, signal: int) -> bool:
        """True if ``signal`` is a source or a constant, negated or not."""
        return self._operands[signal >> 1] is None

    def both(self, a: int, b: int) -> int:
        """``a AND b``."""
        if a > b:
            a, b = b, a
        if a == FALSE or a == b ^ 1:
            return FALSE
        if a in (TRUE, b):
            return b
        if (a, b) not in self._gates:
            self._gates[a, b] = self._gate(a, b)
        return self._gates[a, b]

    def either(self, a: int, b: int) -> int:
        """``a OR b``."""
        return self.both(a ^ 1, b ^ 1) ^ 1

    def differ(self, a: int, b: int) -> int:
        """``a XOR b``."""
        negated = (a ^ b) & 1
        a, b = a & ~1, b & ~1
        return self.both(self.both(a, b) ^ 1, self.both(a ^ 1, b ^ 1) ^ 1) ^ negated

    def choose(self, which: int, a: int, b: int) -> int:
        """``a`` if ``which``, else ``b``."""
        a, b = self._given(a, which), self._given(b, which ^ 1)
        if a == b:
            return a
        if a == b ^ 1:
            return self.differ(which, b)
        return self.either(self.both(which, a), self.both(which ^ 1, b))

    def _given(self, signal: int, known: int) -> int:
        if signal >> 1 == known >> 1:
            return TRUE if signal == known else FALSE
        operands = self._operands[signal >> 1]
        if operands is not None and known in operands:
            return operands[operands[0] == known] ^ (signal & 1)
        return FALSE ^ (signal & 1) if operands is not None and known ^ 1 in operands else signal

    def all(self, signals: Sequence[int]) -> int:
        """The AND of ``signals``, as a balanced tree."""
        level = list(signals) or [TRUE]
        if self._wide and len(level) > 4:  # three comparisons of two bits fit a wide function
            level = [self.all(level[n:n + 3]) for n in range(0, len(level), 3)]
        while len(level) > 1:
            level = [self.both(*level[n:n + 2]) if n + 1 < len(level) else level[n] for n in range(0, len(level), 2)]
        return level[0]

    def _gate(self, a: int, b: int) -> int:
        number = len(self._times)
        found: dict[Cut, float] = {}
        for x in self._cuts[a >> 1]:
            for y in self._cuts[b >> 1]:
                cut = x | y
                if len(cut) <= self._widest and cut not in found:
                    found[cut] = max(self._times[leaf] for leaf in cut) + self._delays[len(cut)]
        kept: list[Cut] = []
        for cut in sorted(found, key=lambda c: (found[c], len(c))):
            if len(kept) < _CUTS and not any(other <= cut for other in kept):
                kept.append(cut)
        self._operands.append((a, b))
        self._times.append(found[kept[0]])
        self._cuts.append([*kept, frozenset((number,))])
        return 2 * number

    @property
    def size(self) -> int:
        """The number of the next gate or source."""
        return len(self._times)

    def luts(self, outputs: Iterable[int]) -> tuple[int, set[int]]:
        """The number of LUTs that compute ``outputs``, and the numbers of the sources that these read."""
        gates, sources = self.cover(outputs)
        return sum(gates.values()), sources

    def cover(self, outputs: Iterable[int]) -> tuple[dict[int, int], set[int]]:
        """The LUTs of each gate that has some of its own for ``outputs``, and the sources that these read."""
        late = _LEAST_SAVED * self._delays[0] if self._wide else 0.0
        found = _Cover(self._operands, self._cuts, self._times, self._sizes, self._delays, late)
        return found.of({signal >> 1 for signal in outputs})


class _Cover:
    """A cut for each gate that has a LUT of its own. ``late``: by how much outputs may be later than the latest one of
    the earliest cuts, in ns.
    """

    def __init__(self, operands: Sequence[tuple[int, int] | None], cuts: Sequence[Sequence[Cut]],
                 times: Sequence[float], sizes: Sequence[tuple[int, float]], delays: Sequence[float], late: float):
        self._operands, self._cuts, self._delays, self._late = operands, cuts, delays, late
        self._luts = [luts for luts, _ in sizes]  # by the signals of a cut
        self._times = list(times)
        self._chosen: dict[int, Cut] = {}
        self._uses = [0] * len(operands)  # of gates

    def of(self, outputs: set[int]) -> tuple[dict[int, int], set[int]]:
        """The gates of the cover of ``outputs`` with their LUTs, and the sources that it reads."""
        needed = self._below(outputs)
        self._chosen = {n: self._cuts[n][0] for n in needed}
        self._use(outputs)
        latest = max((self._times[n] for n in outputs), default=0.0) + self._late
        for _ in range(_ROUNDS):
            due = self._due(needed, outputs, latest)
            for n in needed:
                if self._uses[n]:
                    self._improve(n, due.get(n, latest))
        used = [n for n in needed if self._uses[n]]
        leaves = {leaf for n in used for leaf in self._chosen[n]} | outputs
        return ({n: self._luts[len(self._chosen[n])] for n in used},
                {n for n in leaves if self._operands[n] is None})

    def _below(self, outputs: set[int]) -> list[int]:
        """The gates that ``outputs`` depend on, operands first."""
        found, pending = set[int](), [n for n in outputs if self._operands[n] is not None]
        while pending:
            n = pending.pop()
            if n not in found:
                found.add(n)
                pending += [x >> 1 for x in self._operands[n] or () if self._operands[x >> 1] is not None]
        return sorted(found)

    def _use(self, signals: Iterable[int]) -> int:
        """Count a use of each of ``signals``; return the LUTs that are used for the first time."""
        operands, chosen, uses, luts = self._operands, self._chosen, self._uses, self._luts
        first, pending = 0, [signals]
        while pending:
            for n in pending.pop():
                if operands[n] is not None:
                    uses[n] += 1
                    if uses[n] == 1:
                        first += luts[len(chosen[n])]
                        pending.append(chosen[n])
        return first

    def _drop(self, signals: Iterable[int]) -> None:
        """Count a use less of each of ``signals``."""
        operands, chosen, uses = self._operands, self._chosen, self._uses
        pending = [signals]
        while pending:
            for n in pending.pop():
                if operands[n] is not None:
                    uses[n] -= 1
                    if not uses[n]:
                        pending.append(chosen[n])

    def _due(self, needed: Sequence[int], outputs: set[int], latest: float) -> dict[int, float]:
        """When each gate that is used must be there at the latest."""
        due = dict.fromkeys(outputs, latest)
        for n in reversed(needed):
            if self._uses[n]:
                for leaf in self._chosen[n]:
                    due[leaf] = min(due.get(leaf, latest), due.get(n, latest) - self._delays[len(self._chosen[n])])
        return due

    def _improve(self, n: int, due: float) -> None:
        """Take the cut of gate ``n``, which is used, that needs fewest LUTs and is in time."""
        timely = [(max(map(self._times.__getitem__, cut)) + self._delays[len(cut)], i)
                  for i, cut in enumerate(self._cuts[n][:-1])]
        timely = [(time, i) for time, i in timely if time <= due + 1e-9]
        if not timely:
            return
        self._drop(self._chosen[n])
        costs: list[tuple[int, float, int]] = []
        for time, i in timely:
            cut = self._cuts[n][i]
            costs.append((self._luts[len(cut)] + self._use(cut), time, i))
            self._drop(cut)
        _, self._times[n], i = min(costs)
        self._chosen[n] = self._cuts[n][i]
        self._use(self._chosen[n])
