# amaranth: UnusedElaboratable=no
"""Typed functions and kernels as components: Python, machine code and the circuit agree under stalls, at each clock and
interval; Verilog does so in other simulators.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from itertools import product as all_of
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from amaranth.hdl import Cat, ResetInserter, Signal, signed as signed_shape
from amaranth.sim import Simulator
from bench.hls_suite import typed as suite

from splitjoin import InputError, PredicateError, UnsupportedError, hls
from splitjoin.hls import fixed, signed, unsigned
from splitjoin.hls.balance import carry_saved
from splitjoin.hls.kernels import compiled
from tests.testbench.kernels import check_kernel
from tests.testbench.on_amaranth import Simulation
from tests.testbench.pauses import MATRIX
from tests.testbench.runner import run_bench

from ...hls_programs.batch import check_batch
from ...support.graphs import graph_outputs, kernel_results
from ...support.icarus import needs_icarus
from ...support.kernel_cases import kernel_case
from ...support.random_kernels import operands, random_kernel, results
from ...support.sampling import at_length, examples


def crc8(x: unsigned(8)):
    for _ in range(8):
        x = ((x << 1) ^ (7 if x & 128 != 0 else 0)) & 255
    return x


def isqrt(x: unsigned(16)):
    root, rest = 0, 0
    for n in range(8):
        rest: unsigned(10) = (rest << 2) | (x >> 14 - 2 * n & 3)
        trial = (root << 2) | 1
        if rest >= trial:
            rest, root = rest - trial, (root << 1) | 1
        else:
            root = root << 1
    return root


def product(a, b):
    return a * b


def complex_product(a: (signed(16),) * 2, b: (signed(16),) * 2):
    real = product(a[0], b[0]) - a[1] * b[1]
    return real, a[0] * b[1] + a[1] * b[0]


def remainders(x: unsigned(2), y: unsigned(5)):
    """Of numbers that have fewer bits than the divisor, or may have."""
    return x % 100, y % max(x, 1), y // (x + 9)


def half(x: fixed(12, 4)) -> fixed(12, 5):
    return x * 0.5


@hls.kernel
class Smoothed:
    """An exponential mean of the products of two numbers, given for numbers above 0."""

    mean: signed(28)
    n: unsigned(8)

    def init(self):
        self.n = 250

    def step(self, x: signed(12), y: signed(12)):
        self.mean += (x * y - self.mean) >> 3
        self.n = (self.n + 1) & 255
        if x <= 0:
            return None
        return self.mean + self.n


@hls.kernel
class Runs:
    """Runs of equal numbers: each with its length, when the next one begins."""

    value: unsigned(8)
    length: unsigned(8)

    def step(self, x: unsigned(8)):
        if x == self.value and self.length < 255:
            self.length += 1
            return None
        ended = self.value, self.length
        self.value, self.length = x, 1
        return ended


class Point(NamedTuple):
    """A place."""

    x: signed(8)
    y: signed(9)


@hls.kernel
class Nearest:
    """The place of the least x so far, moved at times; nothing for places on a diagonal."""

    best: Point

    def init(self):
        self.best = Point(127, y=-32)

    def step(self, p: Point) -> Point:
        if p.x + p.y == 0:
            return None
        if p.x < self.best.x:
            self.best = p
        elif p.y > 10:
            self.best = self.best._replace(y=p.y - self.best.y >> 2 if p.y > self.best.y else 0)
        return self.best


@hls.kernel
class Histogram:
    """Counts of 20 bins, some of which are cleared; another one is read as well."""

    counts: (signed(9),) * 20
    last: unsigned(5)

    def init(self):
        for n in range(20):
            self.counts[n] = -3

    def step(self, x: unsigned(5), y: unsigned(3)):
        at = min(x, 19)
        seen = self.counts[min(self.last, 19)]
        if y == 7:
            self.counts[at] = -100
        elif y != 6:
            self.counts[at] = (self.counts[at] + y * 3 + 256 & 511) - 256
        self.last = at
        return seen if y != 5 else None


@hls.kernel
class Ring:
    """The value of 16 steps ago."""

    past: (unsigned(8),) * 16
    at: unsigned(4)

    def step(self, x: unsigned(8)):
        old = self.past[self.at]
        self.past[self.at] = x
        self.at = self.at + 1 & 15
        return old


@hls.kernel
class Counts:
    """Counts of 1,500 numbers, of which some are cleared, and what was counted before."""

    counts: (signed(12),) * 1500
    last: unsigned(11)

    def init(self):
        self.counts = (-3,) * 1500

    def step(self, x: unsigned(11), y: unsigned(3)):
        at, seen = min(x, 1499), self.counts[min(self.last, 1499)]
        if y == 7:
            self.counts[at] = -100
        elif y != 6:
            self.counts[at] += 1 if self.counts[at] < 2000 else 0
        self.last = at
        return None if y == 5 else (seen, self.counts[at])


@hls.kernel
class Moved:
    """Numbers that are moved from one place to another one."""

    some: (unsigned(8),) * 2048

    def step(self, x: unsigned(11), y: unsigned(3)):
        self.some[x ^ 15] = self.some[x] + y & 255
        return self.some[x]


#: A table of a function, and of a state.
TABLE = tuple(n * n % 13 for n in range(1500))


def tabled(x: unsigned(11)):
    return TABLE[min(x, 1499)]


@hls.kernel
class Renamed:
    """Numbers in a memory with the name that the constant tuple's would get, too."""

    TABLE_table: (unsigned(8),) * 16

    def step(self, x: unsigned(4), y: unsigned(8)):
        old = self.TABLE_table[x] + TABLE[x] * 256
        self.TABLE_table[x] = y
        return old


