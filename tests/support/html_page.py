"""Pages of HTML as tests read them."""

from __future__ import annotations

import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not there")

#: Elements of HTML and SVG that have no end.
VOID = ("meta", "rect")


class Page(HTMLParser):
    """A page: its elements, which must end in order, their attributes, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.elements, self.texts = list[str](), list[tuple[str, dict[str, Any]]](), list[str]()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def seen_by_chromium(address: str, folder: Path, seconds: float = 120) -> str:
    """The elements that Chromium makes of the page at ``address``, with its user's files in ``folder``."""
    return subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}",
                           "--dump-dom", address], capture_output=True, text=True, timeout=seconds, check=False).stdout
