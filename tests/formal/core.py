"""Proofs of the join core: the state of its storage, and the reads of its ring by the scanner.

Rings are small and event times narrow; in the circuits, only the widths of counters depend on these sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import position_bits, ring_rows
from splitjoin.circuit.wire import ROW_BITS, Configuration, Op
from splitjoin_hw.core.layouts import batch_layout
from splitjoin_hw.core.scanner import Scanner
from splitjoin_hw.core.storage import Storage
from splitjoin_hw.layouts import input_layout, window_layout

from .harness import Harness
from .monitors import assume_stable_offers, prove_stable_offers
from .proofs import Fault, Proof

#: Tuples that may be stored ahead of unread ones in these proofs: fewer than in the circuits, so that faults show soon.
STORES = 2

_PROGRESS = "only for a slot or the processing side does an operation or an expiry wait more than a few cycles"


class ScannedRing(wiring.Component):
    """A region without its emitter, which stores S. The solver chooses ``room`` freely in every cycle."""

    def __init__(self, config: Configuration):
        self._config = config
        super().__init__({
            "i": In(stream.Signature(input_layout(config))),
            "o": Out(stream.Signature(batch_layout(config))),
            "index": In(range(max(2, config.cores))),
            "window": In(window_layout(config)),
            "room": In(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.storage = storage = Storage(self._config, "s")
        m.submodules.scanner = scanner = Scanner(self._config, "s")
        wiring.connect(m, wiring.flipped(self.i), storage.i)
        wiring.connect(m, storage.task, scanner.task)
        wiring.connect(m, scanner.batch, wiring.flipped(self.o))
        for lane in range(self._config.lanes):
            m.d.comb += [storage.rows[lane].eq(scanner.rows[lane]), scanner.keys[lane].eq(storage.keys[lane])]
        m.d.comb += [
            storage.index.eq(self.index), storage.window.eq(self.window), scanner.room.eq(self.room),
            scanner.single.eq(self.window.slice != 0),
            storage.scanning.eq(scanner.scanning), storage.position.eq(scanner.position),
            storage.waiting.eq(scanner.waiting), storage.first.eq(scanner.first), storage.claiming.eq(scanner.claiming),
        ]
        return m


def _config(*, cores: int, capacity: int, lanes: int = 1, probes: int = 1, time_bits: int = 0) -> Configuration:
    return Configuration(keys_r=(1,), keys_s=(1,), tests=((0, 0),), tree=0, cores=cores, capacity=capacity, lanes=lanes,
                         probes=probes, time_bits=time_bits)


def _settings(h: Harness, config: Configuration) -> None:
    """Assume that settings and the core's number are constant."""
    window = h.constant("settings", h.dut.window.as_value().shape())
    index = h.constant("core", h.dut.index.shape())
    h.assume("settings are constant",
             (h.dut.window.as_value() == window) & (h.dut.index == index) & (index < config.cores))
    h.assume("windows hold a row", h.dut.window.rows != 0)


