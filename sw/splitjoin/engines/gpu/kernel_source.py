"""Source of the GPU's kernels: every probe against its whole window, a tile of stored tuples after the other.

A block of threads compares a block of probes, of which each thread keeps the numbers of some in registers, with a slice
of what these see. The numbers of a tile lie in the memory that the block shares. Matches of a sparse result are
appended as they are found; those of a dense one are counted first, so that each thread knows where its matches belong.

The loop that compares must be short, as a GPU keeps few instructions near: it only finds out whether any of some tuples
matches any of a thread's probes. What is to be done with a match is code of its own. Places are unsigned numbers, as
one that might be negative takes two instructions and a register more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .comparison import KernelComparison
from .driver import is_simulated


@dataclass(frozen=True)
class KernelShape:
    """How the work of a kernel is divided.

    Attributes:
        threads: Threads of a block.
        probes: Probes of a thread.
        tile: Stored tuples of a tile, a multiple of ``unrolled``.
        unrolled: Stored tuples that are compared before a branch.
        few: Matches of a probe that are put in order by comparing them with each other.
    """

    threads: int = 128
    probes: int = 4
    tile: int = 1024
    unrolled: int = 8
    few: int = 1024

    @property
    def block(self) -> int:
        """Probes of a block."""
        return self.threads * self.probes


_STORE = '''import numba
import numpy as np
from numba import cuda


@cuda.jit
def store(n, at, mask, {views}, w, v, counters, {rings}):
    """Copy the numbers of ``n`` tuples to their places in rings, whose sizes are ``mask`` + 1, from place ``at`` on.

    Numbers of 32 bits begin at ``w`` of what was sent, (numbers, n), those of 64 bits at ``v``. Sets all ``counters``
    to 0.
    """
    i = numba.int64(cuda.grid(1))
    for block in range(i, len(counters), cuda.gridsize(1)):
        counters[block] = 0
    if i < n:
        place = np.uint64((at + i) & mask)
{stored}
'''

_TEMPLATE = '''import math

import numba
import numpy as np
from numba import cuda

# Python's own, in the simulator, give whole numbers, and fail where there is none.
floor, ceil, sqrt = (np.floor, np.ceil, np.sqrt) if {simulated} else (math.floor, math.ceil, math.sqrt)


@cuda.jit
def append(n, span, shift, mask, {views}, w, v, room, counters, hits, {rings}):
    """Append the matches of each block of probes to its part of ``hits`` (blocks · room,), as probe · 2**32 + row, as
    long as there is ``room``; their number is the block's one of ``counters``. A block that sees more than ``room``
    gives up.

    ``span``: rows of a slice, a multiple of a tile. ``shift``: the place of row 0 in the rings, whose sizes are
    ``mask`` + 1. Of what was sent, from ``w`` on (n,) rows at which the windows begin, and then end, and then the
    probes' numbers of 32 bits; from ``v`` on those of 64 bits. Then the rings of the stored tuples' numbers.
    """
    block = numba.int64(cuda.blockIdx.x)
{head}
{kept}
    full = cuda.shared.array(1, numba.uint32)
    while at < until:
        if thread == 0:
            full[0] = 1 if numba.int64(cuda.atomic.add(counters, block, 0)) > room else 0
{load}
        if full[0] != 0:
            break
        for first in range(0, min(until - at, {tile}), {unrolled}):
{survey}
        cuda.syncthreads()
        at += {tile}


@cuda.jit
def count(n, span, shift, mask, {views}, w, v, counts, slices, {rings}):
    """Count the matches of each probe in each slice: ``counts`` (n · slices,). Otherwise as `append`."""
    block = numba.int64(cuda.blockIdx.x)
{head}
{windows}
{zeros}
    while at < until:
{load}
        for i in range(min(until - at, {tile})):
{count}
        cuda.syncthreads()
        at += {tile}
{totals}

@cuda.jit
def write(n, span, shift, mask, {views}, w, v, places, slices, out, skipped, {rings}):
    """Write the rows of all matches of each probe in each slice to ``out``, from its one of ``places`` (n · slices,)
    on, for blocks of probes behind the first ``skipped``. Otherwise as `count`.
    """
    block = numba.int64(cuda.blockIdx.x) + skipped
{head}
{windows}
{places}
    while at < until:
{load}
        for i in range(min(until - at, {tile})):
{write}
        cuda.syncthreads()
        at += {tile}
'''


def views(*numbers: Iterable[tuple[str, str]]) -> list[str]:
    """The types of the views of what was sent in which ``numbers``, by name and type, are; rows are of uint32."""
    return sorted({"uint32", *(_view(kind) for of in numbers for _, kind in of)})


def _view(kind: str) -> str:
    return "uint32" if kind == "bool" else kind


def _sent(numbers: Sequence[tuple[str, str]], name: str, i: str, before: int) -> str:
    """Number ``name`` of tuple ``i``, of which ``numbers`` were sent, behind ``before`` others of 32 bits."""
    kinds = dict(numbers)
    long = kinds[name].endswith("64")
    at = [other for other, kind in numbers if kind.endswith("64") == long].index(name) + (0 if long else before)
    code = f"{_view(kinds[name])}s[np.uint64({'v' if long else 'w'} + {at} * n + {i})]"
    return f"{code} != 0" if kinds[name] == "bool" else code


class _KernelWriter:
    """Writes the parts of kernels for a ``comparison``."""

    def __init__(self, comparison: KernelComparison, shape: KernelShape):
        self.comparison, self.shape, self.mine = comparison, shape, range(shape.probes)
        self.stored, self.probe = comparison.stored, comparison.probe

    def head(self) -> list[str]:
        """The probes of the thread and their numbers, and the slice of the block."""
        shape = self.shape
        lines = ["thread = numba.int64(cuda.threadIdx.x)",
                 f"begin = block * {shape.block}",
                 f"last = min(begin + {shape.block}, n) - 1",
                 "at = numba.int64(uint32s[np.uint64(w + begin)]) + numba.int64(cuda.blockIdx.y) * span",
                 "until = min(numba.int64(uint32s[np.uint64(w + n + last)]), at + span)",
                 *(f"{name}_tile = cuda.shared.array({shape.tile}, numba.{kind.replace('bool', 'boolean')})"
                   for name, kind in self.stored)]
        for q in self.mine:
            lines += [f"p_{q} = begin + thread + {q * shape.threads}", f"e_{q} = min(p_{q}, n - 1)",
                      *(f"{name}_{q} = {_sent(self.probe, name, f'e_{q}', 2)}" for name, _ in self.probe)]
        return lines

    def load(self) -> list[str]:
        """Copy the numbers of a tile to shared memory; behind the last tuple, its numbers again."""
        return [f"for i in range(thread, {self.shape.tile}, {self.shape.threads}):",
                "    place = np.uint64((shift + min(at + i, until - 1)) & mask)",
                *(f"    {name}_tile[np.uint64(i)] = {name}_ring[place]" for name, _ in self.stored),
                "cuda.syncthreads()"]

    def kept(self) -> list[str]:
        """What the survey needs of the thread's probes."""
        return [self.comparison.of_probe(f"{name} = {code}", q) for q in self.mine
                for name, code in self.comparison.kept]

    def survey(self) -> list[str]:
        """Compare the tuples from ``first`` on with all probes of the thread, and append what matches."""
        shape, one = self.shape, self.comparison
        lines = ["hit = False"]
        for u in range(shape.unrolled):
            lines += [f"{name} = {name}_tile[np.uint64(first + {u})]" for name, _ in self.stored]
            for q in self.mine:
                lines += [one.of_probe(line, q) for line in (*one.survey.lines, f"hit = hit | ({one.survey.truth})")]
        again = [one.of_probe(line, q) for q in self.mine
                 for line in (*one.survey.lines, f"if {one.survey.truth}:", f"    some |= {1 << q}")]
        check = [*(f"{name} = {_sent(self.probe, name, 'p', 2)}" for name, _ in self.probe), *one.exact.lines,
                 f"if {one.exact.truth}:", "    place = numba.int64(cuda.atomic.add(counters, block, 1))",
                 "    if place < room:",
                 "        hits[np.uint64(block * room + place)] = (np.uint64(p) << np.uint64(32)) | np.uint64(row)"]
        walk = ["while some != 0:",
                "    if some & 1 and p < n and uint32s[np.uint64(w + p)] <= row < uint32s[np.uint64(w + n + p)]:",
                *(f"        {line}" for line in check), "    some >>= 1", f"    p += {shape.threads}"]
        return [*lines, "if hit:", f"    for u in range({shape.unrolled}):",
                *(f"        {name} = {name}_tile[np.uint64(first + u)]" for name, _ in self.stored),
                "        row = at + first + u", "        p = begin + thread", "        some = 0",
                *(f"        {line}" for line in (*again, *walk))]

    def each(self, *action: str) -> list[str]:
        """Compare tuple ``i`` of the tile with all probes of the thread, and do the ``action`` with a match."""
        lines, one = [f"{name} = {name}_tile[np.uint64(i)]" for name, _ in self.stored], self.comparison
        lines.append("row = at + i")
        for q in self.mine:
            truth = f"if ({one.exact.truth}) & (row >= start_{q}) & (row < end_{q}):"
            lines += [*(one.of_probe(line, q) for line in (*one.exact.lines, truth)),
                      *(f"    {line.format(q=q)}" for line in action)]
        return lines

    def windows(self) -> list[str]:
        """The windows of the thread's probes; empty behind the last."""
        return [line for q in self.mine for line in (
            f"start_{q} = end_{q} = numba.int64(0)", f"if p_{q} < n:",
            f"    start_{q} = numba.int64(uint32s[np.uint64(w + p_{q})])",
            f"    end_{q} = numba.int64(uint32s[np.uint64(w + n + p_{q})])")]

    def of_slices(self, line: str, before: str = "") -> list[str]:
        """``line`` for each probe of the thread that is one; ``{at}`` is the place of its slice."""
        lines = []
        for q in self.mine:
            at = f"p_{q} * slices + numba.int64(cuda.blockIdx.y)"
            lines += [*([before.format(q=q)] if before else []), f"if p_{q} < n:", f"    {line.format(q=q, at=at)}"]
        return lines


