"""The explanation of a join: facts, some with figures, which are shown as text, plain data, JSON and HTML."""

from __future__ import annotations

import json
import math
from collections import UserString
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from .safe_text import printable

#: Characters of a fact's name in text, filled with spaces.
_NAME = 12
#: The figures that are numbers of pairs or rows, drawn as bars: those before the join without a filling.
_EXPECTED, _COUNTED = "expected", "counted"
#: Pixels of the picture: its width, the height of a bar and of the line above it, and that of their text.
_WIDTH, _BAR, _LINE, _FONT = 360, 12, 36, 13
#: Colours are the page's own, and one that can be read on white and on black.
_STYLE = """.splitjoin-explain th{text-align:left;vertical-align:top;padding-right:1em}
.splitjoin-explain td{text-align:left;overflow-wrap:anywhere;white-space:pre-wrap}
.splitjoin-explain .picture{overflow-x:auto}
.splitjoin-explain .bars{display:block;width:100%;max-width:480px;height:auto}
.splitjoin-explain .bars text{fill:currentColor;font:13px sans-serif}
.splitjoin-explain .counted{fill:#3987e5;stroke:#3987e5}
.splitjoin-explain .expected{fill:none;stroke:currentColor;stroke-dasharray:4 2}"""


@dataclass(frozen=True)
class Fact:
    """One thing told.

    Attributes:
        name: Its name, at most 11 characters; empty where it stands alone.
        text: The sentence about it.
        more: Further lines of text, which begin with a space.
        figures: Numbers in ``text``, by name: ``expected`` and ``counted`` pairs or rows, ``bytes``, ``cpu_seconds``;
            and ``of``, the pairs that all tuples within windows make.
    """

    name: str
    text: str
    more: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join([f"{self.name:<{_NAME}}{self.text}" if self.name else self.text, *self.more])


class Explanation(UserString):
    """An explanation, which prints as its text and has the methods of one; ``str(…)`` of it is a string.

    Attributes:
        facts: The facts, in order.
    """

    def __init__(self, told: str | UserString | Iterable[str | Fact], diagram: str = "") -> None:
        """``told``: the `Fact` objects, or their lines, of which one that begins with a space belongs to the fact
        before. As for `UserString`, also a text. ``diagram``: an element ``svg``, trusted as it is; empty for none.
        """
        self._diagram = diagram
        self.facts = tuple(_facts(str(told).split("\n") if isinstance(told, (str, UserString)) else told))
        super().__init__("\n".join(map(str, self.facts)))

    def __repr__(self) -> str:
        return self.data

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain data: ``{"facts": [{"name", "text", "more", "figures"}, …]}``. Figures that are not
        finite are None.
        """
        return {"facts": [{"name": fact.name, "text": fact.text, "more": [line.strip() for line in fact.more],
                           "figures": {name: value if math.isfinite(value) else None
                                       for name, value in fact.figures.items()}} for fact in self.facts]}

    def to_json(self, *, indent: int | None = None) -> str:
        """`to_dict` as JSON; ``indent``: spaces by which each level begins later, None for one line."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def svg(self) -> str:
        """The picture, an element ``svg`` that needs nothing else: of a query, the block diagram of its circuit; of
        tables, bars of the pairs expected, looked at and found. Empty where there is none.
        """
        return self._diagram or "".join(self._bars())

    def html(self) -> str:
        """A page, in light or dark colours as the browser prefers, that needs nothing else: the picture (`svg`), and a
        table of the facts.
        """
        return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>splitjoin explain</title>\n'
                '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
                "<style>:root{color-scheme:light dark}body{font:16px/1.4 sans-serif;margin:1em}</style></head>\n"
                f"<body>{self._repr_html_()}</body></html>")

    def _repr_html_(self) -> str:
        """`html` as a part of a page, such as a notebook."""
        rows = "\n".join(f"<tr><th>{_escaped(fact.name)}</th><td>{_escaped(told)}</td></tr>"
                         for fact in self.facts for told in ["\n".join([fact.text, *map(str.strip, fact.more)])])
        below = [f"<p>All pairs, within windows where there are some: {all_pairs:,.0f}</p>\n"
                 for all_pairs in {fact.figures["of"] for fact in self.facts if "of" in fact.figures}]
        return (f'<div class="splitjoin-explain"><style>{_STYLE}</style>\n<div class="picture">{self.svg()}</div>'
                f'{"".join(below)}<table>\n{rows}\n</table></div>')

    def _bars(self) -> Iterator[str]:
        """The picture: a bar for each number of pairs or rows, from zero; nothing where there are none."""
        bars = [(fact.name, kind, fact.figures[kind]) for fact in self.facts for kind in (_EXPECTED, _COUNTED)
                if math.isfinite(fact.figures.get(kind, math.nan))]
        if not bars:
            return
        most = max(value for *_, value in bars) or 1
        told = "; ".join(f"{name} {kind} {value:,.0f}" for name, kind, value in bars)
        yield (f'<svg class="bars" viewBox="0 0 {_WIDTH} {len(bars) * _LINE}" role="img" aria-label="{_escaped(told)}" '
               f'xmlns="http://www.w3.org/2000/svg">')
        for n, (name, kind, value) in enumerate(bars):
            y = n * _LINE
            yield (f'<text x="0" y="{y + _FONT}">{_escaped(f"{name}, {kind}")}</text>'
                   f'<text x="{_WIDTH}" y="{y + _FONT}" text-anchor="end">{value:,.0f}</text>'
                   f'<rect class="{kind}" x="1" y="{y + _LINE - _BAR - 6}" width="{value / most * (_WIDTH - 2):.1f}" '
                   f'height="{_BAR}"/>')
        yield "</svg>"


def _facts(told: Iterable[str | Fact]) -> Iterator[Fact]:
    """``told``, with each line as a fact, or with the one that it belongs to."""
    last: Fact | None = None
    for one in told:
        if isinstance(one, str) and one.startswith(" ") and last is not None:
            last = Fact(last.name, last.text, (*last.more, one), last.figures)
            continue
        if last is not None:
            yield last
        last = one if isinstance(one, Fact) else _fact(one)
    if last is not None:
        yield last


def _fact(line: str) -> Fact:
    name = line[:_NAME].rstrip(" ")
    return Fact(name, line[_NAME:]) if name and len(name) < _NAME < len(line) else Fact("", line)


def _escaped(text: str) -> str:
    return escape(printable(text))
