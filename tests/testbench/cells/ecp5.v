// A model of ECP5's block RAM for simulating netlists, as far as the circuits use it: port A writes and port B reads, or
// port A alone reads a table, with one word size for both. Synthesis knows the cell only as a black box. After Lattice's
// memory usage guide (FPGA-TN-02204); the halves of words of 36 bits are on the ports that synthesis uses for them.
module DP16KD(
  input DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1,
  input DIA0,
  input ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0,
  input CEA, OCEA, CLKA, WEA, RSTA,
  input CSA2, CSA1, CSA0,
  output DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1,
  output DOA0,
  input DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1,
  input DIB0,
  input ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0,
  input CEB, OCEB, CLKB, WEB, RSTB,
  input CSB2, CSB1, CSB0,
  output DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1,
  output DOB0
);
  parameter DATA_WIDTH_A = 18;
  parameter DATA_WIDTH_B = 18;
  parameter REGMODE_A = "NOREG";
  parameter REGMODE_B = "NOREG";
  parameter RESETMODE = "SYNC";
  parameter ASYNC_RESET_RELEASE = "SYNC";
  parameter CSDECODE_A = "0b000";
  parameter CSDECODE_B = "0b000";
  parameter CLKAMUX = "CLKA";
  parameter CLKBMUX = "CLKB";
  parameter WRITEMODE_A = "NORMAL";
  parameter WRITEMODE_B = "NORMAL";
  parameter GSR = "ENABLED";
  parameter [319:0] INITVAL_00 = 0;
  parameter [319:0] INITVAL_01 = 0;
  parameter [319:0] INITVAL_02 = 0;
  parameter [319:0] INITVAL_03 = 0;
  parameter [319:0] INITVAL_04 = 0;
  parameter [319:0] INITVAL_05 = 0;
  parameter [319:0] INITVAL_06 = 0;
  parameter [319:0] INITVAL_07 = 0;
  parameter [319:0] INITVAL_08 = 0;
  parameter [319:0] INITVAL_09 = 0;
  parameter [319:0] INITVAL_0A = 0;
  parameter [319:0] INITVAL_0B = 0;
  parameter [319:0] INITVAL_0C = 0;
  parameter [319:0] INITVAL_0D = 0;
  parameter [319:0] INITVAL_0E = 0;
  parameter [319:0] INITVAL_0F = 0;
  parameter [319:0] INITVAL_10 = 0;
  parameter [319:0] INITVAL_11 = 0;
  parameter [319:0] INITVAL_12 = 0;
  parameter [319:0] INITVAL_13 = 0;
  parameter [319:0] INITVAL_14 = 0;
  parameter [319:0] INITVAL_15 = 0;
  parameter [319:0] INITVAL_16 = 0;
  parameter [319:0] INITVAL_17 = 0;
  parameter [319:0] INITVAL_18 = 0;
  parameter [319:0] INITVAL_19 = 0;
  parameter [319:0] INITVAL_1A = 0;
  parameter [319:0] INITVAL_1B = 0;
  parameter [319:0] INITVAL_1C = 0;
  parameter [319:0] INITVAL_1D = 0;
  parameter [319:0] INITVAL_1E = 0;
  parameter [319:0] INITVAL_1F = 0;
  parameter [319:0] INITVAL_20 = 0;
  parameter [319:0] INITVAL_21 = 0;
  parameter [319:0] INITVAL_22 = 0;
  parameter [319:0] INITVAL_23 = 0;
  parameter [319:0] INITVAL_24 = 0;
  parameter [319:0] INITVAL_25 = 0;
  parameter [319:0] INITVAL_26 = 0;
  parameter [319:0] INITVAL_27 = 0;
  parameter [319:0] INITVAL_28 = 0;
  parameter [319:0] INITVAL_29 = 0;
  parameter [319:0] INITVAL_2A = 0;
  parameter [319:0] INITVAL_2B = 0;
  parameter [319:0] INITVAL_2C = 0;
  parameter [319:0] INITVAL_2D = 0;
  parameter [319:0] INITVAL_2E = 0;
  parameter [319:0] INITVAL_2F = 0;
  parameter [319:0] INITVAL_30 = 0;
  parameter [319:0] INITVAL_31 = 0;
  parameter [319:0] INITVAL_32 = 0;
  parameter [319:0] INITVAL_33 = 0;
  parameter [319:0] INITVAL_34 = 0;
  parameter [319:0] INITVAL_35 = 0;
  parameter [319:0] INITVAL_36 = 0;
  parameter [319:0] INITVAL_37 = 0;
  parameter [319:0] INITVAL_38 = 0;
  parameter [319:0] INITVAL_39 = 0;
  parameter [319:0] INITVAL_3A = 0;
  parameter [319:0] INITVAL_3B = 0;
  parameter [319:0] INITVAL_3C = 0;
  parameter [319:0] INITVAL_3D = 0;
  parameter [319:0] INITVAL_3E = 0;
  parameter [319:0] INITVAL_3F = 0;

  localparam SHIFT = DATA_WIDTH_A == 36 ? 5 : DATA_WIDTH_A == 18 ? 4 : DATA_WIDTH_A == 9 ? 3
                   : DATA_WIDTH_A == 4 ? 2 : DATA_WIDTH_A == 2 ? 1 : 0;

  wire [13:0] ada = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
  wire [13:0] adb = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
  wire [35:0] di = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3,
                    DIB2, DIB1, DIB0, DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6,
                    DIA5, DIA4, DIA3, DIA2, DIA1, DIA0};
  wire [35:0] mask = DATA_WIDTH_A == 36 ? {{9{ADA3}}, {9{ADA2}}, {9{ADA1}}, {9{ADA0}}}
                   : DATA_WIDTH_A == 18 ? {18'b0, {9{ADA1}}, {9{ADA0}}} : {36{1'b1}};
  wire selected_a = {CSA2, CSA1, CSA0} == 3'b000;
  wire selected_b = {CSB2, CSB1, CSB0} == 3'b000;
  wire writes = CEA & WEA & selected_a & |mask;

  reg [35:0] rows [(1 << (14 - SHIFT)) - 1:0];
  reg [35:0] latch, low, high;
  reg [17:0] alone, later;

  // First contents: 1,024 groups of 18 bits, each at 20 bits from the last. Each half of a group is a byte with its ninth
  // bit, which words of 4, 2 and 1 bits leave out.
  localparam [20479:0] CONTENTS = {
    INITVAL_3F, INITVAL_3E, INITVAL_3D, INITVAL_3C, INITVAL_3B, INITVAL_3A, INITVAL_39, INITVAL_38, INITVAL_37,
    INITVAL_36, INITVAL_35, INITVAL_34, INITVAL_33, INITVAL_32, INITVAL_31, INITVAL_30, INITVAL_2F, INITVAL_2E,
    INITVAL_2D, INITVAL_2C, INITVAL_2B, INITVAL_2A, INITVAL_29, INITVAL_28, INITVAL_27, INITVAL_26, INITVAL_25,
    INITVAL_24, INITVAL_23, INITVAL_22, INITVAL_21, INITVAL_20, INITVAL_1F, INITVAL_1E, INITVAL_1D, INITVAL_1C,
    INITVAL_1B, INITVAL_1A, INITVAL_19, INITVAL_18, INITVAL_17, INITVAL_16, INITVAL_15, INITVAL_14, INITVAL_13,
    INITVAL_12, INITVAL_11, INITVAL_10, INITVAL_0F, INITVAL_0E, INITVAL_0D, INITVAL_0C, INITVAL_0B, INITVAL_0A,
    INITVAL_09, INITVAL_08, INITVAL_07, INITVAL_06, INITVAL_05, INITVAL_04, INITVAL_03, INITVAL_02, INITVAL_01,
    INITVAL_00};
  integer n;
  initial for (n = 0; n < 1 << (14 - SHIFT); n = n + 1)
    case (SHIFT)
      5: rows[n] = {CONTENTS[40 * n + 20 +: 18], CONTENTS[40 * n +: 18]};
      4: rows[n] = CONTENTS[20 * n +: 18];
      3: rows[n] = CONTENTS[20 * (n / 2) + 9 * (n % 2) +: 9];
      2: rows[n] = CONTENTS[20 * (n / 4) + 9 * (n / 2 % 2) + 4 * (n % 2) +: 4];
      1: rows[n] = CONTENTS[20 * (n / 8) + 9 * (n / 4 % 2) + 2 * (n % 4) +: 2];
      default: rows[n] = CONTENTS[20 * (n / 16) + 9 * (n / 8 % 2) + n % 8];
    endcase

  always @(posedge CLKA)
    if (CEA & WEA & selected_a) rows[ada >> SHIFT] <= (rows[ada >> SHIFT] & ~mask) | (di & mask);

  always @(posedge CLKA) begin
    if (RSTA) alone <= 0;
    else if (CEA & ~WEA & selected_a) alone <= rows[ada >> SHIFT][17:0];
    if (RSTA) later <= 0;
    else if (OCEA) later <= alone;
  end

  always @(posedge CLKB) begin
    if (RSTB) latch <= 0;
    else if (CEB & ~WEB & selected_b)
      // A read of the address that is being written may return anything. The complement makes a circuit that relies on
      // it fail.
      latch <= writes && ada >> SHIFT == adb >> SHIFT ? ~rows[adb >> SHIFT] : rows[adb >> SHIFT];
    if (RSTB) high <= 0;
    else if (OCEB) high <= latch;
    if (RSTA) low <= 0;
    else if (OCEA) low <= latch;
  end

  // Words of 36 bits that port B reads leave through both ports, narrower ones through their own.
  wire [17:0] a = DATA_WIDTH_A == 36 ? (REGMODE_A == "OUTREG" ? low[17:0] : latch[17:0])
                                     : (REGMODE_A == "OUTREG" ? later : alone);
  wire [35:0] b = REGMODE_B == "OUTREG" ? high : latch;
  wire [17:0] out = DATA_WIDTH_B == 36 ? b[35:18] : b[17:0];
  assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1,
          DOA0} = a;
  assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1,
          DOB0} = out;
endmodule

// One expression, as a netlist has thousands of these cells.
module LUT4(input A, B, C, D, output Z);
  parameter [15:0] INIT = 16'h0000;
  assign Z = INIT[{D, C, B, A}];
endmodule

// A model of ECP5's multiplier as synthesis uses it: without registers, C and the shifted operands stay unused.
module MULT18X18D(
  input A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0,
  input B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0,
  input C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0,
  input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
  output P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15,
  output P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
);
  wire [17:0] a = {
    A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
  wire [17:0] b = {
    B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
  wire signed [35:0] wide_a = {{18{SIGNEDA & a[17]}}, a};
  wire signed [35:0] wide_b = {{18{SIGNEDB & b[17]}}, b};
  assign {
    P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15, P14,
    P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} = wide_a * wide_b;
endmodule
