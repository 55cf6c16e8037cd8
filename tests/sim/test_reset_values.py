"""Registers after power-up and after every kind of reset: PeakRDL's header and the JSON file have the values that are
read.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from peakrdl_cheader.exporter import CHeaderExporter
from systemrdl import RDLCompiler
from systemrdl.node import FieldNode

from splitjoin.circuit.axi import CONTROL_WORD, OKAY
from splitjoin.circuit.export.descriptions import register_words, system_rdl
from splitjoin.circuit.registers import DEAD_CORES, LAST_PROBE, MAGIC, REGION_COUNTERS, REGISTERS, register, selection
from splitjoin.circuit.wire import Configuration, OrderMode
from splitjoin_hw.link.axi import AxiJoin
from splitjoin_hw.verilog import AXI_TOP, sidecar
from tests.testbench.on_amaranth import Simulation

from ..support.sampling import at_length

#: The smallest of all circuits, and circuits whose registers differ from its.
_CIRCUITS: dict[str, dict[str, Any]] = {"small": {"small": True, "row_bits": 8, "time_bits": 40}, "streams only": {},
                                        "region counters": {"region_counters": True, "time_bits": 32}}


def configuration(circuit: str) -> Configuration:
    return Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=1, capacity=4, **_CIRCUITS[circuit])


def described(config: Configuration, folder: Path) -> dict[int, int]:
    """Byte address → the value after a reset that PeakRDL's C header has, of all registers that have one."""
    (folder / "a.rdl").write_text(system_rdl(AXI_TOP, config))
    compiler = RDLCompiler()
    compiler.compile_file(str(folder / "a.rdl"))
    top = compiler.elaborate()
    CHeaderExporter().export(top, str(folder / "a.h"))
    header = (folder / "a.h").read_text()
    found: dict[int, int] = {}
    for reg in top.top.registers():
        macro = rf"^#define {AXI_TOP}__{reg.inst_name}__(\w+)_(bp|reset) (\w+)$"
        values: dict[str, dict[str, int]] = {"bp": {}, "reset": {}}
        for field, kind, text in re.findall(macro, header, re.MULTILINE | re.IGNORECASE):
            values[kind][field] = int(text, 0)
        assert len(values["bp"]) == len(list(reg.fields()))
        if values["reset"] and reg.has_sw_readable:
            found[reg.absolute_address] = sum(value << values["bp"][field] for field, value in values["reset"].items())
    return found


async def access(tb: Any, address: int, data: int | None = None) -> int:
    """Read, or write ``data``, by AXI4-Lite; returns the word, or 0."""
    channels = ("ar",) if data is None else ("aw", "w")
    for channel in channels:
        tb.set(f"s_axil_{channel}valid", 1)
        if channel != "w":
            tb.set(f"s_axil_{channel}addr", address)
    tb.set("s_axil_wdata", data or 0)
    tb.set("s_axil_wstrb", 15)
    tb.set("s_axil_rready", 1)
    tb.set("s_axil_bready", 1)
    reply = "r" if data is None else "b"
    offered = {channel: tb.ready[channel] for channel in channels}
    for _ in range(60):
        await tb.step()
        for channel in list(offered):
            if offered[channel]():
                tb.set(f"s_axil_{channel}valid", 0)
                del offered[channel]
        if tb.valid[reply]():
            assert tb.resp[reply]() == OKAY, hex(address)
            return tb.data() if data is None else 0
    raise AssertionError("no reply")


@pytest.mark.parametrize("circuit", ["small", "region counters", at_length("streams only")])
def test_registers_after_every_reset_are_as_described(circuit: str, tmp_path: Path) -> None:
    config = configuration(circuit)
    wanted = described(config, tmp_path)
    # All words but those of ``cycles``, which counts on at once, and ``control``, which cannot be read for its value.
    unread = {4 * CONTROL_WORD} | ({0x48, 0x4C} if circuit != "small" else set())
    assert set(wanted) == {4 * (reg.address + n) for reg in REGISTERS for n in range(reg.bits // 32)} - unread
    in_json = {reg["name"]: reg["reset"] for reg in sidecar(config)["registers"]}
    assert json.loads(json.dumps(in_json)) == in_json
    for reg in REGISTERS:
        values = [wanted.get(4 * (reg.address + n)) for n in range(reg.bits // 32)]
        assert in_json[reg.name] == (None if None in values else sum(v << 32 * n for n, v in enumerate(values) if v))

    async def body(tb: Any) -> None:
        tb.ready = {channel: tb.watch(f"s_axil_{channel}ready") for channel in ("aw", "w", "ar")}
        tb.valid = {channel: tb.watch(f"s_axil_{channel}valid") for channel in ("b", "r")}
        tb.resp = {channel: tb.watch(f"s_axil_{channel}resp") for channel in ("b", "r")}
        tb.data = tb.watch("s_axil_rdata")
        tb.set("aresetn", 1)

        async def check(event: str) -> None:
            found = {address: await access(tb, address) for address in wanted}
            assert found == wanted, event

        await check("power-up")
        for event in ("control", "aresetn"):
            writable = [word.address for word in register_words(config) if word.access == "rw"]
            for address in writable:
                await access(tb, address, 0x5A5A5A5A)
            assert {await access(tb, address) for address in writable} == {0x5A5A5A5A}
            if event == "control":
                await access(tb, 4 * CONTROL_WORD, 1)
            else:
                tb.set("aresetn", 0)
                await tb.step()
                tb.set("aresetn", 1)
            await check(event)

    Simulation(AxiJoin(config)).run(body)


def test_values_with_names_are_those_of_the_circuit(tmp_path: Path) -> None:
    (tmp_path / "a.rdl").write_text(system_rdl(AXI_TOP, configuration("small")))
    compiler = RDLCompiler()
    compiler.compile_file(str(tmp_path / "a.rdl"))
    encodings = {field.get_path(): field.get_property("encode") for field in compiler.elaborate().top.descendants()
                 if isinstance(field, FieldNode) and field.get_property("encode")}
    found = {path.partition(".")[2]: {value.name: value.value for value in encoding}
             for path, encoding in encodings.items()}
    assert found == {
        "id.magic": {"sj01": MAGIC}, "order.mode": {mode.name.lower(): mode.value for mode in OrderMode},
        "select.region": {"stores_s": 0, "stores_r": 1},
        "select.counter": {**{counter.name: n for n, counter in enumerate(REGION_COUNTERS)},
                           "dead_cores": DEAD_CORES, "last_probe": LAST_PROBE}}
    # A selection has its parts where the fields are.
    places = {field.name: field.low for field in register("select").fields}
    assert selection(5, 1, 7) == 5 << places["core"] | 1 << places["region"] | 7 << places["counter"]
