"""Progress of the emitters: a measure of the work that is left for a batch falls cycle by cycle, so each batch ends."""

from __future__ import annotations

from types import SimpleNamespace

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from splitjoin.circuit import geometry
from splitjoin_hw.core.listing import ListEmitter
from splitjoin_hw.core.sorter import _FROM_LIST, SortingEmitter
from splitjoin_hw.core.stack import StackEmitter

from .harness import Harness
from .proofs import Fault

_TAKES = "while a batch whose pass has ended is not sorted, each cycle brings it nearer to that"
_GIVES = "while the queue has room, each cycle brings the end of the probe whose place is read nearer to it"
_LISTS = "while the queue has room, each cycle brings the last item of a batch whose pass has ended nearer to it"
_STACKS = "while the queue has room, each cycle brings the end of the probe whose items leave nearer to it"
#: Bits of a measure.
_BITS = 8


def prove_sorter_progress(h: Harness, s: SimpleNamespace, *, probes: int, quota: int, ended: Value, left: Value,
                          active: Value, unwalked: Value) -> None:
    """Prove for the harness of the sorter that its batches end.

    ``s``: as of `tests.formal.results.sorter_state`, with the registers of the walk over the places. ``ended``: the
    last read of some pass is in the list; ``left``: entries up to that one that were not taken from the list.
    ``active``: the place of the picked probe is read; ``unwalked``: entries of its batch that a walk has not taken yet.
    """
    inner, hit1, hit2, put = s.steps
    # Cycles that the read in the register ahead of the places takes there.
    held = Mux(inner.valid & ~inner.lone, sum(inner.probes[:probes], Const(0)), 1)

    def to_places(of_walk: int) -> Value:
        """Cycles until the last read that is under way, of a walk or of a batch, has passed the places."""
        lasts = [step.last & (step.walk == of_walk) for step in (put, hit2, hit1)]
        return Mux(lasts[0], 1, Mux(lasts[1], 2, Mux(lasts[2], 3, 3 + held)))

    # Reads are taken from the list. A register that holds none on the way costs a cycle.
    looks, looked = s.taken
    gaps = Mux(looked, Mux(left == 1, 0, ~looks), 1 + Mux(looks, 0, 1))
    is_sorted, busy = (flags.bit_select(s.leaving, 1) for flags in (s.is_sorted, s.busy))
    unsorted = ended & ~s.clearing & ~is_sorted
    falls(h, _TAKES, Mux(busy, to_places(0), probes * left + gaps + held + 3), unsorted, always=Const(1))

    # Items leave the places, those of a full one from the list.
    def cost(valid: Value, walk: Value) -> Value:
        """Cycles that a register on the way from the list keeps a walk from the places."""
        return Mux(valid, Mux(walk, 0, probes), 1)

    ahead = cost(s.looked.valid, s.looked.walk)
    behind = cost(s.looking.valid, s.looking.walk)
    walks = s.looked.valid & s.looked.walk
    reading = unwalked + Mux(walks, Mux(unwalked == 1, 0, behind), ahead + behind) + held + 4
    entries = (s.first - s.begin)[:s.bits]
    longest = entries + 3 * probes + 6
    marks = [s.fetching[2], s.fetched[2]]
    walk = Mux(marks[0], longest, Mux(marks[1], longest - 1, Mux(s.walking, reading, to_places(1) + 1)))
    known, continued = s.known, s.continued
    place = Mux(~known, 1 + quota + longest, Mux(
        s.more, (s.in_place - s.row)[:len(s.row)] + Mux(continued, longest, 1), Mux(continued, walk, 1)))
    roomy = h.inner("items.level") <= geometry.EMITTER_ITEMS - _FROM_LIST
    falls(h, _GIVES, place, active, always=h.past(active & roomy, "was_giving"))


def prove_list_progress(h: Harness) -> None:
    """Prove for the harness of the emitter of one probe that its batches end. The solver picks the end of a pass."""
    m = h.m
    mark, picked = h.free("mark_end"), Signal(name="end_picked")
    begin, tail, due = h.inner("head"), h.inner("tail"), h.inner("entering")
    bits = len(begin)
    pointer = Signal(bits, name="end_pointer")
    fetching, fetched = h.inner("fetching")[0], h.inner("fetched")[0]
    with m.If(picked & fetched & (begin == pointer)):
        m.d.sync += picked.eq(0)
    with m.If(~picked & mark & h.inner("written") & h.inner("last_read")):
        m.d.sync += [picked.eq(1), pointer.eq(tail)]
    h.prove("the picked end of a pass is in the list", ~picked | (
        ((pointer - begin)[:bits] < (tail - begin)[:bits]) & h.look("list", pointer[:-1])[0]))
    h.prove("reads show what the list holds", Cat(
        ~fetched | (h.inner("list.r_data", domain="sync") == h.look("list", begin[:-1])),
        ~fetching | (h.inner("list.read__data") == h.look("list", (begin + fetched)[:bits - 1]))).all())
    left = (pointer + 1 - begin)[:bits]
    gaps = Mux(fetched, Mux(left == 1, 0, ~fetching), 1 + Mux(fetching, 0, 1))
    active = picked & due
    roomy = h.inner("items.level") < geometry.EMITTER_ITEMS - 6
    falls(h, _LISTS, left + gaps, active, always=h.past(active & roomy, "was_taking"))


def prove_stack_progress(h: Harness) -> None:
    """Prove for the harness of the emitter for an index that a probe's items end."""
    active, done, head, cursor = (h.inner(name) for name in ("active", "done", "head", "cursor"))
    left = (cursor - head)[:len(head)]
    falls(h, _STACKS, Mux(done, 1, left + 2), active, always=h.inner("may_advance"))


def falls(h: Harness, name: str, measure: Value, active: Value, *, always: Value) -> None:
    """Prove that ``measure`` never rises while ``active``, and that it falls in the cycles of ``always``."""
    short = name.replace(" ", "_")
    now = Signal(_BITS, name=f"{short}_measure")
    h.m.d.comb += now.eq(measure)
    before, was_active, must_fall = (h.past(value, f"{short}_{what}") for value, what in (
        (now, "before"), (active, "active"), (always, "falls")))
    h.prove(name, ~(active & was_active) | Mux(must_fall, now < before, now <= before))


SORTER_FAULTS = (
    Fault(_TAKES, SortingEmitter, "cursor != found.tail",
          "(cursor != found.tail) & ~self.found_valid", "_take_reads"),
    Fault(_GIVES, SortingEmitter, "known.eq(~end & (known | may_advance))",
          "known.eq(~end & (known | may_advance) & ~self.found_valid)", "_walk"),
)
LIST_FAULTS = (
    Fault("the picked end of a pass is in the list", ListEmitter, "found_list.w_addr.eq(found.tail[:-1])",
          "found_list.w_addr.eq(found.head[:-1])", "_walk"),
    Fault("reads show what the list holds", ListEmitter, "found_list.r_addr.eq(cursor[:-1])",
          "found_list.r_addr.eq(cursor[:-1] + 1)", "_walk"),
    Fault(_LISTS, ListEmitter, "fetch.eq(may_fetch & (cursor != found.tail))",
          "fetch.eq(may_fetch & (cursor != found.tail) & ~self.found_valid)", "_walk"),
)
STACK_FAULTS = (
    Fault(_STACKS, StackEmitter, "fetch.eq(active & may_advance & ~done)",
          "fetch.eq(active & may_advance & ~done & ~self.found_valid)", "_walk"),
)