def _stores_left(h: Harness, config: Configuration, path: str, span: Any) -> Any:
    """True if the storage counts right how many tuples it can store before the window is full.

    ``span``: own tuples from the oldest live one's row id on, less the core's index. Also assumes that settings are set
    before the first record.
    """
    cycles = Signal(2)  # since the settings are set, up to 3
    h.m.d.sync += cycles.eq(cycles + (cycles != 3))
    h.assume("settings are set before the first record", (cycles == 3) | ~h.dut.i.valid)
    # Windows longer than the ring's capacity count as unlimited here.
    most = 2**((config.cores * (config.capacity + 2)).bit_length()) - 1
    rows = Mux(h.dut.window.rows > most, most, h.dut.window.rows)
    moved = h.past(h.inner(f"{path}was_counted") | h.inner(f"{path}advanced"), "counts_moved")
    left, whole, started, window_rows, was_counted, advanced, seen = (h.inner(f"{path}{name}") for name in (
        "left", "whole", "started", "window_rows", "was_counted", "advanced", "decoded"))
    expected, counted = Signal(signed(ROW_BITS)), Signal(signed(ROW_BITS))
    h.m.d.comb += [
        expected.eq(rows + h.dut.index - span - 1),
        counted.eq(Mux(started, left, whole) + Mux(advanced, config.cores, 0) - was_counted),
    ]
    return (((cycles < 1) | (Mux(h.inner(f"{path}long"), most, window_rows) == rows))
            & ((cycles < 2) | (whole == rows + h.dut.index - 1))
            & ((cycles < 3) | ((counted == expected) & (started | (left == whole))))
            & (started | was_counted | ((span == 0) & ~advanced))
            & (h.inner(f"{path}window_full") == (started & (left == -1))) & (left >= -1)
            & (moved | ((cycles < 3) & ~was_counted)
               | (h.inner(f"{path}zero").all() == (Mux(started, left, whole) == 0)))
            & (~was_counted | advanced | ~started | (left >= 0))
            & ((cycles == 3) | (~started & ~was_counted & ~seen)))


