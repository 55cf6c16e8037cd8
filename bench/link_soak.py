"""A board behind a bad line for an hour: every row checked, and no growth in memory. Run: make soak-link

An emulated iCEBreaker, its pads included, runs a small circuit behind a pseudo-terminal. The line loses, flips and
doubles bytes, the plug is pulled, and the board loses its state, all at random moments. The streaming session must give
the golden model's rows, in order, whatever happens. Streams are pushed as fast as the link takes them. ``--minutes``:
how long (60); results of less than 60 go to build/bench/. Ends with exit code 1 at the first difference, or if the
memory of driver, emulator and golden model together has grown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import splitjoin
from bench.band import ON, streams
from bench.record import Recorder
from bench.soak import GROWTH, resident
from splitjoin.base.errors import DeviceLost
from splitjoin.engines.device import Device
from splitjoin.engines.registry import device
from splitjoin.sessions.session import StreamJoin

WINDOW, BAND = 32, 600
#: Tuples of each stream between two looks at memory and at the clock.
BATCH = 64
CIRCUIT = {"cores": 1, "capacity": 32, "small": True, "row_bits": 16}
#: Shares of bytes, and mean numbers of bytes between two faults of the board.
FAULTS = {"drop": 0.001, "flip": 0.001, "double": 0.001, "unplug": 200_000, "reset": 1_000_000}


class Checked:
    """The same streams through ``tested`` and through the golden model, whose rows are compared as they come.

    A session gives up a board that loses its state again and again. It is restarted then, at most ``restarts`` times;
    ``given_up`` counts them.
    """

    def __init__(self, tested: Device | str, *, restarts: int = 0):
        r, s = streams(1)
        query = splitjoin.query(r.schema, s.schema, on=ON.replace("10", str(BAND)), window=f"ROWS {WINDOW}")
        self._tested, self._golden = splitjoin.open(query, tested), splitjoin.open(query, "golden")
        self._found: list[pa.RecordBatch] = []
        self._expected: list[pa.RecordBatch] = []
        self._restarts = restarts
        self.tuples = self.rows = self.given_up = 0

    def push(self, n: int, seed: int) -> bool:
        """Push ``n`` tuples of each stream. False if a row differs."""
        r, s = streams(n, seed)
        for act in (lambda session: session.push_r(r), lambda session: session.push_s(s)):
            act(self._golden)
            self._despite_losses(act, repeat=False)  # what was pushed is kept
        self._expected.append(self._golden.poll())
        self._found.append(self._despite_losses(lambda session: session.poll()))
        self.tuples += 2 * n
        return self._agree()

    def end(self) -> bool:
        """End both streams. False if a row differs, or one has rows that the other lacks."""
        self._expected.append(self._golden.flush())
        self._found.append(self._despite_losses(lambda session: session.flush()))
        return self._agree() and not self._found and not self._expected

    def counters(self) -> dict[str, int]:
        """The tested session's counters."""
        return self._despite_losses(lambda session: session.counters())

    def close(self) -> None:
        """Close both sessions."""
        self._tested.close()
        self._golden.close()

    def _despite_losses(self, act: Callable[[StreamJoin], Any], *, repeat: bool = True) -> Any:
        """The answer of ``act`` on the tested session; after restarts only if it is to be repeated, else None."""
        again = False
        while True:
            try:
                if again:
                    self._tested.restart()
                return act(self._tested) if repeat or not again else None
            except DeviceLost:
                if self.given_up == self._restarts:
                    raise
                self.given_up, again = self.given_up + 1, True

    def _agree(self) -> bool:
        """Compare the rows that both have, and drop them."""
        found, expected = pa.Table.from_batches(self._found), pa.Table.from_batches(self._expected)
        both = min(len(found), len(expected))
        self.rows += both
        equal: bool = found[:both].equals(expected[:both])
        self._found, self._expected = ([batch for batch in rows[both:].to_batches() if len(batch)]
                                       for rows in (found, expected))
        return equal


def main() -> int:
    """Run, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    minutes = parser.parse_args().minutes
    out = Recorder("link_soak", quick=minutes < 60)
    board = device("emulator:icebreaker", **CIRCUIT, **FAULTS)
    checked, memory = Checked(board), []
    start, seed, agree = time.monotonic(), 0, True
    while agree and time.monotonic() < start + 60 * minutes:
        seed += 1
        agree = checked.push(BATCH, seed)
        memory.append(resident())
    took = time.monotonic() - start
    agree = agree and checked.end()
    counters = checked.counters()
    checked.close()
    if not agree:
        print(f"the rows differ from the golden model's, after {checked.tuples} tuples", file=sys.stderr)
        return 1
    settled = memory[len(memory) // 10:]
    part = max(1, len(settled) // 10)
    first, last = max(settled[:part]), max(settled[-part:])
    config: dict[str, Any] = {"minutes": round(took / 60, 1), **FAULTS}
    for name, value, how in (("tuples", checked.tuples, "tuples pushed, every row compared"),
                             ("rows", checked.rows, "rows, the golden model's, in its order")):
        out.add(f"link_soak_{name}", value, name, config, how)
    for name in ("device_retransmissions", "device_damaged_replies", "device_reconnections", "restarts"):
        out.add(f"link_soak_{name.removeprefix('device_')}", counters[name], "", config, "counted by the driver; those "
                "of the link since the board last lost its state")
    out.add("link_soak_memory_growth", last / first, "times", config,
            "resident memory, the most in the last tenth of the time over that in the first, behind a warm-up")
    out.add("link_soak_memory", last, "MiB", config, "resident memory, the most in the last tenth of the time")
    print(out.write())
    return int(last / first > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
