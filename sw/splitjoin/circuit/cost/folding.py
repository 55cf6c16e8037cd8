"""Cost of the parts that fold in a circuit: the programs of aggregates, the output sides of both regions, the filter of
first hits, the trees of states, and the unit that folds in order (`splitjoin_hw.core.folder`,
``hw.core.stored_states``, ``hw.core.first_hits``, ``hw.gather.state_tree``, ``hw.gather.turns``,
``hw.gather.ordered_folder``).
"""

from __future__ import annotations

from functools import lru_cache

from splitjoin.hls.bits import GraphBits
from splitjoin.hls.graph import Graph
from splitjoin.hls.pipeline import ScheduledGraph

from ..fold_parts import FoldPart
from ..geometry import (
    MEMORY_LATENCY,
    outcome_latency,
    position_bits,
    ring_rows,
    state_fifo_depth,
    state_levels,
    window_rows,
)
from ..wire import ROW_BITS, Configuration
from .elements import adder, control, counter, equal, fifo, gate, memory, mux
from .resources import Family, Resources, inputs


def pipeline_cost(family: Family, pipeline: ScheduledGraph, *, alone: bool = False) -> Resources:
    """The cost of the operations of ``pipeline``, with its registers. ``alone``: mapped by itself."""
    return _cost(family, pipeline.graph, pipeline.cycles, alone)


def graph_cost(family: Family, graph: Graph) -> Resources:
    """The cost of the operations of ``graph`` alone."""
    return _cost(family, graph, None, False)


@lru_cache(maxsize=256)
def _cost(family: Family, graph: Graph, cycles: tuple[int, ...] | None, alone: bool) -> Resources:
    """The cost of ``graph``, and of the registers of a pipeline with ``cycles``."""
    bits = GraphBits(graph, inputs(family), wide=alone)
    for n in range(len(graph.nodes)):
        bits.place(0 if cycles is None else cycles[n])
    found = bits.cost(registered=cycles is not None)
    return Resources(lut=found.luts + adder(family, *found.chains), ff=found.flip_flops, dsp=found.multipliers)


#: LUT4 of control.
_CONTROL = {"emitter": 16, "merger": 4, "items": 12, "stored": 24, "ordered": 40}


def merge_cost(config: Configuration, family: Family) -> Resources:
    """The cost of one merge of two states, without registers."""
    return sum((_part(config, part, family) for part in config.folds), Resources(lut=1))


def _part(config: Configuration, part: FoldPart, family: Family) -> Resources:
    cost = graph_cost(family, part.merge)
    flags = sum(config.values[v].nullable for v in part.values) > 0
    for slot, number in zip(part.slots, part.merge.outputs, strict=True):
        if slot.checked:
            cost += Resources(lut=gate(family, max(1, part.merge.nodes[number].width - slot.bits + 1)))
    return cost + Resources(lut=flags + config.may_exceed(part))


def folding_emitter(config: Configuration, family: Family) -> Resources:
    """The cost of the output side of a region that folds."""
    lanes, probes, bits = config.lanes, config.probes, config.state.width
    cycles = max(part.lift.ahead for part in config.folds)
    spare = outcome_latency(config) - MEMORY_LATENCY - cycles
    levels = lanes.bit_length() - 1
    cost = sum((pipeline_cost(family, part.lift) for part in config.folds), Resources()) * lanes
    cost += merge_cost(config, family) * probes  # with the probes' own states
    cost += _tree(config, lanes, family) * probes
    # States begin anew with each pass; two of each probe, one that leaves; outcomes on the way.
    delayed = levels * 2 + max(0, -spare) * (2 + lanes * probes)
    cost += Resources(lut=probes * bits * 4 // 5 + control(family, _CONTROL["emitter"]),
                      ff=probes * bits * 2 + bits + 1 + delayed + 2 * probes.bit_length() + 8
                      + lanes * config.payload("s").width * max(0, spare))
    if any(value.row for value in config.values):
        # A row id in each lane; that of the next read, and of the batch that is held.
        cost += Resources(lut=adder(family, *[ROW_BITS] * (lanes + 1)) + mux(family, 3, ROW_BITS),
                          ff=(lanes + 2) * ROW_BITS + 8)
    hits = lanes * probes  # counted
    return cost + Resources(lut=adder(family, *[n.bit_length() for n in range(2, hits + 1)]),
                            ff=hits + hits.bit_length())


