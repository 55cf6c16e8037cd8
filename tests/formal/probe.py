"""Proofs of the scanner and the prober: what the emitters rely on, and that each probe becomes a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Cat, Mux, Signal, Value, signed
from amaranth.lib import data
from splitjoin.device.wire import Configuration
from splitjoin.hw.core.layouts import batch_layout
from splitjoin.hw.core.prober import Prober
from splitjoin.hw.core.scanner import Scanner
from splitjoin.hw.hls.lookup import WRITING
from splitjoin.hw.network.queue import Queue

from .harness import Harness
from .monitors import Follower, assume_offers_stand, follow, offers_stand
from .proofs import Fault, Proof

__all__ = ["PROOFS"]

#: Passes whose batches wait, here.
_PASSES = 2


@contextmanager
def _few() -> Iterator[None]:
    with (patch("splitjoin.hw.core.prober.PASSES", _PASSES), patch("splitjoin.hw.core.prober.STORES", 2),
          patch("splitjoin.hw.core.layouts.STORES", 2)):
        yield


def _sound_queue(h: Harness, path: str) -> Value:
    """The invariant of the `Queue` at ``path``, whose depth is a power of two."""
    head, tail, full, some, after_head, after_tail = (h.inner(f"{path}.{name}") for name in (
        "head", "tail", "full", "some", "after_head", "after_tail"))
    bits = len(head)
    return ((some == (full | (head != tail))) & (~full | (head == tail))
            & (after_head == (head + 1)[:bits]) & (after_tail == (tail + 1)[:bits]))


def _outcomes(h: Harness, tokens: list[Any]) -> Value:
    """What comes of reads. ``tokens``: on their way, whether there is an outcome and whether it is a pass's last, from
    the youngest on. Returns how many passes are under way whose last outcome has not come.
    """
    dut = h.dut
    h.output = dut.batch
    tokens = [*tokens, Cat(dut.found_valid, dut.found_valid & dut.found.last)]
    assert len(tokens) == dut.latency
    allowed = [dut.room]
    for n in range(dut.latency):
        allowed.append(h.past(allowed[-1], f"room{n}"))
    h.prove("an outcome comes of a read for which there was room",
            Cat(~token.any() | room for token, room in zip(tokens, allowed[1:], strict=True)).all())
    # Seen from the end, something follows each outcome that is not its pass's last.
    whole, open_ = [], dut.scanning
    for token in tokens:
        whole.append(~token[0] | token[1] | open_)
        open_ = Mux(token[0] | token[1], 1, open_)
    h.prove("a pass ends with its last outcome", Cat(whole).all())
    return dut.scanning + sum(token[1] for token in tokens)


@_few()
def scanner(*, tables: bool = False) -> Harness:
    config = _config(core="scan", probes=2, widths=(0,) if tables else (), tables=tables)
    dut = Scanner(config, "s")
    h = Harness(dut)
    assume_offers_stand(h, "task", dut.task)
    h.output = dut.batch
    offers_stand(h, "batch", dut.batch)
    stages = [h.inner(name) for name in ("token0", "token1", *(f"token_matched{n}" for n in range(config.stages)))]
    taken = dut.batch.valid & dut.batch.ready
    ahead = Signal(signed(5), name="ahead")  # batches taken less passes ended
    h.m.d.sync += ahead.eq(ahead + taken - (dut.found_valid & dut.found.last))
    under_way = _outcomes(h, [Cat(token[0], token.all()) for token in stages])
    h.prove("what waits for its turn is known", (h.inner("vacant") == ~dut.batch.valid)
            & (h.inner("ends") == (~dut.scanning | h.inner("last")))
            & (~h.inner("turns") | (h.inner("vacant") & h.inner("ends"))))
    h.prove("passes that ended are counted", ahead == under_way - dut.batch.valid)
    h.prove("a pass has outcomes when the batch before it was taken", ~dut.found_valid | (ahead >= 0))
    if tables:
        _written(h)
    return h


def _written(h: Harness) -> None:
    """The matcher's tables are written as `splitjoin.hw.hls.matcher.Matcher` wants it."""
    fill, swap, load = (h.inner(name) for name in ("fill", "swap", "load"))
    written, age = Signal(name="since_fill"), Signal(range(WRITING + 1), name="age")
    with h.m.If(fill):
        h.m.d.sync += [written.eq(1), age.eq(1)]
    with h.m.Else():
        h.m.d.sync += [written.eq(written & ~swap), age.eq(Mux(age < WRITING, age + 1, WRITING))]
    h.prove("tables are written once for a batch", ~fill | ~written)
    h.prove("a batch is looked up when its tables are written", ~swap | (written & (age == WRITING)))
    h.prove("no bounds are loaded into what is written", ~written | ~load.any())
    # The steps of it, from a batch that takes no more to its pass.
    closed, began, done, taken, turns = (
        h.inner(name) for name in ("closed", "write_began", "written", "taken", "turns"))
    steps = [h.inner(f"writes{n}") for n in range(4)]
    h.prove("what is written is at one of its steps", Cat(
        sum(steps) + done == began, ~began | closed, ~closed | (h.dut.waiting & ~taken), ~turns | done,
        ~done | (age > 4), ~turns | (age > 5), ~taken | (age > 6), ~swap | (age > 7), written == (began | taken | swap),
        sum((began, taken, swap)) <= 1, *(~step | (age == n + 1) for n, step in enumerate(steps))).all())


