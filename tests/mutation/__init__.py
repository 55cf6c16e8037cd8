"""Faults planted in product code, one at a time, on a copy of the tree: the tests of the files concerned must fail.

`python -m tests.mutation --files F…` makes mutants of files, `--planted` plants the faults of `planted.py`.
"""
