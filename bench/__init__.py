"""Scripts that measure, and the pages and pictures made from their figures. Run one: ``python -m bench.NAME``."""

import os

# What is measured are compiled loops, from the first batch on; whoever measures the first result says otherwise.
os.environ.setdefault("SPLITJOIN_COMPILE", "first")