@hls.kernel
class Tabled:
    """A walk through a table that is not written."""

    table: (signed(12),) * 1500
    at: unsigned(11)

    def init(self):
        self.table = tuple(n - 7 for n in TABLE)

    def step(self, y: unsigned(3)):
        self.at = min(max(self.at + self.table[min(self.at, 1499)] + y, 0), 1499)
        return self.at


def bit_length(x: unsigned(8)):
    n = 0
    while x != 0:
        x, n = x >> 1, n + 1
    return n


def gcd(a: unsigned(4), b: unsigned(4)):
    n = 0
    while n < 6 and b != 0:
        a, b = b, a % max(b, 1)
        n += 1
    return a


def left_early(x: unsigned(3), y: unsigned(3)):
    """Loops within a loop that ends early, of which some do, too."""
    n = 0
    for i in range(3):
        if x == i:
            break
        for j in range(3):
            if x > j:
                break
            n += 1
        k = 0
        while k < 3 and k != y:
            k += 1
            if k > x:
                break
            if k == 1:
                continue
            if n == 9:
                return 1 << k
            n += k
        n += 10
    return n


def saturated(x: signed(5), y: signed(5)):
    """Values within what a number of bits holds."""
    return min(max(x * y, -32), 31) * 64 + max(min(7, x - y), -8) + min(max(-16, x), 15)


#: Functions, and all their operands.
ALL_OPERANDS = {"saturated": saturated, "bit_length": bit_length, "gcd": gcd, "left_early": left_early}
FUNCTIONS = {"crc8": crc8, "isqrt": isqrt, "complex_product": complex_product, "remainders": remainders,
             "Smoothed": Smoothed, "Runs": Runs, "Nearest": Nearest, "Histogram": Histogram, "Ring": Ring}


