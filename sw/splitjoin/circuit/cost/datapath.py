"""Cost of a predicate's datapath: the comparators of a region with their codes and held bounds (`splitjoin_hw.hls`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from splitjoin.hls.graph import Node
from splitjoin.hls.pipeline import ScheduledGraph

from ..formula import input_slot
from ..schedule import SUM_STAGES, Gate, PipelineRegisters, Schedule, parts
from ..wire import Configuration, Sum
from .constant_width import TableCost, bound_codes, table_cost, width_test, writer
from .folding import pipeline_cost
from .resources import Family, Resources, check_family, combine, comparator, key_code
from .sums import sum_pair


@dataclass(frozen=True)
class DatapathCost:
    """The cost of the datapath of one region, by how often each part occurs.

    ``pair``: per lane and probe, the comparators and the Boolean tree. ``lane``: per lane, the codes of a stored
    tuple's keys, and tables. ``probe``: per probe, the registers of its bounds, those of the next batch included.
    ``region``: the codes of a probe's bounds, computed once when it is loaded, and the writer of the tables.
    ``stages``: latency in cycles.
    """

    pair: Resources
    lane: Resources
    probe: Resources
    region: Resources
    lanes: int
    probes: int
    stages: int

    @property
    def comparisons(self) -> int:
        """Comparisons per cycle."""
        return self.lanes * self.probes

    @property
    def total(self) -> Resources:
        """The cost of the region's whole datapath."""
        return self.pair * self.comparisons + self.lane * self.lanes + self.probe * self.probes + self.region

    @property
    def lut_per_comparison(self) -> float:
        """LUTs per comparison and cycle, including a share of the parts that several comparisons use."""
        return self.total.lut / self.comparisons


def datapath_cost(config: Configuration, side: str, family: str = "ecp5") -> DatapathCost:
    """The datapath's cost in a region that stores stream ``side``. Raises `UnsupportedError` for an unknown family."""
    known, widths, n = check_family(family), config.keys_r if side == "r" else config.keys_s, "rs".index(side)
    pair, lane, probe, region, delayed = _shared(known, widths, n, config.tests, config.test_widths, config.sums,
                                                 config.registers, config.schedule, config.tables, config.formula)
    if config.tables:
        looked_up = [_looked_up(known, widths[test[n]], wide, config.registers)
                     for test, wide in zip(config.tests, config.test_widths, strict=True) if wide is not None]
        lane = sum((cost.tables(known, config.probes) for cost in looked_up), lane)
        region += writer(known, looked_up, config.lanes, config.probes)
    # The batch's probe numbers are delayed like the bounds that a later step reads.
    region += Resources(ff=delayed * (config.probes + 1))
    return DatapathCost(pair, lane, probe, region, config.lanes, config.probes, config.stages)


