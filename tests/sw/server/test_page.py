"""The status page of a server: what it shows, whom it answers, and that names are only texts."""

from __future__ import annotations

import base64
import http.client
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from splitjoin.base.errors import InputError
from splitjoin.server import JoinService, read_config
from splitjoin.server.page import StatusPage, status_page
from tests.support.html_page import Page, needs_chromium, seen_by_chromium

from .clients import Server, config, offers, orders, put

HOSTILE = '</td><script>alert("x")</script>&\x1b[31m'
TOP = 'page = "127.0.0.1:0"'


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StatusPage]:
    with JoinService(read_config(config(tmp_path_factory.mktemp("server"), top=TOP))) as service:
        service.source("orders", "main").push(orders(0, 1234))
        page = StatusPage(service)
        yield page
        page.stop()


def answer(page: StatusPage, authorization: str | None, path: str = "/", method: str = "GET") -> tuple[
        int, http.client.HTTPMessage, str]:
    """Code, headers and text."""
    client = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
    client.request(method, path, headers={} if authorization is None else {"Authorization": authorization})
    got = client.getresponse()
    text = got.read().decode()
    client.close()
    return got.status, got.headers, text


def basic(token: str) -> str:
    return f"Basic {base64.b64encode(f'anybody:{token}'.encode()).decode()}"


def test_it_shows_streams_queries_epochs_lag_and_memory(shown: StatusPage) -> None:
    code, headers, text = answer(shown, basic(shown.token))
    assert code == 200
    page = Page(text)
    cells = [cell for cell in page.texts if cell.strip()]
    at = cells.index("orders")
    assert cells[at:at + 3] == ["orders", "main", "1,234"]
    assert {"near", "equal", "epochs", "behind", "memory of the server", "that wait for the other stream"} <= {*cells}
    assert ("meta", {"http-equiv": "refresh", "content": "2"}) in page.elements
    assert not {"script", "link", "img", "iframe", "form", "a"} & {tag for tag, _ in page.elements}
    assert not {"src", "href"} & {name for _, attributes in page.elements for name in attributes}
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert (headers["Cache-Control"], headers["Server"]) == ("no-store", "splitjoin")


def test_who_is_answered(shown: StatusPage) -> None:
    token = shown.token
    for right in (basic(token), f"Bearer {token}", f"bearer {token}"):
        assert answer(shown, right)[0] == 200
    for wrong in (None, basic(token[:-1]), basic(""), f"Bearer {token}x", "Bearer", f"Other {token}", "Basic %%%",
                  f"Basic {token}", "Bearer \xe9"):
        code, headers, text = answer(shown, wrong)
        assert (code, headers["WWW-Authenticate"].split()[0]) == (401, "Basic")
        assert "orders" not in text
    assert answer(shown, basic(token), "/other")[0] == 404
    assert answer(shown, None, "/other")[0] == 401
    assert answer(shown, basic(token), method="POST")[0] == 501


def test_silent_browsers_end_and_too_many_are_not_answered(shown: StatusPage) -> None:
    shown.deadline = 0.1
    try:
        with socket.create_connection(("127.0.0.1", shown.port)) as late:
            late.settimeout(30)
            late.sendall(b"GET / HT")
            assert late.recv(1) == b""
    finally:
        shown.deadline = 10.0
    silent = [socket.create_connection(("127.0.0.1", shown.port)) for _ in range(8)]
    with socket.create_connection(("127.0.0.1", shown.port)) as further:
        further.settimeout(30)
        assert further.recv(1) == b""
    for one in silent:
        one.close()


def test_names_and_failures_are_texts(shown: StatusPage) -> None:
    status = shown.service.status()
    status["queries"] = {HOSTILE: status["queries"]["near"] | {"failure": HOSTILE}}
    status["sources"] = {HOSTILE: {HOSTILE: {"delivered": 1, "committed": 1}}, "offers": {}}
    status["trouble"] = HOSTILE
    text = status_page(status, HOSTILE)
    page = Page(text)
    assert "script" not in {tag for tag, _ in page.elements}
    assert "\x1b" not in text
    assert sum('<script>alert("x")</script>' in one for one in page.texts) == 8


def test_others_cannot_reach_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="page must be an address of this machine alone, such as"):
        read_config(config(tmp_path, top='page = "0.0.0.0:8816"'))
    with pytest.raises(InputError, match="page must be HOST:PORT"):
        read_config(config(tmp_path, top='page = "8816"'))
    assert read_config(config(tmp_path)).page is None


@pytest.mark.long
@needs_chromium
def test_a_browser_shows_the_page_of_a_server(tmp_path: Path) -> None:
    with Server(config(tmp_path, top=TOP)) as server:
        with server.client() as client:
            put(client, offers(0, 777), "offers")
        address = server.log().partition("status on http://")[2].partition("/")[0]
        for password, there in ((server.token, True), ("wrong", False)):
            seen = seen_by_chromium(f"http://any:{password}@{address}/", tmp_path / "user")
            assert ("777" in seen and "offers" in seen) is there
