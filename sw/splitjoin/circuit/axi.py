"""The contract of the AXI top, for circuit and driver: widths of its streams, its AXI4-Lite address map, and the memory
of circuits with windows outside.
"""

from __future__ import annotations

from dataclasses import dataclass

from .memory import byte_bits, id_bits, line_bits, lines
from .registers import REGISTERS
from .wire import Configuration, Record

#: Width of AXI4-Lite byte addresses: 64 words.
ADDRESS_BITS = 8
#: Word address of the register ``control``: writing 1 to bit 0 resets the join; it reads 0.
CONTROL_WORD = 2**(ADDRESS_BITS - 2) - 1
#: Word address of ``memory_base``, of 64 bits, which circuits with external memory have: where it begins. Both of its
#: words read what they will use: the bits below the memory's size are 0.
MEMORY_WORD = CONTROL_WORD - 3
#: Width of the AXI4 master's addresses.
MEMORY_ADDRESS_BITS = 64
#: Cycles for which the join is held in reset after ``aresetn`` was low, or 1 was written to ``control``.
RESET_CYCLES = 4
#: Cycles that an item waits for the next one before it ends a packet.
IDLE_CYCLES = 32
#: Most beats and bytes of a packet: a DMA engine with length registers of 14 bits, Vivado's default, receives it.
PACKET_BEATS, PACKET_BYTES = 256, 2**13
#: AXI responses (AMBA AXI4 specification, table A3-4).
OKAY, SLVERR = 0, 2

assert REGISTERS[-1].address + REGISTERS[-1].bits // 32 <= MEMORY_WORD


def beat_bytes(record: Record) -> int:
    """Bytes of a beat that carries one ``record``: a power of two from 16 on.

    Width converters and DMA engines take powers of two only; 16 holds the smallest padded record.
    """
    return max(16, 1 << (-(-record.width // 8) - 1).bit_length())


@dataclass(frozen=True)
class AxiShape:
    """Bytes of the beats of both streams: ``record_bytes`` into the circuit, ``item_bytes`` out of it."""

    record_bytes: int
    item_bytes: int

    @classmethod
    def of(cls, config: Configuration) -> AxiShape:
        """The shape of the circuit for ``config``."""
        return cls(beat_bytes(config.input_record), beat_bytes(config.output_record))

    @property
    def packet_beats(self) -> int:
        """Most beats of a packet of this circuit: fewer than `PACKET_BEATS` where beats are wide."""
        return min(PACKET_BEATS, PACKET_BYTES // self.item_bytes)


def described_memory(config: Configuration) -> dict[str, int]:
    """The external memory of ``config`` as plain data: its size and alignment in bytes, and widths of the master."""
    return {"bytes": lines(config) * line_bits(config) // 8, "alignment": 2**byte_bits(config),
            "data_bits": line_bits(config),
            "address_bits": MEMORY_ADDRESS_BITS, "id_bits": id_bits(config), "base_byte_address": 4 * MEMORY_WORD}
