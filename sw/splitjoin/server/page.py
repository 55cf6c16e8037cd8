"""`StatusPage`: a server's streams, queries, epochs, lag and memory as a page for browsers of this machine."""

from __future__ import annotations

import base64
import binascii
import hmac
import socket
import socketserver
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from html import escape
from http.server import BaseHTTPRequestHandler
from typing import Any

from splitjoin.base import threads
from splitjoin.base.memory import size_text
from splitjoin.base.safe_text import printable

from .service import JoinService
from .token import token_in

#: Seconds between two looks of a browser.
_REFRESH = 2
#: Browsers that are answered at once.
_MOST = 8
_STYLE = """:root{color-scheme:light dark}body{font:16px/1.4 sans-serif;margin:1em;max-width:80em}
div{overflow-x:auto}table{border-collapse:collapse}th,td{padding:.2em .8em;text-align:right}td{white-space:nowrap}
th:first-child,td:first-child{text-align:left}tr+tr td{border-top:1px solid #8886}
.trouble{border:2px solid #c33;padding:.5em;overflow-wrap:anywhere}"""
#: The page can load nothing, run nothing, and be in no other page.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "
                               "form-action 'none'; base-uri 'none'",
    "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}


def status_page(status: Mapping[str, Any], at: str) -> str:
    """The page of a ``status`` (`JoinService.status`), as of the time ``at``."""
    streams, queries = status["streams"], status["queries"]
    sources = [[stream, name, place["delivered"], place["committed"], place["delivered"] - place["committed"]]
               for stream, names in status["sources"].items() for name, place in names.items()]
    rows = [[name, one["rows"], one["unread_rows"], one["waiting"], one.get("device_matches", ""),
             one.get("device_comparisons", ""), one.get("retained_r", ""), one.get("retained_s", ""),
             size_text(one["unread_bytes"] + one.get("retained_bytes", 0)), one.get("faults", 0)]
            for name, one in queries.items()]
    failures = [f"query {name}: {one['failure']}" for name, one in queries.items() if "failure" in one]
    trouble = [*([] if status["trouble"] is None else [status["trouble"]]), *failures]
    memory = status["memory"]
    facts = [("epochs", f"{status['epochs']:,}"), ("deaths of the thread that writes them", f"{status['deaths']:,}"),
             ("memory of the server", size_text(memory["used"])),
             ("memory that it may still take", size_text(memory["available"])),
             ("tuples that are ready so far", f"{streams['ready']:,}"),
             ("that the slowest query has not read", f"{streams['unread']:,}"),
             ("that wait for the other stream", f"{streams['waiting']:,}"),
             *((f"tuples of {name}: {what}", f"{streams[f'{key}_{side}']:,}")
               for side, name in zip("rs", status["sources"], strict=True)
               for key, what in (("late", "late"), ("shed", "dropped under load")))]
    return "\n".join([
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>splitjoin serve</title>',
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><meta http-equiv="refresh" '
        f'content="{_REFRESH}"><style>{_STYLE}</style></head><body><h1>splitjoin serve</h1>',
        f"<p>As of {_text(at)}; looks again every {_REFRESH} seconds.</p>",
        *(f'<p class="trouble">{_text(one)}</p>' for one in trouble),
        "<h2>Streams</h2>", _table(["stream", "source", "delivered", "committed", "behind"], sources),
        "<h2>Queries</h2>",
        _table(["query", "rows", "in no epoch yet", "tuples behind", "matches", "comparisons", "window of R",
                "window of S", "rows and windows", "faults"], rows),
        "<h2>Server</h2>", _table(["", ""], facts), "</body></html>"])


def _table(names: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    def row(cells: Iterable[object], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{_text(cell)}</{tag}>" for cell in cells) + "</tr>"

    return "<div><table>" + "\n".join([row(names, "th"), *(row(cells, "td") for cells in rows)]) + "</table></div>"


def _text(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else escape(printable(str(cell)))


class StatusPage(socketserver.TCPServer):
    """Shows the status of ``service`` at the address ``page`` of its configuration; ``port`` says which one if that was
    0. Browsers ask for a user, whom it does not mind, and a password, which is the server's token; as a header that is
    ``authorization: Bearer TOKEN``, too. Raises OSError where it cannot listen there, and `InputError`.

    Attributes:
        deadline: Seconds that a browser may take to ask and to read.
    """

    allow_reuse_address = True
    deadline = 10.0

    def __init__(self, service: JoinService):
        config = service.config
        assert config.page is not None
        host = config.page[0].strip("[]")
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.service, self.token = service, token_in(config.token_file)
        self._free = threads.semaphore(_MOST)
        super().__init__((host, config.page[1]), _Handler)
        self.port = int(self.server_address[1])
        self._thread = threads.thread(self.serve_forever, name="splitjoin page")
        self._thread.start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; a browser too many is not answered."""
        if self._free.acquire(blocking=False):
            threads.thread(self._answer, (request, client_address), name="splitjoin page's browser").start()
        else:
            self.shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing, as the browser is gone."""

    def _answer(self, request: socket.socket, client_address: Any) -> None:
        def end() -> None:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

        deadline = threads.timer(self.deadline, end)
        deadline.start()
        try:
            self.finish_request(request, client_address)
        except Exception:
            self.handle_error(request, client_address)
        finally:
            deadline.cancel()
            self.shutdown_request(request)
            self._free.release()

    def stop(self) -> None:
        """Answer no more."""
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: StatusPage

    def do_GET(self) -> None:
        """Answer with the page, if the request has the token."""
        if not self._has_token():
            self._send(401, "this page needs the server's token, which is in its token_file, as the password of any "
                            "user", {"WWW-Authenticate": 'Basic realm="splitjoin serve", charset="UTF-8"'})
        elif self.path != "/":
            self._send(404, "the page is /", {})
        else:
            now = time.strftime("%Y-%m-%d %H:%M:%S")
            self._send(200, status_page(self.server.service.status(), now), {}, "text/html")

    def _has_token(self) -> bool:
        given = self.headers.get_all("authorization", [])
        kind, _, sent = (given[0] if len(given) == 1 else "").partition(" ")
        if kind.lower() == "basic":
            try:
                sent = base64.b64decode(sent, validate=True).decode("utf-8", "replace").partition(":")[2]
            except (binascii.Error, ValueError):
                return False
        elif kind.lower() != "bearer":
            return False
        return hmac.compare_digest(sent.encode("utf-8", "replace"), self.server.token.encode())

    def _send(self, code: int, text: str, headers: Mapping[str, str], kind: str = "text/plain") -> None:
        body = text.encode()
        self.send_response(code)
        for name, value in {**_HEADERS, **headers, "Content-Type": f"{kind}; charset=utf-8",
                            "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        """The server's name; strangers need not know of which Python it is."""
        return "splitjoin"

    def log_message(self, *_: Any) -> None:
        """Nothing, as strangers would write the log."""
