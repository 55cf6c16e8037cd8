"""Explanation of a query: passes, keys, bounds and widths of its predicate, the engines that run it, and the reasons
why circuits refuse it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from splitjoin.base.errors import SplitJoinError, UnsupportedError, plural
from splitjoin.base.explanation import Explanation
from splitjoin.base.memory import size_text
from splitjoin.base.processors import processors
from splitjoin.circuit.cost.circuit import circuit_cost, cost_lines, family_name, resources_text
from splitjoin.circuit.cost.folding import first_hits, folding_emitter, ordered_folder, stored_states
from splitjoin.circuit.cost.resources import check_family
from splitjoin.circuit.deciding_pairs import check_decides, deciding_pairs
from splitjoin.circuit.export.diagram import diagram
from splitjoin.circuit.folding import FoldChoice
from splitjoin.circuit.geometry import comparators, comparisons
from splitjoin.circuit.lowering import configure, folding_of, lower, phases, plan_for, settings, sized
from splitjoin.circuit.memory import line_bits, lines as memory_lines
from splitjoin.circuit.parameters import CircuitParameters, circuit_parameters
from splitjoin.circuit.plan import CircuitPlan
from splitjoin.circuit.tuner.memory import memory_formula
from splitjoin.circuit.wire import Configuration
from splitjoin.engines.gpu.suits import is_expression, why_not
from splitjoin.lang.ir import Expr, text
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side
from splitjoin.lang.types import duration_text
from splitjoin.plan.passes.compiler import make_plan
from splitjoin.plan.plan import Plan, Shared, is_equality, leading_tests, plan_lines, suits_runs, tests_nothing
from splitjoin.rows.interval_joins.form import explain_engine

#: Neighbouring lines of one label, and characters of a line, that are shown.
_MOST_LINES, _MOST_CHARACTERS = 64, 4096


def explain(query: Query, parameters: CircuitParameters | None = None, *, passes: bool = False,
            family: str = "ecp5", windowed: bool = True, **options: Any) -> Explanation:
    """Explain the mapping of ``query`` onto a circuit, or the reason why there is none.

    Of a condition with many tests, only the first lines of each kind are shown, and how many there are.

    Args:
        query: The query.
        parameters: The circuit's parameters; None to take them from ``options``.
        passes: True to also print the condition after each compiler pass that changed it.
        windowed: False if the user gave no window, so that those of ``query`` are only what a circuit holds, and its
            parts are shown only where an option of circuits is given.
        family: The FPGA family for which costs are printed, of `splitjoin.circuit.cost.FAMILIES`.
        options: Parameters of the circuit by name (see `CircuitParameters`).

    Raises `UnsupportedError` for parameters that no circuit can have.
    """
    check_family(family)
    chosen = parameters or circuit_parameters(options)
    folded, aggregates, few = _folded(query), query.aggregates, deciding_pairs(query) if query.needs_few_pairs else None
    if not query.kind.is_inner and not folded:
        pairs = "pairs" if few else "all pairs, which are rows"
        folded = [f"kind        {query.kind}, decided on the host from {pairs}"]
    alone = "" if not query.needs_few_pairs else (
        "; of whole tables, only partners that decide, unless all pairs are expected to take less")
    query = query.pairs
    asked = query.aggregated(aggregates) if aggregates else query
    lines = [f"condition   {text(query.predicate)}",
             *folded,
             f"windows     {_windows(query, windowed)}",
             f"time        {_time(query)}",
             f"order       {query.order}",
             *(f"aggregate   {a.name}: {a.text}" for a in aggregates if not a.definition.named)]
    host = make_plan(query.predicate)
    try:
        plan, refused = lower(query.predicate, sized(query, chosen)), None
    except SplitJoinError as error:
        # The plan for any circuit, to show the tests of the condition.
        chosen, refused = CircuitParameters(core="scan"), error
        plan = lower(query.predicate, sized(query, chosen))
    if passes:
        lines += _passes(query.predicate, sized(query, chosen))
    not_few = ""
    if few is not None and refused is None:
        try:
            narrow = plan_for(few.query, chosen)
            check_decides(few, narrow, chosen)
            query, plan = few.query, narrow
        except SplitJoinError as error:
            few, not_few = None, str(error)
    lines += plan.lines()
    others = [f"cpu         yes: {_cpu(host)}{alone}",
              f"            up to {processors()} threads, as many as the estimated cost of a batch pays for",
              *(_own_tests(host) if plan.sums or plan.formula else ()), f"gpu         {_gpu(host)}", "golden      yes"]
    try:
        if refused is not None:
            raise refused
        folding = None if few is None else few.folding
        if not_few:
            lines.append(f"folded      not in circuits: {not_few}")
        if aggregates:
            try:
                folding = folding_of(asked, plan, chosen)
            except UnsupportedError as error:
                lines.append(f"folded      not in circuits: {error}; so pairs leave them, which the host folds")
        config = configure(query, plan, chosen, folding, first_hits=few is not None and few.first)
        settings(query, config, verified=plan.residual is not None)
    except SplitJoinError as error:
        return Explanation(_shortened([*lines, "circuits    no: " + str(error), *others]))
    if plan.residual is not None:
        lines.append(f"candidates  take {-(-config.item_record.width // 8)} bytes each on the link, whether the host "
                     f"keeps them or not")
    if plan.clock is not None:
        lines.append(f"stages      {config.stages} in each datapath, for {plan.clock:g} MHz on ECP5")
    if not windowed and chosen == CircuitParameters():  # whole tables: nobody asks for a circuit
        asks = "circuits    yes; with a window, or an option such as cores, their parts and cost are shown here"
        return Explanation(_shortened([*lines, asks, *others]))
    circuit = [*_verify(query, config, plan, chosen, family), *_circuit(config, plan),
               *_state(config, family, "" if few is None else str(few), folding),
               *cost_lines(config, family)]
    return Explanation(_shortened([*lines, *circuit, *others]), diagram(config, family, plan.clock))


def _verify(query: Query, config: Configuration, plan: CircuitPlan, chosen: CircuitParameters,
            family: str) -> Iterator[str]:
    """The line on verification: whether the core or the host decides the pairs that no test decides, why, and the
    costs of the other choice.
    """
    if plan.formula is None and plan.residual is None:
        return
    asked = chosen.verify == "host"
    other = replace(chosen, verify="auto" if asked else "host")
    try:
        lowered = plan_for(query, other)
        found = configure(query, lowered, other)
    except SplitJoinError as error:
        yield f"verify      {'host' if asked else 'core'}; verify={other.verify!r} is refused: {error}"
        return
    if plan.formula is None and lowered.formula is None:
        yield "verify      host, for the reasons above: circuits compute no part of it"
        return
    here, there = (resources_text(circuit_cost(c, family).total, check_family(family)) for c in (config, found))
    if asked:
        leave = "only pairs of the answer" if lowered.residual is None else "fewer pairs"
        yield f"verify      host, as asked, with {here}; by verify='auto' {leave} leave, with {there}"
        return
    who = "core: it computes all of it" if plan.residual is None else "core, and host for the reasons above"
    yield (f"verify      {who}, with {here}; by verify='host' each pair that the other tests let through takes "
           f"{-(-found.item_record.width // 8)} bytes on the link, with {there}")


def _windows(query: Query, windowed: bool) -> str:
    """The windows in words; where none was given, those of tables and of the circuit."""
    said = f"R {window_text(query, 'r')}; S {window_text(query, 's')}"
    return said if windowed else f"none given: joins of whole tables compare all rows; a circuit would hold {said}"


def _folded(query: Query) -> list[str]:
    """The line of the aggregates of ``query``, if it has some: who folds them."""
    if not query.aggregates:
        return []
    return [f"aggregates  on the CPU by engine {explain_engine(query)}; circuits as below; elsewhere on the host, from "
            f"pairs"]


def _state(config: Configuration, family: str, kind: str, folding: FoldChoice | None) -> Iterator[str]:
    """The state that a circuit folds, and the cost of folding it in a core. ``kind``: what leaves for a kind of join;
    empty for aggregates. ``folding``: what it folds.
    """
    if folding is None:
        return
    known = check_family(family)
    items = config.beats + 1
    leave = f"which {'leaves' if config.state.width == 1 else 'leave'} in {items} {plural(items, 'item')} a tuple of R"
    bits = f"{config.state.width} {plural(config.state.width, 'bit')} of state"
    if config.in_order:
        assert folding is not None
        cycles = f"a partner {'a cycle' if config.in_order == 1 else f'in {config.in_order} cycles'}"
        yield (f"folded      in the circuit: the partners of a tuple of R in order of arrival, by one unit behind the "
               f"gather trees, {cycles}, to {bits}, {leave} when it expires; not in the regions: {folding.in_order}")
        yield f"folding     on {family_name(known)} {resources_text(ordered_folder(config, known), known)} in all"
        return
    pairs = f"{config.lanes} × {config.probes} pairs a cycle in each region, to {bits}, {leave}"
    yield f"folded      in the circuit: {kind}; {bits}, {leave}" if kind else (
        f"folded      in the circuit: the partners of a tuple of R, {pairs} when it expires"
        if config.whole_states else
        f"folded      in the circuit: the partners that come before a tuple of R, {pairs}; partners that come "
        f"after it leave as pairs: {folding.not_whole}")
    cost = folding_emitter(config, known)
    if config.first_hits:
        cost += first_hits(config, known)
    if config.whole_states:
        cost += stored_states(config, known)
    yield f"folding     on {family_name(known)} {resources_text(cost, known)} a core"


def _shortened(lines: Iterable[str]) -> Iterator[str]:
    """``lines``, of which a condition with thousands of tests makes as many: of neighbours with one label only the
    first, and of a long line only the beginning.
    """
    for label, group in groupby(lines, lambda line: line[:len(line) - len(line.lstrip())] + line.split(None, 1)[0]):
        alike = list(group)
        for line in alike[:_MOST_LINES]:
            more = len(line) - _MOST_CHARACTERS
            yield line if more <= 0 else f"{line[:_MOST_CHARACTERS]} … and {more:,} {plural(more, 'character')} more"
        if left := len(alike[_MOST_LINES:]):
            yield f"{label:<12}… and {left:,} {plural(left, 'line')} more"


def _own_tests(plan: Plan) -> Iterator[str]:
    """The tests of the CPU engine for comparisons that circuits compute with sum and formula tests."""
    for line in plan_lines(plan):
        label, said = line.split(maxsplit=1)
        if label in ("key", "test", "verified"):
            yield f"  its own   {label} {said}"


def _passes(predicate: Expr, parameters: CircuitParameters) -> Iterator[str]:
    """The condition after each pass towards a circuit that changed it; for a plan, only the new lines."""
    before, old = "", list[str]()
    for name, what, phase in phases(predicate, parameters):
        said = str(phase)
        if name and said != before:
            yield f"pass        {name}: {what}"
            yield from ("    " + line for line in said.splitlines() if line not in old)
        before, old = said, said.splitlines() if isinstance(phase, (Shared, CircuitPlan)) else []


def _cpu(plan: Plan) -> str:
    """The CPU's engines for the plan; the CPU device chooses among them after the first tuples."""
    if plan.residual is not None and tests_nothing(plan):
        return "nested loops over the expression itself"
    verified = "" if plan.residual is None else "; candidates are verified"
    tests = leading_tests(plan)
    if not tests:
        return f"nested loops; no index, as no test must hold for every match{verified}"
    kinds = ", ".join(f"T{j} ({'hash' if is_equality(plan, j) else 'range'})" for j in tests)
    best = " by the one or two most selective of" if len(tests) > 2 else " by"
    runs = ", sorted runs" if suits_runs(plan) else ""
    return (f"an index{best} {kinds}{runs}, or nested loops, whichever is cheaper for the selectivity it measures"
            f"{verified}")


