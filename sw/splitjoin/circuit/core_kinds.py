"""The kinds of join cores: what parameters one takes, which index suits a condition, and the index's record fields.

A kind is a class and a line of the table `KINDS` here, and as much in each of the other layers: its cost
(`splitjoin.circuit.cost.core_kinds`), its speed (`splitjoin.circuit.tuner.core_kinds`), its components
(`splitjoin_hw.core.kinds`), and the golden model of what a probe is compared with (`tests.testbench.core_kinds`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.errors import UnsupportedError, check
from splitjoin.lang.schema import other_side
from splitjoin.plan.encoding import TupleCodes
from splitjoin.plan.keys import Codes, FloatKey, Key
from splitjoin.plan.linear import ExactRelation
from splitjoin.plan.plan import Plan, leading_tests
from splitjoin.plan.relations import FloatBand, FloatOrder, Product, Relation, TextOrder, WideRelation

from .index_coders import SAMPLE, IndexCoder, OrderedCells, key_cells, key_values, range_tests

#: Bit fields of a record: name and width of each.
Fields = tuple[tuple[str, int], ...]
#: The parameters of a circuit, or a whole configuration. They are declared with the names of the kinds, so that this
#: module can import the classes of neither.
Parameters = Any


class CoreKind:
    """A kind of core.

    Attributes:
        name: Its name among the parameters.
        has_index: True if it looks candidates up; False if it compares every stored tuple.
        has_tables: True if its tests may be looked up in tables (parameter ``tables``).
        folds: True if its regions can fold what they find (parameter ``fold``).
        index_must: The range of a configuration's ``index`` in words, to complete "… must be".
    """

    name: str
    has_index: bool = False
    has_tables: bool = False
    folds: bool = False
    index_must: str = "empty"

    def index_sizes(self, tests: int) -> range:
        """The numbers of tests that an index may be built on, for a condition with ``tests`` interval tests."""
        return range(1)

    def check_parameters(self, parameters: Parameters) -> None:
        """Raise `UnsupportedError` for parameters that this kind does not support."""

    def suitable_index(self, plan: Plan) -> tuple[int, ...]:
        """The tests that an index for ``plan`` is built on, main one first; empty without an index.

        Raises `UnsupportedError` if the condition has no test for such an index.
        """
        return ()

    def index_with(self, plan: Plan, main: int) -> tuple[int, ...]:
        """The same tests, for a plan whose main test is already chosen."""
        return ()

    def lookups(self, config: Parameters) -> int:
        """The largest number of buckets that a probe looks up."""
        return 0

    def index_widths(self, config: Parameters, side: str) -> tuple[int, ...]:
        """Widths in bits of the index fields of tuples of stream ``side``, one for each test of the index."""
        return ()

    def stored_fields(self, config: Parameters, side: str) -> Fields:
        """The fields of a stored tuple of stream ``side`` for the index, beside its keys."""
        return ()

    def probe_fields(self, config: Parameters, side: str) -> Fields:
        """The fields of a probe of stream ``side`` for the index, beside its bounds."""
        return ()

    def index_coder(self, plan: Plan, config: Parameters) -> IndexCoder:
        """The coder that computes these fields in one session."""
        return IndexCoder()


class IndexKind(CoreKind, ABC):
    """A kind of core with an index: it compares a probe with one candidate at a time.

    Attributes:
        needs: What the index needs in a condition, in words, such as "a comparison between the streams".
    """

    has_index = True
    needs: str

    @abstractmethod
    def main_tests(self, plan: Plan) -> list[int]:
        """The tests that may be the main one of the index, best first."""

    def suitable_index(self, plan: Plan) -> tuple[int, ...]:
        found = self.main_tests(plan)
        if not found:
            other = "bucket" if self.name == "hash" and bands(plan) else "scan"
            raise UnsupportedError(f"core {self.name} needs {self.needs}, and this condition has none; "
                                   f"use core='{other}'")
        best = None if plan.main is None else plan.main.test
        return self.index_with(plan, best if best in found else found[0])

    def check_parameters(self, parameters: Parameters) -> None:
        check(f"lanes of core {self.name}", parameters.lanes, parameters.lanes == 1,
              "1, as it reads one candidate at a time")
        check(f"probes of core {self.name}", parameters.probes, parameters.probes == 1,
              "1, as each probe has candidates of its own")


def points(plan: Plan) -> list[int]:
    """The tests for an index in which a probe asks for one key."""
    return [j for j in leading_tests(plan) if plan.tests[j].is_point]


def bands(plan: Plan) -> list[int]:
    """The tests for an index whose intervals end on both sides, short of the keys' range."""
    return [j for j in leading_tests(plan) if not plan.tests[j].is_point
            and {end for relation in plan.tests[j].relations for end in _ends(relation)} == {"<", ">"}]


