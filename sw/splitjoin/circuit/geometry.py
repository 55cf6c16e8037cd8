"""The geometry of circuits: sizes of trees, FIFOs, rings, lists and tables, and the widths of their counters and
pointers.

Plain Python without any HDL, and the one place for these numbers: components (`splitjoin_hw`), their cost
(`splitjoin.circuit.cost`), their speed (`splitjoin.circuit.tuner`) and simulation (`splitjoin_sim`) import them from
here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from splitjoin.lang.schema import other_side

from .wire import ROW_BITS, Configuration, Record

# Trees and links.

#: Loads that one register of a `register_tree` drives.
REGISTER_FANOUT = 4
#: The smallest depth of a credit FIFO: words of LUT RAM.
_LUT_RAM_WORDS = 16
#: FIFOs of this depth, in series, hold the order of streams for total order: each is read in a cycle.
SEQUENCE_FIFO = 64
#: Tuples between the input and the combiner that total order can keep apart where regions have no queues: batches of
#: both sides that are collected, scanned and emitted, and what the trees hold.
_SEQUENCE = 256
#: Results and stars of each side that wait ahead of the combiner where regions have queues: rows of one block RAM. At a
#: wide root the rows of results of each way.
RESULT_QUEUE = 512
#: Cores in a group: the overflow report is chosen within each group in one step, and among the groups in the next.
REPORT_GROUP = 4


def levels(leaves: int, fan: int) -> int:
    """⌈log_fan leaves⌉: nodes in a row in a tree with at most ``fan`` children or inputs a node."""
    depth = 0
    while fan**depth < leaves:
        depth += 1
    return depth


def split(count: int, fan: int) -> list[int]:
    """Sizes of the groups, as equal as possible, into which a node of a balanced tree splits ``count`` leaves.

    No group is so large that the tree would become deeper than `levels`.
    """
    groups = min(fan, count)
    return [count // groups + (n < count % groups) for n in range(groups)]


@cache
def tree_nodes(leaves: int, fan: int) -> dict[int, int]:
    """Number of inputs → number of nodes with that many, in a tree over ``leaves``; one leaf needs no node."""
    nodes: dict[int, int] = {}
    if leaves > 1:
        groups = split(leaves, fan)
        nodes[len(groups)] = 1
        for size in groups:
            for inputs, count in tree_nodes(size, fan).items():
                nodes[inputs] = nodes.get(inputs, 0) + count
    return nodes


@cache
def links(leaves: int, fanout: int) -> tuple[dict[int, int], dict[int, int]]:
    """Counts for a distribution tree: of broadcast registers by number of children, and of credit FIFOs by the number
    of registers before them. The root of the tree is no register.
    """
    broadcasts: dict[int, int] = {}
    fifos: dict[int, int] = {}

    def grow(count: int, stages: int) -> None:
        if count == 1:
            fifos[stages] = fifos.get(stages, 0) + 1
            return
        groups = split(count, fanout)
        if stages >= 0:
            broadcasts[len(groups)] = broadcasts.get(len(groups), 0) + 1
        for size in groups:
            grow(size, stages + 1)

    if leaves > 1:
        grow(leaves, -1)
    return broadcasts, fifos


def in_flight(stages: int) -> int:
    """The number of items that may still arrive at the end of a link of ``stages`` registers after its FIFO withdraws
    the credit.

    They are sent before the sender sees the withdrawal, are in flight at that time, or are not yet counted in the
    FIFO's level, which lags by one register.
    """
    return 2 * stages + 2


def credit_fifo_depth(stages: int) -> int:
    """Depth in items of the FIFO at the end of a link of ``stages`` registers, a power of two.

    2·``stages`` + 3 cycles pass from the cycle in which the FIFO grants credit again to the next item. The FIFO does
    not run empty meanwhile, because a core takes an item in two cycles.
    """
    least = in_flight(stages) + stages + 2
    return max(_LUT_RAM_WORDS, 1 << (least - 1).bit_length())


def register_tree_depth(loads: int) -> int:
    """Depth of a register tree: registers in a row between the source and the farthest of ``loads`` loads, if no
    register drives more than `REGISTER_FANOUT`.
    """
    return max(0, levels(loads, REGISTER_FANOUT) - 1)


@cache
def register_tree_size(loads: int) -> int:
    """Number of registers in a register tree over ``loads`` loads."""
    if loads <= REGISTER_FANOUT:
        return 0
    return sum(1 + register_tree_size(size) for size in split(loads, REGISTER_FANOUT))


def order_bits(config: Configuration) -> int:
    """Number of low row-id bits that suffice to decide, modulo their range, which of two matches of one probe is older.

    The matches of a probe are live at the same time: at most ``capacity`` in each core, with row ids ``cores`` apart,
    and the newest row ids of the cores differ by less than ``cores``. The difference is signed.
    """
    return min(ROW_BITS, (config.turns * (config.capacity + 1)).bit_length() + 1)


def sequence_depth(config: Configuration) -> int:
    """Tuples between the input and the combiner that total order can keep apart, a multiple of `SEQUENCE_FIFO`: those
    that a circuit without queues holds, and those that wait in the queue of the region that is behind.
    """
    return _SEQUENCE + -(-2 * config.queue // SEQUENCE_FIFO) * SEQUENCE_FIFO


def root_ways(width: int) -> int:
    """Result streams of each side at a root of ``width`` results a cycle, as each gives one: 1, or 2 with width 4."""
    return max(1, width // 2)


def queued_body(config: Configuration, side: str) -> tuple[list[int], list[int], list[int]]:
    """The bits of a record's body that the queue ahead of the region which stores ``side`` holds: those that the region
    uses both of tuples that it stores and of probes, those of the former alone, and those of the latter alone.

    Of a tuple it uses the keys, the index's cells and the values to be folded, and as many of the lowest bits as a
    core's number has, for MASK; of a probe the bounds, the reach, and the values that it brings.
    """
    other = other_side(side)
    stored = {*range((config.cores - 1).bit_length()),
              *_places(config.body(side), config.keys(side), config.cells(side), config.stored_values(side))}
    probing = set(_places(config.body(other), config.bounds(other), config.reach(other), config.brought(other)))
    return sorted(stored & probing), sorted(stored - probing), sorted(probing - stored)


def _places(body: Record, *parts: Record) -> Iterator[int]:
    offsets = body.offsets()
    for name, width in (field for part in parts for field in part.fields):
        yield from range(offsets[name][0], offsets[name][0] + width)


def comparisons(config: Configuration) -> int:
    """Peak comparisons per cycle: both regions of every core compare each lane with each probe. A sequential circuit
    has one probe at a time.
    """
    return 1 if config.structure.sequential else 2 * config.cores * config.lanes * config.probes


def comparators(config: Configuration) -> int:
    """Comparators of a region, two for each test, for each lane and probe; of a sequential circuit in all."""
    sequential, pairs = config.structure.sequential, config.lanes * config.probes
    return 2 * len(config.tests) * (len(config.structure.datapaths(config)) if sequential else pairs)


# States that leave whole.


def state_levels(config: Configuration) -> int:
    """Merges in a row, with a register behind each, that make one state of the probes of a batch."""
    return levels(config.probes, 2)


def state_fifo_depth(config: Configuration) -> int:
    """Rows of the FIFO of the states of earlier partners, a power of two of at least 4: they wait there until R's
    tuples expire, so all tuples of a full window must find room.
    """
    return max(4, 1 << (config.window_capacity - 1).bit_length())


# Folds in order.


def window_rows(config: Configuration) -> int:
    """Rows of the memories of a window, a power of two: the states of R's tuples, and the values of S's."""
    return max(2, 1 << (config.window_capacity - 1).bit_length())


def log_depth(config: Configuration) -> int:
    """Rows of the FIFO of operations between the input and the unit that folds in order, a power of two."""
    return 1 << (sequence_depth(config) - 1).bit_length()


# The ring of a region.

#: Cycles from an address to the word of a memory (`splitjoin_hw.tech.ram`).
MEMORY_LATENCY = 2
#: Tuples that can be stored before the tuples that expired for them are read for the last time; and where records wait
#: ahead of regions: as many as come while two passes serve 16 probes each, and as many again for streams at random.
STORES, _QUEUED_STORES = 16, 64
#: Probes that can wait behind the storage side for their batch, in a region whose pass takes hardly longer than its
#: batch's records take to arrive.
_WAITING = 16


def stores(config: Configuration) -> int:
    """Tuples that a region can store before the tuples that expired for them are read for the last time.

    With a queue they are more, as far as that takes no more memory: rings have a power of two of rows. In external
    memory they are twice as many as the probes that can be under way.
    """
    if config.memory != "bram":
        return min(config.capacity // 2, max(STORES, 2 * config.contexts * config.cores))
    if not config.queue or config.kind.has_index:
        return STORES
    return max(STORES, min(_QUEUED_STORES, config.capacity // 2))


def waiting_tasks(config: Configuration) -> int:
    """Probes that can wait between the storage side and the batch that is being collected; 0 for none.

    A region takes a record in two cycles. If its pass takes less than twice as long as a batch's records, R and S
    alternating, it must not stop for the end of a pass: with streams at random it would not catch up.
    """
    near = config.capacity // config.lanes < 2 * (2 * 2 * config.probes)
    return _WAITING if config.queue and not config.kind.has_index and near else 0


def probes_inside(config: Configuration) -> int:
    """At least as many probes and FLUSHes as a region can hold: in its queues, in the batches that are collected,
    scanned, emitted, and wait in between, and one in each step of storage.
    """
    return config.queue + _WAITING + 8 * config.probes + 40


def position_bits(config: Configuration) -> int:
    """Width of ring positions. Positions keep counting where slots wrap around: slot = position mod the ring's slots.

    Compared positions differ by at most the capacity, `stores` positions and two reads; two bits more than that needs
    keep signed differences exact.
    """
    return max(config.capacity, stores(config), 2 * config.lanes).bit_length() + 1


def group_bits(config: Configuration) -> int:
    """Width of the number of a read within a pass; a read fetches one tuple per lane."""
    return position_bits(config) - (config.lanes.bit_length() - 1)


def ring_rows(config: Configuration) -> int:
    """Rows of a lane's bank: a power of two, with room for `stores` tuples beside the largest number of live ones."""
    return 1 << (config.capacity + stores(config) - 1).bit_length() >> (config.lanes.bit_length() - 1)


