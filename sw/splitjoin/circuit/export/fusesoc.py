"""The circuit with AXI ports as a core of FuseSoC."""

from __future__ import annotations

from splitjoin.base.version import __version__

__all__ = ["fusesoc_core"]


def fusesoc_core(top: str, sources: list[str], waivers: str, testbench: str | None) -> str:
    """A FuseSoC core file (CAPI2): targets ``default``, ``lint``, and ``sim`` if there is a Verilog testbench."""
    rtl = "".join(f"      - {name}\n" for name in sources)
    lines = ["CAPI=2:", f"name: splitjoin:ip:{top}:{__version__}",
             "description: Join of two streams, with AXI4-Stream records in and items out, and AXI4-Lite registers",
             "", "filesets:", "  rtl:", "    files:", rtl.rstrip("\n"), "    file_type: verilogSource-2005", "  lint:",
             "    files:", f"      - {waivers}: {{file_type: vlt}}"]
    if testbench is not None:
        lines += ["  tb:", "    files:", f"      - {testbench}", "    file_type: verilogSource-2005",
                  "  vectors:", "    files:", *(f"      - {name}: {{file_type: user, copyto: {name}}}"
                                  for name in ("records.hex", "items.hex", "writes.hex"))]
    lines += ["", "targets:", "  default: &default", "    filesets: [rtl]", f"    toplevel: {top}", "  lint:",
              "    <<: *default", "    description: Verilator's lint with the waivers", "    filesets: [lint, rtl]",
              "    default_tool: verilator", "    tools:", "      verilator:", "        mode: lint-only",
              "        verilator_options: [-Wall]"]
    if testbench is not None:
        lines += ["  sim:", "    <<: *default", "    description: The testbench against the golden model's answer",
                  "    filesets: [rtl, tb, vectors]", "    toplevel: testbench", "    default_tool: icarus",
                  "    tools:", "      icarus:", "        iverilog_options: [-g2005]", "      verilator:",
                  "        mode: binary",
                  "        verilator_options: [--timing, -CFLAGS, -std=c++20, -Wno-fatal, -Wno-lint]"]
    return "\n".join([*lines, ""])
