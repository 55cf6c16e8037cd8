"""The repetition of a probe that finds more than the emitter has room for."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value

from splitjoin.circuit import geometry
from splitjoin.circuit.wire import Configuration


class Mode(IntEnum):
    """The purpose of the oldest context's pass."""

    FIRST = 0
    COUNT = 1
    PART = 2


class Repetition:
    """Repeats the oldest context's pass: first to count its hits, then for each part of `geometry.PASS_HITS` of them.

    A pass finds the youngest tuples first, and the oldest are to leave first. So of the hits that are left, a pass for
    a part skips all but the oldest, and ends behind the part. If a region never repeats a pass, nothing of it is made.

    Attributes:
        made: False if nothing is made.
        due: The pass is to begin anew, or its first step is under way.
        holds: No hit is to leave.
        last: The end of this pass is the probe's.
        part, drop: A part ends in this cycle; what the first pass gave is not to leave.
    """

    def __init__(self, config: Configuration):
        self.made = geometry.repeats(config)
        self._most = geometry.PASS_HITS
        self.due: Any = Const(0)
        self.holds: Value = Const(0)
        self.last: Value = Const(1)
        self.part: Any = Const(0)
        self.drop: Any = Const(0)
        if not self.made:
            return
        self.due, self.part, self.drop = Signal(name="repeat_due"), Signal(name="part_ends"), Signal(name="drop")
        self._sent = Signal(name="repeat_sent")
        self._mode = Signal(Mode, name="pass_mode")
        self._given = Signal(range(self._most + 1), name="given")
        # Hits that are left, and of a pass those still to be skipped, and still to be taken.
        bits = range(config.capacity + 1)
        self._left, self._skip, self._take = (Signal(bits, name=f"hits_{name}") for name in ("left", "skip", "take"))
        self._full = (self._mode == Mode.FIRST) & (self._given == self._most)
        self.holds = self.due | self._full
        self.last = (self._mode == Mode.FIRST) | ((self._mode == Mode.PART) & (self._left <= self._most))

    def on_hit(self, m: Module, oldest: Value, hit: Value) -> tuple[Value, Value, Value, Value]:
        """The ``hit`` of a step, of the ``oldest`` context or another one: the hit; whether it goes to the list;
        whether the pass ends with it; whether the pass only counts.
        """
        if not self.made:
            return hit, Const(1), Const(0), Const(0)
        counting, of_part = oldest & (self._mode == Mode.COUNT), oldest & (self._mode == Mode.PART)
        skips = self._skip != 0
        with m.If(hit & counting):
            m.d.sync += self._left.eq(self._left + 1)
        with m.If(hit & of_part):
            m.d.sync += [self._skip.eq(self._skip - skips), self._take.eq(self._take - ~skips)]
        return hit, ~counting & ~(of_part & skips), of_part & ~skips & (self._take == 1) & hit, counting

    def drive(self, m: Module, c: Any, give: Value, waits: Value, ends: Value, quiet: Value, room: Value,
              free: Value) -> None:
        """The next step of the oldest of the contexts ``c``. ``give``, ``waits``: a hit leaves; hits wait. ``ends``:
        its pass has ended, and all hits have left. ``quiet``: it does nothing. ``free``: a step may begin.
        """
        if not self.made:
            return
        first, count = self._mode == Mode.FIRST, self._mode == Mode.COUNT
        m.d.comb += [
            self.drop.eq(self._full & waits & quiet & ~self.due),
            self.part.eq(ends & room & (self._mode == Mode.PART) & ~self.last),
            c.repeat.eq(self.due & ~self._sent & free),
        ]
        with m.If(give & first):
            m.d.sync += self._given.eq(self._given + 1)
        with m.If(self.drop):
            m.d.sync += [self._mode.eq(Mode.COUNT), self._left.eq(0)]
        with m.If(ends & count):
            m.d.sync += self._mode.eq(Mode.PART)
        with m.If(self.part):
            m.d.sync += self._left.eq(self._left - self._most)
        with m.If(self.drop | self.part | (ends & count)):
            m.d.sync += [self.due.eq(1), self._sent.eq(0)]
        with m.If(c.repeat):
            some = self._left <= self._most
            m.d.sync += [self._sent.eq(1), self._skip.eq(Mux(some, 0, self._left - self._most)),
                         self._take.eq(Mux(some, self._left, self._most))]
        with m.If(c.leave):
            m.d.sync += [self._mode.eq(Mode.FIRST), self._given.eq(0)]