def storage(cores: int, time_bits: int) -> Harness:
    """The harness of a storage. Its counters are a cycle late: ``live_now`` and ``row_now`` are the current values."""
    config = _config(cores=cores, capacity=4, time_bits=time_bits)
    dut = Storage(config, "s")
    h = Harness(dut)
    m = h.m
    bits = position_bits(config)
    assume_stable_offers(h, "i", dut.i)
    _settings(h, config)
    live, some, brim, head, turn, head_row, seen, counted, stored, was_counted, was_stored, advanced = (
        h.inner(name) for name in ("live", "not_empty", "full", "head", "turn", "head_row", "decoded", "counted",
                                   "stored", "was_counted", "was_stored", "advanced"))
    spent = h.inner("window_full")
    full = brim & ~spent
    tail = dut.written
    op, task = dut.i.payload, dut.task.payload
    own = (op.op == Op.TUPLE) & (op.stream == 1)
    taken = dut.i.valid & dut.i.ready & own
    count = Signal(ROW_BITS)  # own tuples so far
    m.d.sync += count.eq(count + taken)
    concerned = dut.window.timed & (op.op != Op.FLUSH) & (op.op != Op.MASK) & some if time_bits else 0
    live_now, row_now = Signal(range(2 * config.capacity)), Signal(ROW_BITS)
    m.d.comb += [live_now.eq(live + was_stored - advanced), row_now.eq(head_row + Mux(advanced, cores, 0))]
    prove_stable_offers(h, "task", dut.task)
    h.prove("the ring holds the tuples between head and tail",
            (live_now <= config.capacity) & ((tail - head)[:bits] == live_now))
    moved = h.past(was_stored | advanced, "moved")  # `live` changed
    h.prove("the flags for empty and full are right", (some == (live != 0)) & (brim == (live == config.capacity))
            & ~(moved & (was_stored | advanced))
            & (moved | ((h.inner("was_one") == (live == 1))
                        & (h.inner("was_almost_full") == (live == config.capacity - 1)))))
    h.prove("the decoded flags of an operation are right", (~seen | (
        dut.i.valid & (h.inner("stored_elsewhere") == (own & (turn != dut.index)))
        & (h.inner("stored_here") == (own & (turn == dut.index)))
        & (h.inner("fits") == (h.inner("stored_here") & ~full)) & (h.inner("evicts") == (own & spent))
        & (h.inner("probe") == ((op.op == Op.TUPLE) & ~own))
        & (h.inner("flush") == (op.op == Op.FLUSH)) & (h.inner("makes_task") == (h.inner("probe") | h.inner("flush")))
        & (h.inner("immediate") == (h.inner("stored_elsewhere") | (op.op == Op.TICK) | (op.op == Op.MASK)))
        & (h.inner("expiry_applies") == (dut.window.timed & (op.op != Op.FLUSH) & (op.op != Op.MASK))
           if time_bits else 1)))
            & ((h.inner("nothing_to_expire") == (seen & ~(some & h.inner("expiry_applies"))))
               & (h.inner("expiry_known") == (seen & ~h.inner("pending")[0])) if time_bits else 1))
    late_news = was_counted | advanced
    h.prove("counters are up to date when they are read",
            ~(was_stored & ~was_counted) & (~seen | ~late_news | (
                h.inner("pending").all() & h.inner("expiry_applies") & ~was_counted & some if time_bits else 0)))
    h.prove("each own tuple is counted once", counted == taken)
    stands = seen & own & (turn == dut.index) & full
    if time_bits:
        stands &= ~(concerned & (h.inner("pending")[0] | h.inner("head_expired")))
    h.prove("after an overflow no record is taken, and the cause of the overflow remains",
            ~dut.overflow | (stands & ~dut.i.ready))
    # The next tuple of this core has the row id `next_row` + index.
    next_row = row_now + config.cores * live_now
    h.prove("row ids and turns advance together",
            (turn < cores) & ((next_row + turn - count)[:ROW_BITS] == Mux(turn > dut.index, cores, 0)))

    h.prove("the stores left until the window is full are counted",
            _stores_left(h, config, "", (count - row_now)[:ROW_BITS]))
    h.prove("the oldest tuple lies within the window's rows",
            (live_now == 0) | ((count - row_now - dut.index)[:ROW_BITS] <= dut.window.rows))

    # Progress.
    moves = h.inner("commit") | h.inner("advance")
    blocked = dut.stall_probe | dut.stall_store | (seen & h.inner("stored_here") & ~h.inner("fits"))
    waited = Signal(3, name="waited")
    m.d.sync += waited.eq(Mux(~dut.i.valid | moves | blocked, 0, waited + 1))
    if time_bits:
        left = h.inner("pending")
        known = seen & (waited <= 3) & Array([1, ~left[2], ~left[1], ~left[0]])[waited[:2]]
    else:
        known = seen & (waited <= 1)
    h.prove(_PROGRESS, (waited == 0) | known)

    # One tuple of those stored, whichever.
    mark, picked = h.free("mark"), Signal()
    place, row = Signal(bits), Signal(ROW_BITS)
    with m.If(stored & mark & ~picked):
        m.d.sync += [picked.eq(1), place.eq(tail), row.eq(count)]
    ahead = (place - head)[:bits]
    inside = picked & (ahead < live_now)
    with m.If(picked & ~inside):
        m.d.sync += picked.eq(0)
    h.prove("each tuple's row id follows from its position", ~inside | (
        (row_now + config.cores * ahead + dut.index)[:ROW_BITS] == row))
    h.prove("a probe's window has no tuple beyond its rows",
            ~inside | ~dut.task.valid | ((count - row)[:ROW_BITS] <= dut.window.rows))
    h.prove("a task carries the positions and the oldest row id of the live tuples", ~dut.task.valid | task.flush | (
        (task.start == head) & (task.end == tail) & (task.count == live_now) & (task.row == row_now)))
    if time_bits:
        ts = Signal(time_bits)
        with m.If(stored & mark & ~picked):
            m.d.sync += ts.eq(op.ts)
        top = time_bits - 1
        age, until = (op.ts - ts)[:time_bits], (ts + dut.window.range)[:time_bits]
        h.assume("event times lie within half the counter's range",
                 ~dut.window.range[top] & (~inside | ~(age - dut.window.range)[top] | ~age[top]))
        pending, late = h.inner("pending"), h.inner("head_expired")
        oldest = inside & (ahead == 0)
        h.prove("each tuple's last time in the window is stored", (~inside | (h.look("times", place[:2]) == until))
                & (~seen | (h.inner("last") == (op.ts + dut.window.range)[:time_bits])))
        now = h.look("times", head[:2])
        h.prove("registered copies of the oldest tuple's last time are right", (live_now == 0) | (
            (pending[2] | (h.inner("times.read__data") == now))
            & (pending[1] | (h.inner("times.r_data", domain="sync") == now))
            & (pending[0] | ~seen | (late == (now - op.ts)[:time_bits][top]))
            & ((pending & (pending + 1))[:3] == 0)))
        h.prove("the oldest tuple of a probe's window is within the RANGE", ~oldest | ~dut.task.valid | task.flush
                | ~dut.window.timed | (age <= dut.window.range))
    return h


