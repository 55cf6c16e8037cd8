"""The whole circuit of a board: UART or FIFO chip, link endpoint and join, in one clock domain."""

from __future__ import annotations

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module, ResetInserter, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import Configuration
from splitjoin.link.frames import FIFO_RING, FIFO_SLOTS, RING, SLOTS

from ..circuit import circuit
from ..memory.sdram import SdramController
from ..parts import Submodules
from .endpoint import LinkEndpoint
from .ft232h import Ft232hFifo, Ft232hSignature
from .packing import ItemPacker, RecordUnpacker
from .registers import bus_ports
from .uart import UartReceiver, UartTransmitter, bit_step


class LinkedJoin(wiring.Component):
    """The join of ``config`` behind the link on the pins ``rx`` and ``tx`` of a UART, or ``ft232h`` of a FIFO chip.

    ``clock_hz`` is the frequency of domain ``sync`` and ``baud`` the serial rate, both in Hz, with 4 to 1024 cycles a
    bit (else `ValueError`). Without ``baud`` the link has the FIFO's pins, in domain ``fifo``. ``pack``: items are
    packed on the link. ``parts``: as of `splitjoin_hw.top.Top`. ``sdram``: the controller of memory ``sdram``, which
    then has its pins at the port ``sdram``; else None.
    """

    def __init__(self, config: Configuration, *, clock_hz: int, baud: int | None, pack: bool = False,
                 parts: Submodules | None = None, sdram: SdramController | None = None):
        if baud is not None:
            bit_step(clock_hz, baud)  # before any component is made, which Amaranth would report as unused
        if config.memory != ("bram" if sdram is None else "sdram"):
            raise ValueError(f"memory must be 'sdram' with a controller of SDRAM, and 'bram' without one, not "
                             f"{config.memory!r} {'without' if sdram is None else 'with'} one")
        self.config, self._parts, self._sdram = config, parts, sdram
        self._uart = None if baud is None else (UartReceiver(clock_hz, baud), UartTransmitter(clock_hz, baud))
        record_bytes, item_bytes = (-(-record.width // 8) for record in (config.input_record, config.item_record))
        packer = ItemPacker(config.item_record, whole_stars=bool(config.folds)) if pack else None
        self._endpoint = LinkEndpoint(record_bytes, item_bytes, len(bus_ports()["addr"].shape), abi=config.abi_hash,
                                      packer=packer, wide=baud is None, ring=FIFO_RING if baud is None else RING,
                                      slots=FIFO_SLOTS if baud is None else SLOTS)
        super().__init__({**({"rx": In(1, init=1), "tx": Out(1, init=1)} if baud is not None else
                             {"ft232h": Out(Ft232hSignature())}),
                          **({} if sdram is None else {"sdram": Out(sdram.pins.signature)})})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.endpoint = endpoint = self._endpoint
        join = circuit(self.config, self._parts)
        reset = endpoint.reset
        if self._sdram is not None:
            reset = self._connect_memory(m, join, self._sdram, endpoint.reset)
        if self._parts is None:
            m.submodules.join = ResetInserter(reset)(join)
        else:
            # Instances take their domain's reset, which ResetInserter leaves alone. The join gets a domain of its own,
            # on the same clock. (Amaranth's simulator would see that clock late, so the other way has none.)
            m.domains.join = domain = ClockDomain("join", local=True)
            m.d.comb += [domain.clk.eq(ClockSignal()), domain.rst.eq(ResetSignal() | reset)]
            m.submodules.join = DomainRenamer("join")(join)
        items = join.o
        if self.config.root_width > 1:
            # Held in reset with the join, so that a record is never left half sent.
            m.submodules.unpacker = unpacker = ResetInserter(endpoint.reset)(RecordUnpacker(self.config))
            m.d.comb += [unpacker.i.payload.eq(join.o.payload), unpacker.i.valid.eq(join.o.valid),
                         join.o.ready.eq(unpacker.i.ready)]
            items = unpacker.o
        if self._uart is None:
            m.submodules.fifo = receiver = transmitter = Ft232hFifo()
            wiring.connect(m, receiver.pins, wiring.flipped(self.ft232h))
            m.d.comb += receiver.stall.eq(reset)  # a frame may be over sooner than that
        else:
            m.submodules.receiver, m.submodules.transmitter = receiver, transmitter = self._uart
            m.d.comb += [receiver.rx.eq(self.rx), self.tx.eq(transmitter.tx)]
        wiring.connect(m, endpoint.o, transmitter.i)
        m.d.comb += [
            endpoint.data.eq(receiver.data), endpoint.stb.eq(receiver.stb),
            join.i.payload.eq(endpoint.records.payload), join.i.valid.eq(endpoint.records.valid),
            endpoint.records.ready.eq(join.i.ready),
            endpoint.items.payload.eq(items.payload), endpoint.items.valid.eq(items.valid),
            items.ready.eq(endpoint.items.ready),
            join.addr.eq(endpoint.addr), join.w_stb.eq(endpoint.w_stb), join.w_data.eq(endpoint.w_data),
            endpoint.r_data.eq(join.r_data),
        ]
        return m

    def _connect_memory(self, m: Module, join, controller: SdramController, reset: Signal) -> Signal:
        """Connects ``join`` with the SDRAM, and returns its reset: from ``reset`` on until nothing is under way, so
        that it takes no answer to what was asked before. That is over before the next frame can have come.
        """
        m.submodules.controller = controller
        wiring.connect(m, join.m, controller.bus)
        wiring.connect(m, controller.pins, wiring.flipped(self.sdram))
        held = Signal()
        m.d.sync += held.eq(reset | (held & ~controller.idle))
        return reset | held
