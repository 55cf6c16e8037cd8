"""Cost of the parts that fold in a circuit: a region's output side, and the tree of states (`splitjoin.hw.core.folder`,
``hw.gather.state_tree``).
"""

from __future__ import annotations

from ..circuit.fold_parts import FoldPart
from ..circuit.geometry import MEMORY_LATENCY, outcome_latency
from ..circuit.wire import ROW_BITS, Configuration
from .elements import adder, control, gate
from .fold import graph_cost, pipeline_cost
from .resources import Family, Resources

__all__ = ["folding_emitter", "merge_cost", "state_tree"]

#: LUT4 of control.
_CONTROL = {"emitter": 30, "merger": 4, "items": 12}


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
    merge = merge_cost(config, family)
    cycles = max(part.lift.ahead for part in config.folds)
    values = config.payload("s").width
    spare = outcome_latency(config) - MEMORY_LATENCY - cycles
    cost = sum((pipeline_cost(family, part.lift) for part in config.folds), Resources()) * lanes
    cost += Resources(ff=lanes * values * max(0, spare))
    levels = lanes.bit_length() - 1
    delayed = (levels + max(0, -spare)) * (2 + lanes * probes)
    # Each lane's state is masked by its hit, which an addition takes into its own LUTs; extremes do not.
    apart = sum(slot.bits for part in config.folds for slot in part.slots if slot.init)
    masks = probes * (lanes * (apart + (bits - apart) // 2) + apart)
    cost += merge * (probes * lanes)
    cost += Resources(lut=masks + probes * bits + control(family, _CONTROL["emitter"]),
                      ff=probes * bits * (lanes + 1) + bits + 1 + delayed + 2 * probes.bit_length() + 8)
    hits = lanes * probes  # counted
    return cost + Resources(lut=adder(family, *[n.bit_length() for n in range(2, hits + 1)]) // 2 if hits > 1 else 0,
                            ff=hits + hits.bit_length())


def state_tree(config: Configuration, family: Family) -> tuple[Resources, Resources]:
    """The cost of a merger of the tree of states, and of the part that makes items of states."""
    bits = config.state.width
    merger = merge_cost(config, family) + Resources(lut=control(family, _CONTROL["merger"]), ff=bits + 2)
    rest = 2 * ROW_BITS * config.beats + ROW_BITS
    items = Resources(lut=rest + ROW_BITS + adder(family, ROW_BITS) + control(family, _CONTROL["items"]),
                      ff=rest + ROW_BITS + 4 + config.beats.bit_length())
    return merger, items
