"""Proofs of the matcher: for all keys and bounds each pair matches exactly if its condition holds.

The condition is stated as a formula on integers, without codes, digits or pipeline registers. The solver chooses keys
and bounds, and when bounds are registered and loaded, and batches swapped. A place of a batch has a probe if bounds
were loaded to it for this batch; the outcomes of other places mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import and_, itemgetter, or_
from typing import Any, NamedTuple
from unittest.mock import patch

import pyarrow as pa
from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib import data

import splitjoin
from splitjoin.circuit.lowering import plan_for
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.schedule import PipelineRegisters
from splitjoin.circuit.wire import Axis, Configuration, Sum
from splitjoin.hls.graph import Graph
from splitjoin.lang.schema import other_side
from splitjoin_hw.hls import compare as compare_module, matcher as matcher_module, sums as sums_module
from splitjoin_hw.hls.compare import Comparison, WidthTest
from splitjoin_hw.hls.delays import Delays
from splitjoin_hw.hls.lookup import Lookup
from splitjoin_hw.hls.matcher import Matcher, _Held, _test
from splitjoin_hw.hls.table import TableTest
from splitjoin_hw.layouts import struct
from splitjoin_hw.tech.equality import CarryEquality
from splitjoin_hw.tech.order import Carry8Order, CarryOrder, GenericOrder
from splitjoin_hw.tech.target import Target

from .harness import Harness
from .lookup import TABLE_FAULTS, Tables
from .monitors import Event
from .proofs import Fault, Proof

_MATCH = "each pair matches exactly if its condition holds"
_CODES = "registers hold the codes of the bounds of their probe"


def _condition(config: Configuration, side: str, keys: Any, bounds: Any) -> Value:
    """The condition for keys of stream ``side`` and a probe's bounds, whose fields `splitjoin.circuit.wire` defines."""
    outcomes: list[Value] = []
    n = "rs".index(side)
    for j, (test, wide) in enumerate(zip(config.tests, config.test_widths, strict=True)):
        key, low = keys[f"key{test[n]}"], bounds[f"lo{j}"]
        if wide is None:
            outcomes.append((low <= key) & (key <= bounds[f"hi{j}"]))
        else:
            # Modulo twice the range of keys, a low end is a negative number or one that keys have, or no key is above.
            outcomes.append((low.as_signed() <= key) & (key <= low.as_signed() + wide))
    for j, sum_ in enumerate(config.sums):
        terms: list[Value] = []
        for number, axis in enumerate(sum_.axes):
            key, place = keys[f"key{(axis.r, axis.s)[n]}"], bounds[f"at{j}_{number}"]
            difference = (key - place)[:axis.bits].as_signed()
            terms.append({"square": lambda d=difference: d * d,
                          "absolute": lambda d=difference: Mux(d < 0, -d, d),
                          "differing": lambda k=key, p=place: reduce(lambda a, b: a + b, list(k ^ p)),
                          }[axis.kind]() << axis.shift)
        if (rest := sum_.rest[n]) is not None:
            terms.append(keys[f"key{rest}"])
        total: Any = reduce(lambda a, b: a + b, terms)
        below = total < bounds[f"limit{j}"] if sum_.limited else total <= sum_.limit
        outcomes.append(~below if sum_.above else below)
    if config.formula is not None:
        of = {side: keys, other_side(side): bounds}
        outcomes.append(_FORMULAS[config.formula](*({key: of[s][f"key{key}"] for key in config.formula_keys(s)}
                                                    for s in "rs")))
    return _combined(config.tree, outcomes)


def _combined(tree: Any, outcomes: list[Value]) -> Value:
    if isinstance(tree, int):
        return outcomes[tree]
    op, *operands = tree
    return reduce(and_ if op == "and" else or_, [_combined(operand, outcomes) for operand in operands])


