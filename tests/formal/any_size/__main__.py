"""The second half of `make formal`: the proofs for any number of cores and inputs, and the faults planted in them."""

from __future__ import annotations

import sys

from ..proofs import planted
from . import cores, merging
from .systems import broken, idle, obligations

MODELS = (*cores.MODELS, *merging.MODELS)


def main() -> int:
    """Returns the number of models and faults with a wrong outcome."""
    failures = 0
    for model in MODELS:
        system = model.make()
        wrong = [*broken(system), *(f"never: {step}" for step in idle(system))]
        failures += bool(wrong)
        count = sum(1 for _ in obligations(system))
        print(f"NOT PROVED {model.name}: {wrong}" if wrong else f"proved   {model.name}, for any size: {model.shows} "
              f"({count} obligations)", flush=True)
        for fault in model.faults:
            with planted(fault):
                found = broken(model.make(), fault.breaks) == [fault.breaks]
            failures += not found
            print(f"{'breaks' if found else 'NOT FOUND'}   {model.name}, with a fault: {fault.breaks}", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(min(main(), 100))
