"""Cost and speed of a SplitJoin circuit (`splitjoin_hw.splitjoin`): cores, trees, combiner, registers and counters; the
paper's model with this circuit's constants.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from splitjoin.lang.schema import other_side

from ...cost.circuit import PartCost
from ...cost.elements import adder, control, counter, equal, fifo, gate, memory, mux
from ...cost.folding import ordered_folder, state_items, state_tree, whole_states
from ...cost.region import region_cost
from ...cost.resources import Family, Resources
from ...geometry import (
    REPORT_GROUP,
    RESULT_QUEUE,
    amount_bits,
    credit_fifo_depth,
    levels,
    links,
    log_depth,
    order_bits,
    position_bits,
    probes_inside,
    queued_body,
    register_tree_size,
    root_ways,
    sequence_depth,
    split,
    tree_nodes,
    waiting_tasks,
)
from ...registers import COUNTER_BITS, REGION_COUNTERS, REGISTERS
from ...tuner.core_kinds import CORE_SPEEDS
from ...tuner.speed import EXPIRY, input_cycles
from ...tuner.workload import Workload
from ...wire import ROW_BITS, Configuration


def parts(config: Configuration, family: Family) -> dict[str, PartCost]:
    """Part → its cost."""
    found: dict[str, PartCost] = {}
    for side in "rs":
        for name, resources in region_cost(config, side, family).items():
            found[f"{name} of {side.upper()}"] = PartCost(config.cores, resources)
    found["core's input"] = PartCost(config.cores, _input(config, family))
    if config.fault_timeout:
        found["watchdog"] = PartCost(config.cores, watchdog_cost(config, family))
    if config.region_counters:
        found["region counters"] = PartCost(2 * config.cores, _region_counters(config, family))
    return found | trees(config, family)


def core_cost(config: Configuration, family: Family) -> Resources:
    """The cost of one core: two regions and their input."""
    whole = _input(config, family) + _region_counters(config, family) * (2 if config.region_counters else 0)
    if config.fault_timeout:
        whole += _progress(config, family) * 2
    return sum((resources for side in "rs" for resources in region_cost(config, side, family).values()), whole)


def trees(config: Configuration, family: Family) -> dict[str, PartCost]:
    """The cost of the parts outside the cores; it depends on neither lanes nor probes."""
    return _trees(replace(config, lanes=1, probes=1), family)


@lru_cache(maxsize=4096)
def _trees(config: Configuration, family: Family) -> dict[str, PartCost]:
    parts = {}
    broadcasts, fifos = links(config.cores, config.fanout)
    width = config.input_record.width
    for children, count in sorted(broadcasts.items()):
        # The record, its valid bit, and the AND of all children's ready bits.
        each = Resources(lut=gate(family, children), ff=width + 2)
        parts[f"broadcast register to {children}"] = PartCost(count, each)
    for stages, count in sorted(fifos.items()):
        parts[f"credit FIFO {stages} registers away"] = PartCost(
            count, fifo(family, width, credit_fifo_depth(stages)) + Resources(lut=2, ff=1))
    if far := register_tree_size(config.cores):
        # The register tree of the settings, and each core's report of tuples that did not fit.
        parts["settings on their way"] = PartCost(far, Resources(ff=_settings(config)))
        parts["reports on their way"] = PartCost(config.cores, Resources(ff=2 + 3 * ROW_BITS))
    mergers = {inputs: count * (2 if config.in_order or not config.folds else 0 if config.whole_states else 1)
               for inputs, count in tree_nodes(config.cores, config.fanin).items()}
    if root_ways(config.root_width) > 1:
        # Of each side the last merger is there twice, and each of its inputs is dealt out.
        last = len(split(config.cores, config.fanin))
        mergers[last] += 2
        parts["splitter to two ways"] = PartCost(2 * last, _block_queue(_RESULT, family) * 2 + Resources(lut=8, ff=1))
    for children, count in sorted(mergers.items()):
        if count:
            parts[f"merger of {children}"] = PartCost(count, merger_cost(config, children, family))
    if config.folds:
        parts["items of states"] = PartCost(1, state_items(config, family))
    if config.folds and not config.in_order:
        parts["merger of states"] = PartCost(config.cores - 1, state_tree(config, family))
    if config.in_order:
        log = 3 + config.time_bits + config.payload("s").width
        parts["unit that folds in order"] = PartCost(1, ordered_folder(config, family))
        parts["queue of operations"] = PartCost(1, _block_queue(log, family, log_depth(config)))
        if config.queue:
            parts["queue of results"] = PartCost(2, _block_queue(_RESULT, family))
    elif config.whole_states:
        merger, whole = whole_states(config, family)
        parts["merger of stored tuples' states"] = PartCost(config.cores - 1, merger)
        parts["states that wait"] = PartCost(1, whole)
    else:
        parts |= _combined(config, family)
    if config.fault_timeout:
        # Beside what a merger costs by itself, each that is not the last one tells the next that it is dead.
        parts["dead mergers"] = PartCost(sum(mergers.values()) - 2, Resources(lut=control(family, 68)))
        parts["report of dead cores"] = PartCost(1, _report_of_dead(config, family))
    parts["registers"] = PartCost(1, registers_cost(family))
    parts["counters"] = PartCost(1, counters_cost(config, family))
    return parts


def _combined(config: Configuration, family: Family) -> dict[str, PartCost]:
    """The parts that join the results of both sides."""
    sequence = _buffer(1, family) + fifo(family, 1, sequence_depth(config))
    if config.root_width > 1:
        return _root(config, family, sequence)
    parts = {"combiner": PartCost(1, _lookahead(0, family) * 2 + Resources(
        lut=mux(family, 2, config.item_record.width) + 20, ff=2) + sequence)}
    if config.queue:
        parts["queue of results"] = PartCost(2, _block_queue(_RESULT, family))
    return parts


def _settings(config: Configuration) -> int:
    # The star interval is common to both sides.
    return 2 * (ROW_BITS + config.time_bits + 1) + 32 + config.capacity.bit_length()


def _input(config: Configuration, family: Family) -> Resources:
    # Every core holds the settings.
    return (_queues(config, family) if config.queue else distributor_cost(config, 2, family)) + Resources(
        ff=_settings(config))


def _queues(config: Configuration, family: Family) -> Resources:
    """The queues ahead of both regions, which replace the distributor, and those of probes behind the storage side."""
    bits, resources = (config.queue - 1).bit_length(), Resources(lut=1)
    for side in "rs":
        shared, stored, probing = queued_body(config, side)
        width = 3 + config.time_bits + len(shared) + max(len(stored), len(probing))
        # Two addresses and the one above the head, the level, flags, and the register that shows the first record.
        resources += memory(family, width, config.queue) + Resources(
            lut=mux(family, 2, min(len(stored), len(probing)) + bits) + counter(family, bits + 1, bits + 1)
            + adder(family, bits + 1, bits + 1) + equal(family, bits + 1, bits + 1) + 12, ff=width + 4 * bits + 8)
        if depth := waiting_tasks(config):
            task = (2 * position_bits(config) + config.capacity.bit_length() + ROW_BITS + 2
                    + config.bounds(other_side(side)).width + config.reach(other_side(side)).width
                    + config.brought(other_side(side)).width)
            resources += fifo(family, task, depth)
    return resources


def _buffer(width: int, family: Family) -> Resources:
    # Two words, one of which is the output; two valid bits; the select bit, duplicated for each 64 bits.
    return Resources(lut=mux(family, 2, width) + 8, ff=2 * width + 2 + -(-width // 64))


def distributor_cost(config: Configuration, children: int, family: Family) -> Resources:
    return (_buffer(config.input_record.width, family)
            + Resources(lut=16 + 4 * children + gate(family, 2 * children), ff=children))


def watchdog_cost(config: Configuration, family: Family) -> Resources:
    """The cost of the watchdog of one core, and of what tells it whether the core's regions have work, and do it."""
    # Gates of both streams of results; the last probes and whether they are complete, three flags and the verdict.
    return _progress(config, family) * 2 + Resources(lut=control(family, 28), ff=2 * (ROW_BITS + 1) + 4)


