"""What a query needs of a circuit: its plan, its configuration, and the words of its registers."""

from __future__ import annotations

from ..errors import CapacityError
from ..lang.order import Order
from ..lang.query import Query
from ..plan.make import Plan, make_plan
from .core_kind import choose_core
from .wire import ROW_BITS, Axis, Configuration, OrderMode, Sum, check_parameters

__all__ = ["check_options", "configure", "longest_range", "plan_for", "settings"]

#: What order none runs as where the host verifies the pairs; it drops the stars.
_STARRED = Order("outer", 64)


def configure(query: Query, plan: Plan, *, cores: int = 4, capacity: int | None = None, fanout: int = 2,
              fanin: int = 2, lanes: int = 1, probes: int = 1, core: str = "auto", region_counters: bool = False,
              tables: bool = False, **_: object) -> Configuration:
    """The configuration of a circuit for ``plan`` with the windows of ``query``; what `plan_for` takes besides is in
    the plan.
    """
    check_options(cores=cores, capacity=capacity, fanout=fanout, fanin=fanin, lanes=lanes, probes=probes, core=core)
    capacity = _capacity(query, cores, capacity)
    longest = longest_range(query)
    chosen = choose_core(plan, core, capacity=capacity, lanes=lanes, probes=probes, tables=tables)
    return Configuration(
        keys_r=tuple(s.key.width for s in plan.slots_r), keys_s=tuple(s.key.width for s in plan.slots_s),
        tests=tuple((t.r, t.s) for t in plan.tests), tree=plan.tree, cores=cores, capacity=capacity, fanout=fanout,
        fanin=fanin, lanes=lanes, probes=probes, core=chosen.kind, index=chosen.index, region_counters=region_counters,
        sums=_sums(plan), time_bits=0 if longest is None else _time_bits(longest), registers=plan.registers,
        widths=tuple(t.width for t in plan.tests) if any(t.width is not None for t in plan.tests) else (),
        tables=tables)


def plan_for(query: Query, *, cores: int = 4, capacity: int | None = None, lanes: int = 1, probes: int = 1,
             core: str = "auto", clock: float | None = None, tables: bool = False, **_: object) -> Plan:
    """The plan of ``query`` for a circuit with these of its parameters: with sum tests, and with the interval tests
    that they imply, and both ends of all intervals, only where an index finds candidates; with registers for
    ``clock``, in MHz.
    """
    check_options(cores=cores, capacity=capacity, fanout=2, fanin=2, lanes=lanes, probes=probes, core=core)
    plan = make_plan(query.predicate, "beside", clock)
    chosen = choose_core(plan, core, capacity=_capacity(query, cores, capacity), lanes=lanes, probes=probes,
                         tables=tables)
    return plan if chosen.index else make_plan(query.predicate, "instead", clock)


def _capacity(query: Query, cores: int, capacity: int | None) -> int:
    """``capacity``, or what the windows need: a power of two from 64 on, so that few circuits serve all windows."""
    if capacity is not None:
        return capacity
    need = max(1024 if w.rows is None else -(-w.rows // cores) for w in (query.window_r, query.window_s))
    found = 64
    while found < min(need, 65536):
        found *= 2
    return found


def _sums(plan: Plan) -> tuple[Sum, ...]:
    return tuple(Sum(tuple(Axis(a.kind, r, s, a.bits, a.shift)
                           for a, r, s in zip(t.relation.axes, t.r, t.s, strict=True)),
                     max(t.relation.most, -1) if t.rest_r is not None or t.rest_s is not None else t.relation.limit,
                     t.relation.above, (t.rest_r, t.rest_s)) for t in plan.sums)


def check_options(*, capacity: int | None, **others: object) -> None:
    """Raise `UnsupportedError` unless a circuit can have these; ``capacity`` None leaves it to the windows."""
    # `configure` chooses one that is right then.
    check_parameters(capacity=64 if capacity is None else capacity, **others)


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
