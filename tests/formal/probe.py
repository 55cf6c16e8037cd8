"""Proofs of the scanner and the prober: they fulfil the emitters' assumptions, and each probe becomes a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Cat, Mux, Signal, Value, signed
from amaranth.lib import data

from splitjoin.circuit.geometry import TABLE_WRITE_CYCLES as WRITING
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.core.buckets import CellBuckets, HashBuckets
from splitjoin_hw.core.layouts import batch_layout
from splitjoin_hw.core.prober import Prober
from splitjoin_hw.core.scanner import Scanner
from splitjoin_hw.network.queue import Queue

from .harness import Harness
from .lookup import TableOrder
from .monitors import Follower, assume_stable_offers, follow, prove_stable_offers
from .network import sound_queue
from .progress import falls
from .proofs import Fault, Proof

#: Passes whose batches may wait, in these proofs.
_PASSES = 2
#: Probes whose tables are written together, in these proofs.
_GROUP = 2

_MOVES = "while there is room, each cycle brings a pass nearer to its next read, or to its end"


@contextmanager
def few() -> Iterator[None]:
    with (patch("splitjoin.circuit.geometry.PASSES", _PASSES), patch("splitjoin.circuit.geometry.STORES", 2),
          patch("splitjoin.circuit.geometry.PROBE_GROUP", _GROUP)):
        yield


def _outcomes(h: Harness, tokens: list[Any]) -> Value:
    """Prove properties of the outcomes of reads. Returns the number of passes whose last outcome is still to come.

    ``tokens``: of the reads in flight, from the youngest on, a flag for an outcome and one for the last of a pass.
    """
    dut = h.dut
    h.output = dut.batch
    tokens = [*tokens, Cat(dut.found_valid, dut.found_valid & dut.found.last)]
    assert len(tokens) == dut.latency
    allowed = [dut.room]
    for n in range(dut.latency):
        allowed.append(h.past(allowed[-1], f"room{n}"))
    h.prove("an outcome belongs to a read for which there was room",
            Cat(~token.any() | room for token, room in zip(tokens, allowed[1:], strict=True)).all())
    # Seen from the end, something follows each outcome that is not its pass's last.
    whole, open_ = [], dut.scanning
    for token in tokens:
        whole.append(~token[0] | token[1] | open_)
        open_ = Mux(token[0] | token[1], 1, open_)
    h.prove("a pass ends with its last outcome", Cat(whole).all())
    return dut.scanning + sum(token[1] for token in tokens)


@few()
def scanner(*, tables: bool = False) -> Harness:
    # Two groups of tables; passes so long that batches of both come together meanwhile.
    config = _config(core="scan", capacity=4, probes=_GROUP + 1, widths=(0,), tables=True) if tables else _config(
        core="scan", probes=2)
    dut = Scanner(config, "s")
    h = Harness(dut)
    assume_stable_offers(h, "task", dut.task)
    h.output = dut.batch
    prove_stable_offers(h, "batch", dut.batch)
    stages = [h.inner(name) for name in ("token0", "token1", *(f"token_matched{n}" for n in range(config.stages)))]
    taken = dut.batch.valid & dut.batch.ready
    ahead = Signal(signed(5), name="ahead")  # batches taken less passes ended
    h.m.d.sync += ahead.eq(ahead + taken - (dut.found_valid & dut.found.last))
    under_way = _outcomes(h, [Cat(token[0], token.all()) for token in stages])
    h.prove("the flags that start a pass are right", (h.inner("batch_free") == ~dut.batch.valid)
            & (h.inner("last_or_idle") == (~dut.scanning | h.inner("last")))
            & (~h.inner("pass_due") | (h.inner("batch_free") & h.inner("last_or_idle"))))
    h.prove("ended passes are counted", ahead == under_way - dut.batch.valid)
    h.prove("a pass has outcomes only after the previous batch was taken", ~dut.found_valid | (ahead >= 0))
    _ends(h, config)
    if tables:
        single = h.constant("single", 1)
        h.assume("batches are of one probe for ever or never", dut.single == single)
        _written(h, config.probes)
    return h


def _ends(h: Harness, config: Configuration) -> None:
    """Prove that a pass ends: each cycle with room is a read, and the tuples of its windows take so many reads."""
    dut, lanes = h.dut, config.lanes
    take, left, reach = (h.inner(name) for name in ("take", "left", "reach"))
    reads, tuples = Signal(len(left) + 1, name="reads_of_pass"), Signal(len(left) + 1, name="tuples_of_pass")
    with h.m.If(take):
        h.m.d.sync += [reads.eq(0), tuples.eq(reach)]
    with h.m.Elif(dut.reads):
        h.m.d.sync += reads.eq(reads + 1)
    h.prove("a pass reads in each cycle with room", dut.reads == (dut.scanning & dut.room))
    h.prove("a pass has a read for each row of its tuples, and at least one",
            ~dut.scanning | (reads == 0) | (reads * lanes < tuples))
    h.prove("the tuples that a pass has still to read are counted", ~dut.scanning | (
        (left == (tuples - reads * lanes)[:len(left)]) & ((reads == 0) | (reads * lanes < tuples))
        & (h.inner("last") == (left <= lanes)) & (h.inner("next_last") == (left <= 2 * lanes))))


def _written(h: Harness, probes: int) -> None:
    """Prove that the matcher's tables are written as `splitjoin_hw.hls.matcher.Matcher` requires."""
    fill, swap, load = (h.inner(name) for name in ("fill", "swap", "load"))
    loaded = Cat(load[first:first + _GROUP].any() for first in range(0, probes, _GROUP))
    order = TableOrder(h, fill=fill, swap=swap, load=load, group=_GROUP)
    filled, pending, age = order.filled, order.pending, order.age
    for name, holds in order.rules.items():
        h.prove(name, holds)
    # The steps of it, from a batch's first probe to its pass.
    some, whole, which, shut, done, number, most, closed, taken, turns = (h.inner(name) for name in (
        "unwritten", "group_complete", "group_select", "batch_locked", "written", "batch_size",
        "batch_limit", "batch_closed", "taken", "pass_due"))
    steps = [h.inner(f"write_start{n}") for n in range(1, WRITING - 1)]
    waiting = h.dut.waiting
    begun = Cat(number > first for first in range(0, probes, _GROUP))
    last = Cat((number > first) & (number <= first + _GROUP) for first in range(0, probes, _GROUP))
    h.prove("the state of writing tables is consistent", Cat(
        waiting == (number != 0), ~closed | waiting, ~waiting | closed | (number < most), number <= probes,
        h.inner("task_valid") == ~h.inner("task_ready"), h.started() | ~h.inner("task_valid"),
        ~h.started() | (most == Mux(h.dut.single, 1, probes)),
        taken + swap + waiting <= 1, ~done | (closed & ~some), ~turns | done,
        some == (pending | loaded).any(), ~some | (waiting & (which == last) & ((pending & ~which) == 0)),
        ~load.any() | (load == Cat(number == n + 1 for n in range(probes))),
        ~whole | load.any(), whole == (some & (number % _GROUP == 0)),
        Mux(taken | swap, filled.any(), filled == Mux(some, begun & ~which, begun)), age != 0,
        *(step == (age == n + 1) for n, step in enumerate(steps)),
        shut == (closed | (waiting & (whole | (age <= WRITING - 2)))), ~some | (age >= WRITING),
        ~waiting | some | closed | (number % _GROUP == 0),
        ~done | (age > 4), ~turns | (age > 5), waiting | (age > 6), ~swap | (age > 7)).all())


