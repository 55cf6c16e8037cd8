"""The contract of the AXI top, for circuit and driver: widths of its streams, and its AXI4-Lite address map."""

from __future__ import annotations

from dataclasses import dataclass

from .registers import REGISTERS
from .wire import Configuration, Record

__all__ = ["ADDRESS_BITS", "CONTROL_WORD", "IDLE_CYCLES", "OKAY", "PACKET_BEATS", "PACKET_BYTES", "RESET_CYCLES",
           "SLVERR", "AxiShape", "beat_bytes"]

#: Width of AXI4-Lite byte addresses: 64 words.
ADDRESS_BITS = 8
#: Word address of the register ``control``: writing 1 to bit 0 resets the join; it reads 0.
CONTROL_WORD = 2**(ADDRESS_BITS - 2) - 1
#: Cycles for which the join is held in reset after ``aresetn`` was low, or 1 was written to ``control``.
RESET_CYCLES = 4
#: Cycles that an item waits for the next one before it ends a packet.
IDLE_CYCLES = 32
#: Most beats and bytes of a packet: a DMA engine with length registers of 14 bits, Vivado's default, receives it.
PACKET_BEATS, PACKET_BYTES = 256, 2**13
#: AXI responses (AMBA AXI4 specification, table A3-4).
OKAY, SLVERR = 0, 2

assert REGISTERS[-1].address + REGISTERS[-1].bits // 32 <= CONTROL_WORD


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
