"""The tuner's options on the command line."""

from __future__ import annotations

import argparse
import re
from typing import Any

from splitjoin.base.errors import DeviceError

from ..parameters import CircuitParameters, declared
from .boards import BOARDS
from .workload import ARRIVALS

_RATES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_TIMES = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def tune_options(parser: argparse.ArgumentParser) -> None:
    """Add the tuner's options to ``parser``."""
    group = parser.add_argument_group("design")
    group.add_argument("--board", required=True, metavar="BOARD", help=f"one of {', '.join(BOARDS)}")
    group.add_argument("--rate", metavar="R", help="tuples a second that it must take, both streams together: 2M, "
                                                   "500k")
    group.add_argument("--latency", metavar="L", help="time from a tuple to the end of its results that it must keep, "
                                                      "on a busy circuit: 5us, 0.2ms")
    group.add_argument("--matches", metavar="M", type=float, help="results of a tuple, on average (those of "
                                                                  "--selectivity)")
    group.add_argument("--selectivity", metavar="P", type=float,
                       help="share of pairs that meet the tests an index goes by, 0 to 1 (what --matches says, or one "
                            "pair in 250,000)")
    group.add_argument("--arrival", choices=ARRIVALS,
                       help="how tuples of both streams arrive: alternating (the default), random, or bursts of 32")
    group.add_argument("--sample", nargs=2, metavar="FILE",
                       help="files with consecutive tuples of R and of S from the same time: matches, selectivity, "
                            "arrival and the tuples of RANGE windows are measured on them where no option says them")
    group.add_argument("--window-tuples", metavar="N",
                       help="tuples of a stream within its RANGE window, or NR,NS where R's and S's differ (what "
                            "arrives in it at --rate)")
    for found, parameter in declared(CircuitParameters):
        flag = f"--{found.name.replace('_', '-')}"
        if parameter.tunable and parameter.metavar is None:
            group.add_argument(flag, action=argparse.BooleanOptionalAction,
                               help=f"{parameter.help}; or not (chosen)")
        elif parameter.tunable:
            group.add_argument(flag, type=parameter.parse, metavar=parameter.metavar,
                               choices=parameter.choices, help=f"{parameter.help} (chosen)")


def tune_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `splitjoin.tune` from parsed options. Raises `DeviceError` for a malformed number."""
    fixed = {found.name: getattr(args, found.name) for found, parameter in declared(CircuitParameters)
             if parameter.tunable}
    return {**{name: value for name, value in fixed.items() if value is not None}, "board": args.board,
            "matches": args.matches, "selectivity": args.selectivity, "arrival": args.arrival,
            "window_tuples": _tuples(args.window_tuples),
            "rate": _number("rate", args.rate, _RATES, "500k or 2M"),
            "latency": _number("latency", args.latency, _TIMES, "5us or 0.2ms")}


def _tuples(text: str | None) -> int | tuple[int, int] | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d+(,\d+)?", text):
        raise DeviceError(f"--window-tuples must be a number of tuples, or one for R and one for S such as 1000,50, "
                          f"not {text!r}")
    first, _, second = text.partition(",")
    return (int(first), int(second)) if second else int(first)


def _number(name: str, text: str | None, units: dict[str, float], example: str) -> float | None:
    if text is None:
        return None
    found = re.fullmatch(r"((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*(\D*)", text)
    if found is None or found[2] not in units:
        raise DeviceError(f"--{name} must be a number with a unit of {', '.join(filter(None, units))} or none, such as "
                          f"{example}, not {text!r}")
    return float(found[1]) * units[found[2]]
