"""The command ``serve``: continuous joins behind Arrow Flight."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from functools import partial

from splitjoin.base import threads
from splitjoin.base.errors import InputError, ToolError, first_line
from splitjoin.engines.registry import device as find_device

from .pipes import log_event

_log = partial(log_event, "serve")

#: Seconds that calls of clients may take to end, when the server stops.
_GRACE = 5.0


def serve_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("file", metavar="FILE.toml", help="streams, queries, folder and limits; docs/server.md "
                                                          "describes the file")
    parser.add_argument("--set-aside", action="store_true", help="if the state behind the last epoch cannot be read, "
                        "rename it and go on with empty windows; a line says what is lost")
    parser.add_argument("--check", action="store_true", help="check the file and its queries, and end")


def run_serve(args: argparse.Namespace) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises `InputError` for a file that is wrong, `ToolError` without Arrow Flight."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # strangers would write its log, a line for each refusal
    try:
        from splitjoin.server.flight import FlightServer
    except ImportError as error:
        raise ToolError(f"a server needs grpcio, and a pyarrow with Arrow Flight, as that of PyPI: "
                        f"{first_line(error)}; pip install 'splitjoin[serve]'") from None
    from splitjoin.server import JoinService, check_config, read_config

    config = read_config(args.file)
    if args.check:
        check_config(config)
        for query in config.queries:
            find_device(query.device, **query.options)
        n = len(config.queries)
        print(f"{args.file}: {n} {'query' if n == 1 else 'queries'} over "
              f"{' and '.join(one.name for one in config.streams)}")
        return
    stop = threads.event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    _take_many_files()
    service = JoinService(config, _log, set_aside=args.set_aside)
    try:
        server = FlightServer(service)
    except BaseException as error:
        service.stop()
        if isinstance(error, OSError):
            raise InputError(f"the server must listen on {config.host}:{config.port}, but {first_line(error)}; stop "
                             f"what listens there, or choose another port") from None
        raise
    page = None
    if config.page is not None:
        from splitjoin.server.page import StatusPage

        try:
            page = StatusPage(service)
        except OSError as error:
            server.shutdown()
            service.stop()
            raise InputError(f"the page must listen on {config.page[0]}:{config.page[1]}, but {first_line(error)}; "
                             f"stop what listens there, or choose another port") from None
        _log(f"shows its status on http://{config.page[0]}:{page.port}/, with the token as the password of any user")
    _log(f"serves on {config.host}:{server.port}, with {service.epochs()} epochs in {config.folder}; the token that "
         f"calls need is in {config.token_file}")
    while not stop.wait(0.5):  # short, as a signal before the wait does not end it
        pass
    if page is not None:
        page.stop()
    service.stop()
    _log(f"stopped, with {service.epochs()} epochs")
    # Calls that wait for their clients would hold up the end for ever; what they put is committed already. They are not
    # cancelled: pyarrow's clients take that for a Ctrl-C of their own.
    ending = threads.thread(server.shutdown, (10 * _GRACE,), name="splitjoin end")
    ending.start()
    ending.join(_GRACE)
    if ending.is_alive():
        sys.stderr.flush()
        sys.stdout.flush()
        os._exit(0)


def _take_many_files() -> None:
    """Raise the limit of open files to the highest: a thousand silent connections must not stop epochs."""
    try:
        import resource
    except ImportError:  # Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # macOS has a lower one than it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
