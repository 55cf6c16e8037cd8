"""Files beside the Verilog of a circuit: test vectors, test benches, and descriptions for other tools."""
