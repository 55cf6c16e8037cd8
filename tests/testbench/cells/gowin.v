// Models of Gowin's block RAM for simulating netlists. DPB and DPX9B have two ports that read and write, SDPB and
// SDPX9B one that writes (A) and one that reads (B), SP and SPX9 a single one. Those with a 9 have words of 9, 18 or 36
// bits, the others of 1 to 32. Those of GW5A with one port each have RESET instead of RESETA and RESETB; ports without a
// wire are low. Yosys knows these cells as black boxes only. After Gowin's user guides on BSRAM (UG285, UG300). Resets are
// synchronous, as those of all circuits here.

`define FIRST_CONTENTS(bits) \
  parameter [bits - 1:0] INIT_RAM_00 = 0, INIT_RAM_01 = 0, INIT_RAM_02 = 0, INIT_RAM_03 = 0, INIT_RAM_04 = 0; \
  parameter [bits - 1:0] INIT_RAM_05 = 0, INIT_RAM_06 = 0, INIT_RAM_07 = 0, INIT_RAM_08 = 0, INIT_RAM_09 = 0; \
  parameter [bits - 1:0] INIT_RAM_0A = 0, INIT_RAM_0B = 0, INIT_RAM_0C = 0, INIT_RAM_0D = 0, INIT_RAM_0E = 0; \
  parameter [bits - 1:0] INIT_RAM_0F = 0, INIT_RAM_10 = 0, INIT_RAM_11 = 0, INIT_RAM_12 = 0, INIT_RAM_13 = 0; \
  parameter [bits - 1:0] INIT_RAM_14 = 0, INIT_RAM_15 = 0, INIT_RAM_16 = 0, INIT_RAM_17 = 0, INIT_RAM_18 = 0; \
  parameter [bits - 1:0] INIT_RAM_19 = 0, INIT_RAM_1A = 0, INIT_RAM_1B = 0, INIT_RAM_1C = 0, INIT_RAM_1D = 0; \
  parameter [bits - 1:0] INIT_RAM_1E = 0, INIT_RAM_1F = 0, INIT_RAM_20 = 0, INIT_RAM_21 = 0, INIT_RAM_22 = 0; \
  parameter [bits - 1:0] INIT_RAM_23 = 0, INIT_RAM_24 = 0, INIT_RAM_25 = 0, INIT_RAM_26 = 0, INIT_RAM_27 = 0; \
  parameter [bits - 1:0] INIT_RAM_28 = 0, INIT_RAM_29 = 0, INIT_RAM_2A = 0, INIT_RAM_2B = 0, INIT_RAM_2C = 0; \
  parameter [bits - 1:0] INIT_RAM_2D = 0, INIT_RAM_2E = 0, INIT_RAM_2F = 0, INIT_RAM_30 = 0, INIT_RAM_31 = 0; \
  parameter [bits - 1:0] INIT_RAM_32 = 0, INIT_RAM_33 = 0, INIT_RAM_34 = 0, INIT_RAM_35 = 0, INIT_RAM_36 = 0; \
  parameter [bits - 1:0] INIT_RAM_37 = 0, INIT_RAM_38 = 0, INIT_RAM_39 = 0, INIT_RAM_3A = 0, INIT_RAM_3B = 0; \
  parameter [bits - 1:0] INIT_RAM_3C = 0, INIT_RAM_3D = 0, INIT_RAM_3E = 0, INIT_RAM_3F = 0;
`define ALL_CONTENTS {\
  INIT_RAM_3F, INIT_RAM_3E, INIT_RAM_3D, INIT_RAM_3C, INIT_RAM_3B, INIT_RAM_3A, INIT_RAM_39, INIT_RAM_38, \
  INIT_RAM_37, INIT_RAM_36, INIT_RAM_35, INIT_RAM_34, INIT_RAM_33, INIT_RAM_32, INIT_RAM_31, INIT_RAM_30, \
  INIT_RAM_2F, INIT_RAM_2E, INIT_RAM_2D, INIT_RAM_2C, INIT_RAM_2B, INIT_RAM_2A, INIT_RAM_29, INIT_RAM_28, \
  INIT_RAM_27, INIT_RAM_26, INIT_RAM_25, INIT_RAM_24, INIT_RAM_23, INIT_RAM_22, INIT_RAM_21, INIT_RAM_20, \
  INIT_RAM_1F, INIT_RAM_1E, INIT_RAM_1D, INIT_RAM_1C, INIT_RAM_1B, INIT_RAM_1A, INIT_RAM_19, INIT_RAM_18, \
  INIT_RAM_17, INIT_RAM_16, INIT_RAM_15, INIT_RAM_14, INIT_RAM_13, INIT_RAM_12, INIT_RAM_11, INIT_RAM_10, \
  INIT_RAM_0F, INIT_RAM_0E, INIT_RAM_0D, INIT_RAM_0C, INIT_RAM_0B, INIT_RAM_0A, INIT_RAM_09, INIT_RAM_08, \
  INIT_RAM_07, INIT_RAM_06, INIT_RAM_05, INIT_RAM_04, INIT_RAM_03, INIT_RAM_02, INIT_RAM_01, INIT_RAM_00}

