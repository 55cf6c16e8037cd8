"""The Verilog text of one module."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .definitions import (
    Combined,
    Definition,
    FlipFlops,
    FromInstance,
    OperatorResult,
    ProcessValue,
    Read,
    Write,
    postorder,
    wires_of,
)
from .expressions import Expression, concatenation, literal, operation, part
from .names import Names, is_anonymous, is_plain, stem
from .netlist import Netlist
from .processes import chosen, clocked, reset_of
from .rtlil import Assign, Cell, Chunk, Memory, RtlilModule, Signal, Statement, sliced, width_of

#: Columns of the text.
WIDTH = 116
#: Characters of an expression above which it gets a wire of its own.
_INLINE = 72
#: Levels of logic that are declared by recursion, of some seven calls each.
_DEEP = 90
#: Names of results that the source gives none, by their operator.
_RESULTS: dict[object, str] = {
    ProcessValue: "next", FlipFlops: "state", Combined: "joined",
    "$add": "sum", "$sub": "difference", "$mul": "product", "$eq": "equal", "$ne": "differs", "$lt": "less",
    "$le": "at_most", "$gt": "greater", "$ge": "at_least", "$and": "both", "$or": "either", "$xor": "odd",
    "$not": "inverted", "$mux": "selected", "$shl": "shifted", "$shr": "shifted", "$sshr": "shifted",
    "$shift": "shifted", "$reduce_and": "all", "$reduce_or": "any", "$reduce_bool": "any",
}


@dataclass(frozen=True)
class Written:
    """``text``: from the ports to ``endmodule``; ``ports``: RTLIL name → identifier; ``outputs``: RTLIL names;
    ``variables``: identifiers of wires, registers and memories, of ports too.
    """

    text: str
    ports: dict[str, str]
    outputs: frozenset[str]
    variables: frozenset[str] = frozenset()


def write_module(module: RtlilModule, children: Mapping[str, Written], name_of: Callable[[str], str]) -> Written:
    """The text of ``module`` after its name: ``children`` are the modules of its instances by their RTLIL names, and
    ``name_of`` gives their names in Verilog.
    """
    return _Writer(module, children, name_of).written()


class _Writer:
    def __init__(self, module: RtlilModule, children: Mapping[str, Written], name_of: Callable[[str], str]):
        self._module, self._children, self._name_of = module, children, name_of
        self._net = Netlist(module, {kind: child.outputs for kind, child in children.items()})
        self._names = Names()
        self._hints = self._instance_hints()
        self._identifiers: dict[str, str] = {}
        self._memories: dict[str, str] = {}
        self._inlined: dict[str, Expression] = {}
        self._fields: dict[tuple[str, int, int], str] = {}
        self._started: set[str] = set()
        self._declared: set[str] = set()
        self._read_early: set[str] = set()
        self._first: list[str] = []  # declarations that need nothing else
        self._wires: list[str] = []  # declarations with values, each after those that it reads
        self._ports: dict[str, str] = {}
        self._instances: set[str] = set()  # their identifiers
        self._take_names()

    # Names

    def _instance_hints(self) -> dict[str, str]:
        """Names for wires that the source gives none, from the instances that they are connected to."""
        hints: dict[str, str] = {}
        for cell in self._net.instances:
            for port, value in cell.ports.items():
                if len(value) == 1 and value[0].wire is not None:
                    name = f"{stem(cell.name) or 'part'}_{self._children[cell.kind].ports[port]}"
                    hints.setdefault(value[0].wire, name)
        return hints

    def _take_names(self) -> None:
        ports = [wire for wire in self._module.wires.values() if wire.port is not None and wire.width]
        self._ports_order = sorted(ports, key=lambda wire: (wire.name not in ("\\clk", "\\rst"), wire.port == "output"))
        root_of = {port: root for root, port in self._net.outputs.items()}
        for wire in self._ports_order:
            root = root_of.get(wire.name, wire.name)
            name = self._names.take(self._wanted(wire.name, [root, *self._net.aliases.get(root, [])]))
            self._ports[wire.name.removeprefix("\\")] = self._identifiers[root] = name
        for wire in list(self._module.wires.values()):
            if wire.name in self._identifiers or not self._net.uses[wire.name]:
                continue
            if wire.name in self._net.definitions and not self._may_inline(wire.name):
                self._identifiers[wire.name] = self._names.take(
                    self._wanted(wire.name, self._net.aliases.get(wire.name, [])))
        for memory in self._module.memories:
            self._memories[memory] = self._names.take(stem(memory) or "memory")

    def _wanted(self, name: str, others: list[str]) -> str:
        every = [name, *others]
        for found in (next(filter(is_plain, every), None), next((n for n in every if not is_anonymous(n)), None)):
            if found is not None:
                return stem(found)
        definition = self._net.definitions.get(name)
        kind = definition.kind if isinstance(definition, OperatorResult) else type(definition)
        return self._net.parts.get(name) or self._hints.get(name) or _RESULTS.get(kind, "value")

    # Expressions

    def _may_inline(self, wire: str) -> bool:
        definition = self._net.definitions.get(wire)
        if isinstance(definition, Combined):
            return is_anonymous(wire) and self._net.uses[wire] == 1 and wire not in self._net.partial
        if not isinstance(definition, OperatorResult) or not is_anonymous(wire) or wire in self._net.partial:
            return False
        if any(is_plain(name) for name in self._net.aliases.get(wire, [])) or wire in self._net.outputs:
            return False
        if definition.kind == "$sshr":
            return False  # what stands beside it would decide whether it is signed
        return self._net.uses[wire] == 1 or definition.kind == "$not"

    def expression(self, signal: Signal) -> Expression:
        """The text of a value; declares the wires that it reads."""
        if not signal:
            return literal("0")  # a number without bits, such as the address of a memory with one row
        return concatenation([self._chunk(chunk) for chunk in signal])

    def _chunk(self, chunk: Chunk) -> Expression:
        if chunk.wire is None:
            return literal(chunk.bits)
        width = self._module.wires[chunk.wire].width
        if chunk.width < width:
            name = self._field(chunk)
            if name is not None:
                return Expression(name)
        self._declare(chunk.wire)
        if chunk.wire in self._inlined:
            return self._inlined[chunk.wire]
        return part(self._identifiers[chunk.wire], chunk, width)

    def _field(self, chunk: Chunk) -> str | None:
        """The name of a slice that the source gives a name, declared."""
        assert chunk.wire is not None
        key = chunk.wire, chunk.low, chunk.width
        if key not in self._fields:
            names = [name for name in self._net.fields.get(key, []) if is_plain(name)]
            if not names:
                return None
            self._declare(chunk.wire)
            name = self._names.take(stem(names[0]))
            self._fields[key] = name
            whole = part(self._identifiers[chunk.wire], chunk, self._module.wires[chunk.wire].width)
            self._wires += self._assignment(f"wire {_range(chunk.width)}{name}", whole.text)
        return self._fields[key]

    def _declare_deep(self) -> None:
        """Declare wires at every `_DEEP`-th level of logic, so that no recursion is deeper."""
        levels: dict[str, int] = {}
        for wire in postorder(filter(self._net.live.__contains__, self._net.definitions), self._reads):
            levels[wire] = 1 + max((levels.get(name, 0) for name in self._reads(wire)), default=0)
            if levels[wire] % _DEEP == 0:
                self._declare(wire)

    def _reads(self, wire: str) -> list[str]:
        """The wires that must be declared ahead of ``wire``."""
        definition = self._net.definitions.get(wire)
        if definition is None or _is_stored(definition) or isinstance(definition, FromInstance):
            return []
        return wires_of(definition)

    def _declare(self, wire: str) -> None:
        """Declare ``wire`` and all that it reads, once."""
        if wire in self._started:
            if wire not in self._declared:  # it is being declared, and reads itself, at least other bits of it
                self._read_early.add(wire)
            return
        self._started.add(wire)
        self._declare_new(wire)
        self._declared.add(wire)

    def _declare_new(self, wire: str) -> None:
        definition = self._net.definitions.get(wire)
        is_port = wire in self._net.outputs or self._module.wires[wire].port == "input"
        if definition is None:
            assert is_port, f"nothing drives {wire} in {self._module.name}"
            return
        width = _range(self._module.wires[wire].width)
        if isinstance(definition, (FlipFlops, FromInstance)) or (isinstance(definition, Read) and definition.clock):
            kind = "wire" if isinstance(definition, FromInstance) else "reg"
            first = self._module.wires[wire].init if kind == "reg" else None
            start = f" = {literal(first).text}" if first is not None else ""
            if not is_port:
                attributes = _attributes(self._module.wires[wire].attributes)
                self._first.append(f"{attributes}{kind} {width}{self._identifiers[wire]}{start};")
            elif start:  # not in the list of ports, where some readers of Verilog take no value
                self._first.append(f"initial {self._identifiers[wire]}{start};")
            return
        value = self._value(wire, definition)
        if self._may_inline(wire) and len(value.text) <= _INLINE:
            self._inlined[wire] = value
            return
        if wire not in self._identifiers:  # too long to stand where it is used
            self._identifiers[wire] = self._names.take(self._wanted(wire, self._net.aliases.get(wire, [])))
        name = self._identifiers[wire]
        if is_port:
            self._wires += self._assignment(f"assign {name}", value.text)
        elif wire in self._read_early:
            self._first.append(f"wire {width}{name};")
            self._wires += self._assignment(f"assign {name}", value.text)
        else:
            self._wires += self._assignment(f"wire {width}{name}", value.text)

    def _value(self, wire: str, definition: OperatorResult | Combined | ProcessValue | Read) -> Expression:
        if isinstance(definition, Combined):
            return self.expression(definition.value)
        if isinstance(definition, OperatorResult):
            return operation(definition.kind, [self.expression(value) for value in definition.operands],
                             [width_of(value) for value in definition.operands], definition.signed)
        if isinstance(definition, ProcessValue):
            return chosen(definition.body, self._module.wires[wire].width, self.expression,
                          lambda value, bits: self._named(f"{stem(wire) or 'next'}_otherwise", value, bits))
        return Expression(f"{self._memories[definition.memory]}[{self.expression(definition.address).text}]")

    def _named(self, wanted: str, value: Expression, width: int) -> Expression:
        """``value`` in a wire of its own."""
        name = self._names.take(wanted)
        self._wires += self._assignment(f"wire {_range(width)}{name}", value.text)
        return Expression(name)

    # Text

    def written(self) -> Written:
        self._declare_deep()
        for root in self._net.outputs:
            self._declare(root)
        instances = [line for cell in self._net.instances for line in self._instance(cell)]
        clocks = self._clocked()
        memories = [line for memory in self._module.memories.values() for line in self._memory(memory)]
        body = [*self._first, *memories]
        sections = [body, self._wires, instances, clocks]
        lines = [f"({self._heading()}"]
        for section in sections:
            if section:
                lines += ["", *(f"  {line}" if line else "" for line in section)]
        outputs = frozenset(wire.name.removeprefix("\\") for wire in self._ports_order if wire.port == "output")
        return Written("\n".join([*lines, "endmodule", ""]), self._ports, outputs,
                       self._names.taken - self._instances)

    def _heading(self) -> str:
        root_of = {port: root for root, port in self._net.outputs.items()}
        lines = []
        for wire in self._ports_order:
            definition = self._net.definitions.get(root_of.get(wire.name, wire.name))
            stored = definition is not None and _is_stored(definition)
            way = "input  wire" if wire.port == "input" else "output reg " if stored else "output wire"
            lines.append(f"  {way} {_range(wire.width)}{self._ports[wire.name.removeprefix(chr(92))]}")
        return "\n" + ",\n".join(lines) + "\n);"

    def _instance(self, cell: Cell) -> list[str]:
        child = self._children[cell.kind]
        inputs = self._net.inputs(cell)
        pins = []
        for port, name in child.ports.items():
            if port in inputs:
                text = self.expression(inputs[port]).text
            else:
                wire = cell.ports[port][0].wire if cell.ports.get(port) else None
                read = wire is not None and (self._net.uses[wire] or wire in self._net.outputs)
                if read:
                    assert wire is not None
                    self._declare(wire)
                text = self._identifiers[wire] if read and wire is not None else ""
            pins.append(f".{name}({text})")
        # Inside an instance its own name can be read too, so a variable of that name would hide it.
        wanted = stem(cell.name) or "part"
        while wanted in child.variables:
            wanted = f"{wanted}_part"
        identifier = self._names.take(wanted)
        self._instances.add(identifier)
        return [f"{self._name_of(cell.kind)} {identifier} (", *_wrapped(", ".join(pins), "  ", "  "), ");"]

    def _assignment(self, target: str, text: str) -> list[str]:
        return _wrapped(f"{target} = {text};", "", "    ")

    def _memory(self, memory: Memory) -> list[str]:
        name, bits = self._memories[memory.name], self._net.initial.get(memory.name, "")
        lines = [f"{_attributes(memory.attributes)}reg {_range(memory.width)}{name} [0:{memory.size - 1}];"]
        if "1" not in bits:
            counter = self._names.take(f"{name}_row")
            return [*lines, f"integer {counter};",
                    f"initial for ({counter} = 0; {counter} < {memory.size}; {counter} = {counter} + 1) "
                    f"{name}[{counter}] = {literal('0' * memory.width).text};"]
        rows = [bits[len(bits) - (n + 1) * memory.width:len(bits) - n * memory.width] for n in range(memory.size)]
        values = [f"  {name}[{n}] = {literal(row).text};" for n, row in enumerate(rows)]
        return [*lines, "initial begin", *values, "end"]

    def _clocked(self) -> list[str]:
        """Writes the blocks that run at clock edges: registers by their reset, and ports of memories."""
        groups: dict[tuple[Signal, Signal | None], list[tuple[str, list[Statement], Signal]]] = {}
        names, widths = {}, {}
        for wire, definition in self._net.definitions.items():
            if not isinstance(definition, FlipFlops) or wire not in self._net.live:
                continue
            self._declare(wire)
            width = self._module.wires[wire].width
            names[definition.process], widths[definition.process] = self._identifiers[wire], width
            reset = reset_of(definition.body, width)
            select, value, body = reset or (None, (), definition.body)
            first = body[0] if body else None
            if isinstance(first, Assign) and first.value == (Chunk(wire, 0, width),):
                body = body[1:]  # it stays as it is unless something else is assigned
            groups.setdefault((definition.clock, select), []).append((definition.process, body, value))
        lines: list[str] = []
        for (clock, select), registers in groups.items():
            inner = clocked([body for _, body, _ in registers], names, widths, self.expression)
            if select is not None:
                first_lines = [f"{names[process]} <= {self.expression(value).text};" for process, _, value in registers]
                otherwise = ["end else begin", *(f"  {line}" for line in inner)] if inner else []
                inner = [f"if ({self.expression(select).text}) begin", *(f"  {line}" for line in first_lines),
                         *otherwise, "end"]
            lines += [f"always @(posedge {self.expression(clock).text}) begin", *(f"  {line}" for line in inner), "end"]
        for wire, definition in self._net.definitions.items():
            if isinstance(definition, Read) and definition.clock is not None and wire in self._net.live:
                self._declare(wire)
                row = f"{self._memories[definition.memory]}[{self.expression(definition.address).text}]"
                lines += self._edge(definition.clock, definition.enable, f"{self._identifiers[wire]} <= {row};")
        for write in self._net.writes:
            lines += self._write(write)
        return [part for line in lines for part in _wrapped(line, "", "    ")]

    def _write(self, write: Write) -> list[str]:
        row = f"{self._memories[write.memory]}[{self.expression(write.address).text}]"
        lines, low = [], 0
        for chunk in _runs(write.enable):
            where = row if width_of(write.data) == chunk.width else f"{row}[{low + chunk.width - 1}:{low}]"
            data = self.expression(sliced(write.data, low, chunk.width)).text
            lines += self._edge(write.clock, (Chunk(chunk.wire, chunk.low, 1, chunk.bits[:1]),), f"{where} <= {data};")
            low += chunk.width
        return lines

    def _edge(self, clock: Signal, enable: Signal, statement: str) -> list[str]:
        condition = self.expression(enable).text
        test = "" if condition == "1'b1" else f"if ({condition}) "
        return [f"always @(posedge {self.expression(clock).text}) {test}{statement}"]


def _is_stored(definition: Definition) -> bool:
    """True if the value changes at a clock edge."""
    return isinstance(definition, FlipFlops) or (isinstance(definition, Read) and definition.clock is not None)


def _runs(enable: Signal) -> list[Chunk]:
    """Bits of ``enable`` that are copies of one bit: that bit, with the number of copies as its width."""
    bits = [Chunk(chunk.wire, chunk.low + n if chunk.wire is not None else 0, 1, chunk.bits[chunk.width - 1 - n:][:1])
            for chunk in enable for n in range(chunk.width)]
    out: list[Chunk] = []
    for bit in bits:
        if out and (out[-1].wire, out[-1].low, out[-1].bits) == (bit.wire, bit.low, bit.bits):
            out[-1] = Chunk(bit.wire, bit.low, out[-1].width + 1, bit.bits)
        else:
            out.append(bit)
    return out


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""


def _attributes(attributes: dict[str, str]) -> str:
    """Attributes for synthesis, such as ``keep``; those that only describe the source are left out."""
    kept = [f"{name} = {value}" if not value.isdigit() or value != "1" else name
            for name, value in attributes.items() if not name.startswith("enum_")]
    return f"(* {', '.join(kept)} *) " if kept else ""


def _wrapped(text: str, indent: str, further: str) -> list[str]:
    depth = len(text) - len(text.lstrip())
    if len(text) + len(indent) <= WIDTH:
        return [indent + text]
    return textwrap.wrap(text.strip(), WIDTH, initial_indent=indent + " " * depth,
                         subsequent_indent=further + " " * depth, break_long_words=False, break_on_hyphens=False)