def store_source(numbers: Sequence[tuple[str, str]]) -> str:
    """The module of the kernel that stores tuples' ``numbers``, by name and type."""
    return _STORE.format(views=", ".join(f"{kind}s" for kind in views(numbers)),
                         rings=", ".join(f"{name}_ring" for name, _ in numbers),
                         stored=_text(8, (f"{name}_ring[place] = {_sent(numbers, name, 'i', 0)}"
                                          for name, _ in numbers)))


def _text(indent: int, lines: Iterable[str]) -> str:
    return "\n".join(" " * indent + line for line in lines)


def kernel_source(comparison: KernelComparison, shape: KernelShape) -> str:
    """The module of the kernels that find matches by ``comparison``: ``append``, ``count`` and ``write``."""
    writer = _KernelWriter(comparison, shape)
    zero = "found_{q} = numba.int64(0)"
    return _TEMPLATE.format(
        simulated=is_simulated(),
        views=", ".join(f"{kind}s" for kind in views(writer.stored, writer.probe)),
        rings=", ".join(f"{name}_ring" for name, _ in writer.stored), tile=shape.tile, unrolled=shape.unrolled,
        head=_text(4, writer.head()), kept=_text(4, writer.kept()),
        load=_text(8, writer.load()), survey=_text(12, writer.survey()), windows=_text(4, writer.windows()),
        zeros=_text(4, [zero.format(q=q) for q in writer.mine]), count=_text(12, writer.each("found_{q} += 1")),
        totals=_text(4, writer.of_slices("counts[{at}] = found_{q}")),
        places=_text(4, writer.of_slices("found_{q} = places[{at}]", zero)),
        write=_text(12, writer.each("out[found_{q}] = row", "found_{q} += 1")))