@few()
def prober(core: str) -> Harness:
    config = _config(core=core, index=(0,))
    dut = Prober(config, "s", CellBuckets() if core == "bucket" else HashBuckets())
    h = Harness(dut)
    assume_stable_offers(h, "task", dut.task)
    prove_stable_offers(h, "batch", dut.batch)
    h.prove("pointers, flags and level of its queue agree", sound_queue(h, "batches", _PASSES))
    tokens = [h.inner(f"token{n}") for n in range(2 + config.stages)]
    taken, ended = dut.batch.valid & dut.batch.ready, dut.found_valid & dut.found.last
    passes = Signal(signed(5), name="passes")  # that ended, and whose batches were not taken
    h.m.d.sync += passes.eq(passes + ended - taken)
    under_way = _outcomes(h, [token[:2] for token in tokens])
    choosing, reading, waited, linked, ready = (
        h.inner(name) for name in ("choosing", "reading", "link_wait", "link_ready", "lookup_done"))
    h.prove("the state of a pass is consistent", sum((choosing, reading, waited, linked)) == dut.scanning)
    h.assume("buckets are granted that are asked for", ~dut.granted | dut.look)
    looking, reached, stop = (h.inner(name) for name in ("lookup_busy", "reached", "no_lookup"))
    h.prove("the state of a waiting probe is consistent", (
        dut.waiting == sum((h.inner("step"), looking, ready, *(h.inner(f"looked_up{n}")[1] for n in range(4)))))
            & Mux(reached, looking, ~(looking & stop)))
    level = h.inner("batches.level")
    h.prove("ended passes are counted", passes == level - under_way)
    h.prove("ended passes whose batches were not taken fit the queue", ~dut.found_valid | (passes < _PASSES))

    # Progress: a tuple is chosen and read, and its link is read; then the next one is.
    issue, last, has_next = (h.inner(name) for name in ("issue", "last", "has_next"))
    waits = reading | (choosing & ~has_next)
    falls(h, _MOVES, Mux(waits, 1, Mux(choosing, 2, Mux(linked, 3, 4))),
          dut.scanning & ~h.past(issue | last, "was_read"), always=dut.room | ~waits)

    # Each probe becomes a batch.
    def essence(item: Any) -> Value:
        return Cat(item.row, item.flush, item.count)

    held = data.View(batch_layout(config), Value.cast(h.inner("batches.i__payload")))
    head = h.inner("batches.head")
    f = Follower(h, "probe", entered=dut.task.valid & dut.task.ready, entering=essence(dut.task.payload),
                 port=dut.batch, leaving=essence(dut.batch.payload), capacity=_PASSES + 1)
    follow(h, f)
    h.prove("the items inside are counted", f.inside == level + dut.waiting)
    place = data.View(batch_layout(config), h.look("batches.rows", (head + f.ahead)[:len(head)]))
    h.prove("the picked item is in its place", ~f.picked | (f.token == Mux(
        f.ahead < level, essence(place), essence(held))))
    return h