def matcher(config: Configuration, *, side: str = "s", built_for: str = "generic") -> Harness:
    """The harness of a matcher of stored tuples of stream ``side``, which is given batch after batch."""
    dut = Matcher(config, side)
    h = Harness(dut, Target(built_for))
    m, probes = h.m, range(config.probes)
    tables = Tables(h, config) if config.tables else None
    _assume_limits(h, config)

    # The bounds in the register, of the batch being collected, and of that under comparison; and if they are known.
    layout: Any = struct(config.bounds(other_side(side)))
    taken, is_taken = Signal(layout, name="bounds_taken"), Signal(name="is_taken")
    with m.If(~dut.hold):
        m.d.sync += [taken.eq(dut.bounds), is_taken.eq(1)]
    collected, held = ([Signal(layout, name=f"bounds_{name}{p}") for p in probes] for name in ("collected", "held"))
    is_collected, is_held = (Signal(config.probes, name=f"is_{name}") for name in ("collected", "held"))
    complete: Value = Cat(Mux(dut.load[p], is_taken, is_collected[p]) for p in probes)
    for p in probes:
        with m.If(dut.load[p]):
            m.d.sync += collected[p].eq(taken)
        with m.If(dut.swap):
            m.d.sync += held[p].eq(Mux(dut.load[p], taken, collected[p]))
    m.d.sync += is_collected.eq(Mux(dut.swap, 0, complete))
    with m.If(dut.swap):
        m.d.sync += is_held.eq(complete & tables.filled if tables else complete)

    _prove_match(h, config, side, held, [[is_held[p] & (tables.is_picked[lane] if tables else Const(1))
                                          for lane in range(config.lanes)] for p in probes])
    # Each field is held once for every age at which keys are compared with it.
    fields = _fields(config, side, built_for)
    right = [~is_taken | (h.inner(name) == code(taken)) for name, code in fields.registered]
    for name, of, flags, more in (("collected", collected, is_collected, 0), ("held", held, is_held, 1)):
        for p in probes:
            past = Delays(m, Cat(of[p], flags[p]), f"{name}{p}_before")
            for field, age, code in fields.held:
                *bounds, known = past.at(age - 1 + more)
                there = h.inner(f"{name}{p}_{field}_{age}" if age > 1 else f"{name}{p}_{field}")
                right.append(~known | (there == code(data.View(layout, Cat(bounds)))))
    h.prove(_CODES, Cat(right).all())
    if tables:
        tables.prove([(j, key, test) for j, (key, test) in enumerate(_tests(config, side, built_for))
                      if isinstance(test, TableTest)], collected, is_collected, held, is_held)
    return h


def constant_matcher(config: Configuration, *, built_for: str = "generic") -> Harness:
    """The harness of the matcher of a small circuit; its bounds are looked at if they stay from a key to its match."""
    side = "s"
    dut = Matcher(config, side, constant=True)
    h = Harness(dut, Target(built_for))
    _assume_limits(h, config)
    same = Delays(h.m, Value.cast(dut.bounds) == h.past(dut.bounds, "bounds_before"), "same")
    stay = Cat(same.at(age) for age in range(dut.latency)).all()
    _prove_match(h, config, side, [dut.bounds], [[Const(1)] * config.lanes], stay)
    return h


def _assume_limits(h: Harness, config: Configuration) -> None:
    for j, sum_ in enumerate(config.sums):
        if sum_.limited:
            h.assume(f"a probe's limit of sum {j} is at most the sum's", h.dut.bounds[f"limit{j}"] <= sum_.limit + 1)


def _prove_match(h: Harness, config: Configuration, side: str, bounds: Sequence[Any],
                 known: Sequence[Sequence[Value]], constant: Value | None = None) -> None:
    """Prove the matches of all pairs for which ``known``, per probe and lane, is 1 in the cycle of the keys, and
    ``constant``, if given, in the cycle of the match.
    """
    dut, also = h.dut, Const(1) if constant is None else constant
    pairs = [(p, lane) for p in range(config.probes) for lane in range(config.lanes)]
    holds = [_condition(config, side, dut.keys[lane], bounds[p]) for p, lane in pairs]
    wanted, unwanted = (Delays(h.m, Cat(known[p][lane] & (it == expected) for (p, lane), it in zip(
        pairs, holds, strict=True)), name).at(dut.latency) for name, expected in (("wanted", 1), ("unwanted", 0)))
    h.prove(_MATCH, ~also | (((wanted & ~dut.match) | (unwanted & dut.match)) == 0))
    h.output = Event(also & (wanted & dut.match).any())


