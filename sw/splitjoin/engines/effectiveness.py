"""The effectiveness of a join: results per comparison, from the counters of a session (ESJ's ϱ)."""

from __future__ import annotations

from collections.abc import Mapping


def compared(counters: Mapping[str, int]) -> int:
    """The number of pairs that a session with these `Session.counters` has compared; 0 if it does not count them.

    An engine with an index compares its candidates; one without compares all pairs within the windows.
    """
    return counters.get("candidates", counters.get("comparisons", 0))


def effectiveness(counters: Mapping[str, int]) -> float | None:
    """Results per comparison, from 0; None before the first comparison, and where the session counts no results.

    It is 1 where an index finds nothing but matches, and more where results need no comparison of their own.
    """
    done = compared(counters)
    return counters["matches"] / done if done and "matches" in counters else None


def effectiveness_text(share: float) -> str:
    """An effectiveness for people: three digits."""
    return f"{share:.3g}"
