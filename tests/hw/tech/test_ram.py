# amaranth: UnusedElaboratable=no
import random
import subprocess

import pytest
from amaranth.back import verilog
from hypothesis import given, settings, strategies as st
from splitjoin.boards.flow.ecp5 import CELLS
from splitjoin.hw.tech.ram import Ram
from splitjoin.hw.tech.target import Target
from splitjoin.sim.tools import find_verilator

from ...support.simulations import simulation


@given(st.integers(2, 9), st.integers(0, 10**6))
@settings(max_examples=20)
def test_reads_what_was_written(depth, seed):
    random_ = random.Random(seed)
    rows, wanted = [0] * depth, []

    async def body(tb):
        read = tb.watch("r_data")
        for _ in range(40):
            enable, w_addr, w_data, r_addr = (random_.randrange(n) for n in (2, depth, 32, depth))
            if enable and w_addr == r_addr:
                enable = 0
            for name, value in (("w_en", enable), ("w_addr", w_addr), ("w_data", w_data), ("r_addr", r_addr)):
                tb.set(name, value)
            await tb.step()
            if len(wanted) >= Ram.latency:
                assert read() == wanted[-Ram.latency]
            wanted.append(rows[r_addr])
            if enable:
                rows[w_addr] = w_data

    simulation(Ram, 5, depth).run(body)


BENCH = """
module bench;
  reg clk = 0, rst = 0, w_en = 0;
  reg [13:0] w_addr = 0, r_addr = 0;
  reg [75:0] w_data = 0;
  {wires}
  integer n;
  initial begin
    for (n = 0; n < 4000; n = n + 1) begin
      w_en = $urandom;
      w_addr = $urandom % {spread} * {stride};
      r_addr = $urandom % {spread} * {stride};
      w_data = {{$urandom, $urandom, $urandom}};
      // Where the bits that a memory has of the addresses are the same, nothing is promised.
      if (w_addr == r_addr) w_en = 0;
      #1 clk = 1; #1 clk = 0;
      if (n > 2 && (1'b0 {differ})) begin $display("cycle %0d differs", n); $fatal; end
    end
    $display("the same");
    $finish;
  end
endmodule
"""
SIZES = {17: 40, 512: 70, 1024: 20, 2048: 10, 4096: 5, 8192: 3, 16384: 2}


def on_verilator(folder, sizes: dict[int, int], cells: str, spread: int, stride: int) -> str:
    """Both forms of memories with ``sizes`` (depth: width) side by side, on random writes and reads."""
    texts, wires, differ = [cells], "", ""
    for depth, width in sizes.items():
        bits = (depth - 1).bit_length()
        for form in ("generic", "ecp5"):
            name = f"{form}{depth}"
            texts.append(verilog.convert(Ram(width, depth), name=name, platform=Target(form), emit_src=False))
            wires += (f"wire [{width - 1}:0] {name}_out;\n  {name} {name}_ (.clk(clk), .rst(rst), .w_en(w_en), "
                      f".w_addr(w_addr[{bits - 1}:0]), .w_data(w_data[{width - 1}:0]), .r_addr(r_addr[{bits - 1}:0]), "
                      f".r_data({name}_out));\n  ")
        differ += f"| generic{depth}_out != ecp5{depth}_out "
    bench = BENCH.format(wires=wires, differ=differ, spread=spread, stride=stride)
    (folder / "bench.v").write_text("\n".join([*texts, bench]))
    tool = find_verilator()
    options = ["--binary", "--timing", "-CFLAGS", "-std=c++20 -O0", "-Wno-fatal", "-Wno-lint", "--top-module", "bench"]
    subprocess.run([tool.program, *options, "bench.v"], cwd=folder, env=tool.environment(), check=True,
                   capture_output=True)
    done = subprocess.run([folder / "obj_dir" / "Vbench"], capture_output=True, text=True, check=False)
    return done.stdout


def test_block_ram_with_its_output_register_does_the_same(tmp_path):
    assert "the same" in on_verilator(tmp_path, SIZES, CELLS.read_text(), 17, 1)


def test_both_halves_need_their_output_enable(tmp_path):
    """The cell's model depends on these pins: with port A's low, half of every word does not change."""
    wrong = CELLS.read_text().replace("else if (OCEA)", "else if (0)")
    assert "differs" in on_verilator(tmp_path, {512: 36}, wrong, 17, 1)


@pytest.mark.parametrize(("depth", "width", "blocks"), [(512, 64, 2), (1024, 64, 4), (128, 64, 2), (2048, 9, 1)])
def test_a_ram_takes_as_few_block_rams_as_it_can(depth, width, blocks):
    text = verilog.convert(Ram(width, depth), name="ram", platform=Target("ecp5"))
    assert text.count("DP16KD #(") == blocks


@pytest.mark.parametrize("depth", [1, 0, "4"])
def test_ram_wrong_depth(depth):
    with pytest.raises(ValueError, match=f"Depth must be an integer of at least 2, not {depth!r}"):
        Ram(8, depth)
