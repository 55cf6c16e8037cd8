"""Drawings as SVG: boxes, lines, arrows and escaped texts, in pages and as files of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .safe_text import printable

#: Across from the left, and down from the top, in pixels.
Point = tuple[float, float]
_THEMES = "<style>svg{color:#1f2328}@media (prefers-color-scheme:dark){svg{color:#e3e6ea}}</style>"


def themed(svg: str) -> str:
    """The element ``svg`` as a file of its own, or as an image: dark on a bright page, bright on a dark one."""
    begin = svg.index(">", svg.index("<svg")) + 1
    return svg[:begin] + _THEMES + svg[begin:]


class Drawing:
    """A drawing, which an element ``svg`` is made of. ``kind``: the class that its style names, empty for none."""

    def __init__(self) -> None:
        self._drawn: list[str] = []

    def svg(self, width: float, height: float, kind: str, said: str, style: str = "") -> str:
        """The element. ``said``: the drawing in words, for those who do not see it."""
        return (f'<svg class="{kind}" xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
                f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(printable(said))}">'
                f"<style>{style}</style>\n" + "\n".join(self._drawn) + "\n</svg>")

    def write(self, x: float, y: float, said: str, kind: str = "", anchor: str = "start") -> None:
        """Writes ``said`` with its ``start``, ``middle`` or ``end`` at ``x``."""
        self._drawn.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
                           f"{escape(printable(said))}</text>")

    def box(self, x: float, y: float, width: float, height: float, said: str = "", kind: str = "") -> None:
        """Draws a box from its upper left corner, with ``said`` in its middle."""
        self._drawn.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>')
        if said:
            self.write(x + width / 2, y + height / 2 + 4, said, anchor="middle")

    def line(self, points: Iterable[Point], kind: str = "") -> None:
        """Draws a line along ``points``."""
        self._drawn.append(f'<path class="{kind}" d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>')

    def arrow(self, points: Sequence[Point], kind: str = "") -> None:
        """Draws a line along ``points``, upright or level at its end, with a head there."""
        (x, y), (end_x, end_y) = points[-2:]
        size = max(abs(end_x - x), abs(end_y - y)) or 1
        across, down = 5 * (end_x - x) / size, 5 * (end_y - y) / size
        self.line(points, kind)
        self.line([(end_x - across - down * 0.6, end_y - down - across * 0.6), (end_x, end_y),
                   (end_x - across + down * 0.6, end_y - down + across * 0.6)], kind)
