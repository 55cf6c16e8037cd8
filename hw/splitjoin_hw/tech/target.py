"""The FPGA family that a circuit is elaborated for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: ``generic``: plain operators and memories, for simulation and for every family without components of its own.
FAMILIES = ("generic", "ecp5", "ultrascale")


@dataclass(frozen=True)
class Target:
    """Stands in for a board's platform where a circuit is elaborated for a family without a board."""

    family: str

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ValueError(f"Family must be one of {', '.join(FAMILIES)}, not {self.family!r}")


def family(platform: Any) -> str:
    """The family in `FAMILIES` that ``platform``, as `elaborate` gets it, belongs to; None is generic."""
    if isinstance(platform, Target):
        return platform.family
    if str(getattr(platform, "family", "")).startswith("ultrascale"):
        return "ultrascale"
    # Amaranth has one platform class for all Lattice families; the part number identifies the family.
    return "ecp5" if str(getattr(platform, "device", "")).upper().startswith("LFE5") else "generic"
