"""Source of the sorted engine's loop: probes look into sorted runs, block by block, and into the tail (`runs`)."""

from __future__ import annotations

from splitjoin.lang.schema import other_side
from splitjoin.plan.plan import Plan, bounded_end, leading_tests, slot_tests

from ..compiled import intrinsics
from ..compiled.jit import digest
from . import block, runs
from .block import BLOCK_READERS, Field, unpacking
from .tests_source import is_conjunction, test_source, used_slots

__all__ = ["find_fields", "sorted_source", "walk_fields"]

_TEMPLATE = '''import numpy as np
from splitjoin.engines.compiled.jit import compiled
{readers}, interval_mask, lowest_bit
from splitjoin.engines.cpu.runs import first_above, first_not_below, first_reaching, sort_keys, sort_rows, span

# Made for functions of digest {digest}.


@compiled
def find(turns, t, origin, start, end, runs, tail, counts, rows, words, other, order, firsts, {arrays}):
    """Matches of the probes ``turns[t]`` and later; returns the first turn for which ``rows`` had no room, how many are
    in it, and the number of tuples that were compared. The matches are places from ``origin`` on.
    """
    at = compared = np.int64(0)
    near = runs[:, 0].copy()
    while t < len(turns):
        p = np.int64(turns[t])
        if len(rows) - at <= end[p] - start[p]:
            break
        s, e = start[p] - origin, end[p] - origin
        {intervals}
        before, looked = at, np.int64(0)
        if s < e and {possible}:
            for u in range(len(runs)):
                begin, until = runs[u, 0], runs[u, 1]
                if until <= s:
                    continue
                if begin >= e:
                    break
                i = first_not_below({by}, firsts, begin, until, near[u], {by_low})
                if i == until:
                    continue
                near[u] = i
                k = first_above({by}, firsts, begin, until, i, {by_high})
                if i >= k:
                    continue
                begun, size = at, until - begin
{search}
                sort_rows(rows, begun, at, begin, until, words, other)
            w = max(s, tail) >> 6
            while w * 64 < e:
                x = w * 64
                a, b = max(s, tail, x) - x, min(e - x, 64) - 1
                bits = span(a, b) & {leaf}
                looked += b - a + 1
                while bits:
                    i = x + lowest_bit(bits)
                    bits &= bits - np.uint64(1)
{in_tail}                    rows[at] = i
                    at += np.int64({truth})
                w += 1
        counts[p] = at - before
        compared += min(looked, e - s)
        t += 1
    return t, at, compared


@compiled
def find_part(part, block):
    """Find the matches of part number ``part`` of the probes, in the order of the probes, as far as there is room."""
    {find_unpacked}
    a, b = len(start) * part // parts, len(start) * (part + 1) // parts
    n = b - a
    turns = np.empty(n, np.uint32)
    for t in range(n):
        turns[t] = t
    if n >= least:
        first = {first_low}[a:b]
        if first.min() == first.max():
            first = {first_high}[a:b]
        sort_keys(first, turns)
    found, written, words = rows[part], out[part], np.zeros((used >> 6) + 1, np.uint64)
    t, at, compared = find(turns, 0, origin, start[a:b], end[a:b], runs, tail, counts[a:b], found, words,
                           np.empty((used >> 6) + 64, np.int64), order, firsts, {sliced})
    told[part, 0], told[part, 1] = (at if t == n else -1), compared
    if t == n:
        begin = np.empty(n, np.int64)
        at = np.int64(0)
        for t in range(n):
            begin[turns[t]] = at
            at += counts[a + turns[t]]
        at = np.int64(0)
        for p in range(n):
            for i in range(begin[p], begin[p] + counts[a + p]):
                written[at] = found[i] + origin
                at += 1
    return 1
{walk}'''

