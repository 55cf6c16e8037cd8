"""Source of the GPU's kernels: every probe against its whole window, a tile of stored tuples after the other.

A block of threads compares a block of probes, of which each thread keeps the bounds of some in registers, with a slice
of what these see. The keys of a tile lie in the memory that the block shares. Matches of a sparse result are appended
as they are found; those of a dense one are counted first, so that each thread knows where its matches belong.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        unrolled: Stored tuples that are compared in one turn of the loop.
        widths: True to compare ``key − low ≤ width`` where all tests must hold, in place of both ends.
    """

    threads: int = 128
    probes: int = 8
    tile: int = 1024
    unrolled: int = 4
    widths: bool = False

    @property
    def block(self) -> int:
        """Probes of a block."""
        return self.threads * self.probes


_TEMPLATE = '''import numba
import numpy as np
from numba import cuda


@cuda.jit
def append(n, skipped, span, shift, mask, start, end, room, found, total, {arrays}):
    """Append the matches of the probes behind ``skipped`` blocks to ``found``, as probe · 2**32 + row, as long as there
    is ``room``.

    ``total`` (1,): how many were found; a block that sees more than ``room`` of them gives up. ``span``: rows of a
    slice, a multiple of a tile. ``start``, ``end`` (n,): the windows, rows less that of the first. ``shift``: its place
    in the rings, whose sizes are ``mask`` + 1. Then the keys of the stored tuples, and the low and high bounds of each
    test (n,).
    """
{head}
    full = cuda.shared.array(1, numba.uint32)
    while at < until:
        if thread == 0:
            full[0] = 1 if cuda.atomic.add(total, 0, 0) > room else 0
{load}
        if full[0] != 0:
            break
        for first in range(0, min(until - at, {tile}), {unrolled}):
{append}
        cuda.syncthreads()
        at += {tile}


@cuda.jit
def count(n, skipped, span, shift, mask, start, end, counts, slices, {arrays}):
    """Count the matches of each probe in each slice: ``counts`` (n · slices,). Otherwise as `append`."""
{head}
{windows}
{zeros}
    while at < until:
{load}
        for first in range(0, min(until - at, {tile}), {unrolled}):
{count}
        cuda.syncthreads()
        at += {tile}
{store}

@cuda.jit
def write(n, skipped, span, shift, mask, start, end, places, slices, out, {arrays}):
    """Write the rows of all matches of each probe in each slice to ``out``, from its one of ``places`` (n · slices,)
    on. Otherwise as `count`.
    """
{head}
{windows}
{places}
    while at < until:
{load}
        for first in range(0, min(until - at, {tile}), {unrolled}):
{write}
        cuda.syncthreads()
        at += {tile}
'''


