"""Source of the GPU's kernels: every probe against its whole window, a tile of stored tuples after the other.

A block of threads compares a block of probes, of which each thread keeps the bounds of some in registers, with a slice
of what these see. The keys of a tile lie in the memory that the block shares. Matches of a sparse result are appended
as they are found; those of a dense one are counted first, so that each thread knows where its matches belong.

The loop that compares must be short, as a GPU keeps few instructions near: it only finds out whether any of some tuples
matches any of a thread's probes. What is to be done with a match is code of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from splitjoin.plan.plan import Plan

from ..cpu.codes import lane
from ..cpu.tests_source import is_conjunction, test_source, used_slots

__all__ = ["Shape", "kernel_source"]


@dataclass(frozen=True)
class Shape:
    """How the work of a kernel is divided.

    Attributes:
        threads: Threads of a block.
        probes: Probes of a thread.
        tile: Stored tuples of a tile, a multiple of ``unrolled``.
        unrolled: Stored tuples that are compared before a branch.
        widths: True to compare ``key − low ≤ width`` where all tests must hold, in place of both ends.
        masked: True to note matches by bits.
    """

    threads: int = 128
    probes: int = 8
    tile: int = 1024
    unrolled: int = 4
    widths: bool = False
    masked: bool = False

    @property
    def block(self) -> int:
        """Probes of a block."""
        return self.threads * self.probes


_TEMPLATE = '''import numba
import numpy as np
from numba import cuda


@cuda.jit
def store(n, at, mask, words, longs, w, v, counter, {rings}):
    """Copy the keys of ``n`` tuples to their places in rings, whose sizes are ``mask`` + 1, from place ``at`` on.

    The keys of 32 bits are in ``words`` from ``w`` on, (keys, n), those of 64 bits in ``longs`` from ``v`` on. Sets
    ``counter[0]`` to 0.
    """
    i = numba.int64(cuda.grid(1))
    if i == 0:
        counter[0] = 0
    if i < n:
        place = (at + i) & mask
{stored}


@cuda.jit
def append(n, skipped, span, shift, mask, words, longs, w, v, room, found, {rings}):
    """Append the matches of the probes behind ``skipped`` blocks to ``found``, as probe · 2**32 + row, as long as there
    is ``room``; ``found[0]`` is their number. A block that sees more than ``room`` gives up.

    ``span``: rows of a slice, a multiple of a tile. ``shift``: the place of row 0 in the rings, whose sizes are
    ``mask`` + 1. From ``w`` on, ``words`` (n,) has where the windows begin and end, as rows; then the low and the high
    bounds of each test of 32 bits. From ``v`` on, ``longs`` has those of 64 bits. Then the keys of the stored tuples.
    """
{head}
    full = cuda.shared.array(1, numba.uint32)
    while at < until:
        if thread == 0:
            full[0] = 1 if numba.int64(cuda.atomic.add(found, 0, 0)) > room else 0
{load}
        if full[0] != 0:
            break
        for first in range(0, min(until - at, {tile}), {unrolled}):
{survey}
        cuda.syncthreads()
        at += {tile}


@cuda.jit
def count(n, skipped, span, shift, mask, words, longs, w, v, counts, slices, {rings}):
    """Count the matches of each probe in each slice: ``counts`` (n · slices,). Otherwise as `append`."""
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
def write(n, skipped, span, shift, mask, words, longs, w, v, places, slices, out, {rings}):
    """Write the rows of all matches of each probe in each slice to ``out``, from its one of ``places`` (n · slices,)
    on. Otherwise as `count`.
    """
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


class _Writer:
    """Writes the parts of kernels for a ``plan``, whose stored tuples are of stream ``side``."""

    def __init__(self, plan: Plan, side: str, shape: Shape):
        self.plan, self.side, self.shape = plan, side, shape
        self.slots, self.tests, self.mine = used_slots(plan, side), range(len(plan.tests)), range(shape.probes)
        kinds = {slot: lane(plan.slots(side)[slot].key).__name__ for slot in self.slots}
        self.kinds = kinds
        self.slot = {j: plan.tests[j].r if side == "r" else plan.tests[j].s for j in self.tests}
        self.of_test = {j: kinds[self.slot[j]] for j in self.tests}
        self.widths = shape.widths and is_conjunction(plan)
        # Where arrays begin, in numbers of tuples.
        self.keys = _places((slot, kinds[slot]) for slot in self.slots)
        self.bounds = _places(((end, j), self.of_test[j]) for j in self.tests for end in ("lo", "hi"))

    def bound(self, end: str, j: int, p: str) -> str:
        """The bound of test ``j`` of probe ``p``."""
        n = self.bounds[end, j]
        if self.of_test[j] == "uint32":
            return f"words[w + {2 + n} * n + {p}]"
        return f"longs[v + {n} * n + {p}]"

    def stored(self) -> list[str]:
        """The keys of tuple ``i`` go to their ``place``."""
        return [f"k{slot}[place] = {'words[w' if self.kinds[slot] == 'uint32' else 'longs[v'} + {self.keys[slot]} * n "
                f"+ i]" for slot in self.slots]

    def head(self) -> list[str]:
        """The probes of the thread and their bounds, and the slice of the block."""
        shape = self.shape
        lines = ["thread = numba.int64(cuda.threadIdx.x)",
                 f"begin = (numba.int64(cuda.blockIdx.x) + skipped) * {shape.block}",
                 f"last = min(begin + {shape.block}, n) - 1",
                 "at = numba.int64(words[w + begin]) + numba.int64(cuda.blockIdx.y) * span",
                 "until = min(numba.int64(words[w + n + last]), at + span)",
                 *(f"s{slot} = cuda.shared.array({shape.tile}, numba.{self.kinds[slot]})" for slot in self.slots)]
        for q in self.mine:
            lines.append(f"p_{q} = begin + thread + {q * shape.threads}")
            for j in self.tests:  # behind the last probe come some that meet nothing
                lines += [f"lo{j}_{q} = np.{self.of_test[j]}(1)", f"hi{j}_{q} = np.{self.of_test[j]}(0)"]
            lines.append(f"if p_{q} < n:")
            for j in self.tests:
                lines += [f"    {end}{j}_{q} = {self.bound(end, j, f'p_{q}')}" for end in ("lo", "hi")]
            if self.widths:
                lines.append(f"some = {' & '.join(f'(lo{j}_{q} <= hi{j}_{q})' for j in self.tests)}")
                for j in self.tests:  # an empty interval has no width
                    kind = f"np.{self.of_test[j]}"
                    lines.append(f"hi{j}_{q} = {kind}(hi{j}_{q} - lo{j}_{q}) if some else {kind}(0)")
        return lines

    def load(self) -> list[str]:
        """Copy the keys of a tile to shared memory."""
        return [f"for i in range(thread, {self.shape.tile}, {self.shape.threads}):",
                "    place = (shift + at + i) & mask",
                *(f"    s{slot}[i] = k{slot}[place]" for slot in self.slots), "cuda.syncthreads()"]

    def condition(self, q: int, x: str) -> tuple[tuple[str, ...], str]:
        """The condition on probe ``q`` of the thread: assignments, and an expression. ``x``: format of a key's name."""
        if self.widths:
            return (), " & ".join(f"(np.{self.of_test[j]}({x.format(self.slot[j])} - lo{j}_{q}) <= hi{j}_{q})"
                                  for j in self.tests)
        made = test_source(self.plan, self.side, x, f"lo{{}}_{q}", f"hi{{}}_{q}")
        return made.lines, made.truth

    def survey(self) -> list[str]:
        """Compare the tuples from ``first`` on with all probes of the thread, and append what matches."""
        shape, lines = self.shape, []
        masked = shape.masked
        lines.append("hit = np.uint32(0)" if masked else "hit = False")
        for u in range(shape.unrolled):
            lines += [f"x{slot} = s{slot}[first + {u}]" for slot in self.slots]
            for q in self.mine:
                before, truth = self.condition(q, "x{}")
                lines += before
                if masked:
                    lines += [f"if {truth}:", f"    hit |= np.uint32({1 << (u * shape.probes + q)})"]
                else:
                    lines.append(f"hit = hit | ({truth})")
        body = ["if found_match:", "    place = numba.int64(cuda.atomic.add(found, 0, 1))", "    if place < room:",
                "        found[place + 1] = (np.uint64(p) << np.uint64(32)) | np.uint64(row)"]
        seen = "p < n and words[w + p] <= row and row < words[w + n + p]"
        if self.widths:
            seen += "".join(f" and {self.bound('lo', j, 'p')} <= {self.bound('hi', j, 'p')}" for j in self.tests)
        body[0] = f"if mask_of & 1 and {seen}:"
        walk = ["while mask_of != 0:", *(f"    {line}" for line in body), "    mask_of >>= 1",
                f"    p += {shape.threads}"]
        if masked:
            return [*lines, "if hit != 0:", f"    for u in range({shape.unrolled}):",
                    "        row = at + first + u", "        p = begin + thread",
                    f"        mask_of = (numba.int64(hit) >> (u * {shape.probes})) & {(1 << shape.probes) - 1}",
                    *(f"        {line}" for line in walk)]
        again = []
        for q in self.mine:
            before, truth = self.condition(q, "x{}")
            again += [*before, f"if {truth}:", f"    mask_of |= {1 << q}"]
        return [*lines, "if hit:", f"    for i in range(first, first + {shape.unrolled}):",
                *(f"        x{slot} = s{slot}[i]" for slot in self.slots),
                "        row = at + i", "        p = begin + thread", "        mask_of = 0",
                *(f"        {line}" for line in again), *(f"        {line}" for line in walk)]

    def each(self, *action: str) -> list[str]:
        """Compare tuple ``i`` of the tile with all probes of the thread, and do the ``action`` with a match."""
        lines = [*(f"x{slot} = s{slot}[i]" for slot in self.slots), "row = at + i"]
        for q in self.mine:
            before, truth = self.condition(q, "x{}")
            lines += [*before, f"if ({truth}) & (row >= start_{q}) & (row < end_{q}):",
                      *(f"    {line.format(q=q)}" for line in action)]
        return lines

    def windows(self) -> list[str]:
        """The windows of the thread's probes; empty without an interval."""
        lines = []
        for q in self.mine:
            some = "".join(f" and {self.bound('lo', j, f'p_{q}')} <= {self.bound('hi', j, f'p_{q}')}"
                           for j in self.tests) if self.widths else ""
            lines += [f"start_{q} = end_{q} = numba.int64(0)", f"if p_{q} < n{some}:",
                      f"    start_{q} = numba.int64(words[w + p_{q}])",
                      f"    end_{q} = numba.int64(words[w + n + p_{q}])"]
        return lines

    def of_slices(self, line: str, before: str = "") -> list[str]:
        """``line`` for each probe of the thread that is one; ``{at}`` is the place of its slice."""
        lines = []
        for q in self.mine:
            at = f"p_{q} * slices + numba.int64(cuda.blockIdx.y)"
            lines += [*([before.format(q=q)] if before else []), f"if p_{q} < n:", f"    {line.format(q=q, at=at)}"]
        return lines


