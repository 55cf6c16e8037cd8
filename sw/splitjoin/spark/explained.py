"""`explain`: describes, as text, how a join will run, and which of its parts run on the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from splitjoin.base.errors import InputError
from splitjoin.engines.device import Device
from splitjoin.engines.registry import DeviceOption, merged_options
from splitjoin.lang.order import Order
from splitjoin.lang.query import Predicate, Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.time_columns import TimeSpec
from splitjoin.lang.windows import WindowSpec
from splitjoin.rows.output import ResultNames, Selected

from .batch import BatchJob
from .inputs import Inputs
from .join import Partitions, made_join
from .placement import device_name, folding, parts
from .rewrite import RewrittenJoin
from .routes import PartRoute
from .settings import JoinSettings, StreamOptions
from .streaming.frontier import Frontier
from .streaming.group import GroupJoin
from .streaming.plan import StreamingJoin
from .streaming.watermark import WatermarkRule
from .text import WHICH, duration, extent
from .ties import Ties
from .views import Frame, frames

if TYPE_CHECKING:
    from splitjoin.sessions.gate.lateness import Watermark
    from splitjoin.sessions.gate.times import Idle, Lateness

#: The values of ``mode``.
MODES = ("PLAN", "NOT_ON_DEVICE", "ALL")


def explain(left: Frame, right: Frame, *, on: Predicate | None = None, window: WindowSpec | None = None,
            time: TimeSpec | None = None, ties: Ties = (), order: str | Order = "none",
            select: Selected | None = None, suffixes: Sequence[str | None] | None = None, device: str | Device = "cpu",
            device_options: Mapping[str, Any] | None = None,
            partitions: Partitions | None = None, late: Lateness | None = None, late_to: str | None = None,
            null_time: str | None = None, idle: Idle | None = None, watermark: Watermark | None = None,
            early: bool = False, groups: int | None = None,
            state: str | None = None, name: str | None = None, fail_on_fallback: bool = True, how: str = "inner",
            direction: str | None = None,
            allow_exact: bool | None = None, by: str | None = None, aggregate: Mapping[str, str] | None = None,
            mode: str = "PLAN", **options: DeviceOption) -> str:
    """Describe, as text, how `stream_join` will run with these arguments.

    ``mode``: ``"PLAN"`` shows the device, condition, windows, order, and the partitions or groups. ``"NOT_ON_DEVICE"``
    lists the parts of the join that run on the host, each with the reason. ``"ALL"`` lists all parts, and marks those
    on the device with ``*``, the others with ``!``.

    With ``engine="rewrite"``, or where ``"auto"`` chooses it, the text ends with the SQL, which ``spark.sql(text,
    left=…, right=…)`` runs.
    For batch DataFrames, ``"PLAN"`` runs the Spark jobs that `stream_join` runs, and one more, which counts rows.
    Raises what `stream_join` raises.
    """
    if mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(map(repr, MODES))}, not {mode!r}")
    device_options = merged_options(device_options, options, device, explain)
    streaming = StreamOptions(late, late_to, null_time, idle, watermark, early or None, groups, state, name)
    settings = JoinSettings(ties, device, device_options, partitions, None, fail_on_fallback, streaming)
    names = ResultNames.of(select, suffixes)
    kind = {"how": how, "direction": direction, "allow_exact": allow_exact, "by": by, "aggregate": aggregate}
    r, s = frames(left, right)
    if not settings.check_kinds(r, s) and mode != "PLAN" and not device_options.get("engine"):
        settings = replace(settings, partitions=1)  # so that no job runs
    joined, reason = made_join(Inputs.of(r, s, on, window, time), order=order, names=names, kind=kind,
                               settings=settings)
    if isinstance(joined, RewrittenJoin):
        return joined.explained(reason)
    how_run = joined.join if isinstance(joined, StreamingJoin) else joined
    query, its_device, its_options = how_run.query, how_run.device, how_run.options
    if mode != "PLAN":
        found = parts(query, its_device, its_options, joined.refused, gathered=joined.result.names)
        return "\n".join(str(part) for part in found if mode == "ALL" or not part.on_device)
    lines = _streaming(joined) if isinstance(joined, StreamingJoin) else _batch(joined, partitions, device_options)
    if reason:
        lines.insert(1, ("chosen", reason))
    return "\n".join(f"{label:<11}{said}" for label, said in lines)


def _common(query: Query, ties: Mapping[Side, Sequence[str]], device: str | Device,
            options: Mapping[str, Any], windows: str = "") -> list[tuple[str, str]]:
    keys = [f"{side}: {', '.join(ties[side])}" for side in SIDES if ties.get(side)]
    times = [] if query.time is None else [
        ("windows", windows or f"r: {extent(query, 'r')}; s: {extent(query, 's')}"),
        ("time", f"r.{query.time.r}, s.{query.time.s} ({query.time.type}); equal times: R before S"
                 + (f", then {'; '.join(keys)}" if keys else "; within a stream their order does not matter here"))]
    return [
        *([] if query.kind.is_inner else
          [("kind", f"{query.kind}" + ", decided in the Spark task from the pairs" * (not query.aggregates))]),
        *([("aggregates", f"{', '.join(a.text for a in query.aggregates)}, {folding(query, device, options)[1]}")]
          if query.aggregates else []),
        ("condition", str(query.predicate)),
        *times,
        ("order", str(query.order)),
    ]


def _batch(joined: BatchJob, partitions: Partitions | None, options: Mapping[str, Any]) -> list[tuple[str, str]]:
    if isinstance(joined.route, PartRoute):
        return [("device", f"{device_name(joined.device)}; every part runs on it, in its Spark task"),
                *_common(joined.query, joined.ties, joined.device, joined.options,
                         "none; a partner may be of any age"),
                ("parts", str(joined.route))]
    sizes = joined.sizes().collect()
    rows, warm = sum(r["home"] for r in sizes), sum(r["warm"] for r in sizes)
    said = "".join(f", {k}={v}" for k, v in options.items())
    chosen = "at quantiles of the event time" if partitions is None or isinstance(partitions, int) else "as given"
    return [
        ("device", f"{device_name(joined.device)}{said}; every partition runs on it, in its Spark task"),
        *_common(joined.query, joined.ties, joined.device, joined.options),
        ("partitions", f"{joined.route.tasks} {chosen}, the largest of {max((r['home'] for r in sizes), default=0)} "
                       f"rows"),
        ("rows", f"{rows}, and {warm} warm ones ({warm / max(rows, 1):.1%}), which fill the windows at the start of a "
                 f"partition and are read twice"),
    ]


def _streaming(joined: StreamingJoin) -> list[tuple[str, str]]:
    join, query = joined.join, joined.join.query
    assert query.time is not None
    if join.slots.keys is not None:
        spread = (f"a row goes to the group of its key ({join.slots.keys['r']} = {join.slots.keys['s']}); rows of very "
                  f"frequent keys go to all groups" if query.is_pairs else
                  f"a row goes to the group of its key ({join.slots.keys['r']} = {join.slots.keys['s']})")
    elif not query.is_pairs:
        spread = "a row of left goes to one of them, a row of right to all"
    else:
        spread = "a row goes to all groups, and one of them stores it"
    decided = "when the watermark has decided them: no later row can find their row in its window"
    when = (f"{decided}, but those of pairs in the micro-batch that brings their second row" if join.by_matches else
            decided if not query.is_pairs else
            "in the micro-batch that brings their second row" if not join.waits else
            "when the watermark has passed their later row: ROWS windows and order 'total' need arrival order")
    rule = _rule(join)
    return [
        ("device", f"{device_name(join.device)}; every group runs on it, in its Spark task"),
        *_common(query, join.ties, join.device, join.options),
        ("late", f"rows below {'or at ' if rule.beyond else ''}the watermark"
                 f"{', or their own part of it' if rule.policy == 'source' else ''}: "
                 f"{_watermark(join, joined.earlier)}"),
        ("results", f"{'pairs' if query.is_pairs else 'rows'} come out {when}"),
        ("groups", f"{join.groups}; {spread if join.groups > 1 else 'one task joins all rows'}"),
        ("state", f"{joined.root or 'in the checkpoint of the query'}, of the last {joined.retained} micro-batches"),
    ]


def _rule(join: GroupJoin) -> WatermarkRule:
    """The rule of a call; Spark itself keeps the watermarks of plain SQL, which has its own explain."""
    assert isinstance(join.rule, WatermarkRule)
    return join.rule


def _watermark(join: GroupJoin, earlier: Mapping[Side, Frontier]) -> str:
    """The rule of the watermark in words."""
    assert join.query.time is not None
    tick, rule = join.query.time.tick, _rule(join)
    times = []
    for side in SIDES:
        if (delay := rule.delays[side]) is not None:
            times.append(f"the watermark of {WHICH[side]}'s join" if side in earlier else
                         f"{WHICH[side]}'s greatest time less {delay if tick is None else duration(delay, tick)}")
    both = f"the {'greater' if rule.policy == 'max' else 'lesser'} of {' and '.join(times)}"
    idle = [f"{WHICH[side]} has had no row for {duration(limit, 'ms')}" for side in SIDES
            if (limit := rule.idle[side]) is not None and len(times) == 2 and rule.policy != "max"]
    return (both if len(times) == 2 else times[0]) + (f"; of the other one alone while {' or '.join(idle)}" if idle
                                                      else "")