def _config(*, capacity: int = 2, **options: Any) -> Configuration:
    return Configuration(keys_r=(1,), keys_s=(1,), tests=((0, 0),), tree=0, capacity=capacity, **options)


_SCANNER_FAULTS = (
    Fault("offers at batch are stable", Scanner, "m.If(batch_free)", "m.If(1)"),
    Fault("an outcome belongs to a read for which there was room", Scanner, "issue.eq(self.scanning & self.room)",
          "issue.eq(self.scanning)"),
    Fault("a pass ends with its last outcome", Scanner, "self.found.last.eq(token[1])", "self.found.last.eq(0)"),
    Fault("the flags that start a pass are right", Scanner, "(batch_free | self.batch.ready)", "1"),
    Fault("ended passes are counted", Scanner, "self.found.last.eq(token[1])", "self.found.last.eq(1)"),
    Fault("a pass has outcomes only after the previous batch was taken",
          Scanner, "(batch_free | self.batch.ready)", "1"),
)
_END_FAULTS = (
    Fault("a pass reads in each cycle with room", Scanner, "issue.eq(self.scanning & self.room)",
          "issue.eq(self.scanning & self.room & ~self.batch.valid)"),
    Fault("a pass has a read for each row of its tuples, and at least one", Scanner,
          "self.scanning.eq(pass_due | ~last_or_idle)", "self.scanning.eq(1)"),
    Fault("the tuples that a pass has still to read are counted", Scanner, "left <= 3 * lanes", "left <= 2 * lanes"),
)
_TABLES_FAULTS = (
    Fault("each group's tables are written once for a batch, one group at a time", Scanner,
          "[some.eq(0), group_complete.eq(0)]", "group_complete.eq(0)", "_write"),
    Fault("a group's tables are written only after those of the previous group", Scanner, "batch_locked.eq(last)",
          "batch_locked.eq(0)", "_write"),
    Fault("a batch is looked up only after its tables are written", Scanner, "TABLE_WRITE_CYCLES - _READ_LATENCY - 2",
          "TABLE_WRITE_CYCLES - _READ_LATENCY - 3", "_write"),
    Fault("no bounds are loaded while tables are written", Scanner, "since[-1] & ~batch_closed",
          "since[-2] & ~batch_closed",
          "_write"),
    Fault("bounds are loaded for one group at a time, and before its tables are written", Scanner,
          "(batch_size + 1) % geometry.PROBE_GROUP == 0", "batch_size % geometry.PROBE_GROUP == 0", "_write"),
    Fault("the state of writing tables is consistent", Scanner, "[batch_locked.eq(0), written.eq(0)]",
          "batch_locked.eq(0)"),
)
_PROBER_FAULTS = (
    Fault(_MOVES, Prober, "link_ready.eq(link_wait)", "link_ready.eq(link_wait & ~self.task.valid)", "_follow"),
    Fault("offers at batch are stable", Queue, "read.addr.eq(head)", "read.addr.eq(tail)"),
    Fault("pointers, flags and level of its queue agree", Queue, "push & (tail_next == head)", "push & (tail == head)"),
    Fault("an outcome belongs to a read for which there was room", Prober, "choosing & ~has_next & self.room",
          "choosing & ~has_next", "_follow"),
    Fault("a pass ends with its last outcome", Prober, "Cat(valid, last, group)",
          "Cat(valid, last & valid, group)", "_compare"),
    Fault("the state of a pass is consistent", Prober, "[self.scanning.eq(0), choosing.eq(0)]", "[self.scanning.eq(0)]",
          "_follow"),
    Fault("the state of a waiting probe is consistent", Prober, "no_lookup | (self.granted & last_lookup)",
          "self.granted & last_lookup",
          "_lookup"),
    Fault("ended passes are counted", Prober, "lookup_done & (~self.scanning | last)", "lookup_done", "_follow"),
    Fault("ended passes whose batches were not taken fit the queue", Prober,
          "lookup_done & (~self.scanning | last) & batches.i.ready", "lookup_done & (~self.scanning | last)",
          "_follow"),
    Fault("nothing leaves that did not enter", Prober, "batches.i.valid.eq(take)", "batches.i.valid.eq(lookup_done)",
          "_follow"),
    Fault("items leave unchanged and in order", Prober, "held.flush.eq(task.flush)", "held.flush.eq(task.masked)",
          "_lookup"),
    Fault("the picked item is inside",
          Prober, "batches.i.valid.eq(take)", "batches.i.valid.eq(lookup_done)", "_follow"),
    Fault("the items inside are counted", Prober, "lookup_done & (~self.scanning | last) & batches.i.ready",
          "lookup_done & (~self.scanning | last)", "_follow"),
    Fault("the picked item is in its place", Prober, "held.row.eq(task.row)", "held.row.eq(task.row + 1)", "_lookup"),
)

PROOFS = (
    Proof("scanner", scanner, 2, faults=_SCANNER_FAULTS + _END_FAULTS, search=16),
    Proof("scanner with tables", lambda: scanner(tables=True), 2, faults=_TABLES_FAULTS, search=24, first=16),
    Proof("prober", lambda: prober("bucket"), 2, faults=_PROBER_FAULTS, search=24),
)
