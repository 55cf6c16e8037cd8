"""Cells of neighbouring keys, by which core ``bucket`` stores tuples: their widths, and which ones a probe reaches."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ..lang.codes import TupleCodes
from ..lang.float_keys import FloatKey, float_values
from ..lang.keys import Codes, Key
from ..lang.plan import Plan
from .wire import Configuration, Span

__all__ = ["Cells"]

#: Probes that are looked at to learn the width.
_SAMPLE = 1 << 13
#: One probe in so many may reach more than two cells, and read the whole sub-window.
_RARE = 64
#: Cells of floats end here: up to this, all whole numbers are floats too.
_FAR = 2.0**53


class Cells:
    """The cells of a session with core ``bucket``. With other cores nothing is done.

    A cell holds as many keys, or of floats as long a piece of the numbers' line, as an interval of the first probes
    reaches: then a probe reaches two neighbours at most. It is learnt from the first tuples and stays, as it decides
    where tuples are stored. The answer does not depend on it, only the cycles.
    """

    def __init__(self, plan: Plan, config: Configuration):
        self._config = config
        tests = [plan.tests[j] for j in config.index] if config.core == "bucket" else []
        #: Per stream and test of the index, the key, and its number among the stream's.
        self._keys: dict[str, list[Key]] = {
            "r": [plan.slots_r[t.r].key for t in tests], "s": [plan.slots_s[t.s].key for t in tests]}
        self._slots = {"r": [t.r for t in tests], "s": [t.s for t in tests]}
        self._widths: dict[str, list[float]] | None = None

    @property
    def widths(self) -> dict[str, list[float]] | None:
        """Per stream and test of the index: how many keys, or of floats what length, a cell holds; None before."""
        return self._widths

    def learn(self, codes: Mapping[str, TupleCodes]) -> None:
        """Choose the widths from the first tuples of both streams that bring any bounds."""
        if self._widths is not None or not self._slots["r"]:
            return
        found = {side: [self._reach(side, n, codes["s" if side == "r" else "r"]) for n in range(len(keys))]
                 for side, keys in self._keys.items()}
        if not any(len(c.lows) and len(c.lows[0]) for c in codes.values()):
            return  # no tuples yet
        # Where one stream has no tuple with bounds among them, its probes are taken to be like the other stream's.
        self._widths = {side: [a or b or 1 for a, b in zip(found[side], found[other], strict=True)]
                        for side, other in (("r", "s"), ("s", "r"))}

    def fields(self, side: str, codes: TupleCodes) -> dict[str, Codes | int]:
        """The fields `Configuration.cells` and `Configuration.reach` of tuples of stream ``side`` (n,)."""
        out: dict[str, Codes | int] = {}
        other = "s" if side == "r" else "r"
        for n, bits in enumerate(self._config.cell_bits):
            mask = np.int64(2**bits - 1)
            low, high = codes.lows[self._config.index[n]], codes.highs[self._config.index[n]]
            first, last = self._cell(other, n, low), self._cell(other, n, high)
            # The difference is right modulo 2^64, and no cell lies further above another one than that.
            further = np.minimum((last - first).astype(np.uint64), np.uint64(Span.MANY))
            out[f"cell{n}"] = (self._cell(side, n, codes.keys[self._slots[side][n]]) & mask).astype(np.uint64)
            out[f"first{n}"] = (first & mask).astype(np.uint64)
            out[f"span{n}"] = np.where(low > high, np.uint64(Span.NONE), further)
        return out

    def _cell(self, side: str, n: int, codes: Codes) -> npt.NDArray[np.int64]:
        """Cells of stream ``side``'s keys, modulo 2^64; they never fall as codes grow."""
        assert self._widths is not None
        key, width = self._keys[side][n], self._widths[side][n]
        if not isinstance(key, FloatKey):
            return (codes // np.uint64(width)).astype(np.int64)
        values = float_values(codes, key.bits, key.nan_low).astype(np.float64)
        values = np.where(np.isnan(values), -np.inf if key.nan_low else np.inf, values)
        with np.errstate(over="ignore"):
            return np.floor(np.clip(values / width, -_FAR, _FAR)).astype(np.int64)

    def _reach(self, side: str, n: int, probes: TupleCodes) -> float:
        """How far intervals of all but rare ``probes`` reach in keys of ``side``; 0 where all are points or empty."""
        key, test = self._keys[side][n], self._config.index[n]
        low, high = probes.lows[test][:_SAMPLE], probes.highs[test][:_SAMPLE]
        low, high = low[low <= high], high[low <= high]
        if not len(low):
            return 0
        reach = (high - low).astype(np.float64)
        if isinstance(key, FloatKey):
            ends = [float_values(codes, key.bits, key.nan_low).astype(np.float64) for codes in (low, high)]
            with np.errstate(invalid="ignore"):  # an interval with infinite ends
                length = ends[1] - ends[0]
            reach = np.where(low == high, 0, np.where(np.isfinite(length), length, np.inf))
        reach.sort()
        chosen = float(reach[len(reach) - 1 - len(reach) // _RARE])
        return min(chosen, 2.0**63) if np.isfinite(chosen) else 0
