"""Formal proofs: properties of the circuits that hold for every input, by yosys-smtbmc and z3; see docs/formal.md."""
