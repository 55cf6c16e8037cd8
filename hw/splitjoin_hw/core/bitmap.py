"""The output side of a region whose passes find tuples in any order: it sorts the hits of a probe in a bitmap."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import bitmap_bits

from ..hls.delays import delay_line
from ..network.queue import Queue
from ..tech.ram import Ram
from .emitter import Emitter


class BitmapEmitter(Emitter):
    """An `Emitter` for batches of one probe and reads of one tuple, whose hits come in any order.

    Each hit sets the bit of its tuple, by its offset in the window, in one of two bitmaps in block RAM; the bits of the
    other one leave meanwhile, oldest first. Flags say which words have bits, so a word is never cleared: the first bit
    of a word replaces what an earlier probe left there. A hit takes a cycle. A word with bits takes about five until
    its last bit has left, and each further bit one.

    A pass may have outcomes only after its batch was taken, as there is a bitmap for it then; ``room`` is always 1.
    """

    def _walk(self, m: Module, items: Queue, taken: data.View, due: Signal, finish: Signal) -> None:
        low, high = bitmap_bits(self.config)
        words, width = 1 << high, 1 << low
        m.submodules.bitmaps = bitmaps = Ram(width, 2 * words)
        filled = [Signal(words, name=f"filled{n}") for n in range(2)]  # of each bitmap, the words with bits
        m.d.comb += self.room.eq(1)

        # Hits: a word is read, and written back with one more bit.
        marked = Signal()  # the bitmap of the pass under way
        hit = Signal(data.StructLayout({"valid": 1, "last": 1, "bit": low, "word": high, "bitmap": 1}))
        m.d.comb += [hit.valid.eq(self.found_valid & self.found.hits[0]), hit.bitmap.eq(marked),
                     hit.last.eq(self.found_valid & self.found.last), Cat(hit.bit, hit.word).eq(self.found.group)]
        m.d.sync += marked.eq(marked ^ hit.last)
        _, reading, writing = delay_line(m, "hit", hit, Ram.latency)
        has_bits = Signal()  # the word that was read has bits, of hits three cycles ago and before
        m.d.sync += has_bits.eq(Array(filled)[reading.bitmap].bit_select(reading.word, 1))
        address = Cat(writing.word, writing.bitmap)
        word = Signal(width)
        # Those of the last two cycles are not in what was read.
        recent = [Signal(data.StructLayout({"valid": 1, "address": high + 1, "word": width}), name=f"recent{n}")
                  for n in range(2)]
        before: Value = Mux(has_bits, bitmaps.r_data, 0)
        for past in reversed(recent):
            before = Mux(past.valid & (past.address == address), past.word, before)
        m.d.comb += [word.eq(before | (Const(1, width) << writing.bit)[:width]), bitmaps.w_en.eq(writing.valid),
                     bitmaps.w_addr.eq(address), bitmaps.w_data.eq(word)]
        m.d.sync += [Cat(recent[0]).eq(Cat(writing.valid, address, word)), recent[1].eq(recent[0])]

        # The bitmap that leaves: its next word with bits is read in a cycle without a hit.
        leaving = Signal()
        complete = Signal(2)  # of each bitmap: its pass has ended, and its bits have not left
        flags = Signal(words)
        chosen, chosen_valid, fetch, emit = (Signal(bits, name=name) for name, bits in (
            ("chosen", high), ("chosen_valid", 1), ("fetch", 1), ("emit", 1)))
        fetching = Signal(Ram.latency)
        left, first, rest = (Signal(width, name=name) for name in ("left", "first", "rest"))
        word_left = Signal(high)
        may_advance = Signal()  # the queue has space
        m.d.comb += [
            flags.eq(Array(filled)[leaving]), first.eq(left & (~left + 1)), rest.eq(left & ~first),
            emit.eq(left.any() & may_advance),
            fetch.eq(due & chosen_valid & ~hit.valid & ~fetching.any() & (~left.any() | (emit & ~rest.any()))),
            finish.eq(due & complete.bit_select(leaving, 1) & may_advance & ~flags.any() & ~fetching.any()
                      & ~left.any()),
            bitmaps.r_addr.eq(Mux(hit.valid, Cat(hit.word, hit.bitmap), Cat(chosen, leaving))),
        ]
        m.d.sync += [
            chosen.eq(number(flags & (~flags + 1))),
            chosen_valid.eq(complete.bit_select(leaving, 1) & flags.any() & ~fetch & ~finish),
            fetching.eq(Cat(fetch, fetching)), may_advance.eq(items.level < geometry.EMITTER_ITEMS - 4),
            leaving.eq(leaving ^ finish),
            complete.eq((complete | (writing.last << writing.bitmap)) & ~(finish << leaving)),
        ]
        with m.If(fetch):
            m.d.sync += word_left.eq(chosen)
        with m.If(fetching[-1]):
            m.d.sync += left.eq(bitmaps.r_data)
        with m.Elif(emit):
            m.d.sync += left.eq(rest)
        for n, words_with_bits in enumerate(filled):
            sets = Const(1, words) << writing.word
            clears = Const(1, words) << chosen
            m.d.sync += words_with_bits.eq(
                (words_with_bits | Mux(writing.valid & (writing.bitmap == n), sets, 0))
                & ~Mux(fetch & (leaving == n), clears, 0))
        # A place, and the end of the probe behind the last one, enter the queue a cycle later.
        token = Signal(3)
        place = Signal(low + high)
        level = Signal.like(self.list_high, name="level")
        m.d.sync += level.eq(level + hit.valid - emit)
        m.d.sync += [token.eq(Cat(emit, finish, taken.flush)), place.eq(Cat(number(first), word_left))]
        m.d.comb += [*self._read(items.i.payload, place), items.i.payload.end.eq(token[1]),
                     items.i.payload.flush.eq(token[2]), items.i.payload.lanes.eq(1), self.list_high.eq(level),
                     items.i.valid.eq(token[:2].any())]


def number(bit: Value) -> Value:
    """The number of the only bit that is set; undefined for none."""
    return Cat(Cat(bit[n] for n in range(len(bit)) if n >> k & 1).any() for k in range((len(bit) - 1).bit_length()))
