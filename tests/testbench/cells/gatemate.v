// Models of GateMate's block RAM for simulating netlists, and of the reset after configuration, in whose place registers
// have initial values. CC_BRAM_40K has 512 rows of 80 bits, and CC_BRAM_20K of 40. In mode TDP each of two ports reads and
// writes words of WIDTH bits; in mode SDP, A writes whole rows and B reads them. Yosys has models of these cells, but they
// keep their contents in one vector, which simulators shift for each access, and a read of what the other port is writing
// has the old data. After Cologne Chip's primitives library (UG1001). Cascades and registers of outputs are left out.

module CC_USR_RSTN(output USR_RSTN);
  assign USR_RSTN = 1'b1;
endmodule

`define CONTENTS_LOW \
  parameter [319:0] INIT_00 = 0, INIT_01 = 0, INIT_02 = 0, INIT_03 = 0, INIT_04 = 0, INIT_05 = 0, INIT_06 = 0, INIT_07 = 0; \
  parameter [319:0] INIT_08 = 0, INIT_09 = 0, INIT_0A = 0, INIT_0B = 0, INIT_0C = 0, INIT_0D = 0, INIT_0E = 0, INIT_0F = 0; \
  parameter [319:0] INIT_10 = 0, INIT_11 = 0, INIT_12 = 0, INIT_13 = 0, INIT_14 = 0, INIT_15 = 0, INIT_16 = 0, INIT_17 = 0; \
  parameter [319:0] INIT_18 = 0, INIT_19 = 0, INIT_1A = 0, INIT_1B = 0, INIT_1C = 0, INIT_1D = 0, INIT_1E = 0, INIT_1F = 0; \
  parameter [319:0] INIT_20 = 0, INIT_21 = 0, INIT_22 = 0, INIT_23 = 0, INIT_24 = 0, INIT_25 = 0, INIT_26 = 0, INIT_27 = 0; \
  parameter [319:0] INIT_28 = 0, INIT_29 = 0, INIT_2A = 0, INIT_2B = 0, INIT_2C = 0, INIT_2D = 0, INIT_2E = 0, INIT_2F = 0; \
  parameter [319:0] INIT_30 = 0, INIT_31 = 0, INIT_32 = 0, INIT_33 = 0, INIT_34 = 0, INIT_35 = 0, INIT_36 = 0, INIT_37 = 0; \
  parameter [319:0] INIT_38 = 0, INIT_39 = 0, INIT_3A = 0, INIT_3B = 0, INIT_3C = 0, INIT_3D = 0, INIT_3E = 0, INIT_3F = 0;
`define CONTENTS_HIGH \
  parameter [319:0] INIT_40 = 0, INIT_41 = 0, INIT_42 = 0, INIT_43 = 0, INIT_44 = 0, INIT_45 = 0, INIT_46 = 0, INIT_47 = 0; \
  parameter [319:0] INIT_48 = 0, INIT_49 = 0, INIT_4A = 0, INIT_4B = 0, INIT_4C = 0, INIT_4D = 0, INIT_4E = 0, INIT_4F = 0; \
  parameter [319:0] INIT_50 = 0, INIT_51 = 0, INIT_52 = 0, INIT_53 = 0, INIT_54 = 0, INIT_55 = 0, INIT_56 = 0, INIT_57 = 0; \
  parameter [319:0] INIT_58 = 0, INIT_59 = 0, INIT_5A = 0, INIT_5B = 0, INIT_5C = 0, INIT_5D = 0, INIT_5E = 0, INIT_5F = 0; \
  parameter [319:0] INIT_60 = 0, INIT_61 = 0, INIT_62 = 0, INIT_63 = 0, INIT_64 = 0, INIT_65 = 0, INIT_66 = 0, INIT_67 = 0; \
  parameter [319:0] INIT_68 = 0, INIT_69 = 0, INIT_6A = 0, INIT_6B = 0, INIT_6C = 0, INIT_6D = 0, INIT_6E = 0, INIT_6F = 0; \
  parameter [319:0] INIT_70 = 0, INIT_71 = 0, INIT_72 = 0, INIT_73 = 0, INIT_74 = 0, INIT_75 = 0, INIT_76 = 0, INIT_77 = 0; \
  parameter [319:0] INIT_78 = 0, INIT_79 = 0, INIT_7A = 0, INIT_7B = 0, INIT_7C = 0, INIT_7D = 0, INIT_7E = 0, INIT_7F = 0;