def distance_bits(config: Configuration) -> int:
    """Width of the distance between two tuples of the ring, in positions."""
    return (config.capacity + stores(config)).bit_length()


def window_count_bits(config: Configuration) -> int:
    """Bits of a ROWS window's length: a ring of this capacity never reaches the end of a longer one."""
    return (config.turns * (config.capacity + 2)).bit_length()


def amount_bits(config: Configuration) -> int:
    """Width of the amount that a region counter adds in one cycle."""
    return max(config.capacity, 2 * 64).bit_length() + 1


# The results of a region.

#: Passes of a region with an index that may have begun before the results of their probes leave.
PASSES = 4
#: Capacity in items of the buffer between the list of results and a region's output.
EMITTER_ITEMS = 16
#: Matches of a probe that a region with external memory holds at once: with those in flight 2048 rows.
PASS_HITS = 2000
#: Least number of entries of a list of results.
LISTED = 64
#: Least number of sorted items of two batches: one block RAM of 36 bits a row.
SORTED = 512
#: Least number of items of a probe that are sorted.
QUOTA = 64


def outcome_latency(config: Configuration) -> int:
    """Cycles from issuing a read of the ring to its outcome."""
    return MEMORY_LATENCY + config.stages + 1


def reads_under_way(latency: int) -> int:
    """Outcomes of a scan that may arrive after its list is full, ``latency`` cycles from a read to its outcome."""
    return latency + 6


