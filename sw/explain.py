"""What becomes of a query: its predicate's passes, keys, bounds and widths, and what circuits cannot take and why."""

from __future__ import annotations

from collections.abc import Iterator

from .cpu.tests_source import is_equality, leading_tests, tests_nothing
from .device.circuit import configure, settings
from .device.wire import Configuration
from .errors import SplitJoinError
from .lang.bounds import EqualText, FloatBand, FloatOrder, Product, Relation, TextOrder, Unit, WideRelation
from .lang.ir import text
from .lang.keys import ExactKey, FloatKey, PrefixKey, TextKey, WideKey
from .lang.linear import ExactRelation, Term
from .lang.plan import Plan, Slot, Test, make_plan
from .lang.query import Query
from .lang.schema import Side

__all__ = ["explain"]


def explain(query: Query, *, cores: int = 4, capacity: int | None = None, fanout: int = 2, fanin: int = 2,
            lanes: int = 1, probes: int = 1) -> str:
    """A text that says how ``query`` maps onto a circuit with these parameters, or why it does not."""
    lines = [f"condition   {text(query.predicate)}",
             f"windows     R {_window(query, 'r')}; S {_window(query, 's')}",
             f"time        {_time(query)}",
             f"order       {query.order}"]
    plan = make_plan(query.predicate)
    lines += _plan(plan)
    others = [f"cpu         yes: {_cpu(plan)}", "golden      yes"]
    try:
        config = configure(query, plan, cores=cores, capacity=capacity, fanout=fanout, fanin=fanin,
                           lanes=lanes, probes=probes)
        settings(query, config, verified=plan.residual is not None)
    except SplitJoinError as error:
        return "\n".join([*lines, "circuits    no: " + str(error), *others])
    return "\n".join([*lines, *_circuit(config), *others])


def _cpu(plan: Plan) -> str:
    """Which engines the CPU has for it; it chooses when it has seen tuples."""
    if plan.residual is not None and tests_nothing(plan):
        return "nested loops over the expression itself"
    verified = "" if plan.residual is None else "; candidates are verified"
    tests = leading_tests(plan)
    if not tests:
        return f"nested loops; no index, as no test must hold for every match{verified}"
    kinds = ", ".join(f"T{j} ({'hash' if is_equality(plan, j) else 'range'})" for j in tests)
    best = " by the one or two most selective of" if len(tests) > 2 else " by"
    return f"an index{best} {kinds}, or nested loops, whichever is cheaper for the selectivity it measures{verified}"


def _window(query: Query, side: Side) -> str:
    extent = query.window(side)
    rows = [] if extent.rows is None else [f"the last {extent.rows} tuples"]
    return " and ".join(rows + ([] if extent.length is None else [f"not older than {extent.length} {_tick(query)}"]))


def _tick(query: Query) -> str:
    assert query.time is not None
    return query.time.tick or ("days" if str(query.time.type) == "date" else "units of the time column")


def _time(query: Query) -> str:
    if query.time is None:
        return "none: tuples arrive alternately, r0, s0, r1, s1, …"
    return f"r.{query.time.r} and s.{query.time.s}, R before S where they are equal"


def _plan(plan: Plan) -> Iterator[str]:
    for side in ("r", "s"):
        for n, slot in enumerate(plan.slots(side)):
            yield f"key         {side.upper()}{n}: {_slot(slot)}, {slot.key.width} bits"
    for n, test in enumerate(plan.tests):
        yield f"test        T{n}: {_test(plan, test)}"
    yield f"combined    {_tree(plan.tree)}"
    if plan.residual is not None:
        yield f"verified    on the host, of the pairs that the tests let through: {text(plan.residual)}"
        for reason in plan.reasons:
            yield f"because     {reason}"


def _slot(slot: Slot) -> str:
    match slot.key:
        case ExactKey():
            what = f"{_terms(slot.key.terms)}, {slot.key.low} to {slot.key.high}"
        case WideKey():
            key = slot.key.exact
            what = f"{_terms(key.terms)}, {key.low} to {key.high}, without its last {slot.key.shift} bits"
        case FloatKey():
            what = f"{text(slot.key.expr)} as ordered integer{', NaN lowest' if slot.key.nan_low else ''}"
        case TextKey():
            what = f"{text(slot.key.expr)} by its number in the session's dictionary"
        case PrefixKey():
            what = f"the first {slot.key.bytes_} bytes of {text(slot.key.expr)}"
        case _:
            what = "whether the tuple takes part"
    null = "; 0 for NULL" if slot.key.nullable and not slot.guards else ""
    guards = " and ".join(f"{text(g.condition)} is {' or '.join(sorted(g.values))}" for g in slot.guards)
    return what + (f"; 0 unless {guards}" if guards else null)


def _terms(terms: tuple[Term, ...]) -> str:
    return " + ".join((f"{t.factor * t.scale}·" if t.factor * t.scale != 1 else "") + text(t.expr) for t in terms)


def _test(plan: Plan, test: Test) -> str:
    said = " and ".join(_relation(plan, test, r) for r in test.relations)
    return f"{said}; an R probe brings an interval for S{test.s}, an S probe one for R{test.r}"


def _relation(plan: Plan, test: Test, relation: Relation) -> str:
    r, s = f"R{test.r}", f"S{test.s}"
    match relation:
        case WideRelation():
            return _relation(plan, test, relation.exact)
        case ExactRelation():
            return f"{_times(relation.g, r)} + {_times(relation.h, s)} + {relation.c} {relation.op} 0"
        case FloatOrder() | EqualText() | TextOrder():
            return f"{r} {relation.op} {s}"
        case FloatBand():
            return f"{text(relation.expr)} {relation.op} {relation.constant!r}"
        case Product():
            return f"{r}·{s} {relation.op} {relation.bound}"
        case Unit():
            return f"{r} and {s} take part"


def _times(factor: int, key: str) -> str:
    return key if factor == 1 else f"{factor}·{key}"


def _tree(tree: object) -> str:
    if isinstance(tree, int):
        return f"T{tree}"
    assert isinstance(tree, tuple)
    op, *args = tree
    return "(" + f" {str(op).upper()} ".join(map(_tree, args)) + ")"


def _circuit(config: Configuration) -> Iterator[str]:
    record, stored = config.input_record, max(config.keys("r").width, config.keys("s").width)
    yield (f"circuits    yes: {config.cores} cores of {config.capacity} tuples a stream (ROWS up to "
           f"{config.window_capacity}), fan-out {config.fanout}, fan-in {config.fanin}, "
           f"{config.time_bits or 'no'} bits of time; up to {2 * config.cores * config.lanes * config.probes} "
           f"comparisons a cycle (2 streams × {config.cores} cores × lanes {config.lanes} × probes {config.probes})")
    yield (f"records     {record.width} bits a tuple on the link ({4 * record.words} bytes), {stored} bits stored; "
           f"{2 * len(config.tests) * config.lanes * config.probes} comparators a region; ABI {config.abi_hash:016x}")