class _Fields(NamedTuple):
    """The registers of bounds: their names, and their codes of a record of bounds.

    ``registered``: those of the record that was taken last. ``held``: those of each probe, also with the age of the
    keys that they are compared with.
    """

    registered: list[tuple[str, Callable[[Any], Value]]]
    held: list[tuple[str, int, Callable[[Any], Value]]]


def _tests(config: Configuration, side: str, built_for: str) -> list[tuple[str, Comparison | WidthTest | TableTest]]:
    """The interval tests, each with the name of the key that it compares."""
    widths, found = dict(config.keys(side).fields), []
    for slots, wide in zip(config.tests, config.test_widths, strict=True):
        key = f"key{slots['rs'.index(side)]}"
        found.append((key, _test(config, built_for, widths[key], wide)))
    return found


def _fields(config: Configuration, side: str, built_for: str) -> _Fields:
    found = _Fields([], [])
    for j, (_, test) in enumerate(_tests(config, side, built_for)):
        if isinstance(test, TableTest):
            found.registered.append((f"lo{j}", itemgetter(f"lo{j}")))
            if test.low:
                found.held.append((f"lo{j}", 1, partial(_low, test, f"lo{j}")))
            continue
        for end in test.ends:
            for n in range(test.cycles if isinstance(test, Comparison) else 1):
                name = f"{end}{j}_{n}" if n else f"{end}{j}"
                code = partial(_part, test, f"{end}{j}", n)
                found.registered.append((name, code))
                found.held.append((name, n + 1, code))
    for j, sum_ in enumerate(config.sums):
        ready = config.schedule.ready[len(config.tests) + j]
        for name, age in [*((f"at{j}_{n}", 1) for n in range(len(sum_.axes))),
                          *([(f"limit{j}", ready - 1)] if sum_.limited else [])]:
            found.registered.append((name, itemgetter(name)))
            found.held.append((name, age, itemgetter(name)))
    graph, cycles = (config.formula.graph, config.formula.cycles) if config.formula else (Graph((), ()), ())
    for number, node in enumerate(graph.nodes):
        if node.kind == "input" and node.side != side:
            read = {cycle for user, cycle in zip(graph.nodes, cycles, strict=True) if number in user.args}
            found.registered.append((f"probe_{node.name}", itemgetter(node.name)))
            found.held.extend((node.name, 1 + cycle, itemgetter(node.name)) for cycle in read)
    return found


def _low(test: TableTest, end: str, bounds: Any) -> Value:
    low: Value = bounds[end][:test.low]
    return low


def _part(test: Comparison | WidthTest, end: str, n: int, bounds: Any) -> Value:
    return test.bounds(bounds[end])[n]


#: All kinds of pipeline registers.
_FAST = PipelineRegisters(chain=3, levels=1, sums=True, digits=True)


def _config(keys: tuple[int, ...], tests: tuple[tuple[int, int], ...] = ((0, 0),), tree: Any = 0,
            **options: Any) -> Configuration:
    return Configuration(keys_r=keys, keys_s=keys, tests=tests, tree=tree, **{"lanes": 2, "probes": 2} | options)


def _few_bits(config: Configuration) -> Harness:
    """The matcher where multipliers take four bits, so that a square takes several."""
    with patch("splitjoin_hw.hls.sums.FACTOR", 4), patch("splitjoin.circuit.sums.FACTOR", 4):
        return matcher(config)


def _grouped(config: Configuration) -> Harness:
    """The matcher where tables of two probes are written together instead of four."""
    with patch("splitjoin.circuit.geometry.PROBE_GROUP", 2):
        return matcher(config)


#: Each key of one stream is compared with each of the other.
_FOUR: dict[str, Any] = {"keys": (7, 12), "tests": ((0, 1), (1, 0), (1, 1), (0, 0)),
                         "tree": ("or", ("and", 0, 1), ("and", 2, ("or", 0, 3)))}
_BANDS = _FOUR | {"widths": (0, 5, None, 127)}
_SQUARES: dict[str, Any] = {"keys": (5, 6), "tests": (), "sums": (
    Sum((Axis("square", 0, 0, 6), Axis("square", 1, 1, 5, 1)), 200, above=True),)}
_TERMS: dict[str, Any] = {"keys": (5, 6, 10), "tree": ("or", 0, 1), "sums": (
    Sum((Axis("square", 0, 0, 6), Axis("absolute", 1, 1, 7, 1), Axis("differing", 2, 2, 10)), 90, rest=(0, 1)),)}