#: Where many probes meet a run, it goes past them, instead of each of them searching it.
_WALK = '''

@compiled
def intervals(chosen, {ends}, {bounds}):
    """Write the probes whose intervals are not empty to ``chosen``, in the order of their bounds, and the ends of their
    intervals. Returns how many there are, or -1 if one of these ends is lower than that of the probe before.
    """
    turns = np.empty(len(chosen), np.uint32)
    if {first_low}.min() < {first_low}.max():
        sort_keys({first_low}, turns)
    else:
        sort_keys({first_high}, turns)
    n, falls = np.int64(0), False
    for t in range(len(turns)):
        p = np.int64(turns[t])
        {intervals}
        if {possible}:
            chosen[n] = p
            {write}
            falls |= n > 0 and ({falls})
            n += 1
    return np.int64(-1) if falls else n


@compiled
def walk(state, chosen, n, origin, start, end, runs, tail, used, met, rows, probe_of, order, firsts, {keys}, {ends},
         {bounds}):
    """Matches of the first ``n`` probes of ``chosen``, whose intervals and numbers both rise, among the tuples from
    where ``state`` says: the run, the tuple, the first probe that can meet it, and the number of pairs that were
    compared. Returns True when all are done, and how many matches are in ``rows`` and ``probe_of``; adds to ``met``
    (n,) how many each of ``chosen`` has.
    """
    at = compared = np.int64(0)
    first, last = start[0] - origin, end[len(end) - 1] - origin
    while state[0] <= len(runs):
        u = state[0]
        begin, until = (runs[u, 0], runs[u, 1]) if u < len(runs) else (np.int64(tail), np.int64(used))
        if until <= first:
            begin = until
        if begin >= last:
            until = begin
        h, i = begin + state[1], state[2]
        if u < len(runs) and begin < until and n:
            h = max(h, first_not_below(k{by}, firsts, begin, until, begin, low{by}[0]))
            until = first_above(k{by}, firsts, begin, until, begin, high{by}[n - 1])
        while h < until:
            if len(rows) - at < n:
                state[1], state[2] = h - begin, i
                state[3] += compared
                return False, at
            if u == len(runs):  # in arrival order
                i = first_reaching(high{by}, 0, n, k{by}[h])
            while i < n and high{by}[i] < k{by}[h]:
                i += 1
            if i == n and u < len(runs):
                break  # keys rise
            if u < len(runs) and h & 63 == 0 and ({beyond}):
                h += 64
                continue
            t = i
{skip}            while t < n and {meets}:
                p = np.int64(chosen[t])
                row = np.int64(order[h]) + origin
                rows[at] = row
                probe_of[at] = p
{lines}                is_met = (row >= start[p]) & (row < end[p]) & ({truth})
                met[t] += np.int64(is_met)
                at += np.int64(is_met)
                compared += np.int64((row >= start[p]) & (row < end[p]))
                t += 1
            h += 1
        state[0], state[1], state[2] = u + 1, 0, 0
    state[3] += compared
    return True, at


@compiled
def walk_part(part, block):
    """Find the matches of part number ``part`` of the chosen probes, as far as there is room."""
    {walk_unpacked}
    a, b = len(chosen) * part // parts, len(chosen) * (part + 1) // parts
    told[part, 0] = told[part, 1] = 0
    if a < b:
        state = np.zeros(4, np.int64)
        met[a:b] = 0
        done, at = walk(state, chosen[a:b], b - a, origin, start, end, runs, tail, used, met[a:b], rows[part],
                        probe_of[part], order, firsts, {keys}, {sliced}, {bounds})
        told[part, 0], told[part, 1] = (at if done else -1), state[3]
    return 1
'''

