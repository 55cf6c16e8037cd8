"""Proofs for any number of cores, inputs and records: inductive invariants over unbounded integers, decided by Z3."""
