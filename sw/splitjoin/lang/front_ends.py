"""Front ends of conditions beside SQL text and Python functions; other packages add theirs, as `splitjoin` does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FrontEnd:
    """A front end: ``function`` of ``module`` converts a condition to IR; messages call such a condition ``kind``."""

    kind: str
    module: str
    function: str


#: By the top-level package of a condition's class.
FRONT_ENDS: dict[str, FrontEnd] = {}


def register_condition_front_end(package: str, *, kind: str, module: str, function: str) -> None:
    """Register ``function(on, r, s)`` of ``module`` as front end of conditions whose class is defined in ``package``.

    The module is imported on the first use, so it may import optional packages. ``kind`` is the name of such a
    condition in messages, for example ``"a Spark Column"``.
    """
    FRONT_ENDS[package] = FrontEnd(kind, module, function)
