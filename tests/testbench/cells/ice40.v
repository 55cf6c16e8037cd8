// A model of iCE40's block RAM for simulating netlists and bitstreams that are read back: 256 words of 16 bits, or in
// modes 1, 2 and 3 of 8, 4 and 2 bits. INIT_0 has the first contents of rows 0 to 15, row 0 in its lowest bits, and so on.
// After Lattice's memory usage guide for iCE40 devices (FPGA-TN-02002).
module SB_RAM40_4K(
  output [15:0] RDATA,
  input RCLK, RCLKE, RE,
  input [10:0] RADDR,
  input WCLK, WCLKE, WE,
  input [10:0] WADDR,
  input [15:0] MASK, WDATA
);
  parameter WRITE_MODE = 0;
  parameter READ_MODE = 0;
  parameter [255:0] INIT_0 = 0;
  parameter [255:0] INIT_1 = 0;
  parameter [255:0] INIT_2 = 0;
  parameter [255:0] INIT_3 = 0;
  parameter [255:0] INIT_4 = 0;
  parameter [255:0] INIT_5 = 0;
  parameter [255:0] INIT_6 = 0;
  parameter [255:0] INIT_7 = 0;
  parameter [255:0] INIT_8 = 0;
  parameter [255:0] INIT_9 = 0;
  parameter [255:0] INIT_A = 0;
  parameter [255:0] INIT_B = 0;
  parameter [255:0] INIT_C = 0;
  parameter [255:0] INIT_D = 0;
  parameter [255:0] INIT_E = 0;
  parameter [255:0] INIT_F = 0;

  reg [15:0] mem [0:255];
  localparam [4095:0] CONTENTS = {INIT_F, INIT_E, INIT_D, INIT_C, INIT_B, INIT_A, INIT_9, INIT_8, INIT_7, INIT_6, INIT_5,
                                  INIT_4, INIT_3, INIT_2, INIT_1, INIT_0};
  integer at;
  initial for (at = 0; at < 256; at = at + 1) mem[at] = CONTENTS[16 * at +: 16];

  // Bits of a row that a narrow word has: every 2nd, 4th or 8th one, from the one on that the upper address bits name.
  function [15:0] lanes(input [1:0] mode, input [2:0] upper);
    case (mode)
      0: lanes = 16'hFFFF;
      1: lanes = 16'h5555 << upper[0];
      2: lanes = 16'h1111 << upper[1:0];
      3: lanes = 16'h0101 << upper;
    endcase
  endfunction

  // A bit of a narrow word is at one port of its group of 2, 4 or 8: at number 0, 1 or 3.
  wire [15:0] written = lanes(WRITE_MODE, WADDR[10:8]);
  wire [15:0] kept = WRITE_MODE == 0 ? MASK : ~written;
  wire [15:0] spread;
  reg [15:0] row;
  genvar n;
  generate
    for (n = 0; n < 16; n = n + 1) begin : bits
      if (WRITE_MODE == 0) assign spread[n] = WDATA[n];
      else if (WRITE_MODE == 1) assign spread[n] = WDATA[n / 2 * 2];
      else if (WRITE_MODE == 2) assign spread[n] = WDATA[n / 4 * 4 + 1];
      else assign spread[n] = WDATA[n / 8 * 8 + 3];
      if (READ_MODE == 0) assign RDATA[n] = row[n];
      else if (READ_MODE == 1 && n % 2 == 0) assign RDATA[n] = |row[n / 2 * 2 +: 2];
      else if (READ_MODE == 2 && n % 4 == 1) assign RDATA[n] = |row[n / 4 * 4 +: 4];
      else if (READ_MODE == 3 && n % 8 == 3) assign RDATA[n] = |row[n / 8 * 8 +: 8];
      else assign RDATA[n] = 0;
    end
  endgenerate

  always @(posedge WCLK)
    if (WE & WCLKE) mem[WADDR[7:0]] <= (mem[WADDR[7:0]] & kept) | (spread & ~kept);
  always @(posedge RCLK)
    if (RE & RCLKE) row <= mem[RADDR[7:0]] & lanes(READ_MODE, RADDR[10:8]);
endmodule
