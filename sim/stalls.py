"""What the options of simulated devices must be."""

from __future__ import annotations

from splitjoin.errors import DeviceError

__all__ = ["check_stalls"]


def check_stalls(seed: object, stall_in: object, stall_out: object) -> None:
    """Raise `DeviceError` unless ``seed`` is an int and the stalls are shares of cycles, from 0 to less than 1."""
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise DeviceError(f"seed must be a whole number, not {seed!r}")
    for name, share in (("stall_in", stall_in), ("stall_out", stall_out)):
        # NaN is in no range.
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
            raise DeviceError(f"{name} must be a share of cycles, from 0 to less than 1, not {share!r}")
