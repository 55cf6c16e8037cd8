"""Machine code out of an object file, such that it runs wherever its bytes lie (System V ABI, AMD64 supplement: ELF64
object files, section 4.4 for relocations).

Code that refers only to itself, relative to its own place, needs no linker when it is loaded: the references are
settled here, once. Anything else, such as a call of a library or a variable, is refused.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["NotAlone", "self_contained"]

#: What of a section is taken into memory, and what is written to or holds code of exceptions, which we have none of.
_IN_MEMORY, _WRITABLE = 0x2, 0x1
_BITS, _SYMBOLS, _RELOCATIONS, _NO_BITS = 1, 2, 4, 8
#: Relocations by the difference of two places, of 32 bits: R_X86_64_PC32 and R_X86_64_PLT32.
_RELATIVE = (2, 4)
_MACHINE = 62


class NotAlone(Exception):
    """The code refers to something outside it."""


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


def self_contained(data: bytes, entry: str) -> tuple[bytes, int]:
    """The code and constants of the object file ``data``, and where in them the function ``entry`` begins.

    The bytes may lie at any address that is a multiple of 64. Raises `NotAlone`.
    """
    if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != _MACHINE:
        raise NotAlone("the code must be in an object file for x86-64 in ELF")
    sections = _sections(data)
    code, places = bytearray(), dict[int, int]()
    for number, of in enumerate(sections):
        if not of.flags & _IN_MEMORY or not of.size or of.name == ".eh_frame":
            continue
        if of.flags & _WRITABLE or of.kind == _NO_BITS or of.alignment > 64:
            raise NotAlone(f"section {of.name} must be of constants")
        code += bytes(-len(code) % max(of.alignment, 1))
        places[number] = len(code)
        code += data[of.offset:of.offset + of.size]
    (symbols,) = (of for of in sections if of.kind == _SYMBOLS)
    named = [struct.unpack_from("<IBBHQQ", data, at)
             for at in range(symbols.offset, symbols.offset + symbols.size, 24)]
    text = sections[symbols.link]

    def place(symbol: int) -> int:
        at, _, _, section, value, _ = named[symbol]
        if section not in places:
            raise NotAlone(f"{_text(data, text.offset + at)!r} is not in the code")
        return places[section] + int(value)

    for of in sections:
        if of.kind != _RELOCATIONS or of.info not in places:
            continue
        for at in range(of.offset, of.offset + of.size, 24):
            where, info, addend = struct.unpack_from("<QQq", data, at)
            if info & 0xFFFFFFFF not in _RELATIVE:
                raise NotAlone(f"a reference of kind {info & 0xFFFFFFFF} depends on the address")
            where += places[of.info]
            struct.pack_into("<i", code, where, place(info >> 32) + addend - where)
    return bytes(code), next(place(n) for n, of in enumerate(named) if _text(data, text.offset + of[0]) == entry)


def _sections(data: bytes) -> list[_Section]:
    first, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    raw = [struct.unpack_from("<IIQQQQIIQQ", data, first + n * size) for n in range(count)]
    begin = raw[names][4]
    return [_Section(_text(data, begin + name), kind, flags, offset, length, link, info, alignment)
            for name, kind, flags, _, offset, length, link, info, alignment, _ in raw]


def _text(data: bytes, at: int) -> str:
    return data[at:data.index(0, at)].decode()
