"""The register block of small circuits: what a reset does to it, and what it reads."""

from amaranth.hdl import Module, ResetInserter
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from splitjoin.circuit.registers import REGISTERS, register
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.small.registers import SmallRegisters, settings_layout
from tests.testbench.driver import Registers

from ...support.simulations import simulation

CONFIG = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=16, small=True, row_bits=8,
                       time_bits=40)
WRITABLE = [reg for reg in REGISTERS if reg.access == "rw"]


class Resettable(wiring.Component):
    """A register block with a port ``reset``."""

    def __init__(self):
        self.block = SmallRegisters(CONFIG)
        super().__init__({"reset": In(1), **self.block.signature.members})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.block = ResetInserter(self.reset)(self.block)
        for name, member in self.block.signature.members.items():
            inner, outer = getattr(self.block, name), getattr(self, name)
            pairs = zip(inner, outer, strict=True) if member.dimensions else [(inner, outer)]
            m.d.comb += [i.eq(o) if member.flow == In else o.eq(i) for i, o in pairs]
        return m


def test_a_reset_gives_every_setting_its_reset_value():
    async def body(tb):
        registers, word = Registers(tb), tb.watch("settings")
        await tb.steps(2)
        before = word()
        found = settings_layout(CONFIG).from_bits(before)
        assert (found.unlimited, found.timed, found.precision, found.slice) == (3, 0, 0, 0)
        for reg in WRITABLE:
            assert await registers.read(reg.name) == reg.reset
            await registers.write(reg.name, 5)
        await tb.steps(4)
        assert settings_layout(CONFIG).from_bits(word()).unlimited == 0
        for reg in WRITABLE:
            assert await registers.read(reg.name) == 5
        tb.set("reset", 1)
        await tb.step()
        tb.set("reset", 0)
        await tb.step()
        assert word() == before
        for reg in WRITABLE:
            assert await registers.read(reg.name) == reg.reset

    simulation(Resettable).run(body)


def test_the_other_half_of_a_setting_has_its_reset_value():
    """A host that writes the low word alone reads all ones in the high word."""
    async def body(tb):
        registers, word = Registers(tb), tb.watch("settings")
        tb.set("addr", register("range_r").address)
        tb.set("w_data", 7)
        tb.set("w_stb", 1)
        await tb.step()
        tb.set("w_stb", 0)
        await tb.steps(4)
        assert await registers.read("range_r") == 0xFFFFFFFF00000007
        assert settings_layout(CONFIG).from_bits(word()).timed == 1

    simulation(Resettable).run(body)


def test_a_row_without_room_is_read_once_there_is_one():
    async def body(tb):
        registers = Registers(tb)
        for n, (r, s) in enumerate([(3, 4), (9, 2)]):
            tb.set("tuples__0", r)
            tb.set("tuples__1", s)
            for overflow in (0, 1 << n):
                tb.set("overflow", overflow)
                rows = [r if overflow & 1 else 0, s if overflow & 2 else 0]
                assert [await registers.read(f"overflow_row_{side}") for side in "rs"] == rows
            assert [await registers.read(f"tuples_{side}") for side in "rs"] == [r, s]

    simulation(Resettable).run(body)
