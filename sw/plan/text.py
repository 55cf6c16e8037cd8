"""Keys, relations, guards and trees in words, as `splitjoin.explain` and the passes' text forms say them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..circuit.schedule import Registers
from ..circuit.sum_relations import Axis, SumRelation
from ..lang.ir import text
from .keys import ExactKey, FloatKey, Key, PrefixKey, TextKey, WideKey
from .linear import ExactRelation, Term
from .relations import EqualText, FloatBand, FloatOrder, Product, Relation, TextOrder, Unit, WideRelation

if TYPE_CHECKING:
    from .plan import Plan, Slot, SumTest, Test

__all__ = ["key_text", "plan_lines", "relation_text", "sum_text", "tree_text"]


def key_text(key: Key) -> str:
    """What ``key`` is made of, and between which numbers it lies."""
    match key:
        case ExactKey():
            return f"{_terms(key.terms)}, {key.low} to {key.high}"
        case WideKey():
            return (f"{_terms(key.exact.terms)}, {key.exact.low} to {key.exact.high}, without its last {key.shift} "
                    f"bits")
        case FloatKey():
            return f"{text(key.expr)} as ordered integer{', NaN lowest' if key.nan_low else ''}"
        case TextKey():
            return f"{text(key.expr)} by its number in the session's dictionary"
        case PrefixKey():
            return f"the first {key.bytes_} bytes of {text(key.expr)}"
    return "whether the tuple takes part"


def relation_text(relation: Relation, r: str, s: str) -> str:
    """``relation`` between the keys called ``r`` and ``s``."""
    match relation:
        case WideRelation():
            return relation_text(relation.exact, r, s)
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


def plan_lines(plan: Plan) -> Iterator[str]:
    """The plan, a line a key, test and fact."""
    for side in ("r", "s"):
        for n, slot in enumerate(plan.slots(side)):
            yield f"key         {side.upper()}{n}: {_slot(slot)}, {slot.key.width} bits"
    for n, test in enumerate(plan.tests):
        yield f"test        T{n}: {_test(test)}"
    for n, sum_ in enumerate(plan.sums, len(plan.tests)):
        yield f"test        T{n}: {_sum_test(sum_)}"
    yield f"combined    {tree_text(plan.tree)}"
    if plan.residual is not None:
        yield f"verified    on the host, of the pairs that the tests let through: {text(plan.residual)}"
        for reason in plan.reasons:
            yield f"because     {reason}"
    if plan.main is not None:
        yield f"main test   {plan.main}"
    if plan.clock is not None:
        yield f"clock       {_registers(plan.registers, plan.clock)}"


def _registers(registers: Registers, clock: float) -> str:
    """Where the datapath has registers beside those that every one has."""
    said = [] if registers.chain == 64 else [f"after {registers.chain} bits of a comparison"]
    said += [f"after {registers.levels} gates in a row of the tree"] if registers.levels else []
    said += ["after each addition of a sum"] if registers.sums else []
    said += ["after the digits of a difference"] if registers.digits else []
    return f"for {clock:g} MHz, registers {', '.join(said) or 'nowhere but where every datapath has them'}"


def tree_text(tree: object) -> str:
    """A Boolean tree over tests T0, T1, …"""
    if isinstance(tree, int):
        return f"T{tree}"
    assert isinstance(tree, tuple)
    op, *args = tree
    return "(" + f" {str(op).upper()} ".join(map(tree_text, args)) + ")"


def sum_text(relation: SumRelation) -> str:
    """``relation`` with its keys written out."""
    axes = [_axis(a, f"({_terms(a.r.terms)})", f"({_terms(a.s.terms)})") for a in relation.axes]
    rest = [_terms(key.terms) for key in (relation.r, relation.s) if key is not None]
    return f"{' + '.join(axes + rest)} {'>' if relation.above else '<='} {relation.limit}"


def _sum_test(test: SumTest) -> str:
    relation = test.relation
    axes = [_axis(a, f"R{r}", f"S{s}") for a, r, s in zip(relation.axes, test.r, test.s, strict=True)]
    rest = [f"{side}{n}" for side, n in (("R", test.rest_r), ("S", test.rest_s)) if n is not None]
    limit = f"; the limit less its own {' or '.join(rest)}" if rest else ""
    return (f"{' + '.join(axes + rest)} {'>' if relation.above else '<='} {relation.limit}, added up in the circuit; "
            f"a probe brings its own place on each axis{limit}")


def _axis(axis: Axis, r: str, s: str) -> str:
    times = f"{2**axis.shift}·" if axis.shift else ""
    if axis.kind == "differing":
        return f"{times}bit_count({r} ^ {s})"
    difference = f"{r} - {s}" + (f" {'+' if axis.c > 0 else '-'} {abs(axis.c)}" if axis.c else "")
    return times + (f"({difference})²" if axis.kind == "square" else f"|{difference}|")


def _slot(slot: Slot) -> str:
    null = "; 0 for NULL" if slot.key.nullable and not slot.guards else ""
    guards = " and ".join(f"{text(g.condition)} is {' or '.join(sorted(g.values))}" for g in slot.guards)
    return key_text(slot.key) + (f"; 0 unless {guards}" if guards else null)


def _test(test: Test) -> str:
    said = " and ".join(relation_text(x, f"R{test.r}", f"S{test.s}") for x in test.relations)
    what = {None: "an interval", 0: "a key to equal"}.get(test.width, f"the low end of an interval {test.width} wide")
    return f"{said}; an R probe brings {what} for S{test.s}, an S probe one for R{test.r}"


def _terms(terms: tuple[Term, ...]) -> str:
    return " + ".join((f"{t.factor * t.scale}·" if t.factor * t.scale != 1 else "") + text(t.expr) for t in terms)


def _times(factor: int, key: str) -> str:
    return key if factor == 1 else f"{factor}·{key}"