def _progress(config: Configuration, family: Family) -> Resources:
    """The probes inside a region, counted up and down, and the gates that see an operation, a comparison or an end."""
    bits = probes_inside(config).bit_length()
    return Resources(lut=adder(family, bits, bits) + control(family, 22), ff=bits)


def _report_of_dead(config: Configuration, family: Family) -> Resources:
    """The time between two looks at the cores; their last probes, of which two are selected; and the dead ones."""
    bits, shown = (config.fault_timeout - 1).bit_length(), ROW_BITS + 2
    # With more than two cores Yosys takes about three times the LUT4 of the multiplexer.
    chosen = mux(family, config.cores, 2 * shown) * (3 if config.cores > 2 else 1)
    return _sum(config.cores, 1, family) + Resources(
        lut=counter(family, bits) + equal(family, bits) + chosen + 2 * mux(family, 2, ROW_BITS),
        ff=bits + 1 + 3 * shown + 5 + register_tree_size(config.cores))


def merger_cost(config: Configuration, inputs: int, family: Family) -> Resources:
    bits = order_bits(config)
    # The first two results of each input are compared with the first two of every other input.
    pairs = inputs * (inputs - 1) // 2
    ages = adder(family, *[bits] * (4 * pairs))
    # With more than two inputs Yosys takes some LUT4 a bit beyond those of the multiplexer.
    choice = mux(family, inputs, 2 * ROW_BITS) * (2 if inputs > 2 else 1)
    if config.fault_timeout:  # the flags of dead inputs, whose barriers are not waited for
        choice += control(family, 6 * inputs) + (mux(family, 4, 2 * ROW_BITS) * 3 if inputs > 2 else 0)
    return _lookahead(bits, family) * inputs + Resources(
        lut=ages + choice + 36 * pairs, ff=5 * pairs + 1 + (inputs if config.fault_timeout else 0))


