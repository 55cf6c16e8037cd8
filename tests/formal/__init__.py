"""Formal proofs: properties of the circuits for every input, by yosys-smtbmc and Bitwuzla; see docs/formal.md."""
