"""Random faults of the line and of the board, in 1,000 schedules on an emulated board: every row checked.

An emulated iCEBreaker, its pads included, runs a small circuit behind a pseudo-terminal. Each schedule draws shares of
lost, flipped, doubled and delayed bytes, how often the plug is pulled and how often the board loses its state, and
whether results are packed. The streaming session must give the golden model's rows, in order. A session that gives its
board up, as that loses its state again and again, is restarted, which must neither lose nor repeat a row.
``python -m bench.link_schedules [--schedules N]`` writes bench/results/link_schedules.json; with fewer than 1,000
schedules the results go to build/bench/. Ends with exit code 1 at the first schedule with a wrong row or an error, and
names it; ``--first`` begins there.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from typing import Any

from bench.link_soak import CIRCUIT, Checked
from bench.record import Recorder
from splitjoin.base.errors import SplitJoinError
from splitjoin.engines.registry import device

SCHEDULES = 1000
#: Restarts of a session in one schedule, beyond which the schedule has failed.
RESTARTS = 20
#: Tuples of each stream in a push, and pushes of a schedule.
BATCH, PUSHES = 16, 3
#: What the driver counts: name of the session's counter → name of the figure.
COUNTED = {"device_retransmissions": "retransmissions", "device_damaged_replies": "damaged_replies",
           "device_reconnections": "reconnections", "restarts": "restarts"}


def schedule(seed: int) -> dict[str, Any]:
    """Options of the device ``emulator``: the faults of schedule ``seed``, at least one kind of them."""
    chance = random.Random(seed)
    while True:
        share = chance.choice((0.0, 0.001, 0.004, 0.01))
        weights = [chance.random() for _ in range(3)]
        kinds = {name: share * weight / sum(weights)
                 for name, weight in zip(("drop", "flip", "double"), weights, strict=True)}
        others = {"delay": chance.choice((0.0, 0.0, 0.001)), "unplug": chance.choice((0, 0, 1_500, 5_000)),
                  "reset": chance.choice((0, 0, 15_000, 40_000))}
        if share or any(others.values()):
            return {**kinds, **others, "pack": chance.random() < 0.5, "fault_seed": seed}


def run(seed: int, faults: dict[str, Any]) -> tuple[Counter[str], bool]:
    """The link's counters after a join of the streams of schedule ``seed``, and whether all its rows are right."""
    checked = Checked(device("emulator:icebreaker", **CIRCUIT, **faults), restarts=RESTARTS)
    try:
        agree = all(checked.push(BATCH, PUSHES * seed + n) for n in range(PUSHES)) and checked.end()
        counters = checked.counters()
    finally:
        checked.close()
    return Counter({"tuples": checked.tuples, "rows": checked.rows, "given_up": checked.given_up,
                    **{name: counters[of] for of, name in COUNTED.items()}}), agree


def main() -> int:
    """Run, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=SCHEDULES, help=f"how many ({SCHEDULES})")
    parser.add_argument("--first", type=int, default=0, help="number of the first one (0)")
    args = parser.parse_args()
    out = Recorder("link_schedules", quick=args.schedules < SCHEDULES or args.first != 0)
    total: Counter[str] = Counter()
    start, cpu = time.monotonic(), time.process_time()
    for seed in range(args.first, args.first + args.schedules):
        faults = schedule(seed)
        try:
            counted, agree = run(seed, faults)
        except SplitJoinError as error:
            print(f"schedule {seed} ended with an error, with {faults}: {error}", file=sys.stderr)
            return 1
        if not agree:
            print(f"the rows of schedule {seed} differ from the golden model's, with {faults}", file=sys.stderr)
            return 1
        total.update(counted)
        total.update(plugs_pulled=int(counted["reconnections"] > 0), states_lost=int(counted["restarts"] > 0))
        if (seed + 1) % 50 == 0:
            print(f"{seed + 1 - args.first} schedules, {time.monotonic() - start:.0f} s, {dict(total)}", flush=True)
    config = {"schedules": args.schedules, "tuples of each": 2 * BATCH * PUSHES}
    for name, how in (("tuples", "tuples pushed, every row compared"),
                      ("rows", "rows, the golden model's, in its order"),
                      ("plugs_pulled", "schedules at whose end the driver had connected again"),
                      ("given_up", "times the session gave its board up, was restarted, and went on"),
                      ("states_lost", "schedules in which the board lost its state"),
                      *((name, "counted by the driver, in all; those of the link since a board last lost its state")
                        for name in ("retransmissions", "damaged_replies", "reconnections")),
                      ("restarts", "counted by the driver, in all")):
        out.add(f"link_schedules_{name}", total[name], "", config, how)
    out.add("link_schedules_cpu_seconds", time.process_time() - cpu, "s", config,
            "CPU time of driver, emulator and golden model")
    print(out.write())
    return 0


if __name__ == "__main__":
    sys.exit(main())