def kernel_source(plan: Plan, side: str, shape: Shape) -> str:
    """The module of kernels that find matches among stored tuples of stream ``side``."""
    tests, slots = range(len(plan.tests)), used_slots(plan, side)
    kinds = {slot: lane(plan.slots(side)[slot].key).__name__ for slot in slots}
    of_test = {j: kinds[plan.tests[j].r if side == "r" else plan.tests[j].s] for j in tests}
    widths = shape.widths and is_conjunction(plan)
    mine = range(shape.probes)

    def lines(indent: int, *found: str) -> str:
        return "\n".join(" " * indent + line for line in found)

    def condition(q: int) -> tuple[tuple[str, ...], str]:
        """The condition on probe ``q`` of the thread: assignments, and an expression."""
        if widths:
            slot = {j: plan.tests[j].r if side == "r" else plan.tests[j].s for j in tests}
            return (), " & ".join(f"(np.{of_test[j]}(x{slot[j]} - lo{j}_{q}) <= hi{j}_{q})" for j in tests)
        made = test_source(plan, side, "x{}", f"lo{{}}_{q}", f"hi{{}}_{q}")
        return made.lines, made.truth

    def compared(*action: str, windowed: bool) -> str:
        """Compare the tuples from ``first`` on with all probes of the thread; ``action``: what is done with a match."""
        found = []
        for u in range(shape.unrolled):
            found += [f"x{slot} = s{slot}[first + {u}]" for slot in slots]
            found += [f"row = at + first + {u}"] if windowed else []
            for q in mine:
                before, truth = condition(q)
                seen = f" & (row >= start_{q}) & (row < end_{q})" if windowed else ""
                found += [*before, f"if ({truth}){seen}:", *(f"    {line.format(q=q, u=u)}" for line in action)]
        return lines(12, *found)

    head = ["thread = numba.int64(cuda.threadIdx.x)",
            f"begin = (numba.int64(cuda.blockIdx.x) + skipped) * {shape.block}",
            f"last = min(begin + {shape.block}, n) - 1",
            "at = numba.int64(start[begin]) + numba.int64(cuda.blockIdx.y) * span",
            "until = min(numba.int64(end[last]), at + span)",
            *(f"s{slot} = cuda.shared.array({shape.tile}, numba.{kinds[slot]})" for slot in slots)]
    for q in mine:
        head.append(f"p_{q} = begin + thread + {q * shape.threads}")
        for j in tests:  # behind the last probe come some that meet nothing
            head += [f"lo{j}_{q} = np.{of_test[j]}(1)", f"hi{j}_{q} = np.{of_test[j]}(0)"]
        head.append(f"if p_{q} < n:")
        for j in tests:
            ends = [f"lo{j}[p_{q}]", f"hi{j}[p_{q}]"]
            head += [f"    lo{j}_{q} = {ends[0]}", f"    hi{j}_{q} = {ends[1]}"]
        if widths:
            head += [f"possible = {' & '.join(f'(lo{j}_{q} <= hi{j}_{q})' for j in tests)}"]
            for j in tests:  # an empty interval has no width
                head.append(f"hi{j}_{q} = np.{of_test[j]}(hi{j}_{q} - lo{j}_{q}) if possible else np.{of_test[j]}(0)")
    load = [f"for i in range(thread, {shape.tile}, {shape.threads}):",
            "    place = (shift + at + i) & mask",
            *(f"    s{slot}[i] = k{slot}[place]" for slot in slots),
            "cuda.syncthreads()"]
    # The window of a probe is looked at only when a match is found: rows beside it, in the first and last tile, are
    # few. In a probe without an interval nothing is.
    seen = "if {p} < n and start[{p}] <= row and row < end[{p}]".replace("{p}", "p_{q}")
    if widths:
        seen += " and " + " and ".join(f"lo{j}[p_{{q}}] <= hi{j}[p_{{q}}]" for j in tests)
    append = ("row = at + first + {u}", f"{seen}:", "    place = cuda.atomic.add(total, 0, 1)", "    if place < room:",
              "        found[place] = (np.uint64(p_{q}) << np.uint64(32)) | np.uint64(row)")
    windows: list[str] = []
    for q in mine:
        possible = "".join(f" and lo{j}[p_{q}] <= hi{j}[p_{q}]" for j in tests) if widths else ""
        windows += [f"start_{q} = end_{q} = numba.int64(0)", f"if p_{q} < n{possible}:",
                    f"    start_{q}, end_{q} = numba.int64(start[p_{q}]), numba.int64(end[p_{q}])"]
    part = "p_{q} * slices + numba.int64(cuda.blockIdx.y)"
    arrays = [f"k{slot}" for slot in slots] + [f"{end}{j}" for j in tests for end in ("lo", "hi")]
    return _TEMPLATE.format(
        arrays=", ".join(arrays), tile=shape.tile, unrolled=shape.unrolled, head=lines(4, *head),
        load=lines(8, *load), windows=lines(4, *windows), append=compared(*append, windowed=False),
        zeros=lines(4, *(f"found_{q} = numba.int64(0)" for q in mine)),
        count=compared("found_{q} += 1", windowed=True),
        store=lines(4, *(line for q in mine for line in (
            f"if p_{q} < n:", f"    counts[{part.format(q=q)}] = found_{q}"))),
        places=lines(4, *(line for q in mine for line in (
            f"found_{q} = numba.int64(0)", f"if p_{q} < n:", f"    found_{q} = places[{part.format(q=q)}]"))),
        write=compared("out[found_{q}] = row", "found_{q} += 1", windowed=True))
