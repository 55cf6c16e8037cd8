"""The terms of aggregates (`splitjoin.lang.aggregate_functions`) by NumPy, from the pairs of many base tuples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.lang.aggregate import Aggregate
from splitjoin.lang.aggregate_functions import FoldTerm, Term
from splitjoin.lang.eval.vector import Vector, evaluate_columns, joined_halves
from splitjoin.lang.ir import Col, Expr

from .decided_bases import DecidedBases
from .float_sum import exact_float_sums
from .user_fold import fold_user

__all__ = ["PairTerms", "exact_sums"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class PairTerms:
    """Terms of the base tuples that are ``decided``, whose pairs lie one after the other. ``values``: the columns of
    each pair.
    """

    def __init__(self, values: Mapping[Col, Vector], decided: DecidedBases):
        self._columns, self._decided, self._lengths = values, decided, decided.lengths
        self._pairs = int(self._lengths.sum())
        self._vectors: dict[Expr, Vector] = {}
        self._groups: dict[tuple[Expr, ...], tuple[Mask, Ints, Ints]] = {}

    def vector(self, e: Expr) -> Vector:
        """The value of ``e`` for each pair."""
        if e not in self._vectors:
            with np.errstate(all="ignore"):
                self._vectors[e] = evaluate_columns(e, self._columns, self._pairs)
        return self._vectors[e]

    def fold(self, term: Term) -> Vector:
        """The value of ``term`` for each base tuple; NULL where no partner has one."""
        lengths = self._lengths
        if isinstance(term, FoldTerm):
            return fold_user(term, [self.vector(e) for e in term.args], self._decided)
        if term.of is None:
            if term.value is None:
                return Vector(lengths, np.ones(len(lengths), np.bool_))
            at = np.cumsum(lengths) - (lengths if term.kind == "first" else 1)
            return _taken(self.vector(term.value), at, lengths > 0)
        valid, group, counts = self._valid(term.arguments)
        of, present = self.vector(term.of), counts > 0
        values, starts = of.values[valid], np.cumsum(counts) - counts
        match term.kind:
            case "count":
                return Vector(counts, np.ones(len(counts), np.bool_))
            case "distinct":
                return Vector(_distinct(values, group, len(counts)), np.ones(len(counts), np.bool_))
            case "sum":
                is_float = values.dtype.kind == "f"
                return Vector(exact_float_sums(values, counts) if is_float else exact_sums(values, counts), present,
                              of.denominator)
        assert term.value is not None
        if term.value != term.of:
            _, ranks = np.unique(values, return_inverse=True)
            # Stable: the first of equal ones.
            order = np.lexsort((ranks if term.kind == "least" else -ranks, group))
            at = np.zeros(len(counts), np.int64)
            at[present] = np.flatnonzero(valid)[order[starts[present]]]
            return _taken(self.vector(term.value), at, present)
        # NaN is the greatest value: maximum keeps it, fmin passes over it.
        ufunc = np.maximum if term.kind == "greatest" else np.fmin if values.dtype.kind == "f" else np.minimum
        found = np.zeros(len(counts), values.dtype)
        if len(values):
            found[present] = ufunc.reduceat(values, starts[present])
        if values.dtype.kind == "f":
            _take_first_zeros(found, present & (found == 0), values, starts)
        return Vector(found, present, of.denominator)

    def whole(self, aggregate: Aggregate) -> Vector:
        """The values of a built-in ``aggregate`` without terms."""
        args = aggregate.args
        valid, _, counts = self._valid(args)
        first = self.vector(args[0])
        chosen = Vector(first.values[valid], first.valid[valid], first.denominator)
        return aggregate.definition.of_pairs(args, chosen, counts, exact_float_sums)

    def _valid(self, of: tuple[Expr, ...]) -> tuple[Mask, Ints, Ints]:
        """The pairs in which nothing of ``of`` is NULL, the base tuples of these, and how many each of them has."""
        if of not in self._groups:
            valid = np.logical_and.reduce([self.vector(e).valid for e in of])
            group = np.repeat(np.arange(len(self._lengths)), self._lengths)[valid]
            self._groups[of] = valid, group, np.bincount(group, minlength=len(self._lengths))
        return self._groups[of]


def _taken(v: Vector, at: Ints, present: Mask) -> Vector:
    """The values at ``at``, NULL where not ``present``."""
    if not len(v.values):
        return Vector(np.zeros(len(at), v.values.dtype), np.zeros(len(at), np.bool_), v.denominator)
    at = np.where(present, at, 0)
    return Vector(v.values[at], v.valid[at] & present, v.denominator)


def _take_first_zeros(found: Array, zero: Mask, values: Array, starts: Ints) -> None:
    """Replace the least or greatest values ``found`` that are ``zero`` by the first zero of their ``values``, which
    begin at ``starts``: −0.0 equals 0.0, and NumPy gives either.
    """
    zeros = np.flatnonzero(values == 0)
    found[zero] = values[zeros[np.searchsorted(zeros, starts[zero])]]


def _distinct(values: Array, group: Ints, n: int) -> Ints:
    """The number of different ``values`` in each of ``n`` groups."""
    _, codes = np.unique(values, return_inverse=True)
    per = int(codes.max(initial=0)) + 1
    return np.bincount(np.unique(group * per + codes) // per, minlength=n)


def exact_sums(values: Array, counts: Ints) -> Array:
    """The sum of each group: int64 if all fit, else Python integers."""
    present = counts > 0
    starts = (np.cumsum(counts) - counts)[present]
    if values.dtype == object:
        sums = np.zeros(len(counts), object)
        if len(values):
            sums[present] = np.add.reduceat(values, starts)
        return sums
    values = values.astype(np.int64)
    low, high = np.zeros(len(counts), np.int64), np.zeros(len(counts), np.int64)
    if len(values):  # neither half can overflow with fewer than 2^31 values
        low[present] = np.add.reduceat(values & 0xFFFF_FFFF, starts)
        high[present] = np.add.reduceat(values >> 32, starts)
    return joined_halves(low, high)