_LARGE: dict[str, Any] = {"keys": (7,), "tests": (), "sums": (Sum((Axis("square", 0, 0, 6),), 500),)}
#: An equality, bands whose low part is looked up in one table or in two or is subtracted, and bounds with both ends.
_LOOKED_UP: dict[str, Any] = {"keys": (8,), "tests": ((0, 0),) * 5, "widths": (0, 3, 20, 100, None), "probes": 3,
                              "tree": ("or", ("and", 0, 1), ("and", 2, 3), 4), "tables": True}
_WIDE: dict[str, Any] = {"keys": (32,), "widths": (1000,), "tables": True, "lanes": 1, "probes": 1}
_NARROW: dict[str, Any] = {"keys": (7,), "widths": (3,), "tables": True, "lanes": 1}

def _formula(on: str, clock: float | None, **ranges: tuple[int, int]) -> dict[str, Any]:
    """The configuration of condition ``on``, over columns of such ranges, as a formula."""
    fields = [pa.schema([splitjoin.field(name, "int16", min=low, max=high, nullable=False)
                         for name, (low, high) in ranges.items() if name in names]) for names in ("xy", "ab")]
    found = plan_for(splitjoin.query(*fields, on=on, window="ROWS 4"), CircuitParameters(clock=clock, verify="core"))
    assert found.formula is not None and not found.tests
    return {"keys": tuple(slot.key.width for slot in found.slots_r), "tests": (), "formula": found.formula.pipeline,
            "registers": found.registers}


def _signed(key: Value) -> Value:
    return Cat(key[:-1], ~key[-1]).as_signed()


_DOT = _formula("r.x * s.a + r.y * s.b > 5", None, **dict.fromkeys("xyab", (-8, 7)))
_REMAINDER = _formula("(r.x + s.b) % s.a = r.y", 150.0, x=(0, 7), y=(0, 7), a=(0, 7), b=(0, 7))
#: Pipeline of a formula → the condition, of the keys of R and of S.
_FORMULAS: dict[Any, Callable[[dict[int, Value], dict[int, Value]], Value]] = {
    _DOT["formula"]: lambda r, s: _signed(r[0]) * _signed(s[0]) + _signed(r[1]) * _signed(s[1]) > 5,
    _REMAINDER["formula"]: lambda r, s: (s[1] != 0) & ((r[0] + s[0]) % s[1] == r[1]),
}

_BELOW = Fault(_MATCH, GenericOrder, "key <= bound", "key < bound", "below")
_ABOVE = Fault(_MATCH, GenericOrder, "key >= bound", "key > bound", "above")
_TREE = Fault(_MATCH, matcher_module, "node.op == 'and'", "node.op == 'or'", "_combined")
_SWAP = Fault(_MATCH, _Held, "self._swaps.at(age)", "self._swaps.at(age - 1)", "at")
_REGISTER = Fault(_CODES, Matcher, "m.If(~self.hold)", "m.If(1)", "_taken")
_CARRIED = Fault(_MATCH, Comparison, "Cat(Const(1), low)", "Cat(Const(0), low)", "within")
_DIGIT = Fault(_MATCH, compare_module, "~bit & out", "bit & out", "_below")
_ECP5 = Fault(_MATCH, CarryOrder, "(k[0], b[0], b[1], k[1])", "(k[0], b[0], k[1], b[1])", "_chain")
_EQUAL = Fault(_MATCH, CarryEquality, "bit if n == 0 or n % 2 else ~bit", "bit if n == 0 or n % 2 else bit", "bound")
_CARRY8 = Fault(_MATCH, Carry8Order, "self._greater(m, name, key, bound, or_equal=True)",
                "self._greater(m, name, key, bound, or_equal=False)", "above")
