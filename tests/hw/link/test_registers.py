import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.circuit.registers import MAGIC, REGISTERS, register
from splitjoin.circuit.wire import Configuration, OrderMode
from splitjoin_hw.layouts import settings_layout
from splitjoin_hw.link.registers import RegisterBlock
from tests.testbench.driver import Registers

from ...support.sampling import examples
from ...support.simulations import simulation

CONFIG = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, time_bits=40)
WRITABLE = [reg.name for reg in REGISTERS if reg.access == "rw"]
INPUTS = [reg.name for reg in REGISTERS if reg.access == "r" and reg.name not in ("id", "abi")]
NO_LIMIT = {"rows_r", "rows_s", "range_r", "range_s"}


def test_id_and_abi_hash_are_readable():
    async def body(tb):
        registers = Registers(tb)
        assert await registers.read("id") == MAGIC == int.from_bytes(b"SJ01", "big")
        assert await registers.read("abi") == CONFIG.abi_hash

    simulation(RegisterBlock, CONFIG).run(body)


def test_reset_values_mean_no_limits():
    async def body(tb):
        registers = Registers(tb)
        for name in WRITABLE:
            assert await registers.read(name) == (2 ** register(name).bits - 1 if name in NO_LIMIT else 0), name

    simulation(RegisterBlock, CONFIG).run(body)


@given(st.fixed_dictionaries({name: st.integers(0, 2 ** register(name).bits - 1) for name in WRITABLE}))
@settings(max_examples=examples(10))
def test_what_was_written_is_read_and_reaches_the_settings(values):
    async def body(tb):
        registers = Registers(tb)
        word = tb.watch("settings")
        for name, value in values.items():
            await registers.write(name, value)
        for name, value in values.items():
            assert await registers.read(name) == value
        found = settings_layout(CONFIG).from_bits(word())
        assert found.total == (values["order"] == OrderMode.TOTAL)
        assert found.sorted == (values["order"] in (OrderMode.TOTAL, OrderMode.INNER))
        for side in "rs":
            assert found[side].rows == values[f"rows_{side}"]
            assert found[side].range == values[f"range_{side}"] % 2**CONFIG.time_bits
            assert found[side].timed == (values[f"range_{side}"] != 2**64 - 1)
            assert found[side].precision == values["precision"]
            assert found[side].slice == values["slice"] % 2**CONFIG.capacity.bit_length()

    simulation(RegisterBlock, CONFIG).run(body)


@pytest.mark.parametrize("order", list(OrderMode))
def test_the_order_register_sets_sorted_and_total(order):
    async def body(tb):
        registers = Registers(tb)
        word = tb.watch("settings")
        await registers.write("order", order)
        await tb.steps(5)  # four cycles, and the next sample sees them
        found = settings_layout(CONFIG).from_bits(word())
        assert found.total == (order == OrderMode.TOTAL)
        assert found.sorted == (order in (OrderMode.TOTAL, OrderMode.INNER))

    simulation(RegisterBlock, CONFIG).run(body)


@given(st.fixed_dictionaries({name: st.integers(0, 2 ** register(name).bits - 1) for name in INPUTS}))
@settings(max_examples=examples(10))
def test_inputs_are_read_and_cannot_be_written(values):
    async def body(tb):
        registers = Registers(tb)
        for name, value in values.items():
            tb.set(name, value)
        for name, value in values.items():
            await registers.write(name, ~value % 2 ** register(name).bits)
            assert await registers.read(name) == value
        for name in WRITABLE:
            assert await registers.read(name) == (2 ** register(name).bits - 1 if name in NO_LIMIT else 0), name

    simulation(RegisterBlock, CONFIG).run(body)


def test_a_counter_is_read_in_one_piece():
    """The high word belongs to the low word read before it, although the counter went on between the two."""
    reg = register("cycles")

    async def body(tb):
        data = tb.watch("r_data")
        tb.set("cycles", 0x1_FFFFFFFF)
        tb.set("addr", reg.address)
        await tb.steps(3)
        tb.set("cycles", 0x2_00000000)
        tb.set("addr", reg.address + 1)
        await tb.step()
        low = data()
        await tb.steps(3)
        for _ in range(4):  # for any number of cycles
            assert (data(), low) == (1, 0xFFFFFFFF)
            await tb.step()

    simulation(RegisterBlock, CONFIG).run(body)