def check(fn: Any, rows: list[dict[str, Any]], stalls: Any = MATRIX, **how: Any) -> Any:
    part, expected = kernel_case(fn, rows, **how)
    simulation = Simulation(part)
    for cell in stalls.values():
        simulation.run(lambda tb, cell=cell: check_kernel(tb, stalls=cell, **expected))
    arrays = [np.array([row[p] for row in rows]) for p in rows[0]]
    made = hls.jit(fn)(*arrays)
    assert (list(zip(*(a.tolist() for a in made), strict=True)) if isinstance(made, tuple) else made.tolist()
            ) == results(fn, rows)
    return part


@pytest.mark.parametrize(("name", "clock", "interval", "latency"), [
    ("crc8", 150, 3, 1), ("isqrt", 100, 5, 4),
    ("remainders", None, 1, 1), ("complex_product", None, 2, 2), ("complex_product", 80, 4, 4),
    ("Smoothed", None, None, 1), ("Smoothed", 100, None, 2), ("Smoothed", 100, 3, 2), ("Runs", 150, None, 1),
    ("Nearest", None, None, 1), ("Histogram", None, None, 1), ("Histogram", 150, 3, 3), ("Ring", 100, None, 1)])
def test_python_machine_code_and_circuit_agree(name: str, clock: float | None, interval: int | None,
                                               latency: int) -> None:
    fn = FUNCTIONS[name]
    rows = operands(fn, 15, 1)
    if name == "isqrt":
        assert results(fn, rows) == [math.isqrt(row["x"]) for row in rows]
    if name == "Runs":
        rows = [{"x": x // 5} for x in range(60)]
    part = check(fn, rows, clock=clock, interval=interval)
    assert part.latency == latency
    assert interval in (None, part.interval)


@pytest.mark.parametrize("name", ALL_OPERANDS)
def test_loops_as_in_python(name: str) -> None:
    fn = ALL_OPERANDS[name]
    ranges = [port.field.widths[0].range for port in compiled(fn).inputs]
    rows = list(all_of(*(range(low, high + 1) for low, high in ranges)))
    assert hls.jit(fn)(*map(np.array, zip(*rows, strict=True))).tolist() == [fn(*row) for row in rows]


def test_operations_give_what_python_gives() -> None:
    """Also with full adders in place of sums; and of functions with what random ones seldom have."""
    def extremes(x: signed(5), y: signed(5)):
        return x if x < y else y, x if x <= y else y, x if x > y else y, x if not y > x else y

    some = [extremes, between, Mean, Moved, Counts, *FUNCTIONS.values(), *ALL_OPERANDS.values()]
    for seed in range(1000, 1000 + examples(60) + len(some)):
        fn = random_kernel(seed) if not some else some.pop()
        kernel, rows = compiled(fn), operands(fn, 30 if some else 12, seed)
        for graph in (kernel.graph, carry_saved(kernel.graph)):
            assert kernel_results(replace(kernel, graph=graph), rows) == results(fn, rows), seed


@pytest.mark.parametrize("seed", range(examples(21, 150)))
def test_random_functions_agree(seed: int) -> None:
    fn = random_kernel(seed)
    try:
        part = check(fn, operands(fn, 20, seed), {name: MATRIX[name] for name in ("flowing", "both")},
                     clock=[None, 60, 100][seed % 3], interval=None if seed % 2 else 1 + seed % 4)
    except UnsupportedError as error:
        assert "interval must be at least" in str(error) or "so the clock must be at most" in str(error)
        check(fn, operands(fn, 20, seed), {"both": MATRIX["both"]}, clock=30)
    else:
        assert part.interval >= 1


@pytest.mark.long
def test_a_mapped_table_is_read_by_one_port(tmp_path: Path) -> None:
    """Random program 10120: of block RAM that nothing writes, synthesis uses port A alone."""
    assert check_batch([10120], tmp_path, 1) == {}


def test_fixed_point_is_whole_numbers_without_the_point() -> None:
    values = hls.jit(half)(np.array([8, 9, -9, -2048]))
    assert values.tolist() == [8, 9, -9, -2048]  # x / 16 · 1/2 is x / 32
    assert hls.component(half).o.payload.shape() == signed_shape(12)


@needs_icarus
@pytest.mark.parametrize(("name", "clock", "interval", "simulator"), [
    ("complex_product", 80, 3, "icarus"), ("Histogram", 100, None, "icarus"), at_length("isqrt", 100, 1, "icarus"),
    at_length("Smoothed", 100, None, "verilator"), at_length("complex_product", 80, 3, "verilator"),
    at_length("Runs", 100, 1, "verilator")])
def test_verilog_gives_the_same(name: str, clock: float, interval: int | None, simulator: Any, tmp_path: Path) -> None:
    fn = FUNCTIONS[name]
    _, expected = kernel_case(fn, operands(fn, 30, 2), clock=clock, interval=interval)
    text = hls.verilog(fn, clock=clock, interval=interval, name="kernel")
    assert run_bench(name, tmp_path, module="tests.testbench.bench_kernel", built=(text, "kernel"), simulator=simulator,
                     environment={"SPLITJOIN_KERNEL": json.dumps(expected)}) == len(MATRIX)


def test_a_tuple_is_a_memory_where_a_step_writes_one_number() -> None:
    for fn in (Histogram, Ring):
        part = hls.component(fn, clock=100)
        assert [m.name for m in part._design.kernel.memories] == ["counts" if fn is Histogram else "past"]
        assert ("past [0:15]" if fn is Ring else "counts [0:31]") in hls.verilog(fn)
    # Two writes, and a read behind one, take registers.
    assert not hls.component(Swapped)._design.kernel.memories


def test_a_constant_tuple_has_a_memory_of_its_own() -> None:
    kernel, rows = compiled(Renamed), [{"x": n % 3, "y": n} for n in range(9)]
    assert [memory.name for memory in kernel.memories] == ["TABLE_table1", "TABLE_table"]
    assert kernel_results(kernel, rows) == results(Renamed, rows)


def test_a_place_that_both_branches_write_waits_for_no_condition() -> None:
    @hls.kernel
    class Marked:
        some: (unsigned(4),) * 16

        def step(self, x: unsigned(4), y: unsigned(4)):
            if y * y > 30:
                self.some[x + 3 & 15] = 1
            else:
                self.some[x + 3 & 15] = y
            return self.some[y]

    nodes = compiled(Marked).graph.nodes
    address, = (nodes[n.args[2]] for n in nodes if n.kind == "write")
    assert address.kind == "&"


def test_a_reset_gives_all_rows_their_first_value() -> None:
    part, reset, found = hls.component(Ring), Signal(), list[int]()

    async def body(ctx: Any) -> None:
        ctx.set(Cat(part.i.valid, part.i.payload.x, part.o.ready), -1)
        for n in range(60):
            ctx.set(reset, n == 40)
            if ctx.get(part.o.valid):
                found.append(ctx.get(part.o.payload))
            await ctx.tick()

    simulator = Simulator(ResetInserter(reset)(part))
    simulator.add_clock(1e-8)
    simulator.add_testbench(body)
    simulator.run()
    assert found == [0] * 16 + [255] * 8 + [0] * 2


@hls.kernel
class Swapped:
    """Two numbers change places in each step."""

    some: (unsigned(4),) * 16

    def step(self, x: unsigned(4), y: unsigned(4)):
        self.some[x], self.some[y] = self.some[y] + 1 & 15, self.some[x]
        return self.some[x]


def test_an_enable_takes_the_place_of_a_hold_multiplexer() -> None:
    text = hls.verilog(Runs)
    assert "value <= value" not in text


@pytest.mark.parametrize(("fn", "how", "said"), [
    (crc8, {"clock": -1}, "the clock must be a number of MHz above 0, or None, not -1"),
    (crc8, {"interval": 0}, "the interval must be a number of cycles from 1 on, or None, not 0"),
    (crc8, {"family": "ice40"}, "the family must be one of ecp5, ultrascale, not 'ice40'"),
    (crc8, {"clock": True}, "the clock must be a number of MHz above 0, or None, not True"),
])
def test_wrong_arguments(fn: Any, how: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        hls.component(fn, **how)


def test_a_state_that_comes_later_needs_a_longer_interval() -> None:
    with pytest.raises(UnsupportedError, match=r"at 140 MHz the next state is there after 2 cycles, so the interval "
                                               r"must be at least 2, not 1; or ask for a slower clock\n.*test_component"
                                               r".py, line [0-9]+:\n    self.x = \(self.x \* self.x >> 7\)"):
        hls.component(Squares, clock=140, interval=1)
    with pytest.raises(UnsupportedError, match=r"(?s)'\*' of 32 bits takes 6.9 ns, .*line [0-9]+:\n    self.x = "):
        hls.component(Squares, clock=200)
    assert hls.component(Squares, clock=140).interval == 2


@hls.kernel
class Squares:
    """A state that is squared, which takes more than a cycle."""

    x: unsigned(16)

    def step(self, y: unsigned(8)):
        self.x = (self.x * self.x >> 7) + y & 0xFFFF
        return self.x


def test_python_refuses_a_state_that_leaves_its_width() -> None:
    @hls.kernel
    class Sum:
        total: unsigned(4)

        def step(self, x: unsigned(4)) -> unsigned(4):
            self.total += x
            return self.total

    part = Sum()
    assert [part.step(7), part.step(8)] == [7, 15]
    with pytest.raises(OverflowError, match=r"total must fit unsigned\(4\), but is 16"):
        part.step(1)
    assert hls.report(Sum).stated == 1


@pytest.mark.parametrize(("fn", "how", "interval", "slots"), [
    (Counts, {}, 1, 4), (Counts, {"clock": 100}, 1, 10), (Counts, {"clock": 60, "interval": 2}, 2, 1),
    at_length(Counts, {"clock": 140}, 2, 4), at_length(Counts, {"clock": 100, "interval": 4}, 4, 1),
    (Moved, {"clock": 120}, 1, 6), at_length(Moved, {"interval": 3}, 3, 0), (tabled, {}, 1, 0),
    (tabled, {"clock": 150, "interval": 2}, 2, 0), (Tabled, {"clock": 120}, 3, 1)])
def test_tuples_in_block_ram(fn: Any, how: dict[str, Any], interval: int, slots: int) -> None:
    rng = random.Random(1)
    names = [port.name for port in compiled(fn).inputs]
    rows = [{n: v for n, v in {"x": rng.choice([7, 7, 7, 8, 1040, rng.randrange(1500)]), "y": rng.randrange(8)}.items()
             if n in names} for _ in range(80)]
    part = check(fn, rows, {n: MATRIX[n] for n in ("flowing", "both")}, **how)
    assert part.interval == interval
    assert len(part._design.kernel.slots) == slots
    assert part.report.block_rams == {"Counts": 2 * 2, "Moved": 1, "tabled": 1, "Tabled": 1}[fn.__name__]


def test_block_ram_bounds_the_interval_and_the_clock() -> None:
    with pytest.raises(UnsupportedError, match=r"at 150 MHz the next state is there after 2 cycles, so the interval "
                                               r"must be at least 2, not 1"):
        hls.component(Averaged, clock=150, interval=1)
    with pytest.raises(UnsupportedError, match=r"a read of block RAM takes 6.5 ns, so the clock must be at most "
                                               r"154 MHz"):
        hls.component(tabled, clock=200)


@hls.kernel
class Averaged:
    """A mean for each number, of which the next one is computed in more than a cycle."""

    means: (unsigned(16),) * 2048

    def step(self, x: unsigned(11), y: unsigned(16)):
        self.means[x] = self.means[x] + ((y - self.means[x]) * 3 >> 3) + (y & 1) & 0xFFFF
        return self.means[x]


def test_a_tuple_that_no_memory_can_be_is_refused() -> None:
    def of(size: int, step: Any, init: Any = None) -> type:
        made = type("Large", (), {"__annotations__": {"n": unsigned(8), "some": (unsigned(8),) * size}, "step": step,
                                  **({"init": init} if init else {})})
        return hls.kernel(made)

    def whole(self, x: unsigned(8)):
        return sum(self.some)

    def compared(self, x: unsigned(8)):
        return 1 if self.some == x else 0

    def assigned(self, x: unsigned(8)):
        self.some = (x,) * 1025
        return x

    def twice(self, x: unsigned(8)):
        self.some[x], self.some[x + 1] = x, self.n
        return x

    def ends(self):
        self.some[5] = 1

    def counted(self, x: unsigned(8)):
        self.some[x] = 1
        return x

    for step, init, said in ((whole, None, "is used as a whole"), (compared, None, "is used as a whole"),
                             (assigned, None, "is assigned as a whole"),
                             (twice, None, "is written at two places in a step"),
                             (counted, ends, "has numbers of its own in the beginning, and is written")):
        with pytest.raises(PredicateError, match=rf"(?s)some has 1,025 numbers, and so is a memory in block RAM, but "
                                                 rf".*{said}; a step may read .* line \d+, in Large"):
            of(1025, step, init)
    with pytest.raises(UnsupportedError, match=r"Large.some has 70,000 numbers, and a tuple of a state at most 65,536"):
        of(70_000, counted)


def test_a_condition_is_a_result_of_a_bit() -> None:
    def less(x: unsigned(2), y: unsigned(2)):
        return x < y, not x < 2

    kernel, rows = compiled(less), [{"x": x, "y": y} for x, y in all_of(range(4), repeat=2)]
    assert kernel_results(kernel, rows) == results(less, rows)
    assert [port.field.widths[0].bits for port in kernel.outputs] == [1, 1]


def test_a_table_has_rows_and_bits_at_most() -> None:
    def read(x: unsigned(17)):
        return table[min(x, len(table) - 1)]

    for size, greatest in ((1 << 16, 1), (1025, (1 << 64) - 1)):
        table = (*range(size - 1), greatest)
        assert compiled(read).memories[0].init == table
        compiled.cache_clear()
    for large, said in ((range((1 << 16) + 1), "65,537 numbers of 17"),
                        ((*range(1024), 1 << 64), "1,025 numbers of 65")):
        table = (*large,)
        with pytest.raises(UnsupportedError, match=f"table has {said} bits, but a table .* at most 65,536 of 64 bits"):
            compiled(read)


def test_choices_by_one_number_compare_its_upper_bits_once() -> None:
    def letter(x: unsigned(8)):
        return 1 if x == 97 else 2 if x == 98 else 3 if x == 99 else 4 if x == 200 else 0

    graph = compiled(letter).graph
    compared = [graph.nodes[graph.nodes[n].args[0]].kind for n in range(len(graph.nodes)) if graph.nodes[n].kind == "="]
    assert sorted(compared) == ["bits"] * 3 + ["input", "shift"]
    some = [97, 98, 99, 200, 100, 33]
    assert [letter(x) for x in some] == hls.jit(letter)(np.array(some)).tolist()


def test_a_sum_of_sums_takes_a_carry_chain_for_each() -> None:
    """Yosys would take its operands into one sum, by full adders of two LUTs a bit."""
    def total(a: unsigned(8), b: unsigned(8), c: signed(8)):
        return a + b + c

    assert "sum[8:1], i__payload[0] ^ i__payload[8]}" in hls.verilog(total)
    assert hls.report(total).luts <= 24


def test_a_sum_of_many_terms_is_a_tree_to_which_a_state_is_added_last() -> None:
    def eight(x: (signed(8),) * 8):
        return x[0] - x[1] - x[2] + x[3] - (x[4] + x[5] - x[6]) + x[7]

    @hls.kernel
    class Added:
        total: unsigned(12)

        def step(self, x: unsigned(8), y: unsigned(8), z: signed(8)):
            self.total = self.total + x + y - z & 4095
            return self.total

    for fn, side, most in ((eight, "s", 3), (Added, "r", 1)):
        graph, sums = compiled(fn).graph, list[float]()  # sums on the longest path from inputs of the side
        for node in graph.nodes:
            before = max((sums[a] for a in node.args), default=0 if node.side == side else -math.inf)
            sums.append(before + (node.kind in "+-"))
        assert max(sums[n] for n in graph.outputs) == most
        for row in operands(fn, 20, 1):
            numbers = {name: v for port, value in zip(compiled(fn).inputs, row.values(), strict=True)
                       for (name, _), v in zip(port.numbers, value if port.field.names else [value], strict=True)}
            made = graph_outputs(graph, lambda node, numbers=numbers: numbers.get(node.name, 0))
            assert made[-1:] == results(fn, [row])


def test_what_is_not_compiled_points_at_its_line() -> None:
    def endless(x: unsigned(8)):
        while x != 3:
            x = x * 5 & 255
        return x

    def untyped(x):
        return x

    class Bare:
        n: unsigned(8)

        def step(self, x: unsigned(8)):
            return x

    with pytest.raises(PredicateError, match=r"(?s)up to 256 rounds, and this one may have more; count them, as in "
                                             r".*while x != 3"):
        hls.component(endless)
    with pytest.raises(PredicateError, match=r"(?s)parameter x of untyped must be annotated with splitjoin.signed.*"
                                             r"line [0-9]+, in untyped"):
        hls.component(untyped)
    with pytest.raises(PredicateError, match=r"the class Bare must stand under @splitjoin.hls.kernel"):
        hls.component(Bare)


def third(x: unsigned(8)):
    return x / 3


def tenth(x: unsigned(8)):
    return x * 0.1


def summed_up_to(x: unsigned(8)):
    return sum(n for n in range(x))


def squared(x: unsigned(8)):
    return x ** 2


def shown(x: unsigned(8)):
    print(x)
    return x


def split(x: (unsigned(8),) * 4):
    a, *_ = x
    return a


@pytest.mark.parametrize(("fn", "said"), [
    (third, r"must return numbers, whole ones or in fixed point, not x / 3; write // in place of /.*return x / 3"),
    (tenth, r"returns x \* 0.1, which may have a fraction; write // 1, which .*fixed\(bits, .*return x \* 0.1"),
    (summed_up_to, r"range needs numbers that are known before the run; write the most rounds .*in range\(x\)"),
    (squared, r"a power is not compiled; write products.*return x \*\* 2"),
    (shown, r"'print\(x\)' is not compiled; statements are"),
    (split, r"names, attributes of self, and items .* are assigned to.*a, \*_ = x")])
def test_refusals_say_what_to_write(fn: Any, said: str) -> None:
    with pytest.raises(PredicateError, match=f"(?s){said}"):
        hls.component(fn)


def test_a_constructor_is_not_left_out_in_silence() -> None:
    class Started:
        n: unsigned(8)

        def __init__(self):
            self.n = 3

        def step(self, x: unsigned(8)):
            return self.n + x

    with pytest.raises(PredicateError, match=r"Started.__init__ is not compiled; .* with what init\(self\) sets"):
        hls.kernel(Started)


@pytest.mark.parametrize("name", ["1st", "a b", "module", ""])
def test_names_that_verilog_does_not_have(name: str) -> None:
    with pytest.raises(InputError, match=f"must consist of letters, .* unlike '{name}'; give another one by name="):
        hls.verilog(thirds, name=name)


def thirds(x: unsigned(8)):
    return x // 3


@hls.kernel
class Mean:
    """Sums of three terms, with one subtracted and with none, each of a state."""

    mean: signed(16)
    total: unsigned(16)

    def step(self, x: signed(8), y: unsigned(8)):
        self.mean: signed(16) = self.mean - (self.mean >> 4) + x
        self.total = self.total + (self.total << 3) + y & 0xFFFF
        return self.mean, self.total


def between(x: signed(12), y: signed(9)):
    return (min(max(x * y, -512), 511), max(min(x + y, 127), -128), min(max(x, -3), 7), max(min(x, 15), 0),
            min(max(x, 16), 63), max(min(-y, 99), -96))


def test_a_number_between_two_ends() -> None:
    """One test whether it lies there, and a sign: 28 LUT4 as Yosys maps a product of 16 bits, by hand 26."""
    rng = random.Random(3)
    rows = operands(between, 60, 1) + [{"x": x, "y": y} for x in (-129, -128, -4, -3, 0, 7, 8, 15, 16, 63, 64, 127, 128)
                                       for y in (-1, 0, 1, rng.randint(-256, 255))]
    check(between, rows, {"flowing": MATRIX["flowing"]})
    assert abs(hls.report(suite.product).luts - 28) <= 2


class Coefficient(NamedTuple):
    """Numbers of a result, whose widths are stated here alone."""

    place: unsigned(6)
    value: signed(8)


def test_a_named_result_has_the_widths_of_its_fields() -> None:
    def coefficient(x: unsigned(9)):
        place = x if x < 64 else 3  # of which ranges know 9 bits
        return Coefficient(place, 5)

    shape = hls.component(coefficient).o.payload.shape()
    assert {name: field.width for name, field in shape} == {"place": 6, "value": 8}


def test_full_adders_shorten_the_interval() -> None:
    """Two chains in a row take 6 ns, with registers; full adders and a chain less than 5.3."""
    part = check(Mean, operands(Mean, 60, 1), {n: MATRIX[n] for n in ("flowing", "both")}, clock=185)
    assert part.interval == 1
    assert hls.report(Mean, clock=185).luts > hls.report(Mean).luts


def test_sums_of_few_bits_are_luts() -> None:
    """As Yosys maps them for ECP5: with a carry chain, all other paths would have time for fewer LUTs (94)."""
    assert abs(hls.report(suite.Varint).luts - 175) <= 2


def test_a_wide_function_must_save_time() -> None:
    """Of a late condition and a sum, eight LUTs a bit are hardly sooner than two in a row (88; Yosys has 31)."""
    assert hls.report(suite.Runs).luts == pytest.approx(31, rel=0.15)


@pytest.mark.parametrize("by_choice", [True, False])
def test_an_enable_costs_no_multiplexer(by_choice: bool) -> None:
    """A register that keeps its value has an enable, whether the source says so by ``if`` or by ``max``."""
    @hls.kernel
    class Greatest:
        most: unsigned(24)

        def step(self, x: unsigned(24)):
            if by_choice:
                if x > self.most:
                    self.most = x
            else:
                self.most = max(self.most, x)
            return x & 1

    assert hls.report(Greatest).luts <= 26 + 4


def test_reports_name_lines_and_agree_in_all_forms() -> None:
    report = hls.report(isqrt, clock=100)
    made = json.loads(report.json())
    assert (made["latency"], made["interval"], made["stated"]) == (4, 1, 7)
    lines = {line.text.strip(): line for line in report.lines}
    loop = lines["if rest >= trial:"]
    assert loop.luts > 50
    assert (loop.first, loop.last, loop.critical) == (0, 3, True)
    assert loop.operations["<"] + loop.operations["not"] >= 7
    assert sum(line.luts for line in report.lines) == report.luts
    assert "if rest &gt;= trial:" in report.html()
    assert f"{report.luts} LUT" in report.text()
    assert report.path_ns <= 10.0
