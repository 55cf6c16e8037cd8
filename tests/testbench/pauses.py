"""Generators of pauses of sources and sinks: endless, and pure functions of a seed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, repeat

Pauses = Iterator[bool]


def flowing() -> Pauses:
    """No pauses."""
    return repeat(False)


def random_pauses(seed: int, share: float) -> Pauses:
    """A pause in ``share`` of the cycles, independently."""
    rng = random.Random(seed)
    return (rng.random() < share for _ in repeat(None))


def bursts(seed: int, longest: int) -> Pauses:
    """Alternating bursts of 1 to ``longest`` cycles with and without pause, long enough to fill every FIFO behind."""
    rng = random.Random(seed)
    return chain.from_iterable([paused] * rng.randint(1, longest) for paused in _turns())


def scripted(pauses: Iterable[bool]) -> Pauses:
    """The given pauses, then none."""
    return chain(pauses, repeat(False))


def _turns() -> Iterator[bool]:
    while True:
        yield False
        yield True


@dataclass(frozen=True)
class Stalls:
    """One cell of the matrix idle × back-pressure: ``source(n)`` and ``sink(n)`` are the pauses of port number n."""

    idle: bool
    backpressure: bool
    seed: int = 0

    def source(self, port: int = 0) -> Pauses:
        """Pauses of source number ``port``."""
        return self._pauses(2 * port) if self.idle else flowing()

    def sink(self, port: int = 0) -> Pauses:
        """Pauses of sink number ``port``."""
        return self._pauses(2 * port + 1) if self.backpressure else flowing()

    def seeded(self, seed: int) -> Stalls:
        """A copy of this cell with other random pauses."""
        return replace(self, seed=seed)

    def _pauses(self, stream: int) -> Pauses:
        # Ports differ: some pause often, some seldom, some in long bursts.
        rng = random.Random(self.seed * 1000 + stream)
        if rng.random() < 0.3:
            return bursts(rng.getrandbits(32), rng.choice([4, 40]))
        return random_pauses(rng.getrandbits(32), rng.choice([0.1, 0.5, 0.8]))


#: Every bench runs in each of these.
MATRIX = {"flowing": Stalls(False, False), "idle": Stalls(True, False), "backpressure": Stalls(False, True),
          "both": Stalls(True, True)}