@contextmanager
def _few_stores() -> Iterator[None]:
    with patch("splitjoin.circuit.geometry.STORES", STORES):
        yield


@_few_stores()
def ring(lanes: int, probes: int, capacity: int) -> Harness:
    """The harness of a ring, stored to and scanned at once. Differences of positions are modular."""
    config = _config(cores=1, capacity=capacity, lanes=lanes, probes=probes)
    dut = ScannedRing(config)
    h = Harness(dut)
    bits, most = position_bits(config), config.capacity + STORES
    lane_bits = lanes.bit_length() - 1
    assume_stable_offers(h, "i", dut.i)
    _settings(h, config)
    live, was_stored, advanced, head, seen, kept, space, border = (h.inner(f"storage.{name}") for name in (
        "live", "was_stored", "advanced", "head", "decoded", "stored_here", "slot_free", "border"))
    tail = h.inner("storage.written")
    first, number, reach = (h.inner(f"scanner.{name}") for name in ("first", "batch_size", "reach"))
    position, scanning, left, last = (h.inner(f"scanner.{name}") for name in ("position", "scanning", "left", "last"))
    lower, upper = h.inner("scanner.lower"), h.inner("scanner.upper")
    issue, held, waiting = (h.inner(f"scanner.{name}") for name in ("reads", "task_valid", "waiting"))
    limit = h.inner("scanner.batch_limit")
    task = h.inner("scanner.task")
    start, end = task[:bits], task[bits:2 * bits]
    # The position written in a cycle was the tail in the previous one.
    write, written = h.past(seen & kept & space, "write"), h.past(tail, "written")
    spent = h.inner("storage.window_full")
    moved = h.past(was_stored | advanced, "moved")

    def to(a: Any, b: Any) -> Any:
        """The distance from position ``a`` to ``b``, modular."""
        return (b - a)[:bits]

    prove_stable_offers(h, "batch", dut.o)
    live_now = Signal(bits)
    h.m.d.comb += live_now.eq(live + was_stored - advanced)
    h.prove("the ring holds the tuples between head and tail",
            (live_now <= config.capacity) & (to(head, tail) == live_now)
            & (h.inner("storage.not_empty") == (live != 0)) & (h.inner("storage.full") == (live == config.capacity))
            & (~seen | ~(was_stored | advanced)) & (h.inner("storage.was_counted") == was_stored)
            & (~seen | (~h.inner("storage.stored_elsewhere") & (h.inner("storage.evicts") == (kept & spent))
                        & (h.inner("storage.fits") == (kept & ~(h.inner("storage.full") & ~spent)))))
            & (h.inner("storage.turn") == 0)
            & ((border + most - tail)[:bits] == 0)
            & (moved | ((h.inner("storage.was_one") == (live == 1))
                        & (h.inner("storage.was_almost_full") == (live == config.capacity - 1)))))
    h.prove("the stores left until the window is full are counted", _stores_left(h, config, "storage.", live_now))
    h.prove("the ring still holds the tuples of a waiting task", ~held | (
        (to(start, tail) <= most) & (to(start, head) <= to(start, tail)) & (to(start, end) <= to(start, written))
        & (~waiting | (to(first, start) <= to(first, tail)))))
    h.prove("the ring still holds the tuples of a waiting batch", ((number != 0) == waiting) & (~waiting | (
        (to(first, tail) <= most) & (to(first, head) <= to(first, tail)) & (reach <= to(first, written))
        & (h.inner("scanner.batch_closed") | (number < limit))))
        & (~h.started() | (limit == Mux(dut.window.slice != 0, 1, probes))) & (h.started() | ~held))
    h.prove("the ring still holds the tuples that a pass has yet to read",
            ~scanning | ((to(position, tail) <= most) & (left <= to(position, written))))
    h.prove("tuples are written a cycle after they are stored", to(written, tail) == was_stored)
    ends, held_empty, vacant = (h.inner(f"scanner.{name}") for name in ("last_or_idle", "task_ready", "batch_free"))
    h.prove("the flags for the last read of a pass are right",
            (~scanning | ((last == (left <= lanes)) & (h.inner("scanner.next_last") == (left <= 2 * lanes))))
            & (ends == (~scanning | last)))
    h.prove("the flags that start a pass are right", (h.inner("scanner.pass_due") == (waiting & ends & ~dut.o.valid))
            & (vacant == ~dut.o.valid) & (held_empty == ~held))
    h.prove("no tuple is written before its slot is free", ~(seen & space) | (
        (~scanning | (to(position, tail) < most)) & (~waiting | (to(first, tail) < most))
        & (~held | (to(start, tail) < most))))
    rows = len(lower)
    h.prove("reads address the slots of their positions", ~scanning | (
        (lower == position[lane_bits:][:rows]) & (upper == (lower + 1)[:rows])))
    found, apart = [], []
    slots = ring_rows(config) * lanes
    for n in range(lanes):
        there = (position + n)[:bits]
        concerned = issue & (left > n)
        ahead = to(there, written)
        found.append(~concerned | ((ahead >= 1) & (ahead <= most)))
        lane = there[:lane_bits] if lanes > 1 else Signal(1)
        row = Array(h.inner(f"scanner.rows__{k}") for k in range(lanes))[lane]
        apart.append(~concerned | (row == there[lane_bits:][:rows]))
        apart.append(~concerned | ~write | (written % slots != there % slots))
    h.prove("a read finds tuples that were written and not overwritten", Cat(found).all())
    h.prove("no slot is read and written in the same cycle", Cat(apart).all())
    return h