def with_other_keys(plan: Plan, main: int, others: Iterable[int]) -> tuple[int, ...]:
    """``main``, and those of ``others`` that share no key with an earlier one, in either stream."""
    out = [main]
    for j in others:
        if all(plan.tests[j].r != plan.tests[k].r and plan.tests[j].s != plan.tests[k].s for k in out):
            out.append(j)
    return tuple(out)


def _ends(relation: Relation) -> str:
    """``<`` if ``relation`` bounds a value that falls as the keys of S grow, ``>`` if one that rises, or both."""
    if isinstance(relation, WideRelation):
        relation = relation.exact
    if isinstance(relation, (ExactRelation, FloatBand, FloatOrder, TextOrder, Product)):
        ends = "<>" if relation.op == "=" else relation.op[0]
        turned = isinstance(relation, ExactRelation) and relation.h < 0
        return ends.translate(str.maketrans("<>", "><")) if turned else ends
    return ""


class Scan(CoreKind):
    """A core that reads its sub-window for each batch of probes. Every condition can have it."""

    name = "scan"
    has_tables, folds = True, True


#: Degree → a primitive polynomial over GF(2), its coefficients as bits. The number of a bucket is the remainder of all
#: bits of all keys modulo the polynomial of so many bits.
POLYNOMIALS = {2: 0b111, 3: 0b1011, 4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10000011, 8: 0x11D, 9: 0x211, 10: 0x409,
               11: 0x805, 12: 0x1053, 13: 0x201B, 14: 0x4443, 15: 0x8003, 16: 0x1100B, 17: 0x20009, 18: 0x40081,
               19: 0x80027, 20: 0x100009, 21: 0x200005, 22: 0x400003, 23: 0x800021, 24: 0x1000087}


class Hash(IndexKind):
    """A core with an index on equalities: a bucket's number is a hash of all their keys."""

    name = "hash"
    index_must = "one or more of the tests"
    needs = "an equality between the streams that holds for every result, such as r.x = s.a"

    def index_sizes(self, tests: int) -> range:
        return range(min(1, tests), tests + 1)

    def main_tests(self, plan: Plan) -> list[int]:
        return points(plan)

    def index_with(self, plan: Plan, main: int) -> tuple[int, ...]:
        return with_other_keys(plan, main, self.main_tests(plan))

    def lookups(self, config: Parameters) -> int:
        return 1

    def index_widths(self, config: Parameters, side: str) -> tuple[int, ...]:
        widths = config.keys_r if side == "r" else config.keys_s
        return tuple(widths[config.tests[j]["rs".index(side)]] for j in config.index)


#: Most tests of a bucket index: each further test doubles the buckets that a probe reaches.
_TESTS = 2
#: One probe in so many may reach more than two cells, and read the whole sub-window.
_RARE = 64
#: Widest cell as a multiple of the interval. In wider cells a few more probes would reach a single cell, but not many.
WIDEST = 4.0


class Span(IntEnum):
    """Number of neighbouring buckets that a probe reaches; MANY stands for too many to look up."""

    ONE = 0
    TWO = 1
    MANY = 2
    NONE = 3


