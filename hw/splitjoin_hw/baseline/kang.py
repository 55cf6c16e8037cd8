"""Kang's three-step procedure as a circuit: one tuple after the other is compared, and then stored."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value

from splitjoin.circuit.wire import ItemKind, Op

from ..core.region import Region
from ..core.storage import Storage
from ..layouts import STREAM_R, STREAM_S, result_layout, window_layout
from ..link.registers import RegisterBlock
from ..top import Top


class _KeepingStorage(Storage):
    """Shows a probe the window as the last tuple of its own stream left it: with the tuples that are too old since."""

    def _window(self, m: Module, head: Value, live: Value, head_row: Value, counted: Value) -> tuple[Value, ...]:
        first, first_row = Signal.like(head, name="first_kept"), Signal.like(head_row, name="first_kept_row")
        purges = [Signal(name=f"purges{n}") for n in range(2)]  # the counters are those after an own tuple
        m.d.sync += [purges[0].eq(counted), purges[1].eq(purges[0])]
        with m.If(purges[1]):
            m.d.sync += [first.eq(head), first_row.eq(head_row)]
        start = Mux(purges[1], head, first)
        gone = Signal.like(head, name="gone")  # tuples that are too old, and stay until the next own one
        m.d.comb += gone.eq(head - start)
        # A tuple that leaves by time does so in ``head`` a cycle before it does in ``live``: the number is right again
        # when a probe is ready, which is after the age of the next oldest tuple is known.
        return start, live + gone, Mux(purges[1], head_row, first_row)


class _KeepingRegion(Region):
    def _storage(self) -> Storage:
        return _KeepingStorage(self.config, self.side)


class Kang(Top):
    """Compares each tuple with the whole window of the other stream, and stores it (Kang et al., Evaluating window
    joins over unbounded streams, 2003), in the same regions as a core of SplitJoin.

    A tuple goes to the region that has the other stream's window. There too old tuples leave, the scan compares the
    others, and their results leave up to the star of the probe. Only then the tuple goes to the region of its own
    stream, where too old tuples leave as well, and is stored. So results are always in the order ``total``. That the
    other window expires ahead of the comparison is where this differs from the procedure as printed, which with
    ``expire="own"`` leaves tuples of a quiet stream in its window (semantics, section 2).
    """

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self.config
        m.submodules.registers = registers = RegisterBlock(config)
        # The first region stores S, and so R probes it.
        region_of = Region if config.expire == "opposite" else _KeepingRegion
        regions = {STREAM_R: region_of(config, "s"), STREAM_S: region_of(config, "r")}
        m.submodules.left, m.submodules.right = regions.values()
        records, settings = self._buffered(m, Const(1)), registers.settings
        record = records.payload
        own = Signal()  # the stream that probes, or whose last star a FLUSH sends
        flushing, visited = Signal(), Signal()
        m.d.comb += own.eq(Mux(flushing, visited, record.stream))
        for region in regions.values():
            window = Signal(window_layout(config), name=f"window_{region.side}")
            # Each probe ends with a star here, which leaves if it is due.
            m.d.sync += [window.eq(settings[region.side]), window.precision.eq(1)]
            m.d.comb += [region.window.eq(window), region.i.payload.eq(record)]

        # What the probed region gives.
        outputs = [regions[n].o for n in (STREAM_R, STREAM_S)]
        result = Signal(result_layout())
        valid, take = Signal(), Signal()
        m.d.comb += [Value.cast(result).eq(Array(Value.cast(o.payload) for o in outputs)[own]),
                     valid.eq(Array(o.valid for o in outputs)[own])]
        for n, o in enumerate(outputs):
            m.d.comb += o.ready.eq(take & (own == n))
        since_star = [Signal(32, name=f"since_star_{side}") for side in "rs"]  # probes since the last star
        kind, leaves = Signal(ItemKind), Signal()  # the item, and that there is one
        item = {"kind": kind, "side": own, "r": Mux(own == STREAM_S, result.stored, result.probe),
                "s": Mux(own == STREAM_S, result.probe, result.stored)}
        m.d.comb += [self.o.valid.eq(leaves),
                     self.o.payload.eq(Cat(item[name][:width] for name, width in config.item_record.fields))]
        due = Signal()  # the star of this probe leaves
        m.d.comb += due.eq((settings.r.precision != 0) & (Array(since_star)[own] + 1 == settings.r.precision))

        offered = [regions[n].i for n in (STREAM_R, STREAM_S)]
        taken = Signal(2)  # regions that have taken a record for both
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [taken.eq(0), visited.eq(0)]
                with m.If(records.valid):
                    m.next = "BOTH"
                    with m.If(record.op == Op.TUPLE):
                        m.next = "PROBE"
            with m.State("PROBE"):
                m.d.comb += [port.valid.eq(own == n) for n, port in enumerate(offered)]
                with m.If(Array(port.ready for port in offered)[own]):
                    m.next = "RESULTS"
            with m.State("RESULTS"):
                ends = result.kind == ItemKind.STAR
                m.d.comb += [kind.eq(Mux(result.kind == ItemKind.PAIR, ItemKind.PAIR, ItemKind.STAR)),
                             leaves.eq(valid & (~ends | due)), take.eq(valid & (self.o.ready | ~leaves))]
                with m.If(take & ends):
                    m.next = "STORE"
                    for n, count in enumerate(since_star):
                        with m.If((own == n) & (settings.r.precision != 0)):
                            m.d.sync += count.eq(Mux(due, 0, count + 1))
            with m.State("STORE"):
                m.d.comb += [port.valid.eq(own != n) for n, port in enumerate(offered)]
                with m.If(Array(port.ready for port in reversed(offered))[own]):
                    m.d.comb += records.ready.eq(1)
                    m.next = "IDLE"
            with m.State("BOTH"):
                for n, port in enumerate(offered):
                    m.d.comb += port.valid.eq(~taken[n])
                    with m.If(port.valid & port.ready):
                        m.d.sync += taken[n].eq(1)
                with m.If(taken.all()):
                    m.next = "FLUSH"
                    with m.If(record.op != Op.FLUSH):
                        m.d.comb += records.ready.eq(1)
                        m.next = "IDLE"
            with m.State("FLUSH"):  # both regions give END, which tells the row id of the last probe
                m.d.comb += [flushing.eq(1), kind.eq(ItemKind.STAR), leaves.eq(valid & (Array(since_star)[own] != 0)),
                             take.eq(valid & (self.o.ready | ~leaves))]
                with m.If(take):
                    for n, count in enumerate(since_star):
                        with m.If(own == n):
                            m.d.sync += count.eq(0)
                    m.d.sync += visited.eq(1)
                    with m.If(visited):
                        m.next = "END"
            with m.State("END"):
                m.d.comb += [kind.eq(ItemKind.END), leaves.eq(1), records.ready.eq(self.o.ready)]
                with m.If(self.o.ready):
                    m.next = "IDLE"

        m.d.comb += self._bus(registers)
        for side, probing in (("s", STREAM_R), ("r", STREAM_S)):
            m.d.comb += [registers.overflow[probing ^ 1].eq(regions[probing].overflow),
                         getattr(registers, f"overflow_row_{side}").eq(regions[probing].overflow_row)]
        self._count(m, registers, self._record, [region.compared for region in regions.values()],
                    [region.matched for region in regions.values()])
        return m
