"""Lowering: turns a plan into that of a circuit, for its core kind, constant widths and a clock, and then into the
circuit's configuration and the words of its registers.

Three passes follow those of `splitjoin.plan.passes.compiler`, and comparisons that no interval test decides become sum
tests on the way.

``formula``: the conjuncts that no test decides become a formula test, which computes them for each pair. Where cores
scan, the interval tests that these conjuncts imply are left out.

``width``: in circuits that scan, interval tests whose intervals all have the same width need the low end alone. A band
of whole numbers, ``|x − y| <= c``, becomes one subtraction and a comparison with a constant; an equality becomes an
equality comparison. This halves the bounds that a probe's record and registers hold.

``clock``: the datapath gets as many pipeline registers as the requested clock needs. A comparison is cut into parts,
the Boolean tree into stages, and each addition of a sum gets a cycle of its own, but only where a step would otherwise
take longer than a cycle by the delays of `splitjoin.circuit.delays`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, Union, cast

from splitjoin.base.errors import CapacityError, OrderError, UnsupportedError, plural
from splitjoin.lang.aggregate import Aggregate
from splitjoin.lang.ir import Cmp, Col, Expr, Lit, rebuilt, sides
from splitjoin.lang.order import Order
from splitjoin.lang.query import Query
from splitjoin.lang.types import BOOL, Binary, is_text
from splitjoin.plan.keys import ExactKey, UnitKey
from splitjoin.plan.linear import ExactRelation
from splitjoin.plan.passes.compiler import Pass, Phase, compiled
from splitjoin.plan.passes.strength import ComputedTests
from splitjoin.plan.plan import Plan, Shared, Test
from splitjoin.plan.relations import Relation

from .core_choice import CoreChoice, choose_core
from .delays import StageDelay, combined_digits, comparison, equality, sum_steps, tree, width_digits
from .folding import FoldChoice, fold_choice
from .formula import computed, conjuncts, formula_of, joined
from .geometry import comparators
from .memory import check_memory
from .parameters import LARGEST, LEAST_ROUTED, BuildParameters, CircuitParameters
from .plan import CircuitPlan, SumTest
from .schedule import Gate, PipelineRegisters, arranged
from .sums import SumRelation, sum_relation
from .wire import ROW_BITS, Axis, Configuration, OrderMode, Sum

#: Widest key in bits: a low end has one bit more, and record fields have at most 64.
_BITS = 63


def constant_widths(plan: CircuitPlan, clock: float | None) -> CircuitPlan:
    """``plan`` with its `CircuitPlan.widths`.

    Only tests of cores that scan have a constant width, because an index needs both ends of its intervals. No test has
    one if ``clock``, in MHz, is too high for it: a comparison can be cut into parts, a difference cannot.
    """
    if plan.core.index:
        return plan
    return replace(plan, widths=tuple(_width(plan, t, clock) for t in plan.tests))


def _width(plan: Plan, test: Test, clock: float | None) -> int | None:
    slots = plan.slots_r[test.r], plan.slots_s[test.s]
    bits = [slot.key.width for slot in slots]
    period = 1000 / clock if clock else math.inf
    if max(bits) > _BITS:
        return None
    if test.is_point:
        return 0 if equality(max(bits) + 1).ns <= period else None
    # A stored NULL has code 0, which intervals that begin below 0 would contain.
    if any(slot.null_code or not isinstance(slot.key, ExactKey) for slot in slots):
        return None
    found = _constant(test.relations)
    if found is None or found >= 2**min(bits) or width_digits(max(bits) + 1).ns > period:
        return None
    return found


def _constant(relations: tuple[Relation, ...]) -> int | None:
    """The high end minus the low end of every interval, if it is constant; else None."""
    exact = [x for x in relations if isinstance(x, ExactRelation)]
    if len(relations) != 2 or len(exact) != 2 or {x.op for x in exact} != {"<=", ">="}:
        return None
    below, above = sorted(exact, key=lambda x: x.op)
    if (below.g, below.h) != (above.g, above.h) or abs(below.g) != 1 or abs(below.h) != 1:
        return None
    wide = above.c - below.c
    return wide if wide >= 0 else None


#: Narrowest part of a comparison in bits: a narrower one is hardly faster.
_LEAST = 4
#: Upper bound of the gates in a row of any tree.
_ANY = 2**31


def pipelined(plan: CircuitPlan, clock: float | None) -> CircuitPlan:
    """``plan`` with the pipeline registers that ``clock``, in MHz, needs; for None only those that every datapath has.

    Raises `UnsupportedError`, which names the highest possible clock, for a clock that no number of registers can
    reach.
    """
    if clock is None:
        return plan
    slowest = max(_steps(plan), key=lambda step: step.ns)
    period = 1000 / clock
    if slowest.ns > period:
        raise UnsupportedError(
            f"clock must be one that the datapath of the condition can have on ECP5, but at {clock:g} MHz a cycle is "
            f"{period:.2f} ns, and {slowest.what} takes {slowest.ns:.2f} ns; the nearest clock that it can have is "
            f"{math.floor(1000 / slowest.ns)} MHz")
    wide = _widest(plan)
    chain = next((bits for bits in range(wide, _LEAST, -1) if comparison(bits + (bits < wide)).ns <= period),
                 min(wide, _LEAST))
    depth = _depth(plan)
    levels = next(n for n in range(max(depth, 1), 0, -1) if n == 1 or tree(n).ns <= period)
    apart, digits = (any(step.ns > period for sum_ in plan.sums for step in sum_steps(sum_.relation, apart=False)),
                     any(combined_digits(bits, depth).ns > period for bits in _differences(plan)))
    return replace(plan, clock=clock, registers=PipelineRegisters(
        chain if chain < wide else 64, levels if levels < depth else 0, apart, digits))


def _steps(plan: CircuitPlan) -> Iterator[StageDelay]:
    """The steps between two registers of the datapath, with the largest possible number of registers."""
    yield tree(1)
    wide = _widest(plan)
    if wide:
        yield comparison(min(wide, _LEAST + 1))
    yield from map(combined_digits, _differences(plan))
    for sum_ in plan.sums:
        yield from sum_steps(sum_.relation, apart=True)


def _widest(plan: CircuitPlan) -> int:
    """Bits of the widest comparison with two bounds."""
    return max((_bits(plan, test) for test, width in _with_widths(plan) if width is None), default=0)


def _differences(plan: CircuitPlan) -> Iterator[int]:
    """Bits of the differences of tests with a constant width."""
    return (_bits(plan, test) + 1 for test, width in _with_widths(plan) if width)


def _with_widths(plan: CircuitPlan) -> Iterator[tuple[Test, int | None]]:
    return zip(plan.tests, plan.widths, strict=True)


def _bits(plan: CircuitPlan, test: Test) -> int:
    return max(plan.slots_r[test.r].key.width, plan.slots_s[test.s].key.width)


def _depth(plan: CircuitPlan) -> int:
    """Gates in a row of the whole tree."""
    late = plan.sums or plan.formula is not None
    signals = [1 if late or width is not None else 2 for width in plan.widths] + [1] * (len(plan.sums) + 1)
    root = arranged(plan.tree, _ANY, signals)
    return root.depth if isinstance(root, Gate) else 1


def with_formula(plan: CircuitPlan, clock: float | None) -> CircuitPlan:
    """``plan`` with a formula test for those conjuncts of its residual that circuits can compute.

    Raises `UnsupportedError` for a ``clock``, in MHz, that the formula cannot have.
    """
    reasons, found, left = list(plan.reasons), list[Expr](), list[Expr]()
    for part in conjuncts(plan.residual):
        is_computed, reason = computed(part)
        tested = _tested(part)
        if is_computed and not tested:
            found.append(part)
        if reason:
            left.append(part)
            reasons += [] if tested else [f"'{part}': {reason}"]
    condition = joined(found)
    if condition is None:
        return plan
    formula, number = formula_of(condition, plan.slots_r, plan.slots_s, clock), len(plan.tests) + len(plan.sums)
    tests = plan.tree[1:] if isinstance(plan.tree, tuple) and plan.tree[0] == "and" else (plan.tree,)
    made = replace(plan, tree=("and", *tests, number))
    if all(isinstance(slot.key, UnitKey) and not slot.guards for slot in plan.slots_r + plan.slots_s):
        alone = formula_of(condition, (), (), clock)
        if alone.slots_r and alone.slots_s:  # the test that lets every pair through has served
            formula, made = alone, replace(plan, tests=(), widths=(), tree=0)
    return replace(made, slots_r=formula.slots_r, slots_s=formula.slots_s, formula=formula, residual=joined(left),
                   reasons=tuple(reasons) if left else ())


def _tested(part: Expr) -> bool:
    """True if tests decide ``part`` but for texts that begin alike, so that a formula would know no more."""
    def shortened(e: Expr) -> Expr:
        if (isinstance(e, Cmp) and is_text(e.a.type) and e.op not in ("=", "<>") and len(sides(e)) == 2
                and len(sides(e.a)) == len(sides(e.b)) == 1):
            a, b = (replace(_SHORT, side=side, name=str(x)) for x in (e.a, e.b) for side in sides(x))
            return Cmp(BOOL, e.op, a, b)
        return rebuilt(e, [shortened(c) for c in e.children])

    short = shortened(part)
    return short != part and compiled(short, _BESIDE).plan.residual is None


#: A pass that only circuits need: it takes a plan and the requested clock in MHz.
CircuitPass = Pass[tuple[CircuitPlan, "float | None"], CircuitPlan]

FORMULA: CircuitPass = Pass("formula", "what no test decides is computed for each pair",
                            lambda given: with_formula(*given))
WIDTH: CircuitPass = Pass("width", "tests of constant width get by with one bound",
                          lambda given: constant_widths(*given))
CLOCK: CircuitPass = Pass("clock", "the datapath gets registers for a clock", lambda given: pipelined(*given))
#: In the order in which they run.
PASSES = (FORMULA, WIDTH, CLOCK)

CircuitPhase = Union[Phase, CircuitPlan]

#: With the interval tests that sum tests imply, by which an index finds candidates; and without.
_BESIDE, _INSTEAD = ComputedTests(sum_relation, True), ComputedTests(sum_relation, False)
#: Texts that keys know whole.
_SHORT = Col(Binary(7), "r", "", True)


def lower(predicate: Expr, parameters: CircuitParameters) -> CircuitPlan:
    """The plan of condition ``predicate`` for a circuit with ``parameters``, whose capacity is not None.

    Sum tests and a formula test compute the comparisons that no interval test decides, where circuits can and
    ``verify`` allows it. The interval tests that these imply stay beside them only where an index finds candidates by
    them.

    Raises `UnsupportedError` if the condition has no test for the requested kind of core, for a clock that no number of
    registers can reach, and where the host would have to verify what ``verify`` wants decided in the cores.
    """
    *_, (_, _, made) = phases(predicate, parameters)
    assert isinstance(made, CircuitPlan)
    return made


def unlowered(plan: Plan, parameters: CircuitParameters) -> CircuitPlan:
    """``plan`` without lowering, for the kind of core of ``parameters``: its interval tests, each with both bounds."""
    return _circuit_plan(Shared(plan), choose_core(plan, parameters))


def plan_with_bounds(predicate: Expr) -> Plan:
    """The plan of condition ``predicate`` for circuits, with the interval tests that sum tests imply."""
    return compiled(predicate, _BESIDE).plan


def phases(predicate: Expr, parameters: CircuitParameters) -> Iterator[tuple[str, str, CircuitPhase]]:
    """The name and purpose of each pass that leads from condition ``predicate`` to the result of `lower`, and the phase
    that it made; first the condition itself, with an empty name.
    """
    try:
        found = list(_phases(predicate, parameters))
    except UnsupportedError as error:
        if parameters.verify != "auto":
            raise
        # Raises the same for what is not due to the formula.
        found = list(_phases(predicate, replace(parameters, verify="host")))
        name, what, made = found[-1]
        assert isinstance(made, CircuitPlan)
        found[-1] = name, what, replace(made, reasons=(*made.reasons, str(error)))
    yield from found


def _phases(predicate: Expr, parameters: CircuitParameters) -> Iterator[tuple[str, str, CircuitPhase]]:
    seen: list[tuple[str, str, CircuitPhase]] = []

    def observe(step: Pass[object, object] | None, phase: Phase) -> None:
        if step is None:
            seen.clear()  # it begins anew
        seen.append(("", "", phase) if step is None else (step.name, step.what, phase))

    made, shared = _BESIDE, compiled(predicate, _BESIDE, observe)
    residual, core = shared.plan.residual, choose_core(shared.plan, parameters)
    if not core.index and shared.computed:
        made, shared = _INSTEAD, compiled(predicate, _INSTEAD, observe)
        core = choose_core(shared.plan, parameters)
    # What a formula computes needs no tests that are implied, unless an index finds candidates by them.
    instead = () if core.index or parameters.verify == "host" else tuple(
        part for part in conjuncts(residual) if computed(part)[0] and not _tested(part))
    if instead:
        tested = joined(part for part in conjuncts(predicate) if part not in instead) or Lit(BOOL, True)
        shared = compiled(tested, made, observe)
    plan = _circuit_plan(shared, core)
    yield from seen
    plan = replace(plan, predicate=predicate, residual=joined((*instead, *conjuncts(plan.residual))))
    for step in PASSES:
        if step is FORMULA and parameters.verify == "host":
            continue
        plan = step.run((plan, parameters.clock))
        if step is FORMULA:
            _check_formula(plan, parameters)
        yield step.name, step.what, plan
    if plan.residual is not None and parameters.verify == "core":
        raise UnsupportedError(f"verify='core' wants all of the condition decided in the circuit, but "
                               f"{'; '.join(plan.reasons)}; give verify='auto' to let the host verify pairs by that")


def _check_formula(plan: CircuitPlan, parameters: CircuitParameters) -> None:
    """Raise `UnsupportedError` if the formula of ``plan`` is larger than what is built."""
    pairs, most = parameters.lanes * parameters.probes, MOST_COMPARATORS // 2 * _COMPARATOR
    operations = 0 if plan.formula is None else len(plan.formula.pipeline.graph.nodes)
    if operations * pairs > most:
        raise UnsupportedError(f"the formula of the condition has {operations} operations for each of {pairs} pairs a "
                               f"cycle, and a region has at most {most:,}; ask for fewer lanes and probes")


def _circuit_plan(shared: Shared, core: CoreChoice) -> CircuitPlan:
    plan = shared.plan
    # `_BESIDE` and `_INSTEAD` make sum relations only, whose axes have a key of each stream.
    sums = tuple(SumTest(cast(SumRelation, p.test), cast(tuple[int, ...], p.r[:-1]), cast(tuple[int, ...], p.s[:-1]),
                         p.r[-1], p.s[-1]) for p in shared.computed)
    given: dict[str, Any] = {f.name: getattr(plan, f.name) for f in fields(Plan)}
    return CircuitPlan(**given, sums=sums, widths=(None,) * len(plan.tests), core=core)


#: The circuit's order for queries of order none whose stars the host needs and drops.
_STARRED = Order("outer", 64)


def plan_for(query: Query, parameters: CircuitParameters) -> CircuitPlan:
    """The plan of ``query`` for a circuit with ``parameters``. Raises what `lower` raises."""
    return lower(query.predicate, sized(query, parameters))


#: The largest circuits that are built, in comparators of a region and in bits of a tuple on the link: 64 tests with 32
#: lanes × probes, and a hundred tests of 33 bits. Elaboration takes CPU time and memory in proportion to both, some ten
#: seconds at these limits.
MOST_COMPARATORS, MOST_RECORD_BITS = 4096, 8192
#: Operations of a formula that take as long as a comparator; a formula takes half of the limit at most.
_COMPARATOR = 8


def configure(query: Query, plan: CircuitPlan, parameters: CircuitParameters,
              folding: FoldChoice | None = None, *, first_hits: bool = False) -> Configuration:
    """The configuration of a circuit for ``plan`` with the windows of ``query``. ``folding``: what it folds; without it
    pairs leave. ``first_hits``: as of `Configuration`.

    Raises `CapacityError` for a RANGE that needs more bits of time than circuits have, and `UnsupportedError` for a
    condition with so many tests that its circuit is larger than `MOST_COMPARATORS` or `MOST_RECORD_BITS`.
    """
    longest = longest_range(query)
    built = {f.name: getattr(sized(query, parameters), f.name) for f in fields(BuildParameters)}
    config = Configuration(
        **built | {"core": plan.core.kind}, keys_r=tuple(s.key.width for s in plan.slots_r),
        keys_s=tuple(s.key.width for s in plan.slots_s), tests=tuple((t.r, t.s) for t in plan.tests), tree=plan.tree,
        index=plan.core.index, sums=_sums(plan), formula=None if plan.formula is None else plan.formula.pipeline,
        time_bits=_time_bits(query, parameters, longest),
        registers=plan.registers, widths=plan.widths if any(w is not None for w in plan.widths) else (),
        values=() if folding is None else tuple(v.value for v in folding.values),
        folds=() if folding is None else folding.parts, first_hits=first_hits,
        whole_states=folding is not None and folding.whole)
    if reason := too_large(config):
        raise UnsupportedError(reason)
    if config.memory != "bram":
        check_memory(config)
    return config


def too_large(config: Configuration) -> str:
    """The reason why ``config`` is not built, as its elaboration would take too long; empty if it is."""
    tests, bits = len(config.tests) + len(config.sums), config.input_record.width
    operations = 0 if config.formula is None else len(config.formula.graph.nodes)
    pairs = config.lanes * config.probes
    found = comparators(config) + len(config.sums) * pairs + operations * pairs // _COMPARATOR
    if found <= MOST_COMPARATORS and bits <= MOST_RECORD_BITS:
        return ""
    return (f"a circuit must have at most {MOST_COMPARATORS} comparators in a region and {MOST_RECORD_BITS} bits a "
            f"tuple on the link, but the {tests} {plural(tests, 'test')} of this condition make {found} comparators "
            f"with {config.lanes} {plural(config.lanes, 'lane')} × {config.probes} {plural(config.probes, 'probe')}, "
            f"and {bits} bits; write a condition with fewer comparisons, ask for fewer lanes and probes, or use "
            f"device='cpu'")


def folding_of(query: Query, plan: CircuitPlan, parameters: CircuitParameters,
               built: Sequence[Aggregate] = ()) -> FoldChoice:
    """The choice for a circuit with ``parameters`` and ``query``, whose condition has ``plan``. States leave whole
    where they can; else `FoldChoice.not_whole` tells why not. Where regions cannot fold, one unit does in order.

    ``built``: the aggregates that an existing circuit was built for, as of `fold_choice`. Raises `UnsupportedError`,
    with the reason, if pairs must leave.
    """
    chosen = sized(query, parameters)
    if query.window_r.length == 0:
        reason = "R's window is RANGE 0, so hardly any come after it"
    else:
        try:
            return fold_choice(query, plan, chosen, built, whole=True)
        except UnsupportedError as error:
            reason = str(error)
    try:
        return replace(fold_choice(query, plan, chosen, built), not_whole=reason)
    except UnsupportedError as error:
        return fold_choice(query, plan, chosen, built, whole=True, in_order=str(error))


def sized(query: Query, parameters: CircuitParameters) -> CircuitParameters:
    """``parameters`` with a capacity: the given one, or the one that the windows of ``query`` need.

    The chosen capacity is a power of two of at least 64, so that few circuits serve all windows. Raises
    `UnsupportedError` for a query without a window.
    """
    if query.is_unbounded:
        raise UnsupportedError("a circuit stores windows of bounded size, so it runs no join without a window; give a "
                               "window, such as window='RANGE 900', or use device='cpu'")
    if parameters.capacity is not None:
        return parameters
    need = max(1024 if w.rows is None else -(-w.rows // parameters.turns) for w in (query.window_r, query.window_s))
    capacity = max(64, LEAST_ROUTED * parameters.cores) if parameters.routed else 64
    while capacity < min(need, LARGEST[parameters.memory]):
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


def _time_bits(query: Query, parameters: BuildParameters, longest: int | None) -> int:
    """Bits of device time. With several sources there are 64, as nobody sees all tuples and could shorten the gaps."""
    bits = 0 if longest is None else time_bits_for(longest)
    if parameters.sources == 1:
        return bits
    if query.time is None:
        raise UnsupportedError(f"{parameters.sources} sources are merged by event time, and the query has none; give "
                               f"time=, or sources=1")
    return 64


def time_bits_for(longest: int) -> int:
    """Bits of device time, in whole bytes, so that few circuits serve all RANGEs; for ages see `Encoder`."""
    bits = (2 * longest + 2).bit_length()
    if bits > 64:
        raise CapacityError(f"a RANGE of {longest} ticks needs {bits} bits of time, and circuits have up to 64; use a "
                            f"coarser time unit, or device='cpu'")
    return max(32, -(-bits // 8) * 8)


def device_order(query: Query, config: Configuration, *, verified: bool = False) -> Order:
    """The order that the circuit of ``config`` keeps for ``query``.

    Without an order there are stars nevertheless, for the host to drop, where it verifies the pairs (``verified``) or
    restores narrow row ids: stars tell it which probes are done.
    """
    narrow = config.row_bits < ROW_BITS
    if "outer" not in config.structure.orders:  # the host releases nothing then, before the end
        return query.order
    return _STARRED if (verified or narrow) and query.order.kind == "none" else query.order


def settings(query: Query, config: Configuration, *, verified: bool = False) -> dict[str, int]:
    """Register name → value for ``query``. Raises what `Device.open` raises.

    ``verified``: the host verifies the pairs, and needs stars to know which tuples it may release.
    """
    order = device_order(query, config, verified=verified)
    most = 2**config.row_bits - 1
    config.structure.check_order(order, config)
    if order.kind == "outer" and order.n > most:
        raise OrderError(f"the n of outer(n) must be 1 to {most} with row ids of {config.row_bits} bits, not {order.n}")
    modes = {"none": OrderMode.NONE, "outer": OrderMode.OUTER, "total": OrderMode.TOTAL, "inner": OrderMode.INNER}
    precision = {"none": 0, "outer": order.n, "inner": 1, "total": 1}[order.kind]
    # No sub-window holds more than the capacity, so a longer slice covers the whole sub-window.
    slice_ = min(order.n, config.capacity) if order.kind == "inner" else 0
    out = {"order": int(modes[order.kind]), "precision": precision, "slice": slice_}
    for side in ("r", "s"):
        window = query.window(side)
        if window.rows is not None and window.rows > config.window_capacity:
            if window.length is None:
                raise CapacityError(
                    f"the window of stream {side} must fit the device, but ROWS {window.rows} is more than "
                    f"{config.cores} {plural(config.cores, 'core')} of {config.capacity} tuples can "
                    f"hold; the largest that fits is ROWS {config.window_capacity}; "
                    f"use more cores or a larger capacity")
            out[f"rows_{side}"] = min(window.rows, 2**ROW_BITS - 1)
        else:
            out[f"rows_{side}"] = 2**ROW_BITS - 1 if window.rows is None else window.rows
        out[f"range_{side}"] = 2**64 - 1 if window.length is None else window.length
    return out