#: Runs of the only key that is searched by: the tuples between two places.
_STRAIGHT = '''
                looked += k - i
                for i in range(i, k):
                    row = np.int64(order[i])
{in_straight}                    rows[at] = row
                    at += np.int64((row >= s) & (row < e) & ({truth}))
'''
#: Of the tuples between two places, the blocks that may hold a match.
_BLOCKS = '''
                g, last = i >> 18, (k - 1) >> 18
                while g <= last:
                    top = span(0, min(last - g, 63))
                    if size > 262144:
                        top &= {level3}
                    while top:
                        x3 = (g + lowest_bit(top)) * 64
                        top &= top - np.uint64(1)
                        upper = span(max((i >> 12) - x3, 0), min(((k - 1) >> 12) - x3, 63))
                        if size > 4096:
                            upper &= {level2}
                        while upper:
                            x2 = (x3 + lowest_bit(upper)) * 64
                            upper &= upper - np.uint64(1)
                            lower = span(max((i >> 6) - x2, 0), min(((k - 1) >> 6) - x2, 63)) & {level1}
                            while lower:
                                x = (x2 + lowest_bit(lower)) * 64
                                lower &= lower - np.uint64(1)
                                a, b = max(i - x, 0), min(k - 1 - x, 63)
                                bits = span(a, b) & {others}
                                looked += b - a + 1
                                while bits:
                                    h = x + lowest_bit(bits)
                                    bits &= bits - np.uint64(1)
                                    row = np.int64(order[h])
{in_block}                                    rows[at] = row
                                    at += np.int64((row >= s) & (row < e) & ({truth_h}))
                    g += 64
'''


def _kind(plan: Plan, side: str, slot: int) -> str:
    return "uint32" if plan.slots(side)[slot].key.width <= 32 else "uint64"


def _common_fields(plan: Plan, side: str, by: int) -> list[Field]:
    return [*(Field(name, dimensions=0) for name in ("parts", "least", "origin", "tail", "used")),
            *(Field(name) for name in ("start", "end", "counts")),
            *(Field(name, dimensions=2) for name in ("runs", "rows", "told")), Field("order", "uint32"),
            Field("firsts", _kind(plan, side, by)),
            *(Field(f"k{slot}", _kind(plan, side, slot)) for slot in used_slots(plan, side)),
            *(Field(f"{end}{j}s", _kind(plan, side, test.r if side == "r" else test.s))
              for end in ("lo", "hi") for j, test in enumerate(plan.tests))]


def find_fields(plan: Plan, side: str, by: int) -> list[Field]:
    """What parts of searches among stored tuples of stream ``side`` take (`find_part`)."""
    return [*_common_fields(plan, side, by), Field("out", dimensions=2),
            *(Field(f"{end}{slot}_{n}", _kind(plan, side, slot)) for slot in sorted(slot_tests(plan, side))
              if slot != by for n in (1, 2, 3) for end in ("least", "most"))]


def walk_fields(plan: Plan, side: str, by: int) -> list[Field]:
    """The fields of the block that `walk_part` reads."""
    return [*_common_fields(plan, side, by), Field("chosen"), Field("probe_of", "uint32", 2), Field("met"),
            *(Field(f"{end}{slot}", _kind(plan, side, slot)) for slot in sorted(slot_tests(plan, side))
              for end in ("low", "high")),
            *(Field(f"{end}{slot}_1", _kind(plan, side, slot)) for slot in sorted(slot_tests(plan, side))
              if slot != by for end in ("least", "most"))]


