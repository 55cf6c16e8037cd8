"""Kernels of a whole condition: nested loops, and the check of candidates.

Like in `nested_source`, a chunk of the window is compared with a block of probes while it is cached. A first pass,
vector code without branches, tests whether the chunk contains any match; a second pass visits the chunks with matches.
When most chunks have a match, the first pass is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy.typing as npt

from splitjoin.lang.ir import Expr

from .atoms import Atom, ValueRange
from .exact_source import TooWide
from .expression_source import Code, compile_pair
from .jit import load

__all__ = ["PROBES", "Kernel", "find_source", "make_kernel", "verify_source"]

Array = npt.NDArray[Any]

#: Probes that share each chunk of the window.
PROBES = 64
#: Stored tuples per chunk.
CHUNK = 1024
#: Stored tuples that are marked at once in chunks with matches.
STEP = 256

_HEAD = '''import numba
import numpy as np
from splitjoin.engines.cpu.intrinsics import popcount
from splitjoin.engines.cpu.jit import compiled_as_numpy

'''

_FIND = '''
@numba.njit(nogil=True, error_model="numpy")
def some({parameters}):
    found = False
    for i in range(n):
        {lines}
        found = found | {truth}
    return found


@numba.njit(nogil=True, error_model="numpy")
def mark(marks, {parameters}):
    for i in range(n):
        {lines}
        marks[i] = {truth}


@compiled_as_numpy
def find(p, start, end, base, stored, counts, rows, flags, marks, {arrays}):
    """Matches of probes p and later, of the {name} probing; returns the first probe for which ``rows`` had no room, and
    how many are in it. ``marks`` ({step},): scratch.
    """
    at, n = np.int64(0), len(start)
    words = marks.view(np.uint64)
    dense = False
    while p < n:
        until = min(p + {probes}, n)
        least, most = start[p], end[until - 1]
        chunks = (most - least + {chunk} - 1) // {chunk}
        for c in range(0 if dense else chunks):
            origin = least + c * {chunk}
            for j in range(p, until):
                # Whole vectors: what lies beside the window is found out in the second pass.
                lo = (max(start[j], origin) - base) // 64 * 64
                hi = min((min(end[j], origin + {chunk}) - base + 63) // 64 * 64, stored)
                flags[j - p, c] = some({survey}) if hi > lo else False
        visited = matched = 0
        for j in range(p, until):
            if len(rows) - at <= end[j] - start[j]:  # one more than can match, as what does not match is written too
                return j, at
            before = at
            for c in range(chunks):
                if dense or flags[j - p, c]:
                    visited += 1
                    here = at
                    last = min(end[j], least + (c + 1) * {chunk}) - base
                    for lo in range(max(start[j], least + c * {chunk}) - base, last, {step}):
                        hi = min(lo + {step}, last)
                        mark(marks, {survey})
                        marks[hi - lo:(hi - lo + 7) // 8 * 8] = False
                        for w in range((hi - lo + 7) // 8):
                            if words[w]:
                                for i in range(8 * w, 8 * w + 8):
                                    rows[at] = base + lo + i
                                    at += np.int64(marks[i])
                    matched += at > here
            counts[j] = at - before
        dense = 2 * matched > chunks * (until - p)
        p = until
    return p, at
'''

_VERIFY = '''
@compiled_as_numpy
def verify(base, counts, rows, {arrays}):
    """Keep the matches among the candidates ``rows``, ``counts`` of each probe of the {name}; both change in place."""
    n, at = np.int64(0), np.int64(0)
    for j in range(len(counts)):
        before = n
        {load}
        for _ in range(counts[j]):
            k = rows[at]
            at += 1
            i = k - base
            {lines}
            rows[n] = k
            n += np.int64({truth})
        counts[j] = n - before
    return n
'''


@dataclass(frozen=True)
class Kernel:
    """Compiled code for one condition, valid for values within the ranges at compile time.

    Per probing stream: ``modules``, with ``find`` or ``verify``; ``lanes``, the atoms whose values and then those
    whose validity it reads, each the other stream's first.
    """

    modules: Mapping[str, ModuleType]
    values: tuple[Atom, ...]
    valids: tuple[Atom, ...]
    width: int

    def lanes(self, side: str, probes: Sequence[Array], stored: Sequence[Array]) -> list[Array]:
        """The lanes that the code reads, of ``probes`` of stream ``side`` and ``stored`` of the other one."""
        half = {True: len(probes) // 2, False: len(stored) // 2}
        found = []
        for mine in (False, True):
            arrays = probes if mine else stored
            found += [arrays[a.number] for a in self.values if (a.side == side) == mine]
            found += [arrays[half[mine] + a.number] for a in self.valids if (a.side == side) == mine]
        return found


def make_kernel(e: Expr, atoms: Sequence[Atom], ranges: Mapping[Expr, ValueRange], *, verify: bool = False) -> Kernel:
    """Code for the condition ``e`` in the narrowest width in which nothing wraps. Raises `NotCompiled`."""
    try:
        code, width = compile_pair(e, atoms, ranges, 32), 32
    except TooWide:
        code, width = compile_pair(e, atoms, ranges, 64), 64
    make = verify_source if verify else find_source
    return Kernel({side: load(make(code, side)) for side in ("r", "s")}, code.values, code.valids, width)


def find_source(code: Code, side: str) -> str:
    """The module whose ``find`` compares probes of stream ``side`` with the other stream's stored tuples."""
    stored, probes = _names(code, side)
    lines = [f"{name} = {name}s[i]" for name in stored] + list(code.lines)
    return _HEAD + _FIND.format(
        parameters=", ".join(["n", *(f"{name}s" for name in stored), *probes]), name=side.upper(),
        lines="\n        ".join(lines) or "pass", truth=code.truth, step=STEP, probes=PROBES, chunk=CHUNK,
        arrays=", ".join(f"{name}s" for name in stored + probes),
        survey=", ".join(["hi - lo", *(f"{name}s[lo:hi]" for name in stored), *(f"{name}s[j]" for name in probes)]))


def verify_source(code: Code, side: str) -> str:
    """The module whose ``verify`` checks candidates of the probes of stream ``side``."""
    stored, probes = _names(code, side)
    lines = [f"{name} = {name}s[i]" for name in stored] + list(code.lines)
    return _HEAD + _VERIFY.format(
        arrays=", ".join(f"{name}s" for name in stored + probes), name=side.upper(), truth=code.truth,
        load="\n        ".join(f"{name} = {name}s[j]" for name in probes) or "pass",
        lines="\n            ".join(lines) or "pass")


def _names(code: Code, side: str) -> tuple[list[str], list[str]]:
    """Names of the lanes, stored and of the probes, in the order of `Kernel.lanes`."""
    found: dict[bool, list[str]] = {}
    for mine in (False, True):
        found[mine] = [f"{a.side}{a.number}" for a in code.values if (a.side == side) == mine]
        found[mine] += [f"{a.side}{a.number}v" for a in code.valids if (a.side == side) == mine]
    return found[False], found[True]
