"""Run the machines at length: `python -m tests.machine --seconds 3600`; a failure prints its calls and its seed."""

from __future__ import annotations

import argparse
import sys
import time

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from .chain_machine import ChainMachine
from .epoch_machine import EpochMachine
from .order_machine import OrderMachine
from .session_machine import SessionMachine
from .shared_epoch_machine import SharedEpochMachine
from .shared_machine import SharedMachine

MACHINES = {"session": SessionMachine, "order": OrderMachine, "shared": SharedMachine, "epochs": EpochMachine,
            "shared-epochs": SharedEpochMachine, "chain": ChainMachine}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.machine", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long each machine runs (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0); each has 200 sequences")
    parser.add_argument("--machine", choices=MACHINES, action="append", help="only these machines")
    parser.add_argument("--no-shrink", action="store_true", help="print a failure as it was found")
    args = parser.parse_args()
    phases = [Phase.generate] + [Phase.shrink] * (not args.no_shrink)
    for name in args.machine or MACHINES:
        end, number = time.monotonic() + args.seconds, args.seed
        while True:
            profile = settings(max_examples=200, stateful_step_count=40, deadline=None, database=None, phases=phases,
                               print_blob=False, report_multiple_bugs=False, suppress_health_check=list(HealthCheck))
            try:
                run_state_machine_as_test(seed(number)(MACHINES[name]), settings=profile)
            except BaseException:
                print(f"python -m tests.machine --machine {name} --seed {number} --seconds 0", file=sys.stderr)
                raise
            number += 1
            if time.monotonic() > end:
                break
        print(f"{name}: {200 * (number - args.seed)} sequences")
    return 0


if __name__ == "__main__":
    sys.exit(main())