def _gpu(plan: Plan) -> str:
    """Whether a GPU runs the plan, and how."""
    if reason := why_not(plan):
        return f"no: it {reason}"
    if is_expression(plan):
        return "yes: nested loops over the expression itself"
    return f"yes: nested loops{'' if plan.residual is None else '; candidates are verified on the CPU'}"


def window_text(query: Query, side: Side) -> str:
    """The window of ``side`` in words, such as "the last 8 tuples and not older than 20 s"."""
    extent = query.window(side)
    rows = [] if extent.rows is None else [f"the last {extent.rows} {plural(extent.rows, 'tuple')}"]
    return " and ".join(rows + ([] if extent.length is None else [f"not older than {_age(query, extent.length)}"]))


def _age(query: Query, length: int) -> str:
    assert query.time is not None
    if query.time.tick is not None:
        return duration_text(length, query.time.tick)
    return f"{length} {'days' if str(query.time.type) == 'date' else 'units of the time column'}"


def _time(query: Query) -> str:
    if query.time is None:
        return "none: tuples arrive alternately, r0, s0, r1, s1, …"
    return f"r.{query.time.r} and s.{query.time.s}, R before S where they are equal"


def _memory(config: Configuration) -> str:
    """The external memory of ``config`` in words, and the formula of its speed."""
    size = size_text(memory_lines(config) * line_bits(config) // 8) + (
        f" for each of {config.cores} cores, to which tuples and probes go by key," if config.routed else "")
    times = f"; event times stay in block RAM, {config.time_bits} bits a tuple" if config.time_bits else ""
    return (f"{config.memory}: {size} beyond the circuit, in lines of {line_bits(config) // 8} bytes; "
            f"{config.contexts} probes at once in each region{times}; with a latency of L cycles, I cycles a line and "
            f"c candidates a probe, {memory_formula(config)} cycles a tuple, whatever the window's length; a probe of "
            f"more cells reads the whole window, a line after the other")


