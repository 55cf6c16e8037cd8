"""The kinds of cores: the ways in which a region finds the matches of a probe. A new kind is a file in this package,
and a line here.

The other layers have a file and a line each for their part of a kind: its cost (`splitjoin.circuit.cost.core_kinds`),
its speed (`splitjoin.circuit.tuner.core_kinds`), its components (`splitjoin_hw.core.kinds`), and the golden model of
what a probe is compared with (`tests.testbench.core_kinds`).
"""

from __future__ import annotations

from .bucket import Bucket
from .hash import Hash
from .kind import CoreKind, IndexCoder
from .scan import Scan

__all__ = ["KINDS", "CoreKind", "IndexCoder", "kind_names"]

#: Name → kind, in the order in which they are listed and tried.
KINDS: dict[str, CoreKind] = {kind.name: kind for kind in (Scan(), Hash(), Bucket())}


def kind_names() -> str:
    """The names of all kinds, as words: "scan, hash or bucket"."""
    *first, last = KINDS
    return f"{', '.join(first)} or {last}"