// 2,048 bytes of nine bits with two ports. The lowest address bits of words of two and four bytes are enables of bytes
// to write.
module gowin_block(
  input clka, cea, ocea, wrea, reseta, clkb, ceb, oceb, wreb, resetb,
  input [13:0] ada, adb,
  input [35:0] dia, dib,
  output [35:0] doa, dob
);
  parameter WIDTH_A = 9;
  parameter WIDTH_B = 9;
  parameter WRITE_MODE_A = 0;
  parameter WRITE_MODE_B = 0;
  parameter READ_MODE_A = 0;
  parameter READ_MODE_B = 0;
  parameter BYTE = 9;  // bits of a byte in CONTENTS
  parameter [18431:0] CONTENTS = 0;

  localparam [35:0] ALL_A = {36{1'b1}} >> (WIDTH_A >= 8 ? 36 - 9 * (WIDTH_A / 8) : 36 - WIDTH_A);
  localparam [35:0] ALL_B = {36{1'b1}} >> (WIDTH_B >= 8 ? 36 - 9 * (WIDTH_B / 8) : 36 - WIDTH_B);
  localparam [13:0] WORD_A = WIDTH_A >= 32 ? 31 : WIDTH_A >= 16 ? 15 : WIDTH_A >= 8 ? 7 : WIDTH_A - 1;
  localparam [13:0] WORD_B = WIDTH_B >= 32 ? 31 : WIDTH_B >= 16 ? 15 : WIDTH_B >= 8 ? 7 : WIDTH_B - 1;

  reg [8:0] bytes [0:2047];
  integer n;
  initial for (n = 0; n < 2048; n = n + 1) bytes[n] = CONTENTS[BYTE * n +: BYTE];

  // A word's first byte, its place in a byte that it is a part of, and its bits.
  wire [13:0] first_a = ada & ~WORD_A, first_b = adb & ~WORD_B;
  wire [10:0] at_a = first_a[13:3], at_b = first_b[13:3];
  wire [2:0] bit_a = first_a[2:0], bit_b = first_b[2:0];
  wire [35:0] word_a = {bytes[at_a | 3], bytes[at_a | 2], bytes[at_a | 1], bytes[at_a]} >> bit_a;
  wire [35:0] word_b = {bytes[at_b | 3], bytes[at_b | 2], bytes[at_b | 1], bytes[at_b]} >> bit_b;
  // A read of a word that the other port is writing may return anything. The complement makes a circuit that relies on
  // it fail.
  wire same = ((ada ^ adb) & ~(WORD_A | WORD_B)) == 0;
  wire clash_a = same & ceb & wreb, clash_b = same & cea & wrea;
  reg [35:0] latch_a = 0, latch_b = 0, late_a = 0, late_b = 0;

  always @(posedge clka) begin
    if (cea & wrea) begin
      if (WIDTH_A < 8) bytes[at_a] <= bytes[at_a] & ~(ALL_A << bit_a) | (dia & ALL_A) << bit_a;
      if (WIDTH_A >= 8 & (WIDTH_A < 16 | ada[0])) bytes[at_a] <= dia[8:0];
      if (WIDTH_A >= 16 & ada[1]) bytes[at_a | 1] <= dia[17:9];
      if (WIDTH_A >= 32 & ada[2]) bytes[at_a | 2] <= dia[26:18];
      if (WIDTH_A >= 32 & ada[3]) bytes[at_a | 3] <= dia[35:27];
    end
    if (reseta) latch_a <= 0;
    else if (cea & (~wrea | WRITE_MODE_A == 2)) latch_a <= ALL_A & (clash_a ? ~word_a : word_a);
    else if (cea & WRITE_MODE_A == 1) latch_a <= ALL_A & dia;
    if (reseta) late_a <= 0;
    else if (ocea) late_a <= latch_a;
  end
  assign doa = READ_MODE_A ? late_a : latch_a;

  always @(posedge clkb) begin
    if (ceb & wreb) begin
      if (WIDTH_B < 8) bytes[at_b] <= bytes[at_b] & ~(ALL_B << bit_b) | (dib & ALL_B) << bit_b;
      if (WIDTH_B >= 8 & (WIDTH_B < 16 | adb[0])) bytes[at_b] <= dib[8:0];
      if (WIDTH_B >= 16 & adb[1]) bytes[at_b | 1] <= dib[17:9];
      if (WIDTH_B >= 32 & adb[2]) bytes[at_b | 2] <= dib[26:18];
      if (WIDTH_B >= 32 & adb[3]) bytes[at_b | 3] <= dib[35:27];
    end
    if (resetb) latch_b <= 0;
    else if (ceb & (~wreb | WRITE_MODE_B == 2)) latch_b <= ALL_B & (clash_b ? ~word_b : word_b);
    else if (ceb & WRITE_MODE_B == 1) latch_b <= ALL_B & dib;
    if (resetb) late_b <= 0;
    else if (oceb) late_b <= latch_b;
  end
  assign dob = READ_MODE_B ? late_b : latch_b;
endmodule

module DPB(
  input CLKA, CEA, OCEA, WREA, RESETA, CLKB, CEB, OCEB, WREB, RESETB,
  input [2:0] BLKSELA, BLKSELB,
  input [13:0] ADA, ADB,
  input [15:0] DIA, DIB,
  output [15:0] DOA, DOB
);
  `FIRST_CONTENTS(256)
  parameter READ_MODE0 = 0;
  parameter READ_MODE1 = 0;
  parameter WRITE_MODE0 = 0;
  parameter WRITE_MODE1 = 0;
  parameter BIT_WIDTH_0 = 16;
  parameter BIT_WIDTH_1 = 16;
  parameter [2:0] BLK_SEL_0 = 0;
  parameter [2:0] BLK_SEL_1 = 0;
  parameter RESET_MODE = "SYNC";
  wire [31:0] dia = DIA, dib = DIB;
  wire [35:0] doa, dob;
  gowin_block #(.WIDTH_A(BIT_WIDTH_0), .WIDTH_B(BIT_WIDTH_1), .READ_MODE_A(READ_MODE0), .READ_MODE_B(READ_MODE1),
                .WRITE_MODE_A(WRITE_MODE0), .WRITE_MODE_B(WRITE_MODE1), .BYTE(8), .CONTENTS(`ALL_CONTENTS)) block(
    .clka(CLKA), .cea(CEA & BLKSELA == BLK_SEL_0), .ocea(OCEA), .wrea(WREA), .reseta(RESETA), .ada(ADA),
    .clkb(CLKB), .ceb(CEB & BLKSELB == BLK_SEL_1), .oceb(OCEB), .wreb(WREB), .resetb(RESETB), .adb(ADB),
    .dia({1'b0, dia[31:24], 1'b0, dia[23:16], 1'b0, dia[15:8], 1'b0, dia[7:0]}),
    .dib({1'b0, dib[31:24], 1'b0, dib[23:16], 1'b0, dib[15:8], 1'b0, dib[7:0]}),
    .doa(doa), .dob(dob));
  assign DOA = {doa[34:27], doa[25:18], doa[16:9], doa[7:0]};
  assign DOB = {dob[34:27], dob[25:18], dob[16:9], dob[7:0]};
endmodule

module DPX9B(
  input CLKA, CEA, OCEA, WREA, RESETA, CLKB, CEB, OCEB, WREB, RESETB,
  input [2:0] BLKSELA, BLKSELB,
  input [13:0] ADA, ADB,
  input [17:0] DIA, DIB,
  output [17:0] DOA, DOB
);
  `FIRST_CONTENTS(288)
  parameter READ_MODE0 = 0;
  parameter READ_MODE1 = 0;
  parameter WRITE_MODE0 = 0;
  parameter WRITE_MODE1 = 0;
  parameter BIT_WIDTH_0 = 18;
  parameter BIT_WIDTH_1 = 18;
  parameter [2:0] BLK_SEL_0 = 0;
  parameter [2:0] BLK_SEL_1 = 0;
  parameter RESET_MODE = "SYNC";
  wire [35:0] dia = DIA, dib = DIB;
  wire [35:0] doa, dob;
  gowin_block #(.WIDTH_A(BIT_WIDTH_0), .WIDTH_B(BIT_WIDTH_1), .READ_MODE_A(READ_MODE0), .READ_MODE_B(READ_MODE1),
                .WRITE_MODE_A(WRITE_MODE0), .WRITE_MODE_B(WRITE_MODE1), .BYTE(9), .CONTENTS(`ALL_CONTENTS)) block(
    .clka(CLKA), .cea(CEA & BLKSELA == BLK_SEL_0), .ocea(OCEA), .wrea(WREA), .reseta(RESETA), .ada(ADA),
    .clkb(CLKB), .ceb(CEB & BLKSELB == BLK_SEL_1), .oceb(OCEB), .wreb(WREB), .resetb(RESETB), .adb(ADB),
    .dia(dia),
    .dib(dib),
    .doa(doa), .dob(dob));
  assign DOA = doa;
  assign DOB = dob;