def finds_under_way(latency: int) -> int:
    """The same number for a region with an index."""
    return latency + 4


def list_depth(config: Configuration, latency: int) -> int:
    """Entries of a scan's list of results, a power of two: more than its longest pass, and the reads in flight."""
    return _listed(max(2 * (config.capacity // config.lanes),
                       (config.capacity + stores(config)) // config.lanes + reads_under_way(latency) + 1))


def sort_quota(config: Configuration) -> int:
    """Items of each probe of a batch that a region that scans sorts while the pass is under way, a power of two.

    Further items of the same probe are read from the list when its turn comes. An eighth of a pass's reads, so that
    even then a result takes less than three cycles.
    """
    halves = 2 << (config.probes - 1).bit_length()
    least = max(QUOTA, config.capacity // config.lanes // 8, SORTED // halves)
    return 1 << (least - 1).bit_length()


def stack_depth(config: Configuration, latency: int) -> int:
    """The same number for a region with an index: room for all matches of a pass, and for those in flight. With
    external memory a pass that finds more than `PASS_HITS` is repeated.
    """
    matches = config.capacity if config.memory == "bram" else min(config.capacity, PASS_HITS)
    return _listed(matches + finds_under_way(latency) + 4)


def bitmap_bits(config: Configuration) -> tuple[int, int]:
    """Of a bitmap over the tuples of a sub-window the bits of a place in a word, and of a word's number: of equal
    length, as there are flags of words and bits of a word to choose from.
    """
    bits = max(2, (config.capacity - 1).bit_length())
    return bits - bits // 2, bits // 2


def repeats(config: Configuration) -> bool:
    """True if a pass may find more than the list of results has room for, and is repeated then."""
    return config.memory != "bram" and config.capacity > PASS_HITS


def _listed(least: int) -> int:
    depth = LISTED
    while depth < least:
        depth *= 2
    return depth


# Tests that are looked up in tables.

#: Probes whose tables are written together: the number of outputs that LUT RAM has for one address.
PROBE_GROUP = 4
#: Bits of a key that one table looks up.
DIGIT = 3
#: Widest low part in bits that is looked up; a wider one is subtracted.
LOOKED_UP = 2 * DIGIT
#: Least number of cycles from the request to write one group's tables to the request for the next group, or to the swap
#: to that batch.
TABLE_WRITE_CYCLES = 2**DIGIT


def probe_groups(probes: int) -> list[int]:
    """The number of probes in each group of a batch."""
    return [min(PROBE_GROUP, probes - first) for first in range(0, probes, PROBE_GROUP)]
