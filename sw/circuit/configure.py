"""What a query needs of a circuit: its plan, its configuration, and the words of its registers."""

from __future__ import annotations

from dataclasses import fields, replace

from ..errors import CapacityError
from ..lang.order import Order
from ..lang.query import Query
from ..plan.passes.pipeline import make_plan
from .lowering import lower
from .parameters import BuildParameters, CircuitParameters
from .plan import CircuitPlan
from .wire import ROW_BITS, Axis, Configuration, OrderMode, Sum

__all__ = ["configure", "longest_range", "plan_for", "settings", "sized"]

#: What order none runs as where the host verifies the pairs; it drops the stars.
_STARRED = Order("outer", 64)


def plan_for(query: Query, parameters: CircuitParameters) -> CircuitPlan:
    """The plan of ``query`` for a circuit with ``parameters``. Raises what `lower` raises."""
    return lower(make_plan(query.predicate), sized(query, parameters))


def configure(query: Query, plan: CircuitPlan, parameters: CircuitParameters) -> Configuration:
    """The configuration of a circuit for ``plan`` with the windows of ``query``.

    Raises `CapacityError` for a RANGE that needs more bits of time than circuits have.
    """
    longest = longest_range(query)
    built = {f.name: getattr(sized(query, parameters), f.name) for f in fields(BuildParameters)}
    return Configuration(
        **built | {"core": plan.core.kind}, keys_r=tuple(s.key.width for s in plan.slots_r),
        keys_s=tuple(s.key.width for s in plan.slots_s), tests=tuple((t.r, t.s) for t in plan.tests), tree=plan.tree,
        index=plan.core.index, sums=_sums(plan), time_bits=0 if longest is None else _time_bits(longest),
        registers=plan.registers, widths=plan.widths if any(w is not None for w in plan.widths) else ())


def sized(query: Query, parameters: CircuitParameters) -> CircuitParameters:
    """``parameters`` with a capacity: where none is given, what the windows of ``query`` need.

    That is a power of two from 64 on, so that few circuits serve all windows.
    """
    if parameters.capacity is not None:
        return parameters
    need = max(1024 if w.rows is None else -(-w.rows // parameters.cores) for w in (query.window_r, query.window_s))
    capacity = 64
    while capacity < min(need, 65536):
        capacity *= 2
    return replace(parameters, capacity=capacity)


def _sums(plan: CircuitPlan) -> tuple[Sum, ...]:
    return tuple(Sum(tuple(Axis(a.kind, r, s, a.bits, a.shift)
                           for a, r, s in zip(t.relation.axes, t.r, t.s, strict=True)),
                     max(t.relation.most, -1) if t.rest_r is not None or t.rest_s is not None else t.relation.limit,
                     t.relation.above, (t.rest_r, t.rest_s)) for t in plan.sums)


def longest_range(query: Query) -> int | None:
    """The longer RANGE of the windows of ``query``, in ticks; None if they have none."""
    lengths = [w.length for w in (query.window_r, query.window_s) if w.length is not None]
    return max(lengths) if lengths else None


def _time_bits(longest: int) -> int:
    """Ages reach twice the RANGE plus one (see `Encoder`). Whole bytes, so that few circuits serve all RANGEs."""
    bits = (2 * longest + 2).bit_length()
    if bits > 64:
        raise CapacityError(f"a RANGE of {longest} ticks needs {bits} bits of time, and circuits have up to 64; use a "
                            f"coarser time unit, or device='cpu'")
    return max(32, -(-bits // 8) * 8)


def settings(query: Query, config: Configuration, *, verified: bool = False) -> dict[str, int]:
    """Register name → value for ``query``. Raises what `Device.open` raises.

    ``verified``: the host verifies the pairs, and needs stars to know which tuples it may let go of.
    """
    order = query.order
    if verified and order.kind == "none":
        order = _STARRED
    modes = {"none": OrderMode.NONE, "outer": OrderMode.OUTER, "total": OrderMode.TOTAL, "inner": OrderMode.INNER}
    precision = {"none": 0, "outer": order.n, "inner": 1, "total": 1}[order.kind]
    # No sub-window holds more than the capacity, so that a longer slice is the whole of it.
    slice_ = min(order.n, config.capacity) if order.kind == "inner" else 0
    out = {"order": int(modes[order.kind]), "precision": precision, "slice": slice_}
    for side in ("r", "s"):
        window = query.window(side)
        if window.rows is not None and window.rows > config.window_capacity:
            if window.length is None:
                raise CapacityError(
                    f"the window of stream {side} must fit the device, but ROWS {window.rows} is more than "
                    f"{config.cores} cores of {config.capacity} tuples can hold; the largest that fits is ROWS "
                    f"{config.window_capacity}; use more cores or a larger capacity")
            out[f"rows_{side}"] = min(window.rows, 2**ROW_BITS - 1)
        else:
            out[f"rows_{side}"] = 2**ROW_BITS - 1 if window.rows is None else window.rows
        out[f"range_{side}"] = 2**64 - 1 if window.length is None else window.length
    return out