endmodule

module SDPB(
  input CLKA, CEA, RESETA, CLKB, CEB, OCE, RESETB, RESET,
  input [2:0] BLKSELA, BLKSELB,
  input [13:0] ADA, ADB,
  input [31:0] DI,
  output [31:0] DO
);
  `FIRST_CONTENTS(256)
  parameter READ_MODE = 0;
  parameter BIT_WIDTH_0 = 32;
  parameter BIT_WIDTH_1 = 32;
  parameter [2:0] BLK_SEL_0 = 0;
  parameter [2:0] BLK_SEL_1 = 0;
  parameter RESET_MODE = "SYNC";
  wire [35:0] unused, out;
  gowin_block #(.WIDTH_A(BIT_WIDTH_0), .WIDTH_B(BIT_WIDTH_1), .READ_MODE_B(READ_MODE), .BYTE(8),
                .CONTENTS(`ALL_CONTENTS)) block(
    .clka(CLKA), .cea(CEA & BLKSELA == BLK_SEL_0), .ocea(1'b0), .wrea(1'b1), .reseta(RESETA), .ada(ADA), .doa(unused),
    .dia({1'b0, DI[31:24], 1'b0, DI[23:16], 1'b0, DI[15:8], 1'b0, DI[7:0]}), .dib(36'b0),
    .clkb(CLKB), .ceb(CEB & BLKSELB == BLK_SEL_1), .oceb(OCE), .wreb(1'b0), .resetb(RESETB | RESET), .adb(ADB), .dob(out));
  assign DO = {out[34:27], out[25:18], out[16:9], out[7:0]};
endmodule

module SDPX9B(
  input CLKA, CEA, RESETA, CLKB, CEB, OCE, RESETB, RESET,
  input [2:0] BLKSELA, BLKSELB,
  input [13:0] ADA, ADB,
  input [35:0] DI,
  output [35:0] DO
);
  `FIRST_CONTENTS(288)
  parameter READ_MODE = 0;
  parameter BIT_WIDTH_0 = 36;
  parameter BIT_WIDTH_1 = 36;
  parameter [2:0] BLK_SEL_0 = 0;
  parameter [2:0] BLK_SEL_1 = 0;
  parameter RESET_MODE = "SYNC";
  wire [35:0] unused, out;
  gowin_block #(.WIDTH_A(BIT_WIDTH_0), .WIDTH_B(BIT_WIDTH_1), .READ_MODE_B(READ_MODE), .BYTE(9),
                .CONTENTS(`ALL_CONTENTS)) block(
    .clka(CLKA), .cea(CEA & BLKSELA == BLK_SEL_0), .ocea(1'b0), .wrea(1'b1), .reseta(RESETA), .ada(ADA), .doa(unused),
    .dia(DI), .dib(36'b0),
    .clkb(CLKB), .ceb(CEB & BLKSELB == BLK_SEL_1), .oceb(OCE), .wreb(1'b0), .resetb(RESETB | RESET), .adb(ADB), .dob(out));
  assign DO = out;
endmodule

module SP(
  input CLK, CE, OCE, WRE, RESET,
  input [2:0] BLKSEL,
  input [13:0] AD,
  input [31:0] DI,
  output [31:0] DO
);
  `FIRST_CONTENTS(256)
  parameter READ_MODE = 0;
  parameter WRITE_MODE = 0;
  parameter BIT_WIDTH = 32;
  parameter [2:0] BLK_SEL = 0;
  parameter RESET_MODE = "SYNC";
  wire [35:0] unused, out;
  gowin_block #(.WIDTH_A(BIT_WIDTH), .WRITE_MODE_A(WRITE_MODE), .READ_MODE_A(READ_MODE), .BYTE(8),
                .CONTENTS(`ALL_CONTENTS)) block(
    .clka(CLK), .cea(CE & BLKSEL == BLK_SEL), .ocea(OCE), .wrea(WRE), .reseta(RESET), .ada(AD), .doa(out),
    .dia({1'b0, DI[31:24], 1'b0, DI[23:16], 1'b0, DI[15:8], 1'b0, DI[7:0]}), .dib(36'b0),
    .clkb(1'b0), .ceb(1'b0), .oceb(1'b0), .wreb(1'b0), .resetb(1'b0), .adb(14'b0), .dob(unused));
  assign DO = {out[34:27], out[25:18], out[16:9], out[7:0]};
endmodule

module SPX9(
  input CLK, CE, OCE, WRE, RESET,
  input [2:0] BLKSEL,
  input [13:0] AD,
  input [35:0] DI,
  output [35:0] DO
);
  `FIRST_CONTENTS(288)
  parameter READ_MODE = 0;
  parameter WRITE_MODE = 0;
  parameter BIT_WIDTH = 36;
  parameter [2:0] BLK_SEL = 0;
  parameter RESET_MODE = "SYNC";
  wire [35:0] unused, out;
  gowin_block #(.WIDTH_A(BIT_WIDTH), .WRITE_MODE_A(WRITE_MODE), .READ_MODE_A(READ_MODE), .BYTE(9),
                .CONTENTS(`ALL_CONTENTS)) block(
    .clka(CLK), .cea(CE & BLKSEL == BLK_SEL), .ocea(OCE), .wrea(WRE), .reseta(RESET), .ada(AD), .doa(out),
    .dia(DI), .dib(36'b0),
    .clkb(1'b0), .ceb(1'b0), .oceb(1'b0), .wreb(1'b0), .resetb(1'b0), .adb(14'b0), .dob(unused));
  assign DO = out;
endmodule
