"""Interval algebra over tables: `overlaps`, `count_overlaps`, `coverage`, `closest`, `merge`, `cluster`, `subtract` and
`complement`, for genes, shifts, outages, and whatever else has a start and an end.

Intervals are *half-open*, ``[start, end)``, as in BED files, unless ``closed=True``: then both ends belong to them,
``[start, end]``, as in GFF and VCF. The functions are thin: pairs come from `splitjoin.join`, and the rest from arrays
in the order of starts.
"""

from .pairs import closest, count_overlaps, coverage, overlaps
from .sets import cluster, complement, merge, subtract

__all__ = ["closest", "cluster", "complement", "count_overlaps", "coverage", "merge", "overlaps", "subtract"]
