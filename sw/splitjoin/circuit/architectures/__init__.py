"""The architectures of circuits: a folder of this package each.

A folder has the architecture's declaration, which names its component in `hw/`, and `predictions`: its cost and its
speed. The component is imported when a circuit is made of it (`splitjoin_hw.circuit`).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from .architecture import Architecture

__all__ = ["ARCHITECTURES", "Architecture"]


def _declared() -> Iterator[Architecture]:
    for found in pkgutil.iter_modules(__path__, f"{__name__}."):
        if found.ispkg:
            for value in vars(importlib.import_module(found.name)).values():
                if isinstance(value, type) and value.__module__ == found.name:
                    yield value()


#: Name → architecture: the default first, and baselines last.
ARCHITECTURES: dict[str, Architecture] = {one.name: one for one in sorted(
    _declared(), key=lambda one: (one.baseline, one.name != "splitjoin", one.name))}
