"""A cocotb bench of one's own: writes settings, sends records, and checks what comes back, with pauses.

vectors.json, which run.py writes, has the register writes, the records and the reference model's answer.
"""

import json
import random
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly

VECTORS = json.loads(Path("vectors.json").read_text())
PAIR, STAR = 0, 1
#: Cycles after which the circuit counts as stuck.
LIMIT = 100_000


def meaning(item: int) -> tuple[int, ...]:
    """An item's kind, and the ids that count: both of a pair, of a star that of its own stream."""
    kind, side, ids = item & 3, item >> 2 & 1, (item >> 3 & 0xFFFFFFFF, item >> 35)
    return (kind, side, *ids) if kind == PAIR else (kind, side, ids[side]) if kind == STAR else (kind,)


@cocotb.test()
@cocotb.parametrize(pauses=[0.0, 0.5])
async def circuit_gives_the_answer(dut: object, pauses: float) -> None:
    """In total order the answer is one sequence of items, the END item last."""
    records, wanted = ([int(text, 16) for text in VECTORS[name]] for name in ("records", "items"))
    rng = random.Random(cocotb.RANDOM_SEED)
    Clock(dut.clk, 10, unit="ns").start()
    dut.rst.value, dut.i__valid.value, dut.o__ready.value, dut.w_stb.value = 1, 0, 0, 0
    for _ in range(4):
        await FallingEdge(dut.clk)
    dut.rst.value = 0
    for address, word in VECTORS["writes"]:
        dut.addr.value, dut.w_data.value, dut.w_stb.value = address, word, 1
        await FallingEdge(dut.clk)
    dut.w_stb.value = 0

    sent, got, offered = 0, [], False
    for _ in range(LIMIT):
        # Signals change at falling edges, so the next rising edge sees what holds now. An offer stays until taken.
        offered = sent < len(records) and (offered or rng.random() >= pauses)
        dut.i__valid.value = int(offered)
        dut.i__payload.value = records[min(sent, len(records) - 1)]
        dut.o__ready.value = int(rng.random() >= pauses)
        await ReadOnly()
        if offered and dut.i__ready.value:
            sent, offered = sent + 1, False
        if dut.o__valid.value and dut.o__ready.value:
            got.append(int(dut.o__payload.value))
        await FallingEdge(dut.clk)
        if len(got) == len(wanted):
            break
    assert [meaning(item) for item in got] == [meaning(item) for item in wanted]