def sorted_source(plan: Plan, side: str, by: int) -> str:
    """The module that finds matches among stored tuples of stream ``side``, in runs sorted by slot ``by``."""
    leading, tests = leading_tests(plan), range(len(plan.tests))
    own, used = slot_tests(plan, side), used_slots(plan, side)
    slots = sorted(own)
    others = [slot for slot in slots if slot != by]
    kinds = {slot: f"np.{_kind(plan, side, slot)}" for slot in used}
    intervals = []
    for slot in slots:
        low, high = ([f"{end}{j}s[p]" for j in own[slot]] for end in ("lo", "hi"))
        intervals += [f"a{slot} = {_all('max', low)}", f"b{slot} = {_all('min', high)}",
                      f"w{slot} = {kinds[slot]}(b{slot} - a{slot})"]
    decided = is_conjunction(plan) and len(leading) == len(plan.tests)

    def masks(array: str, at: str, chosen: list[int]) -> str:
        return " & ".join(f"interval_mask({array.format(slot)}, {at}, a{slot}, w{slot})" for slot in chosen)

    def level(n: int, at: str) -> str:
        reached = []
        for slot in others:
            ends = {bounded_end(plan, j, other_side(side)) for j in own[slot]}
            if ends != {"high"}:
                reached.append(f"interval_mask(most{slot}_{n}, {at}, a{slot}, {kinds[slot]}(~a{slot}))")
            if ends != {"low"}:
                reached.append(f"interval_mask(least{slot}_{n}, {at}, {kinds[slot]}(0), b{slot})")
        return " & ".join(reached)

    def rest(place: str, indent: int) -> tuple[str, str]:
        if decided:
            return "", "True"
        source = test_source(plan, side, f"k{{}}[{place}]", "lo{}s[p]", "hi{}s[p]")
        return source.before(indent), source.truth

    lines, truth = rest("i", 20)
    if others:
        in_block, truth_h = rest("h", 36)
        search = _BLOCKS.format(level3=level(3, "g"), level2=level(2, "x3"), level1=level(1, "x2"),
                                others=masks("k{}", "x", others), in_block=in_block, truth_h=truth_h)
    else:
        search = _STRAIGHT.format(in_straight=lines, truth=truth)
    walk, firsts = "", {"first_low": f"lo{own[by][0]}s", "first_high": f"hi{own[by][0]}s"}
    if others:
        names = [f"{end}{slot}" for slot in slots for end in ("low", "high")]
        ends = {f"low{slot}": f"a{slot}" for slot in slots} | {f"high{slot}": f"b{slot}" for slot in slots}
        met = test_source(plan, side, "k{}[h]", "lo{}s[p]", "hi{}s[p]")
        sliced = [f"{name}[a:b]" for name in names]
        blocks = [f"{end}{slot}_1" for slot in others for end in ("least", "most")]
        body = _WALK[_WALK.index("def walk_part"):]
        walk = _WALK.format(
            **firsts, sliced=", ".join(sliced), walk_unpacked=unpacking(walk_fields(plan, side, by), " ".join((
                body, *(f"k{slot}" for slot in used), *names, *blocks,
                *(f"{end}{j}s" for end in ("lo", "hi") for j in tests)))),
            by=by, ends=", ".join(names), keys=", ".join((*(f"k{slot}" for slot in used), *blocks)),
            beyond=" or ".join(f"most{slot}_1[h >> 6] < low{slot}[i] or least{slot}_1[h >> 6] > high{slot}[n - 1]"
                               for slot in others),
            bounds=", ".join(f"{end}{j}s" for end in ("lo", "hi") for j in tests),
            intervals="\n        ".join(intervals), possible=" and ".join(f"a{slot} <= b{slot}" for slot in slots),
            write="; ".join(f"{name}[n] = {ends[name]}" for name in names),
            falls=" or ".join(f"{name}[n] < {name}[n - 1]" for name in names),
            skip="".join(f"            if t < n and high{slot}[t] < k{slot}[h]:\n"
                         f"                t = first_reaching(high{slot}, t, n, k{slot}[h])\n" for slot in others),
            meets=" and ".join(f"low{slot}[t] <= k{slot}[h]" for slot in slots),
            lines="" if decided else met.before(16), truth="True" if decided else met.truth)
    arrays = [f"k{slot}" for slot in used]
    arrays += [f"{end}{slot}_{n}" for slot in others for n in (1, 2, 3) for end in ("least", "most")]
    sliced = [*arrays, *(f"{end}{j}s[a:b]" for end in ("lo", "hi") for j in tests)]
    arrays += [f"{end}{j}s" for end in ("lo", "hi") for j in tests]
    body = _TEMPLATE[_TEMPLATE.index("def find_part"):]
    return _TEMPLATE.format(
        readers=BLOCK_READERS, **firsts, sliced=", ".join(sliced),
        find_unpacked=unpacking(find_fields(plan, side, by), " ".join((body, *arrays))),
        digest=digest(block, intrinsics, runs), arrays=", ".join(arrays), intervals="\n        ".join(intervals),
        possible=" and ".join(f"a{slot} <= b{slot}" for slot in slots), by=f"k{by}", by_low=f"a{by}", by_high=f"b{by}",
        search=search.strip("\n"), walk=walk, leaf=masks("k{}", "x", slots), in_tail=lines, truth=truth)


def _all(function: str, terms: list[str]) -> str:
    return terms[0] if len(terms) == 1 else f"{function}({', '.join(terms)})"
