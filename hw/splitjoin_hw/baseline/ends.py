"""The ends of a chain through which streams pass from both sides: the windows, and the messages into the chain."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import ROW_BITS, Configuration, Op

from ..layouts import STREAM_R, input_layout, settings_layout, struct
from ..tech.ram import Ram


class CoreMessage(IntEnum):
    """The kind of a message from core to core."""

    #: A tuple of the stream that goes this way.
    TUPLE = 0
    #: The sender has received a block of the other stream, of ``number`` tuples (handshake join, section 4.3; in ESJ
    #: ACK_BLK).
    ACK = 1
    #: The oldest tuple of the other stream leaves its window.
    EXPIRE = 2
    #: Nothing follows.
    END = 3
    #: So many tuples of the other stream as ``number`` says have left the sender, modulo (ESJ, MP-2PF).
    SIZE_CHG = 4


def message_layout(config: Configuration, side: str, further: dict[str, int] | None = None) -> data.StructLayout:
    """A message on the way of stream ``side``."""
    return data.StructLayout({"kind": 3, "body": struct(config.body(side)), **(further or {})})


class Ends(wiring.Component):
    """Turns records into messages: R's at the left end of a chain, S's at the right end.

    It knows which tuples are in the windows, by count and by time. When a tuple leaves its window, EXPIRE enters where
    the *other* stream does, ahead of the first tuple that does not meet it any more. There it waits until its tuple has
    come (handshake join, section 4.2: tuples leave at the far end). So the cores need neither times nor windows.

    A FLUSH becomes END. With ``drains`` all tuples expire before, R's and then S's, so that all of them go to their far
    ends.

    Ports: ``i``: records. ``settings``: those of the device. ``r``, ``s``: messages.
    ``held``: for R and S, no further tuple has room in the cores, until an expired one has left them.
    ``overflow``, ``overflow_row``: for R and S; a tuple that found no room, after which nothing is accepted.
    """

    def __init__(self, config: Configuration, *, drains: bool):
        self._config, self._drains = config, drains
        super().__init__({
            "i": In(stream.Signature(input_layout(config))),
            "settings": In(settings_layout(config)),
            "r": Out(stream.Signature(message_layout(config, "r"))),
            "s": Out(stream.Signature(message_layout(config, "s"))),
            "held": In(2), "overflow": Out(2), "overflow_row": Out(ROW_BITS).array(2),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config, record = self._config, self.i.payload
        outs: list[Any] = [self.r, self.s]
        side = Signal()  # the stream whose window is checked: R, then S
        own, flushes = Signal(), Signal()  # the record is a tuple of this stream; it expires everything
        m.d.comb += [own.eq((record.op == Op.TUPLE) & (record.stream == side)), flushes.eq(record.op == Op.FLUSH)]
        live = [Signal(range(config.window_capacity + 1), name=f"live_{name}") for name in "rs"]
        rows = [Signal(ROW_BITS, name=f"row_{name}") for name in "rs"]  # tuples so far
        leaves, append = Signal(), Signal()
        over = Signal()  # the oldest tuple is no longer in its window
        windows = [self.settings.r, self.settings.s]
        expired = []
        for n in range(2):
            m.d.sync += live[n].eq(live[n] + (append & (side == n)) - (leaves & (side == n)))
            if not config.time_bits:
                expired.append(Signal(name=f"expired{n}"))
                continue
            m.submodules[f"times{n}"] = times = Ram(config.time_bits, 1 << (config.window_capacity - 1).bit_length())
            head, tail = (Signal(len(times.r_addr), name=f"{name}{n}") for name in ("head", "tail"))
            late = Signal(name=f"expired{n}")
            m.d.comb += [times.w_en.eq(append & (side == n)), times.w_addr.eq(tail), times.r_addr.eq(head),
                         times.w_data.eq(record.ts + windows[n].range)]
            m.d.sync += [late.eq((times.r_data - record.ts)[config.time_bits - 1] & windows[n].timed
                                 & (record.op != Op.FLUSH)),
                         tail.eq(tail + (append & (side == n))), head.eq(head + (leaves & (side == n)))]
            expired.append(late)
        some, full, drains = (Signal(name=name) for name in ("some", "full", "drains"))
        m.d.comb += [
            drains.eq(flushes & self._drains),
            some.eq(Array(count != 0 for count in live)[side]),
            full.eq(Array(count == config.window_capacity for count in live)[side]),
            over.eq(some & (drains | Array(expired)[side] | (own & Array(
                count == window.rows for count, window in zip(live, windows, strict=True))[side]))),
        ]
        kind, to = Signal(CoreMessage), Signal()
        valid, ready = Signal(), Signal()
        m.d.comb += ready.eq(Array(out.ready for out in outs)[to])
        for n, (out, name) in enumerate(zip(outs, "rs", strict=True)):
            m.d.comb += [out.valid.eq(valid & (to == n)), out.payload.kind.eq(kind),
                         Value.cast(out.payload.body).eq(record.body[:config.body(name).width])]
        ages = Ram.latency + 1 if config.time_bits else 0
        wait = Signal(range(Ram.latency + 3))  # cycles until the ages of both oldest tuples are known
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [side.eq(STREAM_R), wait.eq(ages)]
                with m.If(self.i.valid):
                    m.next = "AGE"
            with m.State("AGE"):
                m.d.sync += wait.eq(wait - (wait != 0))
                with m.If(wait == 0):
                    m.next = "NEXT"
                    with m.If(over):
                        m.d.sync += wait.eq(ages)
                        m.next = "EXPIRE"
            with m.State("EXPIRE"):
                m.d.comb += [valid.eq(1), kind.eq(CoreMessage.EXPIRE), to.eq(~side)]
                with m.If(ready):
                    m.d.comb += leaves.eq(1)
                    m.next = "AGE"
            with m.State("NEXT"):
                m.d.sync += side.eq(~side)
                m.next = "AGE"
                with m.If(side):
                    m.d.sync += side.eq(Mux(flushes, STREAM_R, record.stream))
                    m.next = "SEND"
            with m.State("SEND"):
                tuple_ = record.op == Op.TUPLE
                m.d.comb += [to.eq(side), kind.eq(Mux(flushes, CoreMessage.END, CoreMessage.TUPLE)),
                             valid.eq(flushes | (tuple_ & ~full & ~self.held.bit_select(side, 1)))]
                with m.If(tuple_ & full):
                    m.d.sync += Value.cast(self.overflow).bit_select(side, 1).eq(1)
                with m.If(flushes & ready & ~side):
                    m.d.sync += side.eq(1)
                with m.Elif((valid & ready) | ~(tuple_ | flushes)):
                    m.d.comb += [append.eq(tuple_), self.i.ready.eq(1)]
                    m.next = "IDLE"
        for n, count in enumerate(rows):
            m.d.sync += count.eq(count + (append & (side == n)))
            m.d.comb += self.overflow_row[n].eq(count)
        return m
