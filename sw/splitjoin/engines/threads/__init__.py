"""The papers' software architectures on the CPU, with a thread for each core: ``CpuDevice(engine="threads")``.

They are baselines, to be measured beside the product's own engines. ``"auto"`` never takes them, and nothing outside
this folder depends on them but that option. Circuits of the same names are in ``hw/splitjoin_hw``
(docs/architectures.md). All compare all pairs of a window, by the tests of the product's nested loops.

Loops are C++, a library of their own; each architecture is a file:

=========================  ==================  ===================================================================
``architecture``           file                how tuples reach the cores, and results come together
=========================  ==================  ===================================================================
``splitjoin``              splitjoin.hpp       one ring that all cores read; sub-windows by round robin; a merger
``celljoin``               celljoin.hpp        the same ring; the window is partitioned anew for each probe
``scalejoin``              scalejoin.hpp       one ScaleGate that all cores read, and one for their results
``handshake``              handshake.hpp       a chain with two queues a pair of cores, and acknowledgements
``cascade``                handshake.hpp       the same with ESJ's blocks of tuples, and a threshold
``low-latency-handshake``  low_latency.hpp     a chain in which tuples are handed on ahead of joining
=========================  ==================  ===================================================================

``queue.hpp`` has the bounded queues, ``scalegate.hpp`` ScaleGate without locks, ``parts.hpp`` what all architectures
share, and ``session.hpp`` what a session's first thread does: it feeds the cores, merges their results, and takes these
whenever it waits.
"""

from .session import ARCHITECTURES, ThreadSession

__all__ = ["ARCHITECTURES", "ThreadSession"]
