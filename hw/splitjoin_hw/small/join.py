"""The join of small circuits: one tuple at a time, one comparison a cycle."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import Configuration, ItemKind, Op
from splitjoin.lang.schema import other_side

from ..hls.matcher import Matcher
from ..layouts import STREAM_S, input_layout, struct, taken
from ..tech.ram import Ram
from .registers import COUNT_BITS, settings_layout


class SmallJoin(wiring.Component):
    """Joins two streams as the golden model does: one tuple after the other, each against the other stream's window.

    A tuple goes through these steps. Tuples that have become too old leave both windows, one every few cycles. The
    scan compares the other window's tuples, oldest first, one a cycle, and writes the offsets of matches to a list.
    The list becomes items, with inner stars between them, and a star follows if one is due. At last the tuple is stored
    in its own window, where it replaces the oldest one if ROWS says so. The record stays at the input until then, so
    that no register holds it. As all is done in turn, results are always in the order ``total``.

    Both windows share one memory, and so do their event times. Where the condition is the same from both sides
    (`splitjoin.circuit.architectures.small.Small.datapaths`), so do their datapaths.

    Ports: ``i``: input records. ``o``: items. ``settings``: constant while records are in flight. ``tuples``,
    ``overflow``: as of `SmallRegisters`.
    """

    def __init__(self, config: Configuration):
        if not config.small:
            raise ValueError("The configuration must have small=True")
        self._config = config
        super().__init__({
            "i": In(stream.Signature(input_layout(config))),
            "o": Out(stream.Signature(struct(config.item_record))),
            "settings": In(settings_layout(config)),
            "tuples": Out(COUNT_BITS).array(2),
            "overflow": Out(2),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config, record, settings = self._config, self.i.payload, self.settings
        place = range(config.capacity)
        count = unsigned(config.capacity.bit_length())

        # State of both streams, R's first.
        heads = [Signal(place, name=f"head_{side}") for side in "rs"]  # place of the oldest tuple
        lives = [Signal(count, name=f"live_{side}") for side in "rs"]  # tuples in the window
        since_star = [Signal(config.row_bits, name=f"since_star_{side}") for side in "rs"]  # probes since the last star
        masked = Signal()  # no probe finds anything

        # The stream whose window expires or grows, or whose star a FLUSH sends; and that whose window is scanned.
        visited, own, other = Signal(), Signal(), Signal()
        flushing = Signal()
        m.d.comb += [own.eq(Mux(flushing, visited, record.stream)), other.eq(~record.stream)]

        def of(values: list[Signal], number: Value) -> Value:
            return Array(values)[number]

        # Memories of both windows: the stream's number is the top bit of an address.
        width = max(config.keys(side).width for side in "rs")
        m.submodules.keys = keys = Ram(unsigned(width), 2 * config.capacity)
        m.submodules.hits = hits = Ram(unsigned(len(heads[0])), max(2, config.capacity))
        store = Signal()
        tail = (of(heads, own) + of(lives, own))[:len(heads[0])]
        m.d.comb += [keys.w_addr.eq(Cat(tail, own)), keys.w_data.eq(record.body), keys.w_en.eq(store)]
        matched = self._datapath(m, keys.r_data, other)

        # The scan: ``issued`` tuples have been read, and ``compared`` of them compared; those that match are listed.
        issued, compared, listed = (Signal(count, name=name) for name in ("issued", "compared", "listed"))
        scanning, issue = Signal(), Signal()
        latency = Ram.latency + config.stages
        under_way = Signal(latency)
        m.d.comb += [
            issue.eq(scanning & (issued != of(lives, other))),
            keys.r_addr.eq(Cat((of(heads, other) + issued)[:len(heads[0])], other)),
            hits.w_addr.eq(listed), hits.w_data.eq(compared), hits.w_en.eq(under_way[-1] & matched & ~masked),
        ]
        m.d.sync += [under_way.eq(Cat(issue, under_way)), issued.eq(issued + issue),
                     compared.eq(compared + under_way[-1]), listed.eq(listed + hits.w_en)]

        # Items. The list's entry is read while ``wait`` is not 0.
        fetched, wait = Signal(count), Signal(Ram.latency + 1)
        border = Signal(config.capacity.bit_length() + 1)  # the next inner star precedes the tuple of this offset
        kind = Signal(ItemKind)
        offset = hits.r_data
        at_hit = fetched != listed
        inner_star_due = (settings.slice != 0) & (border <= Mux(at_hit, offset, of(lives, other) - 1)) & \
            (at_hit | (of(lives, other) != 0))
        probe = of(list(self.tuples), own)[:config.row_bits] - flushing
        stored = of(list(self.tuples), other)[:config.row_bits] - of(lives, other) + offset
        # In an item the stream that is stored is the other one, also where a star leaves its row id undefined.
        m.d.comb += [hits.r_addr.eq(fetched), self.o.payload.kind.eq(kind), self.o.payload.side.eq(own),
                     self.o.payload.r.eq(Mux(own == STREAM_S, stored, probe)),
                     self.o.payload.s.eq(Mux(own == STREAM_S, probe, stored))]
        m.d.sync += wait.eq(wait >> 1)

        expired = self._age(m, heads, visited, store, tail, own) if config.time_bits else None

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [issued.eq(0), compared.eq(0), listed.eq(0), fetched.eq(0), border.eq(settings.slice),
                             visited.eq(0), wait.eq(-1)]
                with m.If(self.i.valid), m.Switch(record.op):
                    with m.Case(Op.MASK):
                        with m.If(~record.body[0]):  # core 0, the only one
                            m.d.sync += masked.eq(record.stream)
                        m.d.comb += self.i.ready.eq(1)
                    with m.Case(Op.FLUSH):
                        m.next = "FLUSH"
                    with m.Default():
                        m.next = "SCAN" if expired is None else "EXPIRE"
                        if expired is None:
                            with m.If(record.op == Op.TICK):
                                m.d.comb += self.i.ready.eq(1)
                                m.next = "IDLE"
            if expired is not None:
                with m.State("EXPIRE"):
                    with m.If((of(lives, visited) == 0) | ~of(list(settings.timed), visited)
                              | (~wait[0] & ~expired)):
                        m.d.sync += [visited.eq(1), wait.eq(-1)]
                        with m.If(visited):
                            with m.If(record.op == Op.TICK):
                                m.d.comb += self.i.ready.eq(1)
                                m.next = "IDLE"
                            with m.Else():
                                m.next = "SCAN"
                    with m.Elif(~wait[0]):
                        m.d.sync += wait.eq(-1)
                        for n in range(2):
                            with m.If(visited == n):
                                m.d.sync += [heads[n].eq(heads[n] + 1), lives[n].eq(lives[n] - 1)]
            with m.State("SCAN"):
                m.d.comb += scanning.eq(1)
                m.d.sync += wait.eq(-1)
                with m.If(compared == of(lives, other)):
                    m.next = "ITEMS"
            with m.State("ITEMS"), m.If(~wait[0]):
                m.d.comb += [kind.eq(Mux(inner_star_due, ItemKind.STAR, ItemKind.PAIR)),
                             self.o.valid.eq(inner_star_due | at_hit)]
                with m.If(self.o.valid & self.o.ready):
                    with m.If(inner_star_due):
                        m.d.sync += border.eq(border + settings.slice)
                    with m.Else():
                        m.d.sync += [fetched.eq(fetched + 1), wait.eq(-1)]
                with m.If(~self.o.valid):
                    m.next = "COUNT"
            with m.State("COUNT"):
                m.next = "STORE"
                with m.If(settings.precision != 0):
                    for n in range(2):
                        with m.If(own == n):
                            m.d.sync += since_star[n].eq(since_star[n] + 1)
                    with m.If(of(since_star, own) + 1 == settings.precision):
                        m.next = "STAR"
            with m.State("STAR"):
                m.d.comb += [kind.eq(ItemKind.STAR), self.o.valid.eq(1)]
                with m.If(self.o.ready):
                    for n in range(2):
                        with m.If(own == n):
                            m.d.sync += since_star[n].eq(0)
                    m.next = "STORE"
            with m.State("STORE"):
                self._store(m, heads, lives, own, store)
            with m.State("FLUSH"):
                m.d.comb += [flushing.eq(1), kind.eq(ItemKind.STAR), self.o.valid.eq(of(since_star, visited) != 0)]
                with m.If(self.o.ready | ~self.o.valid):
                    for n in range(2):
                        with m.If(visited == n):
                            m.d.sync += since_star[n].eq(0)
                    m.d.sync += visited.eq(1)
                    with m.If(visited):
                        m.next = "END"
            with m.State("END"):
                m.d.comb += [kind.eq(ItemKind.END), self.o.valid.eq(1), self.i.ready.eq(self.o.ready)]
                with m.If(self.o.ready):
                    m.next = "IDLE"
        return m

    def _store(self, m: Module, heads: list[Signal], lives: list[Signal], own: Signal, store: Signal) -> None:
        """State STORE: the tuple is stored, or the input stops for good."""
        config, settings = self._config, self.settings
        live = Array(lives)[own]
        evicts = ~settings.unlimited.bit_select(own, 1) & (live == Array(settings.rows)[own])
        with m.If(evicts | (live != config.capacity)):
            m.d.comb += [store.eq(1), self.i.ready.eq(1)]
            for n in range(2):
                with m.If(own == n):
                    m.d.sync += self.tuples[n].eq(self.tuples[n] + 1)
                    with m.If(evicts):
                        m.d.sync += heads[n].eq(heads[n] + 1)
                    with m.Else():
                        m.d.sync += lives[n].eq(lives[n] + 1)
            m.next = "IDLE"
        with m.Else():
            m.d.sync += self.overflow.eq(Mux(own == STREAM_S, 2, 1))

    def _age(self, m: Module, heads: list[Signal], visited: Signal, store: Signal, tail: Value, own: Signal) -> Signal:
        """True if the oldest tuple of stream ``visited`` is too old for the record, from the end of ``wait`` on."""
        config, ts = self._config, self.i.payload.ts
        m.submodules.times = times = Ram(unsigned(config.time_bits), 2 * config.capacity)
        expired = Signal()
        m.d.comb += [
            # The time up to which the tuple stays.
            times.w_data.eq(ts + Array(self.settings.range)[own]), times.w_addr.eq(Cat(tail, own)),
            times.w_en.eq(store), times.r_addr.eq(Cat(Array(heads)[visited], visited)),
            expired.eq((times.r_data - ts)[config.time_bits - 1]),
        ]
        return expired

    def _datapath(self, m: Module, stored: Value, other: Signal) -> Value:
        """The outcome for the key ``stored``, of stream ``other``, of some cycles ago."""
        config, body = self._config, self.i.payload.body
        found: list[Value] = []
        for side in config.structure.datapaths(config):
            probe = other_side(side)
            matcher = Matcher(config, side, constant=True)
            m.submodules[f"matcher_{side}"] = matcher
            m.d.comb += [Cat(matcher.keys[0]).eq(stored[:config.keys(side).width]),
                         Cat(matcher.bounds).eq(taken(config.body(probe), config.bounds(probe), body))]
            found.append(matcher.match[0])
        return found[0] if len(found) == 1 else Mux(other == STREAM_S, found[1], found[0])