`define ALL_LOW \
  INIT_3F, INIT_3E, INIT_3D, INIT_3C, INIT_3B, INIT_3A, INIT_39, INIT_38, \
  INIT_37, INIT_36, INIT_35, INIT_34, INIT_33, INIT_32, INIT_31, INIT_30, \
  INIT_2F, INIT_2E, INIT_2D, INIT_2C, INIT_2B, INIT_2A, INIT_29, INIT_28, \
  INIT_27, INIT_26, INIT_25, INIT_24, INIT_23, INIT_22, INIT_21, INIT_20, \
  INIT_1F, INIT_1E, INIT_1D, INIT_1C, INIT_1B, INIT_1A, INIT_19, INIT_18, \
  INIT_17, INIT_16, INIT_15, INIT_14, INIT_13, INIT_12, INIT_11, INIT_10, \
  INIT_0F, INIT_0E, INIT_0D, INIT_0C, INIT_0B, INIT_0A, INIT_09, INIT_08, \
  INIT_07, INIT_06, INIT_05, INIT_04, INIT_03, INIT_02, INIT_01, INIT_00
`define ALL_HIGH \
  INIT_7F, INIT_7E, INIT_7D, INIT_7C, INIT_7B, INIT_7A, INIT_79, INIT_78, \
  INIT_77, INIT_76, INIT_75, INIT_74, INIT_73, INIT_72, INIT_71, INIT_70, \
  INIT_6F, INIT_6E, INIT_6D, INIT_6C, INIT_6B, INIT_6A, INIT_69, INIT_68, \
  INIT_67, INIT_66, INIT_65, INIT_64, INIT_63, INIT_62, INIT_61, INIT_60, \
  INIT_5F, INIT_5E, INIT_5D, INIT_5C, INIT_5B, INIT_5A, INIT_59, INIT_58, \
  INIT_57, INIT_56, INIT_55, INIT_54, INIT_53, INIT_52, INIT_51, INIT_50, \
  INIT_4F, INIT_4E, INIT_4D, INIT_4C, INIT_4B, INIT_4A, INIT_49, INIT_48, \
  INIT_47, INIT_46, INIT_45, INIT_44, INIT_43, INIT_42, INIT_41, INIT_40

module gatemate_block(
  input clka, ena, wea, clkb, enb, web,
  input [15:0] addra, addrb,
  input [79:0] dia, dib, bma, bmb,
  output reg [79:0] doa, dob
);
  parameter ROW = 40;  // bits of a row
  parameter WIDTH_A = 40;
  parameter WIDTH_B = 40;
  parameter THROUGH_A = 0;
  parameter THROUGH_B = 0;
  parameter [512 * ROW - 1:0] CONTENTS = 0;

  reg [ROW - 1:0] rows [0:511];
  integer n;
  initial begin
    for (n = 0; n < 512; n = n + 1) rows[n] = CONTENTS[ROW * n +: ROW];
    doa = 0;
    dob = 0;
  end

  // The first bit in its row of the word that an address names: of each five bits, words of one and two have four.
  function [6:0] first(input [5:0] at, input [6:0] width);
    reg [6:0] base;
    begin
      base = at & ~((width < 5 ? width : width / 5 * 4) - 7'd1);
      first = base + base / 4;
    end
  endfunction
  wire [8:0] row_a = addra[15:7], row_b = addrb[15:7];
  wire [5:0] at_a = ROW == 80 ? addra[6:1] : addra[5:1], at_b = ROW == 80 ? addrb[6:1] : addrb[5:1];
  wire [6:0] first_a = first(at_a, WIDTH_A), first_b = first(at_b, WIDTH_B);
  localparam [79:0] ALL_A = {80{1'b1}} >> (80 - WIDTH_A), ALL_B = {80{1'b1}} >> (80 - WIDTH_B);

  wire [79:0] written_a = ena & wea ? (bma & ALL_A) << first_a : 0, written_b = enb & web ? (bmb & ALL_B) << first_b : 0;
  // A read of bits that the other port is writing may return anything. The complement makes a circuit that relies on it
  // fail.
  wire [79:0] clash_a = row_a == row_b ? written_b : 0, clash_b = row_a == row_b ? written_a : 0;
  wire [79:0] word_a = (rows[row_a] ^ clash_a) >> first_a & ALL_A, word_b = (rows[row_b] ^ clash_b) >> first_b & ALL_B;

  always @(posedge clka) begin
    if (ena & wea) rows[row_a] <= rows[row_a] & ~written_a | dia << first_a & written_a;
    if (ena & ~wea) doa <= word_a;
    if (ena & wea & THROUGH_A) doa <= word_a & ~bma | dia & bma & ALL_A;
  end
  always @(posedge clkb) begin
    if (enb & web) rows[row_b] <= rows[row_b] & ~written_b | dib << first_b & written_b;
    if (enb & ~web) dob <= word_b;
    if (enb & web & THROUGH_B) dob <= word_b & ~bmb | dib & bmb & ALL_B;
  end
endmodule

module CC_BRAM_20K(
  input A_CLK, B_CLK, A_EN, B_EN, A_WE, B_WE,
  input [15:0] A_ADDR, B_ADDR,
  input [19:0] A_DI, B_DI, A_BM, B_BM,
  output [19:0] A_DO, B_DO,
  output ECC_1B_ERR, ECC_2B_ERR
);
  `CONTENTS_LOW
  parameter LOC = "UNPLACED";
  parameter ECC_EN = 0;
  parameter A_RD_WIDTH = 0;
  parameter B_RD_WIDTH = 0;
  parameter A_WR_WIDTH = 0;
  parameter B_WR_WIDTH = 0;
  parameter RAM_MODE = "SDP";
  parameter A_WR_MODE = "NO_CHANGE";
  parameter B_WR_MODE = "NO_CHANGE";
  parameter [0:0] A_CLK_INV = 0, B_CLK_INV = 0, A_EN_INV = 0, B_EN_INV = 0, A_WE_INV = 0, B_WE_INV = 0;
  parameter A_DO_REG = 0;
  parameter B_DO_REG = 0;
  localparam SIMPLE = RAM_MODE == "SDP";
  wire [79:0] dia = SIMPLE ? {B_DI, A_DI} : A_DI, bma = SIMPLE ? {B_BM, A_BM} : A_BM, doa, dob;
  gatemate_block #(.ROW(40), .WIDTH_A(SIMPLE ? 40 : A_RD_WIDTH > A_WR_WIDTH ? A_RD_WIDTH : A_WR_WIDTH),
                   .WIDTH_B(SIMPLE ? 40 : B_RD_WIDTH > B_WR_WIDTH ? B_RD_WIDTH : B_WR_WIDTH),
                   .THROUGH_A(A_WR_MODE == "WRITE_THROUGH"), .THROUGH_B(B_WR_MODE == "WRITE_THROUGH"),
                   .CONTENTS({`ALL_LOW})) block(
    .clka(A_CLK ^ A_CLK_INV), .ena(A_EN ^ A_EN_INV), .wea(A_WE ^ A_WE_INV), .addra(A_ADDR), .dia(dia), .bma(bma),
    .clkb(B_CLK ^ B_CLK_INV), .enb(B_EN ^ B_EN_INV), .web(!SIMPLE & (B_WE ^ B_WE_INV)), .addrb(B_ADDR), .dib(B_DI),
    .bmb(B_BM), .doa(doa), .dob(dob));
  assign A_DO = SIMPLE ? dob[19:0] : doa[19:0];
  assign B_DO = SIMPLE ? dob[39:20] : dob[19:0];