@_few()
def prober(core: str) -> Harness:
    config = _config(core=core, index=(0,))
    dut = Prober(config, "s")
    h = Harness(dut)
    assume_offers_stand(h, "task", dut.task)
    offers_stand(h, "batch", dut.batch)
    h.prove("its queue is sound", _sound_queue(h, "batches"))
    tokens = [h.inner(f"token{n}") for n in range(2 + config.stages)]
    taken, ended = dut.batch.valid & dut.batch.ready, dut.found_valid & dut.found.last
    passes = Signal(signed(5), name="passes")  # that ended, and whose batches were not taken
    h.m.d.sync += passes.eq(passes + ended - taken)
    under_way = _outcomes(h, [token[:2] for token in tokens])
    choosing, reading, waited, linked, ready = (
        h.inner(name) for name in ("choosing", "reading", "waited", "linked", "ready"))
    h.prove("a pass is at one of its steps", sum((choosing, reading, waited, linked)) == dut.scanning)
    h.assume("buckets are granted that are asked for", ~dut.granted | dut.look)
    looking, reached, stop = (h.inner(name) for name in ("looking", "reached", "stop"))
    h.prove("a probe that waits is at one of its steps", (
        dut.waiting == sum((h.inner("step"), looking, ready, *(h.inner(f"looked_up{n}")[1] for n in range(4)))))
            & Mux(reached, looking, ~(looking & stop)))
    level = h.inner("batches.level")
    h.prove("passes that ended are counted", passes == level - under_way)
    h.prove("no more passes have ended whose batches were not taken", ~dut.found_valid | (passes < _PASSES))

    # Each probe becomes a batch.
    def essence(item: Any) -> Value:
        return Cat(item.row, item.flush, item.count)

    held = data.View(batch_layout(config), Value.cast(h.inner("batches.i__payload")))
    head = h.inner("batches.head")
    f = Follower(h, "probe", entered=dut.task.valid & dut.task.ready, entering=essence(dut.task.payload),
                 port=dut.batch, leaving=essence(dut.batch.payload), capacity=_PASSES + 1)
    follow(h, f)
    h.prove("what is inside is counted", f.inside == level + dut.waiting)
    place = data.View(batch_layout(config), h.look("batches.rows", (head + f.ahead)[:len(head)]))
    h.prove("the item picked is in its place", ~f.picked | (f.token == Mux(
        f.ahead < level, essence(place), essence(held))))
    return h


def _config(**options: Any) -> Configuration:
    return Configuration(keys_r=(1,), keys_s=(1,), tests=((0, 0),), tree=0, capacity=2, **options)


_SCANNER_FAULTS = (
    Fault("offers at batch stand", Scanner, "with m.If(vacant):", "with m.If(1):"),
    Fault("an outcome comes of a read for which there was room", Scanner, "issue.eq(self.scanning & self.room)",
          "issue.eq(self.scanning)"),
    Fault("a pass ends with its last outcome", Scanner, "self.found.last.eq(token[1])", "self.found.last.eq(0)"),
    Fault("what waits for its turn is known", Scanner, "(vacant | self.batch.ready)", "1"),
    Fault("passes that ended are counted", Scanner, "self.found.last.eq(token[1])", "self.found.last.eq(1)"),
    Fault("a pass has outcomes when the batch before it was taken", Scanner, "(vacant | self.batch.ready)", "1"),
)
_TABLES_FAULTS = (
    Fault("tables are written once for a batch", Scanner, "closed & ~began", "closed", "_write"),
    Fault("a batch is looked up when its tables are written", Scanner, "(done | later) & ~take",
          "(done | before) & ~take", "_write"),
    Fault("no bounds are loaded into what is written", Scanner, "(~closed & ~turns)", "~turns"),
    Fault("what is written is at one of its steps", Scanner, "(done | later) & ~take", "done | later", "_write"),
)
_PROBER_FAULTS = (
    Fault("offers at batch stand", Queue, "read.addr.eq(head)", "read.addr.eq(tail)"),
    Fault("its queue is sound", Queue, "push & (after[0] == head)", "push & (tail == head)"),
    Fault("an outcome comes of a read for which there was room", Prober, "choosing & ~some & self.room",
          "choosing & ~some", "_follow"),
    Fault("a pass ends with its last outcome", Prober, "token = Cat(valid, last, group)",
          "token = Cat(valid, last & valid, group)", "_compare"),
    Fault("a pass is at one of its steps", Prober, "self.scanning.eq(0), choosing.eq(0)", "self.scanning.eq(0)",
          "_follow"),
    Fault("a probe that waits is at one of its steps", Prober, "stop | (self.granted & final)", "self.granted & final",
          "_lookup"),
    Fault("passes that ended are counted", Prober, "(~self.scanning | last) & batches", "batches", "_follow"),
    Fault("no more passes have ended whose batches were not taken", Prober, "last) & batches.i.ready", "last)",
          "_follow"),
    Fault("nothing leaves that did not enter", Prober, "batches.i.valid.eq(take)", "batches.i.valid.eq(ready)",
          "_follow"),
    Fault("items leave whole and in order", Prober, "held.flush.eq(task.flush)", "held.flush.eq(task.masked)",
          "_lookup"),
    Fault("what is picked is inside", Prober, "batches.i.valid.eq(take)", "batches.i.valid.eq(ready)", "_follow"),
    Fault("what is inside is counted", Prober, "last) & batches.i.ready", "last)", "_follow"),
    Fault("the item picked is in its place", Prober, "held.row.eq(task.row)", "held.row.eq(task.row + 1)", "_lookup"),
)

PROOFS = (
    Proof("scanner", scanner, 2, faults=_SCANNER_FAULTS, search=16),
    Proof("scanner with tables", lambda: scanner(tables=True), 2, faults=_TABLES_FAULTS, search=16, first=16),
    Proof("prober", lambda: prober("bucket"), 2, faults=_PROBER_FAULTS, search=24),
)