@lru_cache(maxsize=1024)
def _shared(family: Family, widths: tuple[int, ...], n: int, tests: tuple[tuple[int, int], ...],
            constant: tuple[int | None, ...], sums: tuple[Sum, ...], registers: PipelineRegisters, schedule: Schedule,
            tables: bool, formula: ScheduledGraph | None) -> tuple[Resources, Resources, Resources, Resources, int]:
    """`DatapathCost.pair`, ``lane``, ``probe`` and ``region``, and the delay in cycles of a batch's probe numbers;
    ``n``: 0 if R is stored, 1 if S is.
    """
    slots = [test[n] for test, wide in zip(tests, constant, strict=True) if wide is None]  # keys with two bounds
    codes = {slot: _codes(family, widths[slot], registers.chain) for slot in slots}
    signals, pair, lane, probe, region = list[int](), Resources(), Resources(), Resources(), Resources(ff=1)
    for j, (test, wide) in enumerate(zip(tests, constant, strict=True)):
        slot = test[n]
        if wide is None:
            wait = schedule.together - 1 - len(codes[slot])
            pair += Resources(lut=_test(family, widths[slot], registers.chain) + (wait > 0),
                              ff=2 * len(codes[slot]) + wait)
            signals.append(1 if wait else 2)
        elif tables:
            looked_up, wait = _looked_up(family, widths[slot], wide, registers), schedule.together - schedule.ready[j]
            pair += looked_up.pair + Resources(lut=wait > 0 and looked_up.signals > 1, ff=wait)
            lane, probe, region = lane + looked_up.lane, probe + looked_up.probe, region + looked_up.region
            signals.append(1 if wait else looked_up.signals)
        else:
            wait = schedule.together - schedule.ready[j]
            pair += width_test(family, widths[slot] + 1, wide, apart=registers.digits) + Resources(ff=wait)
            signals.append(1)
    for part in codes.values():
        held = sum(bits * (age + 1) for age, (bits, _) in enumerate(part))
        lane += Resources(lut=sum(luts for _, luts in part), ff=held)
    for slot in slots:
        bits = 2 * sum(bits for bits, _ in codes[slot])
        probe += Resources(ff=2 * bits)  # each bound twice: one for the next batch, one for the current pass
        region += Resources(lut=2 * sum(luts for _, luts in codes[slot]),
                            ff=2 * sum(bits * (age + 1) for age, (bits, _) in enumerate(codes[slot])))
    ages: dict[int, int] = {}  # delay in cycles of the keys that are compared without a code
    for test, wide in zip(tests, constant, strict=True):
        if wide is not None and not tables:
            ages[test[n]] = 1
            probe += Resources(ff=2 * (widths[test[n]] + 1))
            region += Resources(lut=bound_codes(family, widths[test[n]] + 1, wide), ff=widths[test[n]] + 1)
    delayed = max([len(part) - 1 for part in codes.values()], default=0)
    for sum_, ready in zip(sums, schedule.ready[len(tests):len(tests) + len(sums)], strict=True):
        rest = sum_.rest[n]
        signals.append(1)
        pair += sum_pair(family, sum_, None if rest is None else widths[rest], apart=registers.sums)
        pair += Resources(ff=schedule.together - ready)
        for slot in [(axis.r, axis.s)[n] for axis in sum_.axes]:
            ages[slot] = max(1, ages.get(slot, 0))
        if rest is not None:
            ages[rest] = max(SUM_STAGES + (registers.sums and sum_.wide), ages.get(rest, 0))
        placed, limits = sum(axis.bits for axis in sum_.axes), sum_.limit_bits if sum_.limited else 0
        probe += Resources(ff=2 * (placed + limits))
        region += Resources(ff=placed + (ready - 1) * limits)
        delayed = max(delayed, ready - 2 if sum_.limited else 0)
    if formula is not None:
        signals.append(1)
        pair += pipeline_cost(family, formula) + Resources(ff=schedule.together - schedule.ready[-1])
        for node, read in _input_ages(formula):
            pair += Resources(ff=-node.width * (max(read) - 1))  # its registers are shared
            if node.side == "rs"[n]:
                ages[input_slot(node)] = max(*read, ages.get(input_slot(node), 0))
            else:
                probe += Resources(ff=2 * node.width * len(read))
                region += Resources(ff=node.width * max(read))
            delayed = max(delayed, max(read) - 1)
    lane += Resources(ff=sum(widths[slot] * age for slot, age in ages.items()))
    return pair + _tree(family, schedule.root, signals), lane, probe, region, delayed


def _input_ages(formula: ScheduledGraph) -> Iterator[tuple[Node, set[int]]]:
    """The inputs of ``formula``, each with the cycles behind its first register in which it is read."""
    for number, node in enumerate(formula.graph.nodes):
        if node.kind == "input":
            yield node, {1} | {1 + cycle for user, cycle in zip(formula.graph.nodes, formula.cycles, strict=True)
                               if number in user.args}


def _looked_up(family: Family, width: int, wide: int, registers: PipelineRegisters) -> TableCost:
    return table_cost(family, width, wide, apart=registers.digits)


def _tree(family: Family, root: Gate | int, signals: list[int]) -> Resources:
    """The cost of the Boolean tree and its register; ``signals``: the number of signals of each test's outcome."""
    if isinstance(root, int) or root.stage == 0:
        return Resources(lut=combine(family, _plain(root), signals), ff=1)
    resources, until = Resources(lut=1, ff=1), dict[int, int]()

    def visit(node: Gate) -> None:
        nonlocal resources
        for part in node.inputs:
            if isinstance(part, int):
                until[part] = max(node.stage, until.get(part, 0))
            else:
                resources += Resources(lut=1, ff=node.stage - part.stage)
                visit(part)

    visit(root)
    return resources + Resources(lut=sum(signals[test] > 1 for test, cycles in until.items() if cycles),
                                 ff=sum(until.values()))


def _plain(node: Gate | int) -> object:
    return node if isinstance(node, int) else (node.op, *map(_plain, node.inputs))


def _codes(family: Family, width: int, chain: int) -> list[tuple[int, int]]:
    """For each part of a comparison the bits of a code, without the previous part's outcome, and the LUTs of one."""
    codes = [key_code(family, size + (n > 0)) for n, size in enumerate(parts(width, chain))]
    return [(bits - (n > 0), luts) for n, (bits, luts) in enumerate(codes)]


def _test(family: Family, width: int, chain: int) -> int:
    # An inverter turns the > of a carry chain into ≤.
    return sum(2 * comparator(family, size + (n > 0)) for n, size in enumerate(parts(width, chain))) + (
        family == "ultrascale")
