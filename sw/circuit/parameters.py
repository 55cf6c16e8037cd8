"""What parameters circuits can have, whatever the query."""

from __future__ import annotations

from ..errors import UnsupportedError

__all__ = ["CORE_KINDS", "check", "check_parameters", "within"]

#: What a device can be told to build cores as; ``auto`` leaves it to the query and the sub-window's size.
CORE_KINDS = ("auto", "scan", "hash", "bucket")


def check_parameters(*, cores: object, capacity: object, fanout: object, fanin: object, lanes: object = 1,
                     probes: object = 1, core: object = "scan") -> None:
    """Raise `UnsupportedError` unless a circuit can have these parameters, whatever the query."""
    check("cores", cores, within(cores, 1, 1024), "1 to 1024")
    check("capacity", capacity, any(within(capacity, 2**n, 2**n) for n in range(1, 17)),
           "a power of two from 2 to 65536")
    check("fanout", fanout, within(fanout, 2, 16), "2 to 16")
    check("fanin", fanin, within(fanin, 2, 16), "2 to 16")
    check("lanes", lanes, any(within(lanes, n, n) for n in (1, 2, 4, 8)), "1, 2, 4 or 8")
    check("probes", probes, within(probes, 1, 16), "1 to 16")
    assert isinstance(lanes, int)
    check(f"capacity with {lanes} lanes", capacity, within(capacity, 2 * lanes, 65536), f"{2 * lanes} or more")
    check("core", core, core in CORE_KINDS, f"one of {', '.join(CORE_KINDS)}")
    if core in ("hash", "bucket"):
        check(f"lanes of core {core}", lanes, lanes == 1, "1, as it reads one candidate at a time")
        check(f"probes of core {core}", probes, probes == 1, "1, as each probe has candidates of its own")


def within(value: object, low: int, high: int) -> bool:
    """Whether ``value`` is an int, not merely equal to one, from ``low`` to ``high``."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def check(name: str, value: object, holds: bool, must: str) -> None:
    """Raise `UnsupportedError` unless ``value`` is what it ``must`` be."""
    if not holds:
        raise UnsupportedError(f"{name} must be {must}, not {value!r}")
