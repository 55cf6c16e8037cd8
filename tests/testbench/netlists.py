"""Mapped netlists and packed bitstreams of whole boards' tops as circuits for the emulator."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from amaranth.lib import wiring
from bench.place_and_route.design import Design
from bench.place_and_route.ecp5 import netlist

from splitjoin.base.errors import ToolError
from splitjoin_boards.catalog import Board
from splitjoin_boards.flow.bitstream import TOP, mapped_netlist
from splitjoin_boards.flow.tools import YOSYS, cached
from splitjoin_boards.join import pins
from splitjoin_boards.pads import link_pins
from splitjoin_sim.emulated import EmulatedTop, Pins

#: Family → models of cells for which Yosys has no model, or a longer one, such as block RAM: Verilator reads those, as
#: Yosys would take long for first contents.
CELLS = {name: Path(__file__).with_name("cells") / f"{name}.v" for name in ("ecp5", "ice40", "gowin", "gatemate")}
CELLS["gw5a"] = CELLS["gowin"]
#: Family → Yosys's commands that read the simulation models of its other cells. The files of this package have models
#: that Yosys lacks, or that only a simulator of events can run. All are elaborated only where a netlist has the cell.
_MODELS = {
    "ecp5": "read_verilog -defer -D NO_INCLUDES +/lattice/cells_sim_ecp5.v\nread_verilog cells.v\nblackbox DP16KD",
    "ice40": "read_verilog -lib cells.v\nread_verilog -defer -D ICE40_HX +/ice40/cells_sim.v",
    **dict.fromkeys(("gowin", "gw5a"), "read_verilog -lib cells.v\nread_verilog -defer +/gowin/cells_sim.v"),
    "gatemate": "read_verilog -lib cells.v\nread_verilog -defer +/gatemate/cells_sim.v",
}
#: An ECP5's reset after configuration, in whose place registers have initial values, and its pads, without the third
#: state that Yosys's models have and simulators of cycles do not.
_PADS = """
module SGSR(input GSR, CLK); endmodule
module TRELLIS_IO(inout B, input I, T, output O);
  parameter DIR = "INPUT";
  generate if (DIR == "INPUT") assign O = B; else assign B = I; endgenerate
endmodule
"""
#: Turns the text form of an iCE40's bitstream into Verilog; of Debian's package fpga-icestorm, with iceunpack.
_VLOG, _UNPACK = "icebox_vlog", "iceunpack"


def mapped_verilog(design: Design) -> str:
    """The mapped netlist as plain Verilog for simulation, with the models of its cells."""
    source = netlist(design)
    script = f"""
        read_json netlist.json
        hierarchy -top {design.top}
        write_verilog -noattr netlist.v
        design -reset
        read_verilog netlist.v
        read_verilog -D NO_INCLUDES +/lattice/cells_sim_ecp5.v
        read_verilog -overwrite cells.v
        hierarchy -check -top {design.top}
        proc
        flatten
        opt_clean -purge
        write_verilog -noattr mapped.v
    """

    def make(folder: Path) -> None:
        (folder / "netlist.json").write_bytes(source.read_bytes())
        (folder / "cells.v").write_text(CELLS["ecp5"].read_text())
        (folder / "script.ys").write_text(script)
        YOSYS.run(["-q", "script.ys"], folder)

    key = (source.read_text(), CELLS["ecp5"].read_text(), script, YOSYS.version)
    return (cached("ecp5-mapped", key, make) / "mapped.v").read_text()


def netlist_top(board: Board, linked: wiring.Component, bit: float) -> EmulatedTop:
    """The netlist that Yosys maps of ``linked`` on ``board``, pads included, each cell replaced by its model.

    ``bit``: clock cycles of a bit on the UART of ``linked``. Raises `ToolError` if synthesis fails.
    """
    netlist = mapped_netlist(board, linked).read_text()
    script = _script(board)
    cells = CELLS[board.family].read_text()

    def make() -> tuple[str, Pins]:
        text = _modelled(script, netlist, cells)
        pins = link_pins(board, board.platform(), text)
        return f"{_directed(text, pins)}\n{cells}", pins

    return EmulatedTop(("netlist", script, netlist, cells, _PADS), make, bit)


def icebox() -> bool:
    """True if the programs are there that `bitstream_top` needs."""
    return all(shutil.which(program) for program in (_VLOG, _UNPACK))


def bitstream_top(board: Board, bitstream: Path, bit: float) -> EmulatedTop:
    """The packed ``bitstream`` of an iCE40 ``board``, turned back into Verilog by Project IceStorm: what the bits do.

    Raises `ToolError` if its programs are missing or fail.
    """
    if not icebox():
        raise ToolError(f"{_VLOG} and {_UNPACK} read bitstreams back, but are not installed; apt-get install "
                        f"fpga-icestorm")
    content, cells = bitstream.read_bytes(), CELLS["ice40"].read_text()

    def make() -> tuple[str, Pins]:
        def back(folder: Path) -> None:
            (folder / "top.bin").write_bytes(content)
            (folder / "top.pcf").write_text("".join(f"set_io {name} {pin}\n" for name, pin in pins(board).items()))
            for command, target in (([_UNPACK, "top.bin"], "top.asc"),
                                    ([_VLOG, "-s", "-n", TOP, "-p", "top.pcf", "top.asc"], "back.v")):
                done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise ToolError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
                (folder / target).write_text(done.stdout)

        verilog = cached("icebox", (content.hex(),), back) / "back.v"
        # icebox_vlog declares ports again as wires, which Verilator refuses.
        text = re.sub(r"^(?:wire|reg) .*;$", lambda line: re.sub(r" (?:clk|rx|tx)\b,?", "", line[0]).replace(",;", ";"),
                      verilog.read_text(), flags=re.MULTILINE)
        return f"{text}\n{cells}", Pins(TOP, "clk", "rx", "tx", None)

    return EmulatedTop(("bitstream", content.hex(), cells), make, bit)


def _directed(text: str, pins: Pins) -> str:
    """``text`` with the UART's transmit pin as output and every other pad as input.

    The pads of an iCE40 are ``inout`` in its netlist. Verilator, which simulates no strengths, would hold a pad at a
    constant that nothing in the circuit drives, clock and receive pin included.
    """
    def directed(port: re.Match[str]) -> str:
        return f"  {'output' if port[1] == pins.tx else 'input'} {port[1]};"

    return re.sub(r"^  inout (\S+) *;$", directed, text, flags=re.MULTILINE)


def _script(board: Board) -> str:
    """Yosys's commands that put models in the place of all cells of a netlist on ``board`` but block RAM."""
    return f"""
        read_json netlist.json
        hierarchy -top {TOP}
        write_verilog -noattr netlist.v
        design -reset
        read_verilog netlist.v
        {_MODELS[board.family]}
        hierarchy -check -top {TOP}
        proc
        flatten
        opt -full
        opt_clean -purge
        write_verilog -noattr modelled.v
    """


def _modelled(script: str, netlist: str, cells: str) -> str:
    """The Verilog that ``script`` writes of ``netlist``, with the models ``cells``."""
    def make(folder: Path) -> None:
        # Beside the script: YoWASP's Yosys has a /tmp of its own, so it does not find a cache folder there by its path.
        (folder / "netlist.json").write_text(netlist)
        (folder / "cells.v").write_text(cells + _PADS)
        (folder / "script.ys").write_text(script)
        YOSYS.run(["-q", "script.ys"], folder)
        (folder / "netlist.json").unlink()

    return (cached("modelled", (script, netlist, cells, _PADS, YOSYS.version), make) / "modelled.v").read_text()
