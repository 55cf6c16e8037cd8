"""ScaleGate without locks is linearizable (ScaleJoin, Theorem 1): in random schedules of sources and readers.

Each reader gets all records in the order of one thread that merges them, none before all sources are behind it, and
null only if there was a moment at which none was ready. Sources and readers come and go meanwhile. In half of the
schedules one source stands still in the middle of a call until all others have ended, as no thread waits for another.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ....support import interleaving
from ....support.interleaving import plain_calls
from ....support.sampling import at_length

FILES = ("loops/loop.hpp", "loops/threads.hpp", "loops/tests.hpp", "threads/queue.hpp", "threads/scalegate.hpp",
         str(Path(interleaving.__file__).with_name("gate_schedules.hpp")))
FAULTS = {
    "ready before its source goes on": (
        "if (!found || acquire(last_of(found[source])) == address(found))", "if (!found)"),
    "the last one is written down before it is linked": (
        "        int64_t *behind[levels], *one = mine.search;",
        "        release(last_of(s), address(made));\n        int64_t *behind[levels], *one = mine.search;"),
    "linked without comparing": (
        "if (exchange_word(one + next + level, other, address(made))) break;",
        "release(one + next + level, address(made));\n                break;"),
    "used again under a reader": (
        "for (int64_t r = 0; r < readers; r++) reached = least_of(reached, acquire(passed_by(r)));", ""),
    "used again under a source": (
        "for (int64_t n = 0; n < sources; n++) reached = least_of(reached, acquire(begin_of(n)));", ""),
    "a source that opens in the past": (
        "const int64_t at = of[other].last[time] + 1;", "const int64_t at = of[other].last[time] - 2;"),
}


def name(found: int) -> str:
    said = ("", "not the next record", "changed", "too early", "null, though one was ready", "records are missing",
            "threads wait for each other")
    return f"schedule {found // 8}: {said[found % 8]}"


@pytest.mark.parametrize(("count", "sources"), [(300, 5), (4, 64), at_length(100_000, 5),
                                                at_length(1_000, 64)])
def test_all_histories_are_linearizable(count: int, sources: int) -> None:
    found = plain_calls("gate_schedules", FILES, FAULTS)(0, count, sources)
    assert found < 0, name(found)


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str) -> None:
    assert plain_calls("gate_schedules", FILES, FAULTS)(0, 20_000, 5, fault=fault) >= 0
