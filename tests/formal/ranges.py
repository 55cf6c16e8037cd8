"""Proofs of the parts of ordered cores: a pass ends when all cells of its probe were looked up and their chains have
been followed, and each hit leaves the bitmap once.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from amaranth.hdl import Array, Cat, Mux, Signal, Value, signed
from amaranth.lib import data

from splitjoin.circuit.wire import Configuration
from splitjoin_hw.core.bitmap import BitmapEmitter
from splitjoin_hw.core.layouts import batch_layout
from splitjoin_hw.core.range_prober import RangeProber
from splitjoin_hw.network.queue import Queue
from splitjoin_hw.network.skid_buffer import SkidBuffer

from .harness import Harness
from .monitors import Follower, assume_stable_offers, follow, prove_stable_offers
from .network import buffered, sound_queue
from .probe import few
from .progress import falls
from .proofs import Fault, Proof
from .results import LATENCY, narrow

#: Heads of chains that wait, and items between the bitmap and the output, in these proofs.
_HEADS = _ITEMS = 8

_AHEAD = "a pass has outcomes only after its batch was taken"
_FALLS = "while there is room and no hit comes, each cycle brings the end of the bitmap nearer"


def _config(capacity: int) -> Configuration:
    return Configuration(keys_r=(1,), keys_s=(1,), tests=((0, 0),), tree=0, capacity=capacity, core="ordered",
                         index=(0,))


@few()
@patch("splitjoin_hw.core.range_prober._HEADS", _HEADS)
def prober() -> Harness:
    """The harness of the prober: the environment grants look-ups, and gives any heads and links."""
    config = _config(_HEADS)
    dut = RangeProber(config, "s")
    h = Harness(dut)
    assume_stable_offers(h, "task", dut.task)
    prove_stable_offers(h, "batch", dut.batch)
    h.assume("the emitter always has room", dut.room)
    h.assume("buckets are granted that are asked for", ~dut.granted | dut.look)
    h.prove("pointers, flags and level of its queue agree", sound_queue(h, "heads", _HEADS))
    tokens = [*(h.inner(f"token{n}")[:2] for n in range(2 + config.stages)),
              Cat(dut.found_valid, dut.found_valid & dut.found.last)]
    assert len(tokens) == dut.latency
    taken, ended = dut.batch.valid & dut.batch.ready, dut.found_valid & dut.found.last
    # Seen from the end, something follows each outcome that is not its pass's last.
    whole, open_ = [], h.inner("started")
    for token in tokens:
        whole.append(~token[0] | token[1] | open_)
        open_ = Mux(token[0] | token[1], 1, open_)
    h.prove("a pass ends with its last outcome", Cat(whole).all())
    under_way = dut.scanning + sum(token[1] for token in tokens)
    ahead = Signal(signed(6), name="ahead")  # batches taken less passes ended
    h.m.d.sync += ahead.eq(ahead + taken - ended)
    h.prove("ended passes are counted", ahead == under_way - dut.batch.valid)
    h.prove(_AHEAD, ~dut.found_valid | (ahead > 0))

    started, cells, last = (h.inner(name) for name in ("started", "cells", "last"))
    steps = [h.inner(name) for name in ("step", "reached", "loaded")]
    ring = [h.inner(f"ring{n}") for n in range(4)]
    coming = [*(h.inner(f"looked_up{n}") for n in range(3)), h.inner("heads.i__valid")]
    level = h.inner("heads.level")
    h.prove("a probe is looked up, and then its chains are followed", (sum(steps) + started == dut.scanning)
            & (~started | ~dut.batch.valid) & (~dut.batch.valid | dut.scanning)
            & (started | ~Cat(cursor[0] for cursor in ring).any())
            & (dut.scanning | ~(cells.any() | Cat(coming).any() | level.any())))
    h.prove("heads that are looked up find room", (level + sum(coming) < _HEADS)
            & (~h.inner("may_look") | (level + sum(coming) < _HEADS - 1)))

    # Cells of the probe that were granted; heads that were found, and that are followed.
    asked, granted = Signal.like(cells, name="asked"), Signal.like(cells, name="granted_cells")
    accept = dut.task.valid & dut.task.ready
    task = dut.task.payload
    with h.m.If(accept):
        h.m.d.sync += [asked.eq(Mux(task.masked | (task.count == 0), 0, task.reach.cells0)), granted.eq(0)]
    with h.m.Elif(dut.granted):
        h.m.d.sync += granted.eq(granted + 1)
    h.prove("all cells of a probe are looked up before its pass ends",
            (~dut.scanning | ((granted + cells)[:len(cells)] == asked)) & (~last | ((granted == asked) & ~dut.granted)))
    pushed, popped = h.inner("heads.push"), h.inner("heads.pop")
    heads, begun = Signal(8, name="heads_found"), Signal(8, name="chains_begun")
    h.m.d.sync += [heads.eq(heads + h.inner("heads.i__valid")), begun.eq(begun + popped)]
    h.prove("each chain is begun, and none in the place of another", ((heads - begun)[:8] == level)
            & (pushed == h.inner("heads.i__valid")) & (~popped | ~ring[3][0]) & (~last | (heads == begun)))
    followed = h.past(ring[2][0] & (dut.distance != 0), "followed")
    offset = h.past((h.inner("ring2")[-(len(ring[0]) - 1) // 2:] - dut.distance)[(len(ring[0]) - 1) // 2 - 1], "older")
    read = h.past(popped | ring[3][0], "reads_next")
    h.prove("a link into the window is followed", (ring[3][0] == (followed & ~offset)) & (ring[0][0] == read))

    # Each probe becomes a batch.
    def essence(item: Any) -> Value:
        return Cat(item.row, item.flush, item.count)

    f = Follower(h, "probe", entered=accept, entering=essence(task), port=dut.batch,
                 leaving=essence(dut.batch.payload), capacity=1)
    follow(h, f)
    h.prove("the items inside are counted", f.inside == dut.batch.valid)
    held = data.View(batch_layout(config), Value.cast(dut.batch.payload))
    h.prove("the picked item is in its place", ~f.picked | (f.token == essence(held)))
    return h


@narrow(_ITEMS)
def bitmap() -> Harness:
    """The harness of the emitter: the solver chooses outcomes, and one place in the window to follow."""
    dut = BitmapEmitter(_config(4), latency=LATENCY)
    h = Harness(dut)
    assume_stable_offers(h, "batch", dut.batch)
    prove_stable_offers(h, "o", dut.o)
    h.prove("pointers, flags and levels of its queue and its buffer agree",
            sound_queue(h, "items", _ITEMS) & buffered(h, "out")[2])
    reading, writing = (data.View(_HIT, h.inner(name)) for name in ("hit0", "hit1"))
    marked, leaving, complete, current = (h.inner(name) for name in ("marked", "leaving", "complete", "word_left"))
    fetching, emit, left, first = (h.inner(name) for name in ("fetching", "emit", "left", "first"))
    finish, due, may = h.inner("finish"), h.inner("entering"), h.inner("may_advance")
    filled = [h.inner(f"filled{n}") for n in range(2)]

    # Passes whose batches were taken and that have not ended; those that have, and whose bits have not left.
    ended = dut.found_valid & dut.found.last
    open_ = Signal(signed(4), name="open")
    h.m.d.sync += open_.eq(open_ + (dut.batch.valid & dut.batch.ready) - ended)
    h.assume(_AHEAD, ~dut.found_valid | (open_ > 0))
    whole = complete[0] + complete[1]
    behind = whole + writing.last
    inside = behind + reading.last
    h.prove("two bitmaps are enough", (h.inner("waits") + due == open_ + inside) & (open_ >= 0)
            & (marked == (leaving ^ inside[0])) & (~Array(complete)[~leaving] | Array(complete)[leaving])
            & (~(reading.valid | reading.last) | ((reading.bitmap == (leaving ^ behind[0])) & (behind <= 1)))
            & (~(writing.valid | writing.last) | ((writing.bitmap == (leaving ^ whole[0])) & (whole <= 1))))

    # One place, whether it was hit and has not left, of each bitmap.
    place = h.constant("place", 2)
    bit, word = place[0], place[1]
    hit = dut.found_valid & dut.found.hits[0]
    h.assume("hits are of places in the window", dut.found.group < 4)
    wanted = [Signal(name=f"wanted{n}") for n in range(2)]
    h.assume("a pass finds a tuple once", ~hit | (dut.found.group != place) | ~Array(wanted)[marked])
    leaves = emit & (current == word) & Array(first)[bit]
    for n, want in enumerate(wanted):
        with h.m.If(hit & (dut.found.group == place) & (marked == n)):
            h.m.d.sync += want.eq(1)
        with h.m.Elif(leaves & (leaving == n)):
            h.m.d.sync += want.eq(0)
    h.prove("a bit that leaves was set", ~leaves | Array(wanted)[leaving])
    h.prove("no bit is left behind", ~finish | ~Array(wanted)[leaving])
    h.prove("one word leaves at a time", fetching.any() + left.any() <= 1)
    words = [h.look("bitmaps.rows", Cat(word, n)) for n in range(2)]
    read = h.past(h.look("bitmaps.rows", h.inner("bitmaps.r_addr")), "was_read")
    arrived = h.inner("bitmaps.r_data", domain="sync")
    on_way = (current == word) & Array(Mux(fetching[0], read, 0) | Mux(fetching[1], arrived, 0) | left)[bit]
    flags, chosen, chosen_valid = (h.inner(name) for name in ("flags", "chosen", "chosen_valid"))
    h.prove("words with bits of ended passes are fetched", (
        ~(chosen_valid | fetching.any() | left.any()) | Array(complete)[leaving])
        & (~(fetching.any() | left.any()) | (due & ~Array(flags)[current])) & (~chosen_valid | Array(flags)[chosen]))
    h.prove("each hit is in its bitmap", Cat(want == Cat(
        *(step.valid & (step.bitmap == n) & (step.word == word) & (step.bit == bit) for step in (reading, writing)),
        Array(filled[n])[word] & Array(words[n])[bit], (leaving == n) & on_way).any()
        for n, want in enumerate(wanted)).all())
    before = Mux(Array(Array(flags)[writing.word] for flags in filled)[writing.bitmap],
                 h.look("bitmaps.rows", Cat(writing.word, writing.bitmap)), 0)
    h.prove("a word gets one more bit", ~writing.valid | (h.inner("word") == (before | (1 << writing.bit)[:2])))

    items, token = h.inner("items.level"), h.inner("token")
    h.prove("the queue has room for everything in flight",
            (items + token[:2].any() <= _ITEMS - 2) & (~may | (items <= _ITEMS - 3)))
    measure = 1 + 7 * (flags[0] + flags[1]) + Mux(fetching[0], 4, 0) + Mux(fetching[1], 3, 0) + left[0] + left[1] + (
        flags.any() & ~chosen_valid)
    falls(h, _FALLS, measure, due & Array(complete)[leaving], always=may & ~hit)
    return h


_HIT = data.StructLayout({"valid": 1, "last": 1, "bit": 1, "word": 1, "bitmap": 1})
_PROBER_FAULTS = (
    Fault("offers at batch are stable", RangeProber, "self.batch.ready", "1"),
    Fault("pointers, flags and level of its queue agree", Queue, "push & (tail_next == head)", "push & (tail == head)"),
    Fault("a pass ends with its last outcome", RangeProber, "Cat(compares, last, ring[0].offset)",
          "Cat(compares, last & compares, ring[0].offset)"),
    Fault("ended passes are counted", RangeProber, "self.found.last.eq(token[1])", "self.found.last.eq(1)"),
    Fault(_AHEAD, RangeProber, "take.eq(loaded & ~self.batch.valid)", "take.eq(loaded)"),
    Fault("a probe is looked up, and then its chains are followed", RangeProber, "reached | (loaded & ~take)",
          "reached"),
    Fault("heads that are looked up find room", RangeProber, "heads.level < _HEADS - _COMING", "heads.level < _HEADS"),
    Fault("all cells of a probe are looked up before its pass ends", RangeProber, "cells.eq(cells - 1)", "cells.eq(0)"),
    Fault("each chain is begun, and none in the place of another", RangeProber, "started & ~ring[3].valid", "started"),
    Fault("a link into the window is followed", RangeProber, "self.distance != 0", "self.distance != 1"),
    *(Fault(name, RangeProber, "self.batch.valid.eq(0)", "self.batch.valid.eq(1)") for name in (
        "nothing leaves that did not enter", "the picked item is inside", "the items inside are counted")),
    Fault("items leave unchanged and in order", RangeProber, "batch.flush.eq(task.flush)",
          "batch.flush.eq(task.masked)"),
    Fault("the picked item is in its place", RangeProber, "batch.row.eq(task.row)", "batch.row.eq(task.row + 1)"),
)
_BITMAP_FAULTS = (
    Fault("offers at o are stable", SkidBuffer, "full | (not_empty & (heads[0] == n))", "full"),
    Fault("pointers, flags and levels of its queue and its buffer agree", Queue, "push & (tail_next == head)",
          "push & (tail == head)"),
    Fault("two bitmaps are enough", BitmapEmitter, "marked.eq(marked ^ hit.last)", "marked.eq(marked)", "_walk"),
    Fault("a bit that leaves was set", BitmapEmitter, "word_left.eq(chosen)", "word_left.eq(0)", "_walk"),
    Fault("no bit is left behind", BitmapEmitter, "left.eq(rest)", "left.eq(0)", "_walk"),
    Fault("one word leaves at a time", BitmapEmitter, "emit & ~rest.any()", "emit", "_walk"),
    Fault("words with bits of ended passes are fetched", BitmapEmitter,
          "complete.bit_select(leaving, 1) & flags.any() & ~fetch", "complete.bit_select(leaving, 1) & flags.any()",
          "_walk"),
    Fault("each hit is in its bitmap", BitmapEmitter, "bitmaps.w_en.eq(writing.valid)",
          "bitmaps.w_en.eq(writing.valid & ~writing.last)", "_walk"),
    Fault("a word gets one more bit", BitmapEmitter, "past.valid & (past.address == address)", "Const(0)", "_walk"),
    Fault("the queue has room for everything in flight", BitmapEmitter,
          "items.level < geometry.EMITTER_ITEMS - 4", "1", "_walk"),
    Fault(_FALLS, BitmapEmitter, "left.any() & may_advance", "left.any() & may_advance & ~self.batch.valid", "_walk"),
)

PROOFS = (
    Proof("range prober", prober, 2, faults=_PROBER_FAULTS, search=24, first=12, quick=False),
    Proof("bitmap emitter", bitmap, 3, faults=_BITMAP_FAULTS, search=30, first=16, quick=False),
)
