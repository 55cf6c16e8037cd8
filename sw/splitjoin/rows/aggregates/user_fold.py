"""Folding by user-defined aggregates: a compiled kernel, or where numbers are too wide for it, plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from types import ModuleType

import numpy as np

from splitjoin.base.arrays import Array, Ints, Mask
from splitjoin.base.errors import InputError
from splitjoin.engines.compiled.compiler import has_numba
from splitjoin.lang.aggregate_functions import FoldTerm
from splitjoin.lang.eval.vector import Vector
from splitjoin.lang.fold import Fold, Overflow

from .decided_bases import DecidedBases
from .user_values import Arguments, argument_arrays, argument_error, overflow_error, results


def fold_user(term: FoldTerm, args: Sequence[Vector], decided: DecidedBases,
              begin: tuple[list[Array], Mask] | None = None) -> Vector:
    """The values of ``term`` for each base tuple, from its arguments' values for each pair. ``begin``: the states
    that the pairs are added to, slot by slot, and whether they have partners; by default, initial ones.

    Raises `InputError` for an argument, a state or a result that leaves its stated width: of the first pair.
    """
    states, counts = user_states(term, args, decided, begin)
    present = counts > 0 if begin is None else (counts > 0) | begin[1]
    return results(term, states, present, decided.bases)


def user_states(term: FoldTerm, args: Sequence[Vector], decided: DecidedBases,
                begin: tuple[list[Array], Mask] | None = None) -> tuple[
                    list[Array], Ints]:
    """The states of `fold_user`, slot by slot, and for each base tuple the number of partners that were added."""
    fold = term.fold
    pairs = len(decided.partners)
    given = argument_arrays(term, args) if args else Arguments((), np.ones(pairs, np.bool_), pairs)
    states, counts, failed = _states(fold, given, decided.lengths, None if begin is None else begin[0])
    if failed is not None and failed[0] < given.wrong:
        raise overflow_error(term, failed[1], failed[2], _base(decided, failed[0]))
    if given.wrong < pairs:
        raise _argument_error(term, args, decided, given.wrong)
    return states, counts


def _base(decided: DecidedBases, pair: int) -> int:
    """The row id of the base tuple of pair number ``pair``."""
    return int(decided.bases[np.searchsorted(np.cumsum(decided.lengths), pair, side="right")])


def _argument_error(term: FoldTerm, args: Sequence[Vector], decided: DecidedBases, pair: int) -> InputError:
    one = [Vector(a.values[pair:pair + 1], a.valid[pair:pair + 1], a.denominator) for a in args]
    number = 0
    while argument_arrays(_single(term, number), one[number:number + 1]).wrong:
        number += 1
    return argument_error(term, number, one[number].values[0], _base(decided, pair), int(decided.partners[pair]))


def _single(term: FoldTerm, number: int) -> FoldTerm:
    return replace(term, args=term.args[number:number + 1],
                   fold=replace(term.fold, arguments=term.fold.arguments[number:number + 1]))


def _states(fold: Fold, given: Arguments, lengths: Ints, begin: list[Array] | None) -> tuple[
        list[Array], Ints, tuple[int, int, int] | None]:
    """The final states, slot by slot, the numbers of partners that were added, and the first failure: the pair, the
    slot and its value.
    """
    module = kernel(fold) if all(v.dtype == np.int64 for v in given.values) else None
    counts = np.zeros(len(lengths), np.int64)
    if module is not None:
        states = ([np.full(len(lengths), slot.init, np.int64) for slot in fold.slots] if begin is None else
                  [np.array(values, np.int64) for values in begin])
        pair = int(module.fold(np.asarray(lengths, np.int64), given.valid, counts, *given.values, *states))
        if pair < 0:
            return states, counts, None
        base = int(np.searchsorted(np.cumsum(lengths), pair, side="right"))
        try:
            fold.checked([values[base] for values in states])
        except Overflow as error:
            return states, counts, (pair, error.slot, error.value)
    return _interpreted(fold, given, lengths, counts, begin)


def _interpreted(fold: Fold, given: Arguments, lengths: Ints, counts: Ints,
                 begin: list[Array] | None) -> tuple[list[Array], Ints,
                                                                tuple[int, int, int] | None]:
    add, made, at, names = fold.add.evaluator(), list[list[int]](), 0, [a.name for a in fold.arguments]
    for base, length in enumerate(lengths.tolist()):
        state = fold.init if begin is None else [int(values[base]) for values in begin]
        for pair in range(at, at + length):
            if given.valid[pair]:
                try:
                    state = fold.checked(add(fold.row(state), {n: int(v[pair]) for n, v in zip(names, given.values,
                                                                                             strict=True)}))
                except Overflow as error:
                    made += [fold.init] * (len(lengths) - len(made))
                    return _columns(fold, made), counts, (pair, error.slot, error.value)
                counts[base] += 1
        made.append(state)
        at += length
    return _columns(fold, made), counts, None


def _columns(fold: Fold, states: list[list[int]]) -> list[Array]:
    return [np.array([state[n] for state in states], object if slot.width.range[1] >= 2**63 else np.int64)
            for n, slot in enumerate(fold.slots)]


@lru_cache(maxsize=256)
def kernel(fold: Fold) -> ModuleType | None:
    """The compiled module of ``fold``; None where a number may need more than 64 bits, and without numba."""
    if not has_numba():
        return None
    # Only users of these aggregates wait for numba's import.
    from splitjoin.engines.compiled.exact_source import NotCompiled
    from splitjoin.engines.compiled.jit import load

    from .user_source import fold_source
    try:
        return load(fold_source(fold))
    except NotCompiled:
        return None
