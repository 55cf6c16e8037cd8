# amaranth: UnusedElaboratable=no
"""The circuit's endpoint behind UART pins, driven by the host's transport: each record comes back as an item."""

import numpy as np
import pytest
from amaranth.hdl import Module, ResetInserter
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.engines.registry import device
from splitjoin.link.transport import LinkTransport
from splitjoin_hw.link.buffers import RecordRing, ReplySlots
from splitjoin_hw.link.endpoint import LinkEndpoint
from splitjoin_hw.link.ft232h import Ft232hFifo, Ft232hSignature
from splitjoin_hw.link.packing import ItemPacker
from splitjoin_hw.link.sequencer import Sequencer
from splitjoin_hw.link.uart import UartReceiver, UartTransmitter
from splitjoin_hw.network.queue import Queue
from tests.support.linked import BIT, PinChannel, small_join
from tests.support.packed_items import item_words
from tests.support.sampling import at_length

CONFIG = device("pysim", cores=1, capacity=16).configuration(small_join(1, 0)[0])
BYTES = -(-CONFIG.input_record.width // 8)
ITEM = 9


class Echo(wiring.Component):
    """An endpoint whose items are its records, and whose register at address 2 holds what was written there last."""

    def __init__(self, pack=False, fifo=False, **sizes):
        self._sizes, self._pack, self._fifo = sizes, pack, fifo
        super().__init__({"ft232h": Out(Ft232hSignature())} if fifo else {"rx": In(1, init=1), "tx": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        if self._fifo:
            m.submodules.fifo = receiver = transmitter = Ft232hFifo()
            wiring.connect(m, receiver.pins, wiring.flipped(self.ft232h))
        else:
            m.submodules.receiver = receiver = UartReceiver(BIT, 1)
            m.submodules.transmitter = transmitter = UartTransmitter(BIT, 1)
            m.d.comb += [receiver.rx.eq(self.rx), self.tx.eq(transmitter.tx)]
        m.submodules.endpoint = endpoint = LinkEndpoint(
            BYTES, ITEM, 6, abi=CONFIG.abi_hash, packer=ItemPacker(CONFIG.item_record) if self._pack else None,
            wide=self._fifo, **self._sizes)
        queue = Queue(8 * BYTES, 4)
        m.submodules.queue = ResetInserter(endpoint.reset)(queue)
        wiring.connect(m, endpoint.o, transmitter.i)
        with m.If(endpoint.w_stb & (endpoint.addr == 2)):
            m.d.sync += endpoint.r_data.eq(endpoint.w_data)
        m.d.comb += [
            endpoint.data.eq(receiver.data), endpoint.stb.eq(receiver.stb),
            queue.i.payload.eq(endpoint.records.payload), queue.i.valid.eq(endpoint.records.valid),
            endpoint.records.ready.eq(queue.i.ready),
            endpoint.items.payload.eq(queue.o.payload), endpoint.items.valid.eq(queue.o.valid),
            queue.o.ready.eq(endpoint.items.ready),
        ]
        return m


@pytest.mark.parametrize(("share", "seed", "sizes"), [
    at_length(0.0, 0, {}), (0.01, 1, {"ring": 64, "slots": 2, "slot_bytes": 32}),
    (0.0, 0, {"pack": True}), at_length(0.01, 1, {"ring": 64, "slots": 2, "slot_bytes": 32, "pack": True}),
    *(at_length(0.01, seed, {"ring": 256, "slots": 4, "slot_bytes": 64}) for seed in range(2, 8)),
])
def test_records_come_back_once_and_in_order(share, seed, sizes):
    channel = PinChannel(Echo(**sizes), share=share, seed=seed)
    # A session of another number has other bytes and so other faults; this number needs the most stuffing.
    transport = LinkTransport(lambda: channel, CONFIG, clock=channel.now, sleep=channel.sleep,
                              byte_seconds=10 * BIT * 1e-6, session=0xC0DBC0DB)
    transport.write(2, 0xC0DBC0DB + seed)
    sent = np.zeros((12, CONFIG.input_record.words), np.uint32)
    sent[:, 0] = np.arange(12) * 0xDBC0 & 0xFFFC
    end = np.full((1, sent.shape[1]), 2, np.uint32)
    items = np.concatenate([transport.transfer(sent, until_end=False), transport.transfer(end, until_end=True)])
    words = item_words(CONFIG.item_record, items)
    assert [int(n) for n in words[:-1, 0]] == [int(n) for n in sent[:, 0]]
    assert transport.read(2) == 0xC0DBC0DB + seed
    assert (transport.retransmissions > 0) == (share > 0)
    # A second session begins anew.
    again = LinkTransport(lambda: channel, CONFIG, clock=channel.now, sleep=channel.sleep, session=2)
    assert len(again.transfer(end, until_end=True)) == 1


def test_wrong_sizes():
    with pytest.raises(ValueError, match=r"^The ring must have a power of two of bytes from 8 to 32768, 4 more than"):
        RecordRing(5, 100)
    with pytest.raises(ValueError, match=r"^The ring must have .* record of 300 bytes \(at most 255\), not 2048$"):
        RecordRing(300, 2048)
    with pytest.raises(ValueError, match=r"^Slots must have a power of two of bytes up to 128, .*not 4 of 256 bytes"):
        ReplySlots(9, 4, 256)
    with pytest.raises(ValueError, match=r"^Slots must be an integer from 1 to 64, not 128"):
        Sequencer(128)