_LIVE = Fault("the ring holds the tuples between head and tail", Storage, "live.eq(live + was_stored - advanced)",
              "live.eq(live + was_stored - (advanced & ~was_stored))")

_STORAGE_FAULTS = (
    _LIVE,
    Fault("offers at task are stable", Storage, "self.task.valid.eq(expiry_done & makes_task)",
          "self.task.valid.eq(expiry_done & makes_task & ~self.scanning)"),
    Fault("counters are up to date when they are read", Storage, "decoded.eq(self.i.valid & ~commit)",
          "decoded.eq(self.i.valid)"),
    Fault("row ids and turns advance together", Storage, "turn == turns - 1", "turn == self.index"),
    Fault("each tuple's row id follows from its position", Storage, "head_row + turns", "head_row + 1"),
)

_ONLY_FAULTS = (
    Fault(_PROGRESS, Storage, "decoded.eq(self.i.valid & ~commit)",
          "decoded.eq(self.i.valid & ~commit & ~self.scanning)"),
    Fault("the flags for empty and full are right", Storage, "was_almost_full.eq(live == depth - 1)",
          "was_almost_full.eq(live == depth - 2)"),
    Fault("the decoded flags of an operation are right", Storage, "decoded.eq(self.i.valid & ~commit)",
          "decoded.eq(self.i.valid)"),
    Fault("each own tuple is counted once", Storage, "immediate | makes_task & self.task.ready | fits & slot_free",
          "immediate | makes_task & self.task.ready | fits"),
    Fault("after an overflow no record is taken, and the cause of the overflow remains", Storage,
          "m.d.sync += self.overflow.eq(1)", "m.d.sync += [self.overflow.eq(1), fits.eq(1)]"),
    Fault("the stores left until the window is full are counted", Storage,
          "Mux(advanced, Mux(counted, turns - 1, turns), Mux(counted, -1, 0))",
          "Mux(~advanced, Mux(counted, turns - 1, turns), Mux(counted, -1, 0))", "_count"),
    Fault("the oldest tuple lies within the window's rows", Storage, "(rows | long.replicate(bits)) + place - 1",
          "(rows | long.replicate(bits)) + place", "_count"),
    Fault("a probe's window has no tuple beyond its rows", Storage, "(rows | long.replicate(bits)) + place - 1",
          "(rows | long.replicate(bits)) + place", "_count"),
    Fault("a task carries the positions and the oldest row id of the live tuples", Storage, "task.start.eq(start)",
          "task.start.eq(tail)"),
)

