"""Source of the nested-loop engine: every probe against its whole window, in vector code.

A window chunk that fits the first-level cache is compared with every probe of a block before the next one is read. A
first pass only asks whether anything is in the chunk: straight compares, masks and adds, no branches. It reads narrow
copies of the keys where these are selective enough, which doubles or quadruples the keys in a register; their
candidates are verified. A second pass visits the few chunks in which something was found.
"""

from __future__ import annotations

from functools import partial

from splitjoin.plan.plan import Plan

from . import block, intrinsics, tickets
from .block import BLOCK_READERS, Field, unpacking
from .jit import digest
from .tests_source import TestSource, is_conjunction, test_source, used_slots

__all__ = ["CHUNK", "PROBES", "nested_fields", "nested_source"]

#: Stored tuples per chunk: two 32-bit keys of them fill half a first-level cache.
CHUNK = 2048
#: Probes that share each chunk of the window.
PROBES = 256
#: Stored tuples that are looked at one by one once one of them is known to match.
STEP = 128

#: Keys that the compiler compares in one turn of its loop (four vectors), by their type.
_GRAIN = {"uint8": 256, "uint16": 128, "uint32": 64}

_TEMPLATE = '''import numba
import numpy as np
from splitjoin.engines.cpu.jit import compiled
{readers}, interval_mask, lowest_bit, pointer_to
from splitjoin.engines.cpu.tickets import claim, complete, stop

# Made for functions of digest {digest}.


@numba.njit(nogil=True)
def hits({keys}, {bounds}):
    n = np.int32(0)
    for i in range(len({first})):
{in_hits}        n = np.int32(n + np.int32({test}))
    return n

{suspects}
@compiled
def find(p, start, end, base, counts, rows, flags, {keys}, {arrays}{narrow}):
    """Matches of probes p and later; returns the first probe for which ``rows`` had no room, and how many are in it."""
    at = np.int64(0)
    n, stored = len(start), len({first})
    while p < n:
        until = min(p + {probes}, n)
        least, most = start[p], end[until - 1]
        # Chunks begin where llvm_intrinsic loads are aligned.
        least = base + (least - base) // {grain} * {grain}
        chunks = (most - least + {chunk} - 1) // {chunk}
        for c in range(chunks):
            origin = least + c * {chunk}
            for j in range(p, until):
                # Whole vectors: what lies beside the window is found out in the second pass.
                lo = (max(start[j], origin) - base) // {grain} * {grain}
                hi = min((min(end[j], origin + {chunk}) - base + {grain} - 1) // {grain} * {grain}, stored)
                flags[j - p, c] = {survey}
        for j in range(p, until):
            if len(rows) - at < end[j] - start[j]:
                return j, at
            before = at
            {load}
            for c in range(chunks):
                if flags[j - p, c]:
                    origin = least + c * {chunk}
                    last = min(end[j], origin + {chunk}) - base
                    lo = max(start[j], origin) - base
{visit}
            counts[j] = at - before
        p = until
    return p, at


@compiled
def work(thread, block):
    """Do tasks as long as there are any: thread number ``thread`` of those that do.

    ``tasks`` (n, 6): the first probe of each, the one behind its last, the one that is next; the thread that looked,
    and where its matches begin and end. A thread whose room is full stops all. ``rooms`` (threads, 3): the addresses of
    the rows that each has found, (room,), of flags, ({probes}, chunks), and of the number of rows.
    """
    {unpack}
    out = numba.carray(pointer_to(rooms[thread, 0]), (room,), np.int64)
    flags = numba.carray(pointer_to(rooms[thread, 1]), ({probes}, chunks), np.bool_)
    fill = numba.carray(pointer_to(rooms[thread, 2]), (1,), np.int64)
    while True:
        task = claim(control, limits, thread)
        if task < 0:
            return 0
        mine = tasks[task]
        until = mine[1]
        mine[3], mine[4] = thread, fill[0]
        mine[2], found = find(mine[2], start[:until], end[:until], base, counts, out[fill[0]:], flags, {given})
        fill[0] += found
        mine[5] = fill[0]
        if mine[2] < until:
            stop(control)
            return 0
        complete(control, limits)
'''

#: The visit of a chunk in which something was found: by masks of 64 slots where they can be made, or in pieces.
_BY_MASKS = '''
                    while lo + 64 <= last:
                        mask = {mask}
                        while mask:
                            i = lo + lowest_bit(mask)
                            mask &= mask - np.uint64(1)
{in_mask}                            if {check}:
                                rows[at] = base + i
                                at += 1
                        lo += 64
                    for i in range(lo, last):
{in_rest}                        if {test}:
                            rows[at] = base + i
                            at += 1
'''
_IN_PIECES = '''
                    for first in range(lo, last, {step}):
                        hi = min(first + {step}, last)
                        if {piece}:
                            for i in range(first, hi):
{in_piece}                                if {test}:
                                    rows[at] = base + i
                                    at += 1
'''

_SUSPECTS = '''
@numba.njit(nogil=True)
def suspects({keys}, {bounds}):
    any = False
    for i in range(len({first})):
        any = any | ({test})
    return any

'''


