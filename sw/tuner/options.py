"""The tuner's options on the command line."""

from __future__ import annotations

import argparse
import re
from typing import Any

from ..errors import DeviceError
from .boards import BOARDS

__all__ = ["tune_arguments", "tune_options"]

_RATES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_TIMES = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def tune_options(parser: argparse.ArgumentParser) -> None:
    """Add them to ``parser``."""
    group = parser.add_argument_group("design")
    group.add_argument("--board", required=True, metavar="BOARD", help=f"one of {', '.join(BOARDS)}")
    group.add_argument("--rate", metavar="R", help="tuples a second that it must take, both streams together: 2M, "
                                                   "500k")
    group.add_argument("--latency", metavar="L", help="time from a tuple to the end of its results that it must keep, "
                                                      "on a busy circuit: 5us, 0.2ms")
    group.add_argument("--matches", metavar="M", type=float, default=0.0, help="results of a tuple, on average (0)")
    group.add_argument("--window-tuples", metavar="N", type=int,
                       help="tuples of a stream within its RANGE window (what arrives in it "
                            "at --rate)")
    group.add_argument("--cores", type=int, metavar="K", help="join cores (chosen)")
    group.add_argument("--lanes", type=int, metavar="L", help="1, 2, 4 or 8 (chosen)")
    group.add_argument("--probes", type=int, metavar="P", help="1 to 16 (chosen)")


def tune_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """What `splitjoin.tune` takes, of parsed options. Raises `DeviceError` for a number that is none."""
    return {"board": args.board, "matches": args.matches, "window_tuples": args.window_tuples, "cores": args.cores,
            "lanes": args.lanes, "probes": args.probes,
            "rate": _number("rate", args.rate, _RATES, "500k or 2M"),
            "latency": _number("latency", args.latency, _TIMES, "5us or 0.2ms")}


def _number(name: str, text: str | None, units: dict[str, float], example: str) -> float | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(\D*)", text)
    if found is None or found[2] not in units:
        raise DeviceError(f"--{name} must be a number with a unit of {', '.join(filter(None, units))} or none, such as "
                          f"{example}, not {text!r}")
    return float(found[1]) * units[found[2]]