def _places(arrays: Iterable[tuple[Any, str]]) -> dict[Any, int]:
    """The number of each of ``arrays``, name and type, among those of its type."""
    found: dict[Any, int] = {}
    counts: Counter[str] = Counter()
    for name, kind in arrays:
        found[name] = counts[kind]
        counts[kind] += 1
    return found


def kernel_source(plan: Plan, side: str, shape: Shape) -> str:
    """The module of kernels that find matches among stored tuples of stream ``side``."""
    writer = _Writer(plan, side, shape)

    def text(indent: int, lines: list[str]) -> str:
        return "\n".join(" " * indent + line for line in lines)

    zero = "found_{q} = numba.int64(0)"
    return _TEMPLATE.format(
        rings=", ".join(f"k{slot}" for slot in writer.slots), tile=shape.tile, unrolled=shape.unrolled,
        stored=text(8, writer.stored()), head=text(4, writer.head()), load=text(8, writer.load()),
        survey=text(12, writer.survey()), windows=text(4, writer.windows()),
        zeros=text(4, [zero.format(q=q) for q in writer.mine]), count=text(12, writer.each("found_{q} += 1")),
        totals=text(4, writer.of_slices("counts[{at}] = found_{q}")),
        places=text(4, writer.of_slices("found_{q} = places[{at}]", zero)),
        write=text(12, writer.each("out[found_{q}] = row", "found_{q} += 1")))
