"""State machines that drive sessions at random, beside answers by brute force that were written from
docs/semantics.md alone: a fault that engines and the golden model share is still found.

`python -m tests.machine --seconds 3600 --seed 7` runs them at length; a failure prints the calls of its shortest form.
"""