def _circuit(config: Configuration, plan: CircuitPlan) -> Iterator[str]:
    record, stored = config.input_record, max(config.keys("r").width, config.keys("s").width)
    cores = f"{config.cores} {plural(config.cores, 'core')}"
    trees = "" if config.structure.sequential else f", fan-out {config.fanout}, fan-in {config.fanin}"
    peak = "a tuple at a time, with a comparison a cycle" if config.structure.sequential else (
        f"up to {comparisons(config)} comparisons a cycle (2 streams × {cores} × lanes {config.lanes} × probes "
        f"{config.probes})")
    yield (f"circuits    yes: {cores} of {config.capacity} tuples a stream (ROWS up to {config.window_capacity})"
           f"{trees}, {config.time_bits or 'no'} bits of time; {peak}")
    by = f" by {', '.join(f'T{j}' for j in config.index)}" if config.index else ""
    yield f"cores       {config.core}{by}; {plan.core.reason}"
    if config.memory != "bram":
        yield f"memory      {_memory(config)}"
    if config.tables:
        looked_up = [f"T{j}" for j, wide in enumerate(config.test_widths) if wide is not None]
        yield (f"tables      {', '.join(looked_up)} looked up in LUT RAM, which a batch's probes are written to before "
               f"its pass")
    pairs, where = config.lanes * config.probes, "a region"
    if config.structure.sequential:
        pairs, where = len(config.structure.datapaths(config)), "in all"
    sums = f" and {len(config.sums) * pairs} {plural(len(config.sums) * pairs, 'sum')}" if config.sums else ""
    if config.formula is not None:
        cycles = config.formula.ahead
        sums += f" and {pairs} {plural(pairs, 'formula')} of {cycles} {plural(cycles, 'stage')}"
    yield (f"records     {record.width} bits a tuple on the link ({4 * record.words} bytes), {stored} bits stored; "
           f"{comparators(config)} comparators{sums} {where}; "
           f"ABI {config.abi_hash:016x}")
