"""The joins of event logs as a table on the terminal, a page, and JSON."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import asdict

from .joins import Candidate

#: The longest condition that is shown whole, in characters.
_SHOWN = 2000
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Joins that splitjoin could run</title><style>
body {{ font: 15px/1.45 sans-serif; margin: 2em auto; max-width: 75em; color: #222 }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ text-align: left; vertical-align: top; padding: .4em .7em; border-bottom: 1px solid #ddd }}
td.n {{ text-align: right; white-space: nowrap }}
code {{ overflow-wrap: anywhere }}
.yes {{ color: #17692f }} .no {{ color: #8a3b12 }}
</style></head><body><h1>Joins that splitjoin could run</h1>
<p>{summary}</p>
<table><tr><th>join</th><th>condition</th><th>rows in</th><th>rows out</th><th>task time</th><th>predicted</th>
<th>splitjoin</th></tr>
{rows}
</table>{damaged}</body></html>
"""


def as_json(found: Sequence[Candidate], damaged: Sequence[str]) -> str:
    """The joins as JSON."""
    return json.dumps({"joins": [asdict(c) for c in found], "damaged": list(damaged)}, indent=2)


def as_text(found: Sequence[Candidate], damaged: Sequence[str]) -> str:
    """The joins as text, a block each."""
    lines = [_summary(found)]
    for c in found:
        lines += ["", f"{c.node} in {c.application}, query {c.execution}", f"  condition  {_cut(c.condition)}",
                  *(f"  {name:<9}  {said}" for name, said in (("columns", c.columns), ("window", c.window)) if said),
                  f"  rows       {_count(c.rows[0])} and {_count(c.rows[1])} in, {_count(c.rows[2])} out",
                  f"  task time  {c.seconds:.1f} s in the stages of the node; predicted: {_predicted(c)}",
                  f"  splitjoin  {'yes' if c.takes else 'no'}: {c.reason}"]
    return "\n".join([*lines, *(f"\nNot all was read: {d}" for d in damaged)])


def as_html(found: Sequence[Candidate], damaged: Sequence[str]) -> str:
    """The joins as a page that needs no other file."""
    rows = []
    for c in found:
        said = [f"<td>{_safe(c.node)}<br><small>{_safe(c.application)}<br>query {_safe(c.execution)}</small></td>",
                f"<td><code>{_safe(_cut(c.condition))}</code><br><small>{_safe(c.columns)}<br>{_safe(c.window)}</small></td>",
                f"<td class=n>{_count(c.rows[0])}<br>{_count(c.rows[1])}</td><td class=n>{_count(c.rows[2])}</td>",
                f"<td class=n>{c.seconds:.1f} s</td><td class=n>{_safe(_predicted(c))}</td>",
                f"<td class={'yes' if c.takes else 'no'}>{'yes' if c.takes else 'no'}: {_safe(c.reason)}</td>"]
        rows.append(f"<tr>{''.join(said)}</tr>")
    broken = "".join(f"<p>Not all was read: {_safe(d)}</p>" for d in damaged)
    return _PAGE.format(summary=_safe(_summary(found)), rows="\n".join(rows), damaged=broken)


def _summary(found: Sequence[Candidate]) -> str:
    takes = [c for c in found if c.takes]
    return (f"{len(found)} {'join compares' if len(found) == 1 else 'joins compare'} ranges or every pair; splitjoin "
            f"takes {len(takes)} of them, whose stages ran for {sum(c.seconds for c in takes):.1f} s of task time.")


def _cut(condition: str) -> str:
    """``condition``, cut if it is too long to be shown."""
    return condition if len(condition) <= _SHOWN else f"{condition[:_SHOWN]} … ({len(condition):,} characters)"


def _count(n: int | None) -> str:
    return "?" if n is None else f"{n:,}"


def _predicted(c: Candidate) -> str:
    return "none" if c.predicted is None else f"{c.predicted:.1f} s"


def _safe(text: str) -> str:
    return html.escape(text)
