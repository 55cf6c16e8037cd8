"""The queue of records ahead of a region."""

from __future__ import annotations

from itertools import zip_longest

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import queued_body
from splitjoin.circuit.wire import Configuration, Op

from ..layouts import STREAM_R, STREAM_S, input_layout
from ..network.block_fifo import HalfRateFifo

__all__ = ["RecordQueue"]


class RecordQueue(wiring.Component):
    """A FIFO of ``config.queue`` records ahead of the region that stores stream ``side``, in block RAM.

    A region that scans for a burst of probes would otherwise hold back the other region of its core, which takes the
    same records. The queue holds stores and probes in their order, so nothing changes but the time of each operation.

    Only those fields of a record are queued that this region uses (`splitjoin.circuit.geometry.queued_body`): of a
    tuple that it stores the keys, of a probe the bounds. The other fields of ``o`` are undefined.
    """

    def __init__(self, config: Configuration, side: str):
        self._config, self._side = config, side
        super().__init__({"i": In(stream.Signature(input_layout(config))),
                          "o": Out(stream.Signature(input_layout(config)))})

    @property
    def config(self) -> Configuration:
        """The configuration that the circuit is built for."""
        return self._config

    def elaborate(self, platform) -> Module:
        m = Module()
        config, side = self._config, self._side
        shared, stored, probing = queued_body(config, side)
        head = [name for name, _ in config.input_record.fields if name != "body"]
        layout = data.StructLayout({**{name: input_layout(config)[name].shape for name in head},
                                    "body": len(shared) + max(len(stored), len(probing))})
        m.submodules.fifo = fifo = HalfRateFifo(layout, config.queue)
        record, into, kept, out = self.i.payload, fifo.i.payload, fifo.o.payload, self.o.payload
        body, probe = record.body, Signal()
        m.d.comb += probe.eq((record.op == Op.TUPLE) & (record.stream != (STREAM_R if side == "r" else STREAM_S)))
        # A bit that only stores use shares its place with one that only probes use.
        choice = [Mux(probe, body[b], body[a]) if a is not None and b is not None else body[a if b is None else b]
                  for a, b in zip_longest(stored, probing)]
        places = {n: at for bits in (stored, probing) for at, n in enumerate([*shared, *bits])}
        m.d.comb += [
            *(into[name].eq(record[name]) for name in head),
            into.body.eq(Cat(*(body[n] for n in shared), *choice)),
            fifo.i.valid.eq(self.i.valid), self.i.ready.eq(fifo.i.ready),
            *(out[name].eq(kept[name]) for name in head),
            *(out.body[n].eq(kept.body[at]) for n, at in sorted(places.items())),
            self.o.valid.eq(fifo.o.valid), fifo.o.ready.eq(self.o.ready),
        ]
        return m
