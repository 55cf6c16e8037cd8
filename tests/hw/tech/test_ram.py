# amaranth: UnusedElaboratable=no
import random
import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest
from amaranth.back import verilog
from hypothesis import given, settings, strategies as st

from splitjoin_hw.tech.ram import Ram
from splitjoin_hw.tech.target import Target
from splitjoin_sim.runtime import FLAGS, UNTRACED, header, objects, run_tool
from splitjoin_sim.tools import cxx, find_verilator
from tests.testbench.netlists import CELLS

from ...support.sampling import examples
from ...support.simulations import simulation


@given(st.integers(2, 9), st.integers(0, 10**6))
@settings(max_examples=examples(20))
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
module bench(input wire clk);
  reg rst = 0, w_en = 0, r_en = 0;
  reg [13:0] w_addr = 0, r_addr = 0;
  reg [75:0] w_data = 0;
  {wires}
  integer n = 0;
  always @(negedge clk) begin
    if (n > 2) begin
        {compare}
    end
    w_en = $urandom;
    r_en = $urandom;
    w_addr = $urandom % 17;
    r_addr = $urandom % 17;
    w_data = {{$urandom, $urandom, $urandom}};
    // Where the bits that a memory has of the addresses are the same, nothing is promised.
    if (w_addr == r_addr) w_en = 0;
    n = n + 1;
    if (n == 4000) begin
      {report}
      $finish;
    end
  end
endmodule
"""
MAIN = """
int main() {
  VerilatedContext context;
  Vbench bench{&context};
  while (!context.gotFinish()) {
    bench.clk = !bench.clk;
    bench.eval();
  }
}
"""
#: Depth → width: all forms that a block has, of which CI looks at the ends and one whose reads stop.
SIZES = {17: 40, 512: 70, 1024: 20, 2048: 10, 4096: 5, 8192: 3, 16384: 2}
if examples(1) == 1:
    SIZES = {depth: SIZES[depth] for depth in (17, 512, 1024, 16384)}
#: Sizes whose reads stop in random cycles.
STALLABLE = (17, 1024, 4096)


def on_verilator(folder, models: dict[str, str], depths: dict[str, Collection[int]]) -> dict[str, int]:
    """Cycles in which a memory of block RAMs differs from a generic one, for each of the cell's ``models`` and its
    ``depths`` of `SIZES`, side by side on random writes and reads: "depth model" → cycles.
    """
    texts, wires, compare, report = [], "", "", ""
    for name, cells in models.items():
        texts.append(cells.replace("DP16KD", f"DP16KD_{name}"))
    for depth, width in SIZES.items():
        bits = (depth - 1).bit_length()
        stallable = depth in STALLABLE
        made = {form: verilog.convert(Ram(width, depth, stallable=stallable), name=f"ram{depth}",
                                      platform=Target(form), emit_src=False) for form in ("generic", "ecp5")}
        forms = {"generic": made["generic"]} | {model: made["ecp5"].replace("DP16KD", f"DP16KD_{model}")
                                                for model in models if depth in depths[model]}
        for form, text in forms.items():
            name = f"{form}{depth}"
            texts.append(text.replace(f"ram{depth}", name))
            wires += (f"wire [{width - 1}:0] {name}_out;\n  {name} {name}_ (.clk(clk), .rst(rst), .w_en(w_en), "
                      f".w_addr(w_addr[{bits - 1}:0]), .w_data(w_data[{width - 1}:0]), .r_addr(r_addr[{bits - 1}:0]), "
                      f"{'.r_en(r_en), ' * stallable}.r_data({name}_out));\n  ")
        for model in models:
            if depth not in depths[model]:
                continue
            count = f"differs_{model}{depth}"
            wires += f"integer {count} = 0;\n  "
            compare += f"if (generic{depth}_out != {model}{depth}_out) {count} = {count} + 1;\n        "
            report += f'$display("{depth} {model} %0d", {count});\n    '
    bench = BENCH.format(wires=wires, compare=compare, report=report)
    (folder / "bench.v").write_text("\n".join([*texts, bench]))
    done = subprocess.run([compiled(folder)], capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines() if line.count(" ") == 2 and line[0].isdigit()]
    return {f"{depth} {model}": int(count) for depth, model, count in lines}


def compiled(folder: Path) -> Path:
    """The program of ``bench.v`` in ``folder``; Verilator's run-time library comes compiled from the cache."""
    tool, compiler = find_verilator(), cxx()
    made, include = folder / "made", tool.root / "include"
    run_tool([str(tool.program), "--cc", "--no-timing", "-Wno-fatal", "-Wno-lint", "--top-module", "bench", "--prefix",
              "Vbench", "--Mdir", str(made), str(folder / "bench.v")], tool)
    whole = made / "whole.cpp"
    whole.write_text("".join(f'#include "{path}"\n' for path in sorted(made.glob("*.cpp"))) + MAIN)
    run_tool([*compiler, *FLAGS, *UNTRACED, "-O0", f"-I{made}", f"-I{include}", f"-I{include / 'vltstd'}", "-include",
              str(header(tool, compiler, ("-O0", *UNTRACED))), str(whole),
              *map(str, objects(tool, compiler, "-O0")), "-lpthread", "-o", str(made / "bench")], tool)
    return made / "bench"


@pytest.mark.long
def test_block_ram_with_its_output_register_does_the_same(tmp_path):
    """And both halves need their output enable: with port A's low, half of every word does not change."""
    cells = CELLS["ecp5"].read_text()
    wrong = cells.replace("else if (OCEA)", "else if (0)")
    assert wrong != cells
    differing = on_verilator(tmp_path, {"right": cells, "wrong": wrong}, {"right": SIZES, "wrong": [512]})
    assert {depth: differing[f"{depth} right"] for depth in SIZES} == dict.fromkeys(SIZES, 0)
    assert differing["512 wrong"] > 1000


@pytest.mark.parametrize(("depth", "width", "blocks"), [(512, 64, 2), (1024, 64, 4), (128, 64, 2), (2048, 9, 1)])
def test_a_ram_takes_as_few_block_rams_as_it_can(depth, width, blocks):
    text = verilog.convert(Ram(width, depth), name="ram", platform=Target("ecp5"))
    assert text.count("DP16KD #(") == blocks
