"""The registers as 32-bit words at byte addresses, as AXI4-Lite has them; and as SystemRDL."""

from __future__ import annotations

from dataclasses import dataclass

from ..axi import CONTROL_WORD
from ..registers import REGISTERS, Field
from ..wire import WORD_BITS, Configuration

__all__ = ["Word", "register_words", "system_rdl"]


@dataclass(frozen=True)
class Word:
    """A word of 32 bits.

    Attributes:
        name: That of the register; of a register of 64 bits with ``_lo`` or ``_hi``.
        address: The byte address.
        access: "r", "rw", or "w" for a word that reads 0.
        constant: True if it reads its reset value for ever.
        reset: Its value after a reset and after power-up; None if it counts on at once.
        fields: At least one, from bit 0 on; the bits of no field read 0.
    """

    name: str
    address: int
    access: str
    description: str
    constant: bool
    reset: int | None
    fields: tuple[Field, ...]


def register_words(config: Configuration) -> list[Word]:
    """The words of the circuit of ``config``, by ascending addresses."""
    words: list[Word] = []
    for reg in REGISTERS:
        reset = config.reset_value(reg)
        text = f"{reg.description} (unit: {reg.unit})" if reg.unit else reg.description
        zero = config.always_zero(reg)
        if zero:
            text += "; this circuit is built without, so it reads 0"
        for n in range(reg.bits // WORD_BITS):
            half, which = "", ""
            if reg.bits > WORD_BITS:
                half, which = (("_lo", " (low word; reading it latches the high word)"), ("_hi", " (high word)"))[n]
            words.append(Word(
                f"{reg.name}{half}", 4 * (reg.address + n), reg.access, f"{text}{which}",
                zero or reg.name in ("id", "abi"), None if reset is None else reset >> WORD_BITS * n & 2**WORD_BITS - 1,
                reg.fields or (Field("value", 0, WORD_BITS, ""),)))
    # A field called "reset" would hide a method of UVM's registers.
    words.append(Word("control", 4 * CONTROL_WORD, "w", "writing 1 to bit 0 resets the join; it reads 0", False, 0,
                      (Field("restart", 0, 1, "writing 1 resets the join"),)))
    return words


def system_rdl(top: str, config: Configuration) -> str:
    """The registers of the circuit of ``config``, whose top module is ``top``, in SystemRDL 2.0."""
    words = register_words(config)
    lines = [f"addrmap {top} {{", "    default regwidth = 32;", "    default accesswidth = 32;",
             "    addressing = compact;", "    littleendian;", ""]
    for word in words:
        for field in word.fields:
            if field.values:
                lines += [f"    enum {word.name}_{field.name}_e {{",
                          *(f"        {name} = {number};" for name, number in field.values), "    };"]
    for word in words:
        hardware = "na" if word.constant else "w" if word.access == "r" else "r"
        lines.append(f"    reg {{ desc = {_rdl(word.description)};")
        for field in word.fields:
            says = [f"sw = {word.access}", f"hw = {hardware}"]
            says += ["singlepulse"] if word.access == "w" else []
            says += [f"encode = {word.name}_{field.name}_e"] if field.values else []
            says += [f"desc = {_rdl(field.description)}"] if len(word.fields) > 1 else []
            lines.append(f"        field {{ {'; '.join(says)}; }} {field.name}[{field.low + field.bits - 1}:"
                         f"{field.low}]{_reset(word, field)};")
        lines.append(f"    }} {word.name} @ 0x{word.address:02X};")
    return "\n".join([*lines, "};", ""])


def _reset(word: Word, field: Field) -> str:
    return "" if word.reset is None else f" = 0x{word.reset >> field.low & (1 << field.bits) - 1:X}"


def _rdl(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