_FITS = Fault(_MATCH, sums_module, "whole[kept - 1:]", "whole[kept:]", "_axis")
_COUNT = Fault(_MATCH, sums_module, "ones[1] ^ twos[0]", "ones[1]", "_count")
_ABSOLUTE = Fault(_MATCH, sums_module, "Mux(difference[-1], -signed, signed)", "signed", "_axis")
_SQUARE = Fault(_MATCH, sums_module, "product << half + 1", "product << half", "_square")
_HIGH = Fault(_MATCH, TableTest, "high[-1] ^ more[-1]", "more[-1]", "bound")
_GROUP = Fault(_MATCH, Lookup, "self._writes[lane][group]", "self._writes[lane][0]", "outputs")
_SIGN = Fault(_MATCH, Matcher, "~value[-1]", "value[-1]", "_formula")
_AGE = Fault(_MATCH, Matcher, "codes[key].at(1 + cycle)", "codes[key].at(1)", "_formula")
_BORDER = Fault(_MATCH, TableTest, "(begins | under)", "under", "within")


def _proof(name: str, config: dict[str, Any], depth: int, *faults: Fault, quick: bool = False,
           make: Callable[..., Harness] = matcher, first: int = 12, **options: Any) -> Proof:
    return Proof(name, partial(make, _config(**config), **options), depth, faults=faults, search=first, first=first,
                 quick=quick)


PROOFS = (
    _proof("matcher of one bit", {"keys": (1,)}, 6, _ABOVE, side="r"),
    _proof("matcher of 32 bits", {"keys": (32,)}, 6, _BELOW, _REGISTER),
    _proof("matcher of 32 bits, on ECP5", {"keys": (32,)}, 6, _ECP5, built_for="ecp5"),
    _proof("matcher of 32 bits, on UltraScale+", {"keys": (32,)}, 6, _CARRY8, built_for="ultrascale"),
    _proof("matcher of four tests", _FOUR, 6, _TREE, _SWAP, side="r"),
    _proof("matcher of bands", _BANDS, 6, _DIGIT, _BELOW, _REGISTER, quick=True),
    _proof("matcher of bands, on ECP5", _BANDS, 6, _EQUAL, built_for="ecp5"),
    _proof("matcher of squares", _SQUARES, 6, _FITS),
    _proof("matcher of a sum of three kinds of terms", _TERMS, 6, _COUNT, _ABSOLUTE),
    _proof("matcher of a formula", _DOT | {"lanes": 1}, 6, _SIGN, quick=True),
    _proof("matcher of a formula, pipelined", _REMAINDER | {"lanes": 1}, 10, _AGE, side="r", first=16),
    _proof("matcher of 64 bits, pipelined", {"keys": (64,), "registers": PipelineRegisters(chain=20)}, 10, _CARRIED),
    _proof("matcher of four tests, pipelined", _FOUR | {"registers": _FAST}, 10, _CARRIED, _SWAP),
    _proof("matcher of bands, pipelined", _BANDS | {"registers": _FAST}, 10, _DIGIT, side="r"),
    _proof("matcher of bands, pipelined, on ECP5", _BANDS | {"registers": _FAST}, 10, _ECP5, built_for="ecp5"),
    _proof("matcher of bands, pipelined, on UltraScale+", _BANDS | {"registers": _FAST}, 10, _CARRY8,
           built_for="ultrascale"),
    _proof("matcher of a sum of three kinds of terms, pipelined", _TERMS | {"registers": _FAST}, 10, _ABSOLUTE),
    _proof("matcher of a square of several products", _LARGE | {"registers": _FAST}, 10, _SQUARE, make=_few_bits),
    _proof("matcher of a small circuit", _BANDS | {"probes": 1}, 10, _DIGIT, make=constant_matcher),
    _proof("matcher of a small circuit, pipelined", _BANDS | {"probes": 1, "registers": _FAST}, 10, _CARRIED,
           make=constant_matcher),
    _proof("matcher of a small circuit, on ECP5", _BANDS | {"probes": 1}, 10, _EQUAL, make=constant_matcher,
           built_for="ecp5"),
    _proof("matcher with tables", _LOOKED_UP, 10, _HIGH, _BORDER, _GROUP, make=_grouped, first=20),
    _proof("matcher with tables, pipelined", _LOOKED_UP | {"lanes": 1, "registers": _FAST}, 10, _HIGH, make=_grouped,
           first=24),
    _proof("matcher of 32 bits with tables", _WIDE, 10, _HIGH, first=20),
    _proof("matcher of a band with tables", _NARROW, 10, _HIGH, *TABLE_FAULTS, quick=True, first=20),
)
