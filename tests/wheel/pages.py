"""The examples of README and docs/: fenced blocks, the commands in them, and what they print."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^ *```(?P<info>[^`\n]*)\n(?P<code>.*?)^ *```$(?P<output>\n\n```text\n(?P<prints>.*?)^```$)?",
                    re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: The page's path in the repository.
        line: The line of the opening fence, from 1.
        info: The words behind it, the first of which is the language: "sh", "python", "python spark", "" …
        code: The text between the fences.
        prints: The text block right behind it, which is what the code prints; None if there is none.
    """

    page: str
    line: int
    info: str
    code: str
    prints: str | None = None

    @property
    def language(self) -> str:
        """The first word of `info`."""
        return self.info.partition(" ")[0]

    @property
    def place(self) -> str:
        """Page and line, for messages."""
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """README and all pages of docs/ and examples/, by their paths in the repository."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in found]


def blocks(page: str, text: str | None = None) -> list[Block]:
    """The fenced blocks of ``page``, or of ``text`` in place of its text; the outputs of others are not among them."""
    if text is None:
        text = (ROOT / page).read_text(encoding="utf-8")
    return [Block(page, text.count("\n", 0, found.start()) + 1, found["info"].strip(), found["code"], found["prints"])
            for found in _FENCE.finditer(text)]


def commands(code: str) -> list[str]:
    """The commands of a shell script, each with the lines on which it continues; comments are left out.

    Raises ValueError if the last one does not end, as one with an open quote.
    """
    found: list[str] = []
    begun = ""
    for line in code.splitlines():
        begun += line + "\n"
        if line.endswith("\\") or not words(begun, whole=False):
            continue
        found.append(begun)
        begun = ""
    if begun.endswith("\\\n") or words(begun):
        raise ValueError(f"the last command does not end: {begun}")
    return found


def words(command: str, *, whole: bool = True) -> list[str]:
    """The words of ``command``, without comments. Raises ValueError for an open quote; with ``whole`` false, it has no
    words as long as a quote is open.
    """
    try:
        return shlex.split(command.replace("\\\n", " "), comments=True)
    except ValueError:
        if whole:
            raise
        return []