endmodule

module CC_BRAM_40K(
  input A_CLK, B_CLK, A_EN, B_EN, A_WE, B_WE,
  input [15:0] A_ADDR, B_ADDR,
  input [39:0] A_DI, B_DI, A_BM, B_BM,
  input A_CI, B_CI,
  output [39:0] A_DO, B_DO,
  output A_ECC_1B_ERR, B_ECC_1B_ERR, A_ECC_2B_ERR, B_ECC_2B_ERR, A_CO, B_CO
);
  `CONTENTS_LOW
  `CONTENTS_HIGH
  parameter LOC = "UNPLACED";
  parameter CAS = "NONE";
  parameter A_ECC_EN = 0;
  parameter B_ECC_EN = 0;
  parameter A_RD_WIDTH = 0;
  parameter B_RD_WIDTH = 0;
  parameter A_WR_WIDTH = 0;
  parameter B_WR_WIDTH = 0;
  parameter RAM_MODE = "SDP";
  parameter A_WR_MODE = "NO_CHANGE";
  parameter B_WR_MODE = "NO_CHANGE";
  parameter [0:0] A_CLK_INV = 0, B_CLK_INV = 0, A_EN_INV = 0, B_EN_INV = 0, A_WE_INV = 0, B_WE_INV = 0;
  parameter A_DO_REG = 0;
  parameter B_DO_REG = 0;
  localparam SIMPLE = RAM_MODE == "SDP";
  wire [79:0] dia = SIMPLE ? {B_DI, A_DI} : A_DI, bma = SIMPLE ? {B_BM, A_BM} : A_BM, doa, dob;
  gatemate_block #(.ROW(80), .WIDTH_A(SIMPLE ? 80 : A_RD_WIDTH > A_WR_WIDTH ? A_RD_WIDTH : A_WR_WIDTH),
                   .WIDTH_B(SIMPLE ? 80 : B_RD_WIDTH > B_WR_WIDTH ? B_RD_WIDTH : B_WR_WIDTH),
                   .THROUGH_A(A_WR_MODE == "WRITE_THROUGH"), .THROUGH_B(B_WR_MODE == "WRITE_THROUGH"),
                   .CONTENTS({`ALL_HIGH, `ALL_LOW})) block(
    .clka(A_CLK ^ A_CLK_INV), .ena(A_EN ^ A_EN_INV), .wea(A_WE ^ A_WE_INV), .addra(A_ADDR), .dia(dia), .bma(bma),
    .clkb(B_CLK ^ B_CLK_INV), .enb(B_EN ^ B_EN_INV), .web(!SIMPLE & (B_WE ^ B_WE_INV)), .addrb(B_ADDR), .dib(B_DI),
    .bmb(B_BM), .doa(doa), .dob(dob));
  assign A_DO = SIMPLE ? dob[39:0] : doa[39:0];
  assign B_DO = SIMPLE ? dob[79:40] : dob[39:0];
endmodule
