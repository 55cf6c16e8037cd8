"""A Verilog writer for circuits from Amaranth: text that people can read, and that every simulator runs from time 0."""
