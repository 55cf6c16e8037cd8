"""Definitions of the wires of an RTLIL module: alias, result of an operation, choice, register or read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set

from .definitions import (
    Combined,
    Definition,
    FlipFlops,
    FromInstance,
    OperatorResult,
    ProcessValue,
    Read,
    Write,
    signals_of,
)
from .names import is_anonymous, is_plain, stem
from .rtlil import (
    Assign,
    Cell,
    Chunk,
    RtlilModule,
    Signal,
    Statement,
    Switch,
    SwitchCase,
    assignments,
    merged,
    resized,
    sliced,
    width_of,
)
from .simplify import Simplifier

_EXTENDED = ("$add", "$sub", "$mul", "$and", "$or", "$xor", "$not", "$neg")
_COMPARED = ("$eq", "$ne", "$lt", "$le", "$gt", "$ge")
_REDUCED = ("$reduce_and", "$reduce_or", "$reduce_xor", "$reduce_bool")
_SHIFTS = ("$shl", "$shr", "$sshr", "$shift")
_DIVIDED = ("$divfloor", "$modfloor")


class Netlist:
    """The wires of ``module`` without aliases and without what nothing depends on.

    ``outputs_of``: the outputs of each module that ``module`` has instances of. ``definitions``: what drives each wire.
    ``uses``: how often a wire is read. ``partial``: wires of which slices are read. ``live``: wires that something
    depends on. ``aliases``: wire → the names it has besides; ``fields``: (wire, low bit, width) → names of that slice;
    ``parts``: wire → the name of the bits of another wire that it is. ``outputs``: wire → the output port that it is.
    """

    def __init__(self, module: RtlilModule, outputs_of: Mapping[str, Set[str]]):
        self.module = module
        self._outputs_of = outputs_of
        self.definitions: dict[str, Definition] = {}
        self.writes: list[Write] = []
        self.initial: dict[str, str] = {}
        self.instances: list[Cell] = []
        self._alias: dict[str, Chunk] = {}
        self._connected: dict[str, Signal] = {}
        for target, value in module.connections:
            wire, = target
            assert wire.wire is not None and wire.width == module.wires[wire.wire].width, target
            self._connected[wire.wire] = value
        for name, value in self._connected.items():
            whole = self.resolve((Chunk(name, 0, module.wires[name].width),))
            if len(whole) != 1 or whole[0].wire == name:
                self.definitions[name] = Combined(self.resolve(value))
            elif module.wires[name].port == "output" and whole[0].wire is None:
                self.definitions[name] = Combined(whole)
        for body in filter(None, module.processes):
            chunk, = next(assignments(body)).target
            assert chunk.wire is not None
            self.definitions[chunk.wire] = ProcessValue(self._statements(body))
        for cell in module.cells:
            if all(cell.ports.get(port, ("some",)) for port in ("Q", "DATA", "Y")):
                self._cell(cell)
        self.aliases: dict[str, list[str]] = {}
        self.fields: dict[tuple[str, int, int], list[str]] = {}
        for name in self._connected:
            if name not in self.definitions:
                chunk, = self.resolve((Chunk(name, 0, module.wires[name].width),))
                if chunk.wire is None:
                    continue
                if chunk.width == module.wires[chunk.wire].width:
                    self.aliases.setdefault(chunk.wire, []).append(name)
                else:
                    self.fields.setdefault((chunk.wire, chunk.low, chunk.width), []).append(name)
        self.parts = self._parts()
        self.outputs = self._outputs()
        self._merge_registers()
        self._simplify()
        self.uses: Counter[str] = Counter()
        self.partial: set[str] = set()
        self._count()

    def resolve(self, signal: Signal) -> Signal:
        """``signal`` by the wires that drive it."""
        out: list[Chunk] = []
        for chunk in signal:
            if chunk.wire is None or chunk.wire not in self._connected:
                out.append(chunk)
                continue
            if chunk.wire not in self._alias:
                self._alias[chunk.wire] = Chunk(chunk.wire, 0, 0)  # ends the recursion if it drives itself
                whole = self.resolve(self._connected[chunk.wire])
                self._alias[chunk.wire] = whole[0] if len(whole) == 1 else Chunk(chunk.wire, 0, width_of(whole))
            to = self._alias[chunk.wire]
            if to.wire == chunk.wire:
                whole_width = self.module.wires[chunk.wire].width
                part = sliced(self._connected[chunk.wire], chunk.low, chunk.width)
                if chunk.width < whole_width and all(c.wire != chunk.wire for c in part):
                    out += self.resolve(part)
                else:
                    out.append(chunk)
            else:
                out += sliced((to,), chunk.low, chunk.width)
        return merged(out)

    def _statements(self, body: list[Statement]) -> list[Statement]:
        out: list[Statement] = []
        for statement in body:
            if isinstance(statement, Assign):
                out.append(Assign(statement.target, self.resolve(statement.value)))
            else:
                out.append(Switch(self.resolve(statement.select),
                                  [SwitchCase(case.patterns, self._statements(case.body)) for case in statement.cases]))
        return out

    def _cell(self, cell: Cell) -> None:
        ports = {name: self.resolve(value) for name, value in cell.ports.items()}
        kind = cell.kind
        if not kind.startswith("$"):
            self.instances.append(Cell(kind, cell.name, cell.parameters, ports, cell.attributes))
            for port in sorted(self._outputs_of[kind] & {port for port, value in ports.items() if value}):
                self.definitions[_whole(cell.ports[port])] = FromInstance(self.instances[-1], port)
        elif kind == "$dff":
            _must(cell, cell.number("CLK_POLARITY") == 1, "registers with the rising edge")
            self.definitions[_whole(cell.ports["Q"])] = FlipFlops(ports["CLK"], "", [Assign((), ports["D"])])
        elif kind == "$memrd_v2":
            _must(cell, "1" not in cell.parameters["TRANSPARENCY_MASK"].partition("'")[2],
                  "read ports that are not transparent")
            clocked = cell.number("CLK_ENABLE") == 1
            self.definitions[_whole(cell.ports["DATA"])] = Read(
                _memory(cell), ports["ADDR"], ports["CLK"] if clocked else None, ports["EN"])
        elif kind == "$memwr_v2":
            self.writes.append(Write(_memory(cell), ports["CLK"], ports["ADDR"], ports["DATA"], ports["EN"]))
        elif kind == "$meminit_v2":
            self.initial[_memory(cell)] = "".join(chunk.bits for chunk in reversed(cell.ports["DATA"]))
        else:
            self.definitions[_whole(cell.ports["Y"])] = self._operation(cell, ports)

    def _operation(self, cell: Cell, ports: dict[str, Signal]) -> Definition:
        kind, width = cell.kind, width_of(cell.ports["Y"])
        if kind == "$mux":
            return OperatorResult(kind, (ports["S"], ports["B"], ports["A"]))
        signed = cell.number("A_SIGNED") == 1
        a, b = ports["A"], ports.get("B", ())
        if kind in _EXTENDED:
            operands = (a, b) if "B" in ports else (a,)
            return OperatorResult(kind, tuple(resized(value, width, signed) for value in operands))
        if kind in _COMPARED:
            wide = max(width_of(a), width_of(b))
            return OperatorResult(kind, (resized(a, wide, signed), resized(b, wide, signed)), signed)
        if kind in _REDUCED:
            return OperatorResult(kind, (a,))
        if kind in _SHIFTS:
            wide = width if kind == "$shl" else max(width, width_of(a))
            operation = OperatorResult(kind, (resized(a, wide, signed), b), signed and kind == "$sshr")
            return self._low_bits(cell, operation, wide, width)
        if kind in _DIVIDED:
            _must(cell, not signed, "division of unsigned numbers")
            wide = max(width, width_of(a), width_of(b))
            operation = OperatorResult(kind, (resized(a, wide), resized(b, wide)))
            return self._low_bits(cell, operation, wide, width)
        raise ValueError(f"a cell must be an operator that Amaranth uses in circuits, not {kind}")

    def _low_bits(self, cell: Cell, operation: OperatorResult, wide: int, width: int) -> Definition:
        """The low bits of a result that Verilog computes in ``wide`` bits."""
        if wide == width:
            return operation
        name = f"{_whole(cell.ports['Y'])}$wide"
        self.module.wires[name] = type(self.module.wires[_whole(cell.ports["Y"])])(name, wide)
        self.definitions[name] = operation
        return Combined((Chunk(name, 0, width),))

    def _parts(self) -> dict[str, str]:
        """Wires without a name of their own that are bits of a wire with one → a name of those bits."""
        found: dict[str, str] = {}
        for name, value in self._connected.items():
            if is_plain(name) and name in self.definitions:
                at = 0
                for chunk in self.resolve(value):
                    if chunk.wire is not None and chunk.width == self.module.wires[chunk.wire].width:
                        bits = f"{at}" if chunk.width == 1 else f"{at + chunk.width - 1}_{at}"
                        found.setdefault(chunk.wire, f"{stem(name)}_{bits}")
                    at += chunk.width
        return found

    def _outputs(self) -> dict[str, str]:
        """Wire → the output port that it is, for wires that are nothing else."""
        found: dict[str, str] = {}
        for name, wire in self.module.wires.items():
            if wire.port != "output" or not wire.width:
                continue
            if name in self.definitions:
                found[name] = name
                continue
            chunk, = self.resolve((Chunk(name, 0, wire.width),))
            assert chunk.wire is not None
            root = self.module.wires[chunk.wire]
            if chunk.width == root.width and root.port is None and chunk.wire not in found and name != chunk.wire:
                found[chunk.wire] = name
            else:
                self.definitions[name] = Combined((chunk,))
                found[name] = name
        return found

    def _merge_registers(self) -> None:
        """Give each register the process of its next value, if nothing else reads that."""
        readers: Counter[str] = Counter()
        for value in self._signals():
            readers.update(chunk.wire for chunk in value if chunk.wire is not None)
        for name, definition in list(self.definitions.items()):
            if isinstance(definition, FlipFlops):
                statement = definition.body[0]
                assert isinstance(statement, Assign)
                data = statement.value
                definition.process, statement.target = name, (Chunk(name, 0, self.module.wires[name].width),)
                wire = data[0].wire if len(data) == 1 else None
                choice = self.definitions.get(wire) if wire is not None else None
                if (wire is not None and isinstance(choice, ProcessValue) and readers[wire] == 1
                        and wire not in self.outputs and data[0].width == self.module.wires[wire].width):
                    definition.process, definition.body = wire, choice.body
                    del self.definitions[wire]

    def _simplify(self) -> None:
        """Leave out what is known before the circuit runs."""
        named = {wire for wire, names in self.aliases.items() if any(map(is_plain, names))}
        named |= {wire for (wire, _, _), names in self.fields.items() if any(map(is_plain, names))}
        named |= {wire for wire in self.definitions if not is_anonymous(wire)}
        simplifier = Simplifier(self.definitions, {name: wire.width for name, wire in self.module.wires.items()},
                                named, self.outputs)
        self.definitions = simplifier.definitions
        new = simplifier.signal
        self.writes = [Write(write.memory, new(write.clock), new(write.address), new(write.data), new(write.enable))
                       for write in self.writes]
        for cell in self.instances:
            cell.ports |= {port: new(value) for port, value in self.inputs(cell).items()}

    def _signals(self) -> Iterator[Signal]:
        for definition in self.definitions.values():
            yield from signals_of(definition)
        yield from self._live_signals()

    def _live_signals(self) -> Iterator[Signal]:
        """The wires that memory writes and instances read."""
        for write in self.writes:
            yield from (write.clock, write.address, write.data, write.enable)
        for cell in self.instances:
            yield from self.inputs(cell).values()

    def inputs(self, cell: Cell) -> dict[str, Signal]:
        """The inputs of an instance and what drives them."""
        return {port: value for port, value in cell.ports.items() if port not in self._outputs_of[cell.kind]}

    def _count(self) -> None:
        waiting: list[str] = []
        self.live = seen = set[str]()

        def read(values: Iterable[Signal]) -> None:
            for value in values:
                for chunk in value:
                    if chunk.wire is not None:
                        self.uses[chunk.wire] += 1
                        if chunk.width < self.module.wires[chunk.wire].width:
                            self.partial.add(chunk.wire)
                        waiting.append(chunk.wire)

        read(self._live_signals())
        waiting += self.outputs
        while waiting:
            wire = waiting.pop()
            if wire not in seen:
                seen.add(wire)
                definition = self.definitions.get(wire)
                if definition is not None:
                    read(signals_of(definition))


def _whole(signal: Signal) -> str:
    chunk, = signal
    assert chunk.wire is not None
    return chunk.wire


def _memory(cell: Cell) -> str:
    return cell.parameters["MEMID"].strip('"').replace("\\\\", "\\")


def _must(cell: Cell, condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(f"Verilog is written for {what} only, but cell {cell.name} is a different {cell.kind}")