def first_hits(config: Configuration, family: Family) -> Resources:
    """The cost of the filter that lets through the first hit of each stored tuple."""
    lanes, probes, bits = config.lanes, config.probes, position_bits(config)
    latency, row = outcome_latency(config), (ring_rows(config) - 1).bit_length()
    # The first position that was not fetched, and how far each read is ahead of it.
    cost = Resources(lut=adder(family, bits, bits, bits, bits) + 2 * bits + 6, ff=2 * bits + 3)
    cost += Resources(ff=(latency - MEMORY_LATENCY) * bits + lanes * (latency - 1) + MEMORY_LATENCY + 1)
    each = Resources(lut=adder(family, bits) + equal(family, row) * MEMORY_LATENCY + 4 + row * (lanes > 1),
                     ff=row * (MEMORY_LATENCY + 2) + 2 * MEMORY_LATENCY)
    each += memory(family, 1, ring_rows(config))
    # A hit leaves if its tuple had none before, and no earlier probe has hit it.
    each += Resources(lut=probes + gate(family, probes) * max(1, probes // 3), ff=probes)
    return cost + each * lanes


def stored_states(config: Configuration, family: Family) -> Resources:
    """The cost of the output side of a region whose stored tuples have states."""
    lanes, probes, bits, place = config.lanes, config.probes, config.state.width, position_bits(config)
    row, latency = (ring_rows(config) - 1).bit_length(), outcome_latency(config)
    lift, payload = max(part.lift.ahead for part in config.folds), config.payload("s").width
    ahead, levels = max(latency, lift), state_levels(config)
    cost = sum((pipeline_cost(family, part.lift) for part in _different(config)), Resources())
    if payload:
        # States of the probes of two batches, and values and flags on their way to them.
        cost += Resources(ff=2 * probes * _lifted_bits(config) + payload * (ahead - lift) + (1 + probes) * ahead)
    each = _tree(config, probes, family) + merge_cost(config, family)
    # The state of the memory or one that is on its way there; rows are compared for that. The initial one.
    each += Resources(lut=bits * (MEMORY_LATENCY + 1) + equal(family, row) * MEMORY_LATENCY + row * (lanes > 1),
                      ff=bits * MEMORY_LATENCY + row * (MEMORY_LATENCY + 2) + 2 * MEMORY_LATENCY)
    each += memory(family, bits, ring_rows(config))
    cost += each * lanes
    # What an addition takes is chosen in its carry chain, so mapping chooses the state that leaves once more.
    cost += Resources(lut=3 * sum(slot.bits for part in config.folds for slot, n in zip(
        part.slots, part.merge.outputs, strict=True) if part.merge.nodes[n].kind == "+"))
    # Which states may leave, and which are cleared: positions on their way, the limit as it was, the one that leaves.
    cost += Resources(lut=adder(family, *[place] * 6) + counter(family, row) + mux(family, 2, 3 * place)
                      + mux(family, lanes, bits) + control(family, _CONTROL["stored"]),
                      ff=(ahead + levels - MEMORY_LATENCY) * place + (lanes.bit_length() - 1) * MEMORY_LATENCY
                      + 5 * place + row + ahead + 2 * levels + (ahead - latency) * (1 + lanes * probes) + 19)
    hits = lanes * probes
    cost += Resources(lut=adder(family, *[n.bit_length() for n in range(2, hits + 1)]), ff=hits + hits.bit_length())
    return cost + fifo(family, 1 + bits, 16)


def _lifted_bits(config: Configuration) -> int:
    """The bits in which states of one partner differ: constants and copies of others take no registers."""
    found = 1  # that there is a partner
    for part in _different(config):
        nullable = any(config.values[v].nullable for v in part.values)
        found += nullable + config.may_exceed(part)
        outputs, nodes = part.lift.graph.outputs, part.lift.graph.nodes
        for n, (slot, number) in enumerate(zip(part.slots, outputs, strict=True)):
            if nodes[number].kind != "constant" and (nullable or number not in outputs[:n]):
                found += min(nodes[number].width, slot.bits)
    return found


def _different(config: Configuration) -> list[FoldPart]:
    """The parts whose states of one partner differ: a sum's and an extreme's are the same value."""
    found: dict[object, FoldPart] = {}
    for number, part in enumerate(config.folds):
        plain = all(part.lift.graph.nodes[n].kind == "input" for n in part.lift.graph.outputs) and not any(
            config.values[v].nullable for v in part.values)
        found.setdefault(part.values if plain else number, part)
    return list(found.values())


def whole_states(config: Configuration, family: Family) -> tuple[Resources, Resources]:
    """The cost of a merger of stored tuples' states, and of merging those of earlier partners, which wait in RAM."""
    bits = config.state.width
    merger = Resources(lut=bits + control(family, 16), ff=bits + 2 + (config.cores - 1).bit_length())
    rows = state_fifo_depth(config)
    places = rows.bit_length()
    return merger, merge_cost(config, family) + memory(family, bits, rows) + fifo(family, bits, 16) + Resources(
        lut=counter(family, places, places) + adder(family, places) + equal(family, places) + 16, ff=3 * places + 12)


def _tree(config: Configuration, lanes: int, family: Family) -> Resources:
    """The cost of merging the states of a read, one for each of ``lanes``, and of masking those without a hit."""
    cost = Resources(lut=lanes, ff=lanes - 1)
    for part in config.folds:
        merge = _part(config, part, family)
        flags = (any(config.values[v].nullable for v in part.values)) + config.may_exceed(part)
        cost += Resources(lut=flags * lanes, ff=flags * (lanes - 1))
        if all(part.lift.graph.nodes[n].kind == "constant" for n in part.lift.graph.outputs):
            # Hits are counted: sums are as wide as the number of lanes needs.
            wide = sum((lanes >> level) * (level + 1) for level in range(1, lanes.bit_length()))
            cost += Resources(lut=adder(family, wide), ff=wide) * len(part.slots)
            continue
        # Additions take the mask into their own LUTs in part.
        sums = {number for number in part.merge.outputs if part.merge.nodes[number].kind == "+"}
        apart = sum(slot.bits for slot, n in zip(part.slots, part.merge.outputs, strict=True) if n not in sums)
        whole = sum(slot.bits for slot in part.slots)
        cost += merge * (lanes - 1)
        cost += Resources(lut=lanes * (apart * 7 + (whole - apart) * 3) // 5, ff=whole * (lanes - 1))
    return cost


def state_tree(config: Configuration, family: Family) -> Resources:
    """The cost of a merger of the tree of states."""
    return merge_cost(config, family) + Resources(lut=control(family, _CONTROL["merger"]), ff=config.state.width + 2)


def state_items(config: Configuration, family: Family) -> Resources:
    """The cost of the part that makes items of states."""
    rest = 2 * ROW_BITS * config.beats + ROW_BITS
    return Resources(lut=rest + ROW_BITS + adder(family, ROW_BITS) + control(family, _CONTROL["items"]),
                     ff=rest + ROW_BITS + 4 + config.beats.bit_length())


def ordered_folder(config: Configuration, family: Family) -> Resources:
    """The cost of the unit that folds in the order of arrival."""
    adds = [part.add for part in config.folds if part.add is not None]
    rows, bits, payload, last = (window_rows(config), config.state.width, config.payload("s").width,
                                 max(add.ahead for add in adds) - 1)
    place = rows.bit_length()
    cost = Resources()
    for part, add in zip(config.folds, adds, strict=True):
        # Without the last registers, which are those of the state.
        made = _cost(family, add.graph, add.cycles, False)
        cost += Resources(lut=made.lut, ff=max(0, made.ff - sum(slot.bits for slot in part.slots)), dsp=made.dsp)
        for slot, number in zip(part.slots, add.graph.outputs, strict=True):
            wait = last - add.cycles[number]
            cost += Resources(lut=slot.checked * gate(family, max(1, add.graph.nodes[number].width - slot.bits + 1)),
                              ff=wait * slot.bits)
            if any(config.values[v].nullable for v in part.values):
                cost += Resources(lut=slot.bits)
    # The state, loaded, begun or made; values; the places of partners on their way, and of what has come and left.
    cost += Resources(lut=3 * bits + payload + 3 * (place - 1), ff=bits + 2 * payload + (last + 3) * (place + 1))
    cost += Resources(lut=adder(family, place, place, place) + equal(family, place) + gate(family, ROW_BITS)
                      + 34 + control(family, _CONTROL["ordered"]), ff=3 * place + 12)
    if config.time_bits:
        cost += Resources(lut=adder(family, config.time_bits, config.time_bits), ff=config.time_bits)
        cost += memory(family, config.time_bits, rows)
    return cost + memory(family, bits, rows) + (memory(family, payload, rows) if payload else Resources())
