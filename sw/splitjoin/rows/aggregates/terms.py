"""The terms of aggregates (`splitjoin.lang.aggregate_functions`) from the pairs of many base tuples."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from splitjoin.engines.range_terms import RangeTerms
from splitjoin.lang.aggregate import Aggregate
from splitjoin.lang.aggregate_functions import FoldTerm, Term
from splitjoin.lang.eval.vector import Vector, evaluate_columns
from splitjoin.lang.ir import Col, Expr

from .decided_bases import DecidedBases
from .user_fold import fold_user

Ints = npt.NDArray[np.int64]


class PairTerms:
    """Terms of the base tuples that are ``decided``, whose pairs lie one after the other. ``values``: the columns of
    each pair.
    """

    def __init__(self, values: Mapping[Col, Vector], decided: DecidedBases):
        self._columns, self._decided = values, decided
        end = np.cumsum(decided.lengths)
        self._pairs = int(end[-1]) if len(end) else 0
        self._vectors: dict[Expr, Vector] = {}
        self._ranges = RangeTerms(np.arange(self._pairs), end - decided.lengths, end, self.vector, by_arrival=True)

    def vector(self, e: Expr) -> Vector:
        """The value of ``e`` for each pair."""
        if e not in self._vectors:
            with np.errstate(all="ignore"):
                self._vectors[e] = evaluate_columns(e, self._columns, self._pairs)
        return self._vectors[e]

    def fold(self, term: Term) -> Vector:
        """The value of ``term`` for each base tuple; NULL where no partner has one."""
        if isinstance(term, FoldTerm):
            return fold_user(term, [self.vector(e) for e in term.args], self._decided)
        return self._ranges.fold(term)

    def whole(self, aggregate: Aggregate) -> Vector:
        """The values of a built-in ``aggregate`` without terms."""
        args, lengths = aggregate.args, self._decided.lengths
        valid = np.logical_and.reduce([self.vector(e).valid for e in args])
        counts = np.bincount(np.repeat(np.arange(len(lengths)), lengths)[valid], minlength=len(lengths))
        first = self.vector(args[0])
        chosen = Vector(first.values[valid], first.valid[valid], first.denominator)
        return aggregate.definition.of_pairs(args, chosen, counts, _fold)


def _fold(term: Term, values: Vector, counts: Ints) -> Vector:
    """The value of ``term`` of ``values``, ``counts`` (n,) for each base tuple."""
    end = np.cumsum(counts)
    return RangeTerms(np.arange(len(values.values)), end - counts, end, lambda _: values, by_arrival=True).fold(term)
