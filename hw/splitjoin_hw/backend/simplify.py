"""Simplification of a module's definitions: operators and choices whose value is known before the circuit runs.

Amaranth writes out the guard of every division and the enable of every read port, also where they are constants. The
Verilog is for people to read, so it has no `if (1'b1)` and no `% 3'd4`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from .definitions import Combined, Definition, FlipFlops, OperatorResult, ProcessValue, Read, postorder, wires_of
from .rtlil import Assign, Chunk, Signal, Statement, Switch, SwitchCase, constant, merged, resized, sliced, width_of

_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    "$eq": int.__eq__, "$ne": int.__ne__, "$lt": int.__lt__, "$le": int.__le__, "$gt": int.__gt__, "$ge": int.__ge__}
_COMPUTED: Mapping[str, Callable[[int, int], int]] = {
    "$add": int.__add__, "$sub": int.__sub__, "$mul": int.__mul__, "$and": int.__and__, "$or": int.__or__,
    "$xor": int.__xor__, "$shl": int.__lshift__, "$shr": int.__rshift__, "$shift": int.__rshift__,
    "$sshr": int.__rshift__, "$divfloor": lambda a, b: a // b if b else 0, "$modfloor": lambda a, b: a % b if b else 0}
_COPIED = ("$reduce_and", "$reduce_or", "$reduce_xor", "$reduce_bool")


class Simplifier:
    """Simplifies ``definitions``, by wire; ``widths``: bits of each wire. Wires that are ``named`` or ``outputs`` stay
    wires, but those that read a constant wire read the constant.

    Attributes:
        definitions: The simplified definitions, of all wires.
    """

    def __init__(self, definitions: Mapping[str, Definition], widths: Mapping[str, int], named: Collection[str],
                 outputs: Collection[str]):
        self.definitions = dict(definitions)
        self._widths, self._named, self._outputs = widths, named, outputs
        self._replaced: dict[str, Signal] = {}
        # A register that reads itself is simplified by what is known before.
        for wire in postorder(definitions, lambda wire: wires_of(definitions[wire]) if wire in definitions else []):
            self._simplify(wire)

    def signal(self, signal: Signal) -> Signal:
        """``signal`` by the wires that remain."""
        if not any(chunk.wire in self._replaced for chunk in signal):
            return signal
        out: list[Chunk] = []
        for chunk in signal:
            value = self._replaced.get(chunk.wire or "")
            out += [chunk] if value is None else sliced(value, chunk.low, chunk.width)
        return merged(out)

    def _simplify(self, wire: str) -> None:
        definition = self.definitions.get(wire)
        if definition is None:
            return
        new = self.definitions[wire] = self._definition(definition, self._widths[wire])
        if isinstance(new, Combined) and wire not in self._outputs and (
                _number(new.value) is not None
                or (len(new.value) <= 2 and wire not in self._named and not isinstance(definition, Combined))):
            self._replaced[wire] = new.value

    def _definition(self, definition: Definition, width: int) -> Definition:
        if isinstance(definition, Combined):
            return Combined(self.signal(definition.value))
        if isinstance(definition, OperatorResult):
            operands = tuple(map(self.signal, definition.operands))
            value = _known(definition.kind, operands, definition.signed)
            return OperatorResult(definition.kind, operands, definition.signed) if value is None else Combined(value)
        if isinstance(definition, ProcessValue):
            body = self._statements(definition.body)
            last = body[-1]
            if isinstance(last, Assign) and last.target[0].width == width:
                return Combined(last.value)
            return ProcessValue(body)
        if isinstance(definition, FlipFlops):
            return FlipFlops(self.signal(definition.clock), definition.process, self._statements(definition.body))
        if isinstance(definition, Read):
            clock = None if definition.clock is None else self.signal(definition.clock)
            return Read(definition.memory, self.signal(definition.address), clock, self.signal(definition.enable))
        return definition  # the output of an instance

    def _statements(self, body: list[Statement]) -> list[Statement]:
        out: list[Statement] = []
        for statement in body:
            if isinstance(statement, Assign):
                out.append(Assign(statement.target, self.signal(statement.value)))
                continue
            select = self.signal(statement.select)
            cases = [SwitchCase(case.patterns, self._statements(case.body)) for case in statement.cases]
            bits = _bits(select)
            if bits is not None:
                out += next((case.body for case in cases if _matches(case.patterns, bits)), [])
                continue
            out.append(_trimmed(Switch(select, cases)))
        return out


def _trimmed(switch: Switch) -> Switch:
    """``switch`` without the highest bits of what it selects by, where these are zeros."""
    *low, top = switch.select
    zeros = len(top.bits) - len(top.bits.lstrip("0"))
    if top.wire is not None or not low or not zeros:
        return switch
    cases = []
    for case in switch.cases:
        patterns = tuple(pattern[zeros:] for pattern in case.patterns if "1" not in pattern[:zeros])
        if patterns or not case.patterns:
            cases.append(SwitchCase(patterns, case.body))
    return Switch(sliced(switch.select, 0, width_of(switch.select) - zeros), cases)


def _matches(patterns: tuple[str, ...], bits: str) -> bool:
    return not patterns or any(all(want in ("-", bit) for want, bit in zip(pattern, bits, strict=True))
                               for pattern in patterns)


def _bits(signal: Signal) -> str | None:
    """The bits of a constant, high bit first, where all are known; "" for no bits."""
    if any(chunk.wire is not None or set(chunk.bits) - {"0", "1"} for chunk in signal):
        return None
    return "".join(chunk.bits for chunk in reversed(signal))


def _number(signal: Signal, signed: bool = False) -> int | None:
    """The value of a constant; 0 for no bits, such as the index of an array with one element."""
    bits = _bits(signal)
    if not bits:
        return None if bits is None else 0
    return int(bits, 2) - (signed and bits[0] == "1") * (1 << len(bits))


def _known(kind: str, operands: tuple[Signal, ...], signed: bool) -> Signal | None:
    """The value of an operator as a constant or as parts of its operands; None if it must be computed."""
    if kind == "$mux":
        select, then, otherwise = operands
        chosen = _number(select)
        return then if chosen == 1 or then == otherwise else otherwise if chosen == 0 else None
    a, width = operands[0], width_of(operands[0])
    first = _number(a, signed)
    if len(operands) == 1:
        if kind in _COPIED:
            bits = _bits(a)
            return a if width == 1 else None if bits is None else constant(_reduced(kind, bits), 1)
        return None if first is None else constant(~first if kind == "$not" else -first, width)
    b = operands[1]
    second = _number(b, signed and kind != "$sshr")
    if kind in _COMPARED:
        known = int(_COMPARED[kind](first, second)) if first is not None and second is not None else (
            int(kind in ("$eq", "$le", "$ge")) if a == b else _at_zero(kind, first, second, signed))
        if known is None and width == 1 and not signed and (kind, second) == ("$gt", 0):
            return a
        return None if known is None else constant(known, 1)
    if first is not None and second is not None:
        return constant(_COMPUTED[kind](first, second), width)
    return _partly_known(kind, (a, first), (b, second), width)


def _reduced(kind: str, bits: str) -> int:
    if kind == "$reduce_and":
        return int("0" not in bits)
    return bits.count("1") % 2 if kind == "$reduce_xor" else int("1" in bits)


def _at_zero(kind: str, first: int | None, second: int | None, signed: bool) -> int | None:
    """The result of comparing a number without a sign with zero, where that decides."""
    if signed:
        return None
    if second == 0 and kind in ("$lt", "$ge"):
        return int(kind == "$ge")
    return int(kind == "$le") if first == 0 and kind in ("$gt", "$le") else None


def _partly_known(kind: str, left: tuple[Signal, int | None], right: tuple[Signal, int | None],
                  width: int) -> Signal | None:
    """The value of an operator of two operands, of which one is a constant, as parts of the other one."""
    (a, first), (b, second) = left, right
    ones = (1 << width) - 1
    if kind in ("$shl", "$shr", "$shift", "$sshr"):
        if first == 0 and kind != "$sshr":
            return constant(0, width)
        return None if second is None else _shifted(kind, a, min(second, width), width)
    if kind in ("$divfloor", "$modfloor"):
        if second is None or second & (second - 1):
            return None
        if not second:  # division by zero gives zero in Amaranth, whose guard this is
            return constant(0, width)
        at = second.bit_length() - 1
        return _shifted("$shr", a, at, width) if kind == "$divfloor" else resized(sliced(a, 0, at), width)
    for value, number, other in ((a, first, b), (b, second, a)):
        if number is None:
            continue
        number &= ones
        if kind == "$and":
            return other if number == ones else value if not number else None
        if kind == "$or":
            return value if number == ones else other if not number else None
        if (not number and kind in ("$xor", "$add")) or (not number and kind == "$sub" and value is b):
            return other
        if kind == "$mul" and not number & (number - 1):
            return _shifted("$shl", other, number.bit_length() - 1, width) if number else value
    return other if kind in ("$and", "$or") and (other := a) == b else None


def _shifted(kind: str, value: Signal, by: int, width: int) -> Signal:
    """``value`` shifted by a known number of bits."""
    if kind == "$shl":
        return merged([*constant(0, by), *sliced(value, 0, width - by)])
    if kind == "$sshr":
        return merged([*sliced(value, by, width - by), *sliced(value, width - 1, 1) * by])
    return resized(sliced(value, by, width - by), width)
