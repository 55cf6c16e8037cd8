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
