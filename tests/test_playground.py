"""The playground of the site: what its page runs gives rows, plan, waves and Verilog; in Chromium too (long)."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import threading
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.html_page import Page, needs_chromium, seen_by_chromium

DOCS = Path(__file__).parents[1] / "docs"


def module(name: str) -> Any:
    """A module of docs/playground/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "playground" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_a_run_gives_all_parts_and_refusals_in_words() -> None:
    play = module("play")
    given = dict(play.run("x\n1\n5", "a,city\n2,<b>\n9,B", "abs(r.x - s.a) <= 1", 1))
    assert list(given) == ["rows", "plan", "circuit", "waves", "verilog"]
    assert Page(given["rows"]).texts[-3:] == ["1", "2", "<b>"]
    assert "svg" in {tag for tag, _ in Page(given["plan"]).elements}
    assert given["circuit"].endswith("and gave the same rows.")
    assert "core0" in Page(given["waves"]).texts
    assert "\nmodule splitjoin (" in given["verilog"]
    for r, on, told in (("x\n1", "r.y = s.a", "y"), ("x\n" + "1\n" * 33, "r.x = s.a", "1 to 32 rows, but R has 33"),
                        ("x", "r.x = s.a", "but R has 0")):
        ((kind, text),) = play.run(r, "a\n2", on, 1)
        assert kind == "error"
        assert told in text


class Held(SimpleHTTPRequestHandler):
    """Serves the site. Its answer for ``wait`` comes once the page has asked for ``done``."""

    def do_GET(self) -> None:
        if self.path == "/wait":
            self.server.done.wait(300)  # type: ignore[attr-defined]
        elif self.path == "/done":
            self.server.done.set()  # type: ignore[attr-defined]
        super().do_GET()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.mark.long
@needs_chromium
@pytest.mark.skipif(not module("files").FILES.exists(), reason="make playground has not fetched Python for browsers")
def test_a_browser_runs_the_playground(tmp_path: Path) -> None:
    """The page is whole once it has the Verilog, the last part: it then asks for ``done``."""
    site = tmp_path / "site"
    shutil.copytree(DOCS / "playground", site / "playground")
    module("files").write_into(site / "playground")
    form = (DOCS / "playground.md").read_text(encoding="utf-8").partition("<form")[2].rpartition("</script>")[0]
    (site / "page.html").write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><form{form}</script><img src="/wait"><script type="module">\n'
        'const told = new MutationObserver(() => fetch("/done"))\n'
        'for (const name of ["verilog", "error"])\n'
        '  told.observe(document.getElementById(`playground-${name}`), { childList: true })\n'
        'document.getElementById("playground").elements.run.click()\n</script>', encoding="utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Held, directory=str(site)))
    server.done = threading.Event()  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        seen = unescape(seen_by_chromium(f"http://127.0.0.1:{server.server_port}/page.html", tmp_path / "user", 400))
    finally:
        server.shutdown()
        server.server_close()
    assert "4 rows" in seen
    assert "gave the same rows." in seen
    assert "<h1>Run of a circuit" in seen
    assert "\nmodule splitjoin (" in seen