class Bucket(IndexKind):
    """A core with an index on equalities and bands: a bucket's number concatenates the cell numbers of the keys, so
    that neighbouring cells never share a bucket.

    A tuple's record holds, for each test of the index, the number of the cell that contains its key, modulo 2^bits;
    cell numbers are monotone in the keys. A probe's record holds the cell in which its interval begins, and the number
    of cells that it reaches, as a `Span`.
    """

    name = "bucket"
    index_must = "one or two of the tests"
    needs = "a test that holds for every result and bounds a key at both ends, such as abs(r.x - s.a) <= 10"

    def index_sizes(self, tests: int) -> range:
        return range(1, _TESTS + 1)

    def main_tests(self, plan: Plan) -> list[int]:
        return points(plan) + bands(plan)

    def index_with(self, plan: Plan, main: int) -> tuple[int, ...]:
        return with_other_keys(plan, main, self.main_tests(plan))[:_TESTS]

    def lookups(self, config: Parameters) -> int:
        return 1 << len(config.index)  # two neighbours a test

    def index_widths(self, config: Parameters, side: str) -> tuple[int, ...]:
        return _cell_bits(config)

    def stored_fields(self, config: Parameters, side: str) -> Fields:
        return tuple((f"cell{n}", bits) for n, bits in enumerate(_cell_bits(config)))

    def probe_fields(self, config: Parameters, side: str) -> Fields:
        return tuple(f for n, bits in enumerate(_cell_bits(config)) for f in ((f"first{n}", bits), (f"span{n}", 2)))

    def index_coder(self, plan: Plan, config: Parameters) -> BucketGrid:
        return BucketGrid(plan, config)


