"""The engine that folds a query's aggregates on the CPU, and the reason, in words."""

from __future__ import annotations

from splitjoin.lang.query import Query

from .form import IntervalForm, interval_form


def explain_engine(query: Query) -> str:
    """The engine that folds the aggregates of ``query`` on the CPU by default, and the reason."""
    form = interval_form(query)
    ranges = "; over whole tables by ranges of rows" if all(a.reads_ranges for a in query.aggregates) else ""
    if isinstance(form, str):
        decided = ", if equalities and one other key decide" if ranges else ""
        return f"pairs, which the host folds, as {form}{ranges}{decided}"
    anew = any(user.way.kind == "recompute" for user in form.users)
    why = "it makes no pairs" if anew else "it does the same work a tuple for every window and lateness"
    others = no_interval(query)
    beside = "key-oij and scale-oij could run it too" if not others else f"not key-oij or scale-oij, as {others}"
    return f"sliding, as {why}; {folding(form, 'sliding')}; {beside}{ranges}"


def no_interval(query: Query) -> str:
    """The reason why a base tuple has no interval of time; empty if it has one."""
    if query.time is None:
        return "the query has no time column"
    for side in ("r", "s"):
        window = query.window(side)
        if window.rows is not None or window.length is None:
            return f"{side.upper()}'s window is not RANGE alone"
    return ""


def folding(form: IntervalForm, name: str) -> str:
    """A sentence on how the engine ``name`` folds."""
    if name == "key-oij":
        return "all partners are folded anew for every base tuple"
    parts = []
    if form.primitives or not form.users:
        picks = any(p.kind in ("least", "greatest") for p in form.primitives)
        others = any(p.kind not in ("least", "greatest") for p in form.primitives)
        parts.append("aggregates are subtracted and added" if not picks else
                     "least and greatest values by two stacks" + ", others are subtracted and added" * others)
    parts += [f"{user.term.text} is {user.way.why}" for user in form.users]
    return "; ".join(parts)
