"""The command ``daemon``: runs the daemon of this machine, or asks the one that runs."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from splitjoin.base.errors import DeviceError, ToolError
from splitjoin.base.json_text import parsed_json
from splitjoin.engines.registry import device, missing

from .options import device_spec
from .pipes import log_event

#: The most devices of a daemon.
_MAX_COUNT = 256
_SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def daemon_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("action", nargs="?", choices=("run", "status", "stop", "discover"), default="run",
                        help="run: serve until Ctrl-C or SIGTERM; status: health and counters of the daemon that runs; "
                             "stop: end it; discover: its devices as JSON, for Spark's discovery scripts (%(default)s)")
    parser.add_argument("--socket", metavar="PATH", help="the daemon's socket, in a folder of the user's own "
                                                         "(daemon.sock in the user's runtime or cache folder)")
    parser.add_argument("--json", action="store_true", help="status as JSON")
    group = parser.add_argument_group("run")
    group.add_argument("--device", type=device_spec, metavar="DEVICE", default="sim",
                       help="the devices to own, as of `splitjoin join` (%(default)s)")
    group.add_argument("--count", type=int, metavar="N", default=1, help="how many of them (%(default)s)")
    group.add_argument("--option", metavar="NAME=VALUE", action="append", default=[],
                       help="an option of the device, such as cores=4; may be given several times")
    group.add_argument("--idle-timeout", metavar="TIME", default="60s",
                       help="how long a session is kept whose client has detached it, such as 90s or 5m (%(default)s)")
    group.add_argument("--verbose", action="store_true", help="write to stderr who leases what")


def run_daemon(args: argparse.Namespace) -> None:
    """Run the daemon, or ask the one that runs. Raises `ToolError` on a platform that has no such sockets."""
    if problem := missing("daemon"):
        raise ToolError(problem)
    from splitjoin.link.daemon.client import daemon_addresses, daemon_status, stop_daemon

    match args.action:
        case "status":
            found = daemon_status(args.socket)
            print(json.dumps(found, indent=2) if args.json else "\n".join(_status_lines(found)))
        case "stop":
            stop_daemon(args.socket)
        case "discover":
            print(json.dumps({"name": "fpga", "addresses": daemon_addresses(args.socket)}))
        case _:
            _serve(args)


def _serve(args: argparse.Namespace) -> None:
    from splitjoin.link.daemon.place import default_socket
    from splitjoin.link.daemon.server import Server

    if not 1 <= args.count <= _MAX_COUNT:
        raise DeviceError(f"--count must be from 1 to {_MAX_COUNT}, not {args.count}")
    if args.device == "daemon":
        raise DeviceError("a daemon must own devices, not lease another daemon's; choose another --device")
    options = dict(map(_option, args.option))
    devices = [device(args.device, **options) for _ in range(args.count)]
    log = partial(log_event, "daemon") if args.verbose else lambda line: None
    server = Server(devices, Path(args.socket) if args.socket else default_socket(),
                    idle_timeout=_seconds(args.idle_timeout), log=log)

    def stop(number: int, frame: object) -> None:
        server.stop()
        signal.signal(number, signal.SIG_DFL)  # the second one ends the process at once

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if not server.serve():
        # A thread is in the code of a device, below which the interpreter must not be taken down.
        sys.stderr.flush()
        os._exit(0)


def _option(text: str) -> tuple[str, Any]:
    """``"cores=4"`` as name and value: a number, true, false, null or list as JSON has them, else a text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise DeviceError(f"--option must be NAME=VALUE, such as cores=4, not {text!r}")
    try:
        return name.replace("-", "_"), parsed_json(value)
    except ValueError:
        return name.replace("-", "_"), value


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*([a-z]*)", text.strip())
    if match is None or match[2] not in _SECONDS:
        raise DeviceError(f"--idle-timeout must be a time such as 90s, 5m or 1h, not {text!r}")
    return float(match[1]) * _SECONDS[match[2]]


def _status_lines(found: dict[str, Any]) -> Iterator[str]:
    """The status as text: the daemon, then each device with its session and its counters."""
    yield f"daemon   process {found['pid']}, {found['seconds']:.0f} s, {found['socket']}"
    yield f"health   {found['health']}"
    yield f"clients  {found['connections']} connected, {found['waiting']} waiting for a device"
    for unit in found["devices"]:
        yield f"{unit['address']}  {unit['state']}, {unit['health']}"
        if (session := unit["session"]) is not None:
            key = "" if session["key"] is None else f", key {session['key']!r}"
            yield f"  {unit['state']} by {session['holder']} for {session['seconds']:.0f} s{key}"
        for name, n in unit["counters"].items():
            yield f"  {name:14} {n:>14,}"