def _lookahead(bits: int, family: Family) -> Resources:
    """The cost of four results in LUT RAM: one is read whole, of the next its kind and ``bits`` bits."""
    width, luts = (4, 6) if family == "ecp5" else (14, 8)
    ram = sum(luts * -(-shown // width) for shown in (ROW_BITS, ROW_BITS, bits, 2))
    return Resources(lut=ram + 40, ff=16)


def _root(config: Configuration, family: Family, sequence: Resources) -> dict[str, PartCost]:
    """The parts of a `splitjoin_hw.gather.root.Root`; ``sequence``: the FIFO of the order of streams."""
    width, inputs = config.root_width, 2 * root_ways(config.root_width)
    row, bits = width * _RESULT + 3, (RESULT_QUEUE - 1).bit_length()
    # A row that is collected, its place enables and kinds; and the number of rows in the queue.
    queue = _block_queue(row, family) + Resources(
        lut=width * 8 + counter(family, bits + 2) + gate(family, bits + 2) + 16, ff=row + width.bit_length() + bits + 4)
    items = width * (2 + 2 * config.row_bits)
    return {"rows of results": PartCost(inputs, queue), "combiner": PartCost(1, sequence + Resources(
        lut=mux(family, inputs, items) + 20 * inputs, ff=items + width + 3 * inputs + 6))}


#: Bits of a result within the circuit.
_RESULT = 2 + 2 * ROW_BITS


def _block_queue(width: int, family: Family, depth: int = RESULT_QUEUE) -> Resources:
    """The cost of a `splitjoin_hw.network.block_fifo.BlockFifo` of ``depth`` rows."""
    bits = (depth - 1).bit_length()
    # Head, tail and level; the items that were read and have not left, and flags.
    return memory(family, width, depth) + fifo(family, width, 16) + Resources(
        lut=counter(family, bits + 1, bits + 1) + adder(family, bits + 1, 5) + equal(family, bits + 1) + 8,
        ff=3 * bits + 13)


def registers_cost(family: Family) -> Resources:
    words = sum(reg.bits // 32 for reg in REGISTERS)
    written = sum(reg.bits for reg in REGISTERS if reg.access == "rw")
    high = sum(reg.bits == 64 for reg in REGISTERS)
    return Resources(lut=mux(family, words, 32) + mux(family, high, 32) + 2 * words, ff=written + 64)


def counters_cost(config: Configuration, family: Family) -> Resources:
    k = config.cores
    resources = Resources()
    for reg in REGISTERS:
        if reg.access == "r" and reg.unit in ("cycles", "tuples", "pairs"):
            # A counter has two halves: the carry of the low half is registered, and its value waits for the high half.
            resources += Resources(lut=counter(family, reg.bits), ff=reg.bits + 33)
    resources += _sum(2 * k, config.capacity.bit_length(), family) + _sum(2 * k, 1, family)
    # The cores are polled, in groups of four, for the first tuple that did not fit.
    visit, report = max(1, (k - 1).bit_length()), 3 * ROW_BITS + 2
    return resources + Resources(
        lut=mux(family, k, report) + adder(family, visit, ROW_BITS, ROW_BITS, ROW_BITS)
        + equal(family, visit) + 12, ff=2 * visit + 6 * ROW_BITS + 7 + report * -(-k // REPORT_GROUP))


def _sum(values: int, bits: int, family: Family) -> Resources:
    """The cost of an adder tree with a register after each adder, and one before the first."""
    resources = Resources(ff=values * bits)
    while values > 1:
        bits += 1
        resources += Resources(lut=adder(family, *[bits] * (values // 2)), ff=bits * -(-values // 2))
        values = -(-values // 2)
    return resources


def _region_counters(config: Configuration, family: Family) -> Resources:
    counts, marks = (sum(c.high is high for c in REGION_COUNTERS) for high in (False, True))
    amount = amount_bits(config)
    return Resources(lut=adder(family, *[COUNTER_BITS] * counts, *[amount] * marks) + mux(family, 2, amount * marks)
                     + mux(family, len(REGION_COUNTERS), COUNTER_BITS),
                     ff=COUNTER_BITS * (counts + 1) + amount * marks)


#: Cycles of a probe on an idle circuit beside both trees and the scan or the candidates (`latency_constant_cycles` of
#: bench/circuits.py), and the stages of the datapath for which they were measured.
CONSTANT, _STAGES = 24, 3
#: Further cycles with queues ahead of regions and of the combiner.
_QUEUED = 7
#: Further cycles with a root of so many results a cycle; and those of `_QUEUED` that its queues stand for.
_ROOT, _RESULTS = {1: 0, 2: 5, 4: 9}, 4


def cycles_a_tuple(config: Configuration, load: Workload) -> float:
    """Cycles per tuple under full load: half of the tuples probe one region and half the other, in parallel."""
    return max(input_cycles(config, load), CORE_SPEEDS[config.core].comparing_cycles(config, load))


def latency_cycles(config: Configuration, load: Workload, *, busy: bool = False) -> float:
    """Cycles from a probe to its star: PL = d·T + w·P + g·T (SplitJoin, section 6), T a cycle and P 1 / L of one.

    With an index, w·P stands for the candidates of the core with the most, and the lookups of buckets. With RANGE
    windows, an expiry precedes the probe. If the windows differ in length, the longer one counts. ``busy``: the probe
    arrives when a pass has just begun, and waits for its end.
    """
    work, wait = CORE_SPEEDS[config.core].latency(config, load)
    way = levels(config.cores, config.fanout) + levels(config.cores, config.fanin) + CONSTANT
    way += _ROOT[config.root_width] - (_RESULTS if config.queue and config.root_width > 1 else 0)
    way += config.stages - _STAGES + (EXPIRY if config.time_bits else 0) + (_QUEUED if config.queue else 0)
    return way + load.matches / config.cores + work + (wait if busy else 0)
