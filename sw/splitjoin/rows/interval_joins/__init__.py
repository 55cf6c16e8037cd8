"""Online interval joins: engines that fold the aggregates of a join on the CPU without making pairs.

`sliding` is ours, `key_oij` and `scale_oij` are those of Scale-OIJ ("Scalable Online Interval Join on Modern Multicore
Processors in OpenMLDB", ICDE 2023); all give the answer of semantics, section 8. This package imports none of its
modules: those that run something import numba, which takes a third of a second.
"""
