"""An AXI4-Lite slave in front of the register bus."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.axi import ADDRESS_BITS, CONTROL_WORD, MEMORY_ADDRESS_BITS, MEMORY_WORD, OKAY, SLVERR
from splitjoin.circuit.registers import REGISTERS

#: Cycles from an address on the register bus to its word, and one in which the slave registers it.
_READ_CYCLES = 4


def axil_ports(address_bits: int) -> dict[str, wiring.Member]:
    """The ports of an AXI4-Lite slave with a data bus of 32 bits, without their prefix."""
    def channel(name: str, *fields: tuple[str, int], reply: bool = False) -> dict[str, wiring.Member]:
        send, accept = (Out, In) if reply else (In, Out)
        return {**{f"{name}{field}": send(width) for field, width in fields}, f"{name}valid": send(1),
                f"{name}ready": accept(1)}

    return {**channel("aw", ("addr", address_bits), ("prot", 3)), **channel("w", ("data", 32), ("strb", 4)),
            **channel("b", ("resp", 2), reply=True), **channel("ar", ("addr", address_bits), ("prot", 3)),
            **channel("r", ("data", 32), ("resp", 2), reply=True)}


class AxiLiteSlave(wiring.Component):
    """Executes AXI4-Lite reads and writes on the register bus, one at a time, reads and writes in turn.

    Ports: those of `axil_ports`; the register bus (``addr``, ``w_stb``, ``w_data``, ``r_data``) with word addresses of
    ``bus_bits`` bits; ``restart``, high for a cycle when 1 is written to bit 0 of the register ``control``, which reads
    0; ``hold``: nothing is executed while it is high. With ``base_bits``, which is not None, the register
    ``memory_base`` exists: ``base``, whose ``base_bits`` low bits are 0; ``based``: its low word has been written.

    The low two address bits are ignored, and so are ``awprot`` and ``arprot``. Byte strobes hold: a write of some bytes
    reads the word first and keeps the others; it latches the high word of a 64-bit register as a read does. Responses:
    OKAY, or SLVERR for an address without a register (a read then gives 0) and for a write to a register that can only
    be read, which changes nothing. DECERR is left to interconnects. Each channel's ``valid`` and answer stay until they
    are taken, and ``awready``, ``wready`` and ``arready`` are registers: no path leads from an input to an output.
    """

    def __init__(self, bus_bits: int, base_bits: int | None = None):
        self._bus_bits, self._base_bits = bus_bits, base_bits
        memory = {} if base_bits is None else {"base": Out(MEMORY_ADDRESS_BITS), "based": Out(1)}
        super().__init__({
            **axil_ports(ADDRESS_BITS),
            "addr": Out(bus_bits), "w_stb": Out(1), "w_data": Out(32), "r_data": In(32),
            "restart": Out(1), "hold": In(1), **memory,
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        has_address, has_data, has_read = Signal(), Signal(), Signal()  # what has been accepted, and not executed yet
        write_word, read_word = Signal(ADDRESS_BITS - 2), Signal(ADDRESS_BITS - 2)
        data, strobes = Signal(32), Signal(4)
        m.d.comb += [self.awready.eq(~has_address), self.wready.eq(~has_data), self.arready.eq(~has_read)]
        with m.If(self.awvalid & self.awready):
            m.d.sync += [has_address.eq(1), write_word.eq(self.awaddr[2:])]
        with m.If(self.wvalid & self.wready):
            m.d.sync += [has_data.eq(1), data.eq(self.wdata), strobes.eq(self.wstrb)]
        with m.If(self.arvalid & self.arready):
            m.d.sync += [has_read.eq(1), read_word.eq(self.araddr[2:])]
        with m.If(self.bvalid & self.bready):
            m.d.sync += self.bvalid.eq(0)
        with m.If(self.rvalid & self.rready):
            m.d.sync += self.rvalid.eq(0)

        words = {reg.address + n: reg for reg in REGISTERS for n in range(reg.bits // 32)}
        readable, writable = Signal(), Signal()
        m.d.comb += [readable.eq(_among(read_word, words)),
                     writable.eq(_among(write_word, (at for at, reg in words.items() if reg.access == "rw")))]
        # The low word of a 64-bit register: reading it makes the high word readable.
        low_word = Array(Const((words[at].address if at in words else 0), self._bus_bits)
                         for at in range(2**(ADDRESS_BITS - 2)))
        merged = [Mux(strobes[n], data[8 * n:8 * n + 8], self.r_data[8 * n:8 * n + 8]) for n in range(4)]
        wait = Signal(range(_READ_CYCLES))
        prefer_write = Signal()
        write, read = Signal(), Signal()
        m.d.comb += [write.eq(has_address & has_data & (~self.bvalid | self.bready) & ~self.hold),
                     read.eq(has_read & (~self.rvalid | self.rready) & ~self.hold)]
        m.d.sync += self.w_stb.eq(0)
        m.d.sync += self.restart.eq(0)

        def respond(response) -> list:
            return [self.bvalid.eq(1), self.bresp.eq(response), has_address.eq(0), has_data.eq(0)]

        own = read_word == CONTROL_WORD  # registers of this module, which is not the join's
        own_data: Value = Const(0)
        if self._base_bits is not None:
            base, is_base = Signal(MEMORY_ADDRESS_BITS), read_word[1:] == MEMORY_WORD >> 1
            m.d.comb += self.base.eq(Cat(Const(0, self._base_bits), base[self._base_bits:]))
            own |= is_base
            own_data = Mux(is_base, self.base.word_select(read_word[0], 32), 0)

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += wait.eq(0)
                with m.If(write & (prefer_write | ~read)):
                    m.d.sync += prefer_write.eq(0)
                    m.next = "WRITE"
                with m.Elif(read):
                    m.d.sync += [prefer_write.eq(1), self.addr.eq(read_word)]
                    m.next = "READ"
            with m.State("READ"):
                m.d.sync += wait.eq(wait + 1)
                with m.If(wait == _READ_CYCLES - 1):
                    m.d.sync += [
                        self.rvalid.eq(1), has_read.eq(0), self.rresp.eq(Mux(readable | own, OKAY, SLVERR)),
                        self.rdata.eq(Mux(readable, self.r_data, own_data))]
                    m.next = "IDLE"
            with m.State("WRITE"):
                with m.If(write_word == CONTROL_WORD):
                    m.d.sync += [*respond(OKAY), self.restart.eq(strobes[0] & data[0])]
                    m.next = "IDLE"
                if self._base_bits is not None:
                    with m.Elif(write_word[1:] == MEMORY_WORD >> 1):
                        m.d.sync += [*respond(OKAY), self.based.eq(self.based | (~write_word[0] & strobes.any()))]
                        for n, enabled in enumerate(strobes):
                            with m.If(enabled):
                                m.d.sync += base.word_select(write_word[0], 32)[8 * n:8 * n + 8].eq(
                                    data[8 * n:8 * n + 8])
                        m.next = "IDLE"
                with m.Elif(~writable):
                    m.d.sync += respond(SLVERR)
                    m.next = "IDLE"
                with m.Elif((strobes == 0) | strobes.all()):
                    m.d.sync += [*respond(OKAY), self.addr.eq(write_word), self.w_data.eq(data),
                                 self.w_stb.eq(strobes != 0)]
                    m.next = "IDLE"
                with m.Else():
                    m.d.sync += self.addr.eq(low_word[write_word])
                    m.next = "LATCH"
            with m.State("LATCH"):
                m.d.sync += wait.eq(wait + 1)
                with m.If(wait == _READ_CYCLES - 1):
                    m.d.sync += [self.addr.eq(write_word), wait.eq(0)]
                    m.next = "MERGE"
            with m.State("MERGE"):
                m.d.sync += wait.eq(wait + 1)
                with m.If(wait == _READ_CYCLES - 1):
                    m.d.sync += [*respond(OKAY), self.w_stb.eq(1),
                                 *(self.w_data[8 * n:8 * n + 8].eq(byte) for n, byte in enumerate(merged))]
                    m.next = "IDLE"
        return m


def _among(word: Signal, values):
    return word.matches(*sorted(values))