def nested_fields(plan: Plan, side: str, narrow: tuple[int, ...], kind: str) -> list[Field]:
    """The arguments of the loops over stored tuples of stream ``side``, as of `nested_source`."""
    def lane(slot: int) -> str:
        return f"uint{32 if plan.slots(side)[slot].key.width <= 32 else 64}"

    fields = [Field("control"), Field("limits"), Field("tasks", dimensions=2), Field("rooms", dimensions=2),
              Field("room", dimensions=0), Field("chunks", dimensions=0), Field("start"), Field("end"),
              Field("base", dimensions=0), Field("counts")]
    fields += [Field(f"k{slot}", lane(slot)) for slot in used_slots(plan, side)]
    fields += [Field(f"{bound}{j}s", lane(test.r if side == "r" else test.s))
               for bound in ("lo", "hi") for j, test in enumerate(plan.tests)]
    return fields + [Field(f"{name}{d}{of}", kind) for d in range(len(narrow))
                     for name, of in (("n", ""), ("a", "s"), ("w", "s"))]


def nested_source(plan: Plan, side: str, narrow: tuple[int, ...], kind: str) -> str:
    """The module with the entry ``work``, which finds matches among stored tuples of stream ``side``; its block is of
    `nested_fields`.

    ``narrow``: the tests (that every match meets) of which there are narrow copies of keys and bounds, of NumPy's
    type ``kind``.
    """
    numbers = range(len(plan.tests))
    names = [f"k{slot}" for slot in used_slots(plan, side)]
    straight = is_conjunction(plan)
    # With one unsigned compare a test (key − low ≤ width) an empty interval cannot be said: such probes are left out.
    bounds = [f"lo{j}" for j in numbers] + [f"{'w' if straight else 'hi'}{j}" for j in numbers]
    arrays = [f"lo{j}s" for j in numbers] + [f"hi{j}s" for j in numbers]
    condition = test_source(plan, side, "k{}[i]", "lo{}", "hi{}")
    items = [f"lo{j}s[j]" for j in numbers] + [f"hi{j}s[j]" for j in numbers]
    load = [f"lo{j} = lo{j}s[j]" for j in numbers] + [f"hi{j} = hi{j}s[j]" for j in numbers]
    possible = ""
    if straight:
        kinds = {j: _kind(plan, side, j) for j in numbers}
        slots = {j: plan.tests[j].r if side == "r" else plan.tests[j].s for j in numbers}
        condition = TestSource((), " & ".join(f"({kinds[j]}(k{slots[j]}[i] - lo{j}) <= w{j})" for j in numbers))
        widths = {j: f"{kinds[j]}(hi{j}s[j] - lo{j}s[j])" for j in numbers}
        items = [f"lo{j}s[j]" for j in numbers] + [widths[j] for j in numbers]
        load = [f"lo{j} = lo{j}s[j]" for j in numbers] + [f"w{j} = {widths[j]}" for j in numbers]
        possible = " and " + " and ".join(f"lo{j}s[j] <= hi{j}s[j]" for j in numbers)
    survey = f"hits({', '.join(f'{k}[lo:hi]' for k in names)}, {', '.join(items)}) != 0"
    suspects = extra = ""
    if narrow:
        ks = [f"n{d}" for d in range(len(narrow))]
        suspects = _SUSPECTS.format(
            keys=", ".join(ks), bounds=", ".join(f"a{d}, w{d}" for d in range(len(narrow))), first=ks[0],
            test=" & ".join(f"(np.{kind}(n{d}[i] - a{d}) <= w{d})" for d in range(len(narrow))))
        survey = (f"suspects({', '.join(f'{k}[lo:hi]' for k in ks)}, "
                  f"{', '.join(f'a{d}s[j], w{d}s[j]' for d in range(len(narrow)))})")
        extra = ", " + ", ".join(f"n{d}, a{d}s, w{d}s" for d in range(len(narrow)))
        possible = " and " + " and ".join(f"lo{j}s[j] <= hi{j}s[j]" for j in (numbers if straight else narrow))
        masks = " & ".join(f"interval_mask(n{d}, lo, a{d}s[j], w{d}s[j])" for d in range(len(narrow)))
        visit = _BY_MASKS.format(mask=masks, check=condition.truth, test=condition.truth,
                                 in_mask=condition.before(28), in_rest=condition.before(24))
    elif straight:
        masks = " & ".join(f"interval_mask(k{slots[j]}, lo, lo{j}, w{j})" for j in numbers)
        visit = _BY_MASKS.format(mask=masks, check="True", test=condition.truth, in_mask="", in_rest="")
    else:
        pieces = ", ".join(f"{k}[first:hi]" for k in names)
        visit = _IN_PIECES.format(step=STEP, piece=f"hits({pieces}, {', '.join(bounds)})",
                                  test=condition.truth, in_piece=condition.before(32))
    made = partial(
        _TEMPLATE.format, readers=BLOCK_READERS, digest=digest(block, intrinsics, tickets),
        given=", ".join([*names, *arrays]) + extra, keys=", ".join(names), bounds=", ".join(bounds), first=names[0],
        test=condition.truth, in_hits=condition.before(8), suspects=suspects, arrays=", ".join(arrays), narrow=extra,
        probes=PROBES, chunk=CHUNK, visit=visit.strip("\n"), grain=_GRAIN[kind if narrow else "uint32"],
        survey=f"{survey} if hi > lo{possible} else False", load="\n            ".join(load))
    return made(unpack=unpacking(nested_fields(plan, side, narrow, kind), made(unpack="")))


def _kind(plan: Plan, side: str, test: int) -> str:
    slot = plan.slots(side)[plan.tests[test].r if side == "r" else plan.tests[test].s]
    return "np.uint32" if slot.key.width <= 32 else "np.uint64"