_TIME_FAULTS = (
    Fault(_PROGRESS, Storage, "self.i.valid & ~commit & ~head_expires", "self.task.ready & ~commit & ~head_expires"),
    Fault("each tuple's last time in the window is stored",
          Storage, "times.w_addr.eq(self.written[:len(times.w_addr)])",
          "times.w_addr.eq(head[:len(times.w_addr)])", "_age"),
    Fault("registered copies of the oldest tuple's last time are right",
          Storage, "first | advance", "advance", "_age"),
    Fault("the oldest tuple of a probe's window is within the RANGE", Storage, "pending >> 1", "pending >> 2",
          "_age"),
)

_RING_FAULTS = (
    _LIVE,
    Fault("offers at batch are stable", Scanner, "m.If(batch_free)", "m.If(1)"),
    Fault("the ring still holds the tuples of a waiting task", Storage, "task.start.eq(start)", "task.start.eq(tail)"),
    Fault("the ring still holds the tuples of a waiting batch", Scanner, "reach.eq(end)", "reach.eq(end + 1)"),
    Fault("the ring still holds the tuples that a pass has yet to read",
          Scanner, "Mux(pass_due, reach, left - lanes)", "Mux(pass_due, reach + 1, left - lanes)"),
    Fault("tuples are written a cycle after they are stored", Storage, "tail.eq(tail + 1)",
          "tail.eq(tail + 2)"),
    Fault("the flags that start a pass are right", Scanner, "(last_or_idle | (issue & next_last))", "last_or_idle"),
    Fault("the flags for the last read of a pass are right", Scanner, "reach <= 2 * lanes", "reach <= lanes"),
    Fault("no tuple is written before its slot is free", Storage, "~(self.scanning & ~behind[0])", "1", "_space"),
    Fault("reads address the slots of their positions", Scanner, "Mux(pass_due, self.first[lane_bits:], upper) + 1",
          "Mux(pass_due, self.first[lane_bits:], upper)"),
    Fault("a read finds tuples that were written and not overwritten", Storage, "task.end.eq(Mux(flush, start, tail))",
          "task.end.eq(tail + 1)"),
    Fault("no slot is read and written in the same cycle", Scanner, "self.rows[lanes - 1].eq(lower)",
          "self.rows[lanes - 1].eq(upper)"),
)

PROOFS = (
    Proof("storage of the only core", lambda: storage(1, 0), 2, faults=_ONLY_FAULTS, search=18, quick=False),
    Proof("storage of a core of 2", lambda: storage(2, 0), 2, faults=_STORAGE_FAULTS, search=12, quick=False),
    Proof("storage with event times", lambda: storage(1, 4), 2, faults=_TIME_FAULTS, search=12, quick=False),
    Proof("ring of 2, lanes 1, probes 1", lambda: ring(1, 1, 2), 2, faults=_RING_FAULTS, search=22,
          quick=False),
    *(Proof(f"ring of {capacity}, lanes {lanes}, probes {probes}", lambda a=(lanes, probes, capacity): ring(*a), 2,
            quick=lanes == 2) for lanes, probes, capacity in ((1, 2, 4), (2, 2, 4), (4, 1, 8))),
)