def _cell_bits(config: Parameters) -> tuple[int, ...]:
    """Bits that each test of the index contributes to a bucket's number."""
    bits, tests = config.buckets.bit_length() - 1, len(config.index)
    return tuple((bits + tests - 1 - n) // tests for n in range(tests))


class BucketGrid(IndexCoder):
    """The grid of buckets of a session: it chooses the width of cells and maps keys and intervals to them.

    A cell is as wide as the intervals of the first probes (in keys, or for floats in units of their value), so that a
    probe reaches at most two neighbouring cells. Where there would be more cells than buckets, and cells would share
    buckets, the cells are made wider, so that more probes reach only one. The widths are learnt from the first tuples
    and stay fixed, because they decide where tuples are stored. They influence the cycles, never the answer.
    """

    def __init__(self, plan: Plan, config: Parameters):
        self._config, self._bits = config, _cell_bits(config)
        tests = [plan.tests[j] for j in config.index]
        #: Per stream and test of the index, the key, and its number among the stream's.
        self._keys: dict[str, list[Key]] = {
            "r": [plan.slots_r[t.r].key for t in tests], "s": [plan.slots_s[t.s].key for t in tests]}
        self._slots = {"r": [t.r for t in tests], "s": [t.s for t in tests]}
        self._widths: dict[str, list[float]] | None = None

    @property
    def widths(self) -> dict[str, list[float]] | None:
        """Width of a cell per stream and test of the index, in keys, or for floats in units of their value; None before
        it is learnt.
        """
        return self._widths

    def learn(self, codes: Mapping[str, TupleCodes]) -> None:
        """Choose the widths from the first tuples of both streams that have any bounds."""
        if self._widths is not None:
            return
        found = {side: [self._reach(side, n, codes[other_side(side)]) for n in range(len(keys))]
                 for side, keys in self._keys.items()}
        if not any(len(c.lows) and len(c.lows[0]) for c in codes.values()):
            return  # no tuples yet
        # If none of one stream's first tuples has bounds, its probes are assumed to be like the other stream's.
        widths = {side: [a or b or 1 for a, b in zip(found[side], found[other], strict=True)]
                  for side, other in (("r", "s"), ("s", "r"))}
        self._widths = {side: [width * self._wider(side, n, width, codes[side].keys[self._slots[side][n]])
                               for n, width in enumerate(widths[side])] for side in widths}

    def fields(self, side: str, codes: TupleCodes) -> dict[str, Codes | int]:
        out: dict[str, Codes | int] = {}
        other = other_side(side)
        for n, bits in enumerate(self._bits):
            mask = np.int64(2**bits - 1)
            low, high = codes.lows[self._config.index[n]], codes.highs[self._config.index[n]]
            first, last = self._cell(other, n, low), self._cell(other, n, high)
            # The difference is exact modulo 2^64, and no two cells are further apart than that.
            further = np.minimum((last - first).astype(np.uint64), np.uint64(Span.MANY))
            out[f"cell{n}"] = (self._cell(side, n, codes.keys[self._slots[side][n]]) & mask).astype(np.uint64)
            out[f"first{n}"] = (first & mask).astype(np.uint64)
            out[f"span{n}"] = np.where(low > high, np.uint64(Span.NONE), further)
        return out

    def _cell(self, side: str, n: int, codes: Codes) -> npt.NDArray[np.int64]:
        """Cells of stream ``side``'s keys, modulo 2^64; monotone in the codes."""
        assert self._widths is not None
        return key_cells(self._keys[side][n], self._widths[side][n], codes)

    def _wider(self, side: str, n: int, width: float, codes: Codes) -> float:
        """The factor by which cells of ``side`` can be widened before its tuples ``codes`` leave buckets empty."""
        # Only as many tuples as a window holds: keys may drift, and a window's keys span less than those of all tuples.
        codes = codes[:min(SAMPLE, self._config.window_capacity)]
        values = key_values(self._keys[side][n], codes)
        values = values[np.isfinite(values) & (codes > 0)]
        if not len(values):
            return 1
        low, high = np.quantile(values, (0.05, 0.95))
        cells = (high - low) / 0.9 / width
        return float(np.clip(cells / 2**self._bits[n], 1, WIDEST))

    def _reach(self, side: str, n: int, probes: TupleCodes) -> float:
        """The length, in keys of ``side``, of the intervals of all but rare ``probes``; 0 for points and none."""
        key, test = self._keys[side][n], self._config.index[n]
        low, high = probes.lows[test][:SAMPLE], probes.highs[test][:SAMPLE]
        low, high = low[low <= high], high[low <= high]
        if not len(low):
            return 0
        reach = (high - low).astype(np.float64)
        if isinstance(key, FloatKey):
            ends = [key_values(key, codes) for codes in (low, high)]
            with np.errstate(invalid="ignore"):  # an interval with infinite ends
                length = ends[1] - ends[0]
            reach = np.where(low == high, 0, np.where(np.isfinite(length), length, np.inf))
        reach.sort()
        chosen = float(reach[len(reach) - 1 - len(reach) // _RARE])
        return chosen if np.isfinite(chosen) else 0


class Ordered(IndexKind):
    """A core with an index on any tests between a key of one stream and keys of the other: a probe reads all cells
    from one end of its interval to the other.

    A record holds the cell of the tuple's place, modulo the number of buckets, and for the probe the first cell and the
    number of cells that it reaches, 0 to all (`splitjoin.circuit.index_coders.OrderedCells`).
    """

    name = "ordered"
    index_must = "one of the tests"
    needs = "a comparison between the streams that holds for every result, such as r.x < s.a"

    def index_sizes(self, tests: int) -> range:
        return range(1, 2)

    def main_tests(self, plan: Plan) -> list[int]:
        return sorted(leading_tests(plan), key=lambda j: len(range_tests(plan, j)[1]), reverse=True)

    def index_with(self, plan: Plan, main: int) -> tuple[int, ...]:
        return (main,)

    def lookups(self, config: Parameters) -> int:
        return int(config.buckets)

    def index_widths(self, config: Parameters, side: str) -> tuple[int, ...]:
        return _cell_bits(config)

    def stored_fields(self, config: Parameters, side: str) -> Fields:
        return (("cell0", _cell_bits(config)[0]),)

    def probe_fields(self, config: Parameters, side: str) -> Fields:
        bits, = _cell_bits(config)
        return (("first0", bits), ("cells0", bits + 1))

    def index_coder(self, plan: Plan, config: Parameters) -> OrderedCells:
        return OrderedCells(plan, config.index[0], _cell_bits(config)[0], config.window_capacity)


#: Name → kind, in the order in which they are listed and tried.
KINDS: dict[str, CoreKind] = {kind.name: kind for kind in (Scan(), Hash(), Bucket(), Ordered())}


def kind_names() -> str:
    """The names of all kinds, as words: "scan, hash, bucket or ordered"."""
    *first, last = KINDS
    return f"{', '.join(first)} or {last}"
