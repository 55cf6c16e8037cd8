"""The operations of a graph bit by bit: a network of LUTs, with carry chains and multipliers as they are.

Sums, differences and comparisons by size are carry chains; products are multipliers. All other operations are gates,
which LUTs cover however many words they come from, so constants, masks and shifts cost nothing by themselves.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .delays import BLOCK_RAM, FACTOR, FETCH, GATE, STORE, chain_ns, product_ns
from .graph import Graph, Node
from .lut_network import FALSE, TRUE, LutNetwork

#: Bits up to which a sum is no carry chain where Yosys maps it for ECP5.
_SHORT = 4
#: The fewest registers that are reset by a condition of their own.
_LEAST_RESET = 2
#: The bits of a value, the lowest first, as signals of a `LutNetwork`.
Word = list[int]


@dataclass(frozen=True)
class _Macro:
    """A carry chain, a multiplier of ``parts`` factors of 18 bits, or a memory with a read port that takes ``luts`` and
    ``blocks`` of block RAM; ``reads``: its operands' bits.
    """

    reads: tuple[int, ...]
    gives: tuple[int, ...]
    parts: int = 0
    luts: int = 0
    blocks: int = 0


@dataclass(frozen=True)
class BitCost:
    """LUTs; the bits of each carry chain; multipliers; flip-flops; and blocks of RAM."""

    luts: int
    chains: tuple[int, ...]
    multipliers: int
    flip_flops: int
    blocks: int = 0


class GraphBits:
    """The operations of a graph, placed one by one, each in a cycle. ``inputs``: of a LUT; ``interval``: cycles for
    which a register holds a value; ``wide``: with functions of several LUTs, as mapping takes them where nothing else
    takes as long.
    """

    def __init__(self, graph: Graph, inputs: int = 4, interval: int = 1, *, wide: bool = False):
        self._inputs, self._interval, self._ahead = inputs, interval, 0.0
        self._graph = graph
        self._network = LutNetwork(inputs, GATE, wide=wide)
        self._short = wide and inputs == 4
        self._words: list[Word] = []
        self._cycles: list[int] = []
        self._macros: dict[object, _Macro] = {}
        self._registers: dict[tuple[int, int], int] = {}  # by signal and the cycle in front of the register
        self._columns: dict[Node, Word] = {}
        self._registered: dict[int, int] = {}  # the operation whose value a register holds
        self._held = set[int]()  # registers that are those of a block of RAM
        self._starts: list[int] = []  # of the gates and sources of each operation
        self._end = 0
        #: Choices with a constant: the condition, the other operand, the constant.
        self._constants: dict[int, tuple[int, int, int]] = {}
        self._uses = Counter([*graph.outputs, *(a for node in graph.nodes for a in node.args)])

    def place(self, cycle: int, most: float | None = None, ahead: float = 0.0) -> float:
        """Place the next operation of the graph in ``cycle``; return the time in ns at which its value is there, behind
        the registers of that cycle. Where this is later than ``most``, it is not placed. ``ahead``: the delay of what
        chooses the operands of a multiplier.
        """
        self._ahead, start = ahead, self._network.size
        node = self._graph.nodes[len(self._words)]
        word = self._word(node, [self._at(a, cycle - (node.kind == "fetch")) for a in node.args])
        time = self._time(node, word)
        if most is None or time <= most:
            self._words.append(word)
            self._cycles.append(cycle)
            self._starts.append(start)
            self._end = self._network.size
        return time

    def cost(self, *, registered: bool) -> BitCost:
        """The cost of all operations, which have been placed. ``registered``: with registers for the outputs."""
        ahead = 1 + max(self._cycles, default=0)
        parts = self.parts([(n, ahead if registered else self._cycles[n]) for n in self._graph.outputs])
        return BitCost(sum(p.luts for p in parts), tuple(n for p in parts for n in p.chains),
                       sum(p.multipliers for p in parts), sum(p.flip_flops for p in parts),
                       sum(p.blocks for p in parts))

    def time(self, number: int) -> float:
        """The time in ns at which the value of operation ``number`` is there."""
        return self._time(self._graph.nodes[number], self._words[number])

    def _time(self, node: Node, word: Word) -> float:
        into = STORE if node.kind == "write" and node.places else 0.0
        return max((self._network.time(x) for x in word), default=0.0) + into

    def parts(self, read_at: Sequence[tuple[int, int]],
              states: Sequence[tuple[int, int | None]] | None = None) -> list[BitCost]:
        """The cost of each operation, and behind these that of conditions for which registers are reset or loaded.

        ``read_at``: operations whose values are outputs, and the cycles in which they are read. ``states``: operations
        that are the next values of states, whose registers are not counted, and those that read these states. Where
        this is given, registers have enables, and mapping resets none by conditions of their own.
        """
        starts = list(self._starts)
        outputs = [x for n, cycle in read_at for x in self._at(n, cycle)]
        for write, state in states or ():
            new, loads = self._loaded(write, state)
            outputs += [*new, loads]
        macros = {given: macro for macro in self._macros.values() for given in macro.gives}
        registers = {given >> 1: signal for (signal, _), given in self._registers.items()}
        outputs += self._reset(registers) if states is None else []
        # From the outputs back to the inputs, through registers, chains and multipliers that something reads.
        roots, pending, read = set[int](), list(outputs), set[int]()
        gates = dict[int, int]()
        while pending:
            roots |= {x for x in pending if x > TRUE}
            gates, sources = self._network.cover(roots)
            fresh = sources - read
            read |= fresh
            found = [registers[n] for n in fresh if n in registers]
            found += [x for n in fresh if 2 * n in macros for x in macros[2 * n].reads]
            pending = [x for x in found if x not in roots]
        # A gate that is read both negated and not takes two LUTs.
        both = [x >> 1 for x in roots if x & 1 == 0 and x ^ 1 in roots and not self._network.is_source(x)]
        inverted = {x: n for n, x in registers.items() if n in read and x & 1 and self._network.is_source(x)}
        used = {id(macros[2 * n]): macros[2 * n] for n in read if 2 * n in macros}

        def owner(number: int) -> int:
            return bisect.bisect_right(starts, number) - 1 if number < self._end else len(starts)

        luts = Counter(owner(n) for n, some in gates.items() for _ in range(some))
        luts.update(map(owner, both))
        luts.update(self._registered[n] for n in inverted.values())
        flip_flops = Counter(self._registered[n] for n in registers if n in read - self._held)
        chains: dict[int, list[int]] = {}
        multipliers, blocks = Counter[int](), Counter[int]()
        for m in used.values():
            of = owner(m.gives[0] >> 1)
            luts[of] += m.luts
            blocks[of] += m.blocks
            if m.luts or m.blocks:
                continue
            # A product of more than one part is added up.
            chains.setdefault(of, []).extend([len(m.gives)] * (m.parts - 1) if m.parts else [
                1 + max(i for i, given in enumerate(m.gives) if given >> 1 in read)])
            multipliers[of] += m.parts
        return [BitCost(luts[n], tuple(chains.get(n, ())), multipliers[n], flip_flops[n], blocks[n])
                for n in range(len(starts) + 1)]

    def _loaded(self, number: int, read: int | None) -> tuple[Word, int]:
        """The input of the register that holds the state which ``read`` reads and whose next value is ``number``, and
        its enable: choices of the old value, which nothing else needs.
        """
        node, word = self._graph.nodes[number], self._words[number]
        if number == read:
            return word, FALSE
        if node.kind not in ("choose", "min", "max") or self._uses[number] > 1:
            return word, TRUE
        args = [self._at(a, self._cycles[number]) for a in node.args]
        which = args[0][0] if node.kind == "choose" else self._less(args, [
            self._graph.nodes[a].low < 0 for a in node.args]) ^ (node.kind == "max")
        arms = node.args[-2:]
        (a, loads_a), (b, loads_b) = (self._loaded(n, read) for n in arms)
        if loads_a == loads_b == TRUE:
            return word, TRUE
        a, b = (_extended(x, len(word), is_signed=self._graph.nodes[n].low < 0)
                for x, n in zip((a, b), arms, strict=True))
        new = b if loads_a == FALSE else a if loads_b == FALSE else [
            self._network.choose(which, x, y) for x, y in zip(a, b, strict=True)]
        return new, self._network.choose(which, loads_a, loads_b)

    def _reset(self, registers: dict[int, int]) -> list[int]:
        """Let registers that share a condition for being constant be set or reset by it, in place of a gate at each
        one's input; return these conditions.
        """
        conditions: dict[int, list[int]] = {}
        values: dict[int, int] = {}
        while True:
            shared: dict[int, list[int]] = {}
            for n, signal in registers.items():
                if signal in self._constants and values.get(n) in (None, self._constants[signal][2]):
                    shared.setdefault(self._constants[signal][0], []).append(n)
            found = max(shared, key=lambda x: len(shared[x]), default=FALSE)
            if len(shared.get(found, ())) < _LEAST_RESET:
                break
            for n in shared[found]:
                _, registers[n], values[n] = self._constants[registers[n]]
                conditions.setdefault(n, []).append(found)
        return [self._network.all(some) for some in {tuple(sorted(c)) for c in conditions.values()}]

    def _at(self, number: int, cycle: int) -> Word:
        """The value of operation ``number`` in ``cycle``, behind registers if that is a later one."""
        word, first = self._words[number], self._cycles[number]
        if self._graph.nodes[number].kind == "fetch" and first < cycle < first + self._interval:
            held = [self._register(x, first, number) for x in word]
            self._held |= {x >> 1 for x in held}
            return held
        for at in range(first, cycle, self._interval):
            word = [self._register(x, at, number) for x in word]
        return word

    def _register(self, signal: int, cycle: int, number: int) -> int:
        if signal <= TRUE:
            return signal
        if (signal, cycle) not in self._registers:
            self._registers[signal, cycle] = self._network.source()
            self._registered[self._registers[signal, cycle] >> 1] = number
        return self._registers[signal, cycle]

    def _word(self, node: Node, args: Sequence[Word]) -> Word:
        width, net = node.width, self._network
        signs = [self._graph.nodes[a].low < 0 for a in node.args]

        def operand(n: int, bits: int = width) -> Word:
            return _extended(args[n], bits, is_signed=signs[n])

        def bitwise(gate: Callable[[int, int], int]) -> Word:
            return [gate(x, y) for x, y in zip(operand(0), operand(1), strict=True)]

        match node.kind:
            case "constant":
                return [node.low >> n & 1 for n in range(width)]
            case "input":
                return self._columns.setdefault(node, [net.source() for _ in range(width)])
            case "read":
                return self._read(node, args[0])
            case "fetch":
                return self._fetched(node, args[0])
            case "write":
                return [x for a in args[:3] for x in a]
            case "*":
                return self._product(args, signs, width)
            case "+":
                return self._sum(operand(0), operand(1))
            case "-":
                return self._difference(operand(0), operand(1))
            case "&" | "and":
                return bitwise(net.both)
            case "|" | "or":
                return bitwise(net.either)
            case "^":
                return bitwise(net.differ)
            case "not":
                return [args[0][0] ^ 1]
            case "=":
                wide = max(len(a) for a in args) + (signs[0] != signs[1])
                pairs = zip(operand(0, wide), operand(1, wide), strict=True)
                return [net.all([net.differ(x, y) ^ 1 for x, y in pairs])]
            case "<":
                return [self._less(args, signs)]
            case "min" | "max":
                less = self._less(args, signs) ^ (node.kind == "max")
                return self._choice(less, operand(0), operand(1))
            case "abs":
                turned = self._difference([FALSE] * width, operand(0))
                return self._choice(args[0][-1], turned, operand(0))
            case "choose":
                return self._choice(args[0][0], operand(1), operand(2))
            case "shift":
                moved = [*[FALSE] * node.places, *args[0]] if node.places > 0 else args[0][-node.places:] or [
                    args[0][-1] if signs[0] else FALSE]
                return _extended(moved, width, is_signed=signs[0])
            case "fit":
                return operand(0)
            case "bits":
                return _extended(operand(0, node.places), width, is_signed=False)
        raise TypeError(f"no operation {node.kind!r}")

    def _choice(self, which: int, a: Word, b: Word) -> Word:
        found = [self._network.choose(which, x, y) for x, y in zip(a, b, strict=True)]
        for x, y, made in zip(a, b, found, strict=True):
            if (x <= TRUE) != (y <= TRUE):
                self._constants[made] = which, max(x, y), min(x, y)
        return found

    def _sum(self, a: Word, b: Word) -> Word:
        """``a + b``; the low bits to which nothing is added need no chain."""
        low = next((n for n, (x, y) in enumerate(zip(a, b, strict=True)) if FALSE not in (x, y)), len(a))
        through = [x | y for x, y in zip(a[:low], b[:low], strict=True)]  # one of them is 0
        return through + self._chain(a[low:], b[low:], inverted=False)

    def _difference(self, a: Word, b: Word) -> Word:
        low = next((n for n, y in enumerate(b) if y != FALSE), len(b))
        return a[:low] + self._chain(a[low:], b[low:], inverted=True)

    def _less(self, args: Sequence[Word], signs: Sequence[bool]) -> int:
        """The sign of the difference of both operands."""
        wide = max(len(a) + (signs[0] != signs[1] and not of) for a, of in zip(args, signs, strict=True)) + 1
        a, b = (_extended(x, wide, is_signed=of) for x, of in zip(args, signs, strict=True))
        return self._difference(a, b)[-1]

    def _chain(self, a: Word, b: Word, *, inverted: bool) -> Word:
        """A carry chain; equal ones are made once. Of few bits LUTs, as Yosys maps them for ECP5."""
        if self._short and len(a) <= _SHORT:
            return self._rippled(a, [x ^ inverted for x in b], int(inverted))
        return self._macro(("-" if inverted else "+", tuple(a), tuple(b)), (*a, *b), len(a), chain_ns(len(a)), 0)

    def _rippled(self, a: Word, b: Word, carry: int) -> Word:
        """``a + b`` and ``carry`` by gates."""
        net, found = self._network, Word()
        for x, y in zip(a, b, strict=True):
            found.append(net.differ(net.differ(x, y), carry))
            carry = net.either(net.both(x, y), net.both(carry, net.either(x, y)))
        return found

    def _macro(self, key: object, operands: Sequence[int], width: int, ns: float, parts: int, luts: int = 0) -> Word:
        if key not in self._macros and width:
            reads = tuple(x for x in operands if x > TRUE)
            time = max((self._network.time(x) for x in reads), default=0.0) + ns
            self._macros[key] = _Macro(reads, tuple(self._network.source(time) for _ in range(width)), parts, luts)
        return list(self._macros[key].gives) if width else []

    def _read(self, node: Node, address: Word) -> Word:
        """A read port in LUT RAM: blocks of 16 rows by 4 bits, or of 64 rows and a bit, and a choice of a block."""
        four = self._inputs == 4
        blocks = 1 << max(0, node.places - (4 if four else 6))
        luts = blocks * (6 * -(-node.width // 4) if four else 2 * node.width) + (node.width + 1) * (blocks - 1)
        return self._macro(("read", node.name, *address), address, node.width,
                           GATE * (1 + blocks.bit_length() // 2), 0, luts)

    def _fetched(self, node: Node, address: Word) -> Word:
        """A read port of block RAM, with blocks of its own: fewest, and of these with fewest choices of a block."""
        key = "fetch", node.name, *address
        if key not in self._macros:
            rows = 1 << node.places
            _, banks, blocks = min((-(-rows // n) * -(-node.width // bits), -(-rows // n), -(-node.width // bits))
                                   for n, bits in BLOCK_RAM.items())
            gives = tuple(self._network.source(FETCH + GATE * -(-(banks - 1).bit_length() // 2))
                          for _ in range(node.width))
            self._macros[key] = _Macro(tuple(x for x in address if x > TRUE), gives, 0, node.width * (banks - 1),
                                       banks * blocks)
        return list(self._macros[key].gives)

    def _product(self, args: Sequence[Word], signs: Sequence[bool], width: int) -> Word:
        for one, other in ((0, 1), (1, 0)):
            if len(args[one]) == 1 and not signs[one]:
                return [self._network.both(args[one][0], x)
                        for x in _extended(args[other], width, is_signed=signs[other])]
        parts = -(-len(args[0]) // FACTOR) * -(-len(args[1]) // FACTOR)
        return self._macro(("*", *map(tuple, args), *signs), [x for a in args for x in a], width,
                           self._ahead + product_ns(max(map(len, args)), width), parts)


def multiplier_blocks(graph: Graph, number: int) -> int:
    """The multiplier blocks that the multiplication ``number`` takes; 0 for a factor of one bit."""
    factors = [graph.nodes[a] for a in graph.nodes[number].args]
    if any(f.width == 1 and f.low >= 0 for f in factors):
        return 0
    return math.prod(-(-f.width // FACTOR) for f in factors)


def _extended(word: Word, width: int, *, is_signed: bool) -> Word:
    """The lowest ``width`` bits of ``word``, with copies of its sign, or zeros, above it."""
    return (word + [word[-1] if is_signed else FALSE] * (width - len(word)))[:width]
