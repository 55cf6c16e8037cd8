"""Two-valued forms, and pass ``logic``, which derives them from three-valued conditions (semantics, section 3).

A form is a positive combination (AND, OR) of leaves that are either true or false: conditions on one stream, which the
host evaluates once per tuple, and comparisons of both streams, which are false if an operand is NULL. Code 0 of a key
means that its value is NULL. The passes replace comparisons by simpler ones, and finally by interval tests
(`Compared`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, Union

from splitjoin.lang import build, ir
from splitjoin.lang.eval.vector import constant
from splitjoin.lang.ir import MIRRORED, NEGATED, Cmp, CmpOp, Expr, Lit, sides, text
from splitjoin.lang.properties import causes, may_be_null
from splitjoin.lang.schema import Side
from splitjoin.lang.types import BOOL, EXACT, Bool, Float, is_exact

from .keys import Key
from .linear import Total
from .passes.conditions import TooManyCases
from .relations import Relation, exclude, united
from .text import key_text, relation_text

TruthValue = Literal["true", "false", "null"]


@dataclass(frozen=True)
class OneSided:
    """A condition on stream ``side`` alone: true when ``condition`` has one of the ``values``."""

    side: Side
    condition: Expr
    values: frozenset[TruthValue]


@dataclass(frozen=True)
class Both:
    """A comparison of values (not of conditions) that reads both streams; false when an operand is NULL.

    ``origin``: the comparison that the user wrote, if this one is a part of it.
    """

    cmp: Cmp
    origin: Cmp | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Compared:
    """A comparison as an interval test on one key of each stream: all ``relations`` must hold."""

    r: Key
    s: Key
    relations: tuple[Relation, ...]


class ComputedTest(Protocol):
    """A test that a kind of device computes itself from keys of both streams, beside interval tests; hashable.

    `str` of it is its stable text form.
    """

    def keys(self, side: str) -> tuple[Key | None, ...]:
        """The keys of stream ``side`` that the test reads, by their roles; None where a role has no key."""

    def described(self, r: tuple[int | None, ...], s: tuple[int | None, ...]) -> str:
        """The test in words, with each key as its number among the stored ones."""


@dataclass(frozen=True)
class Computed:
    """A comparison as a test that the device computes itself."""

    test: ComputedTest


@dataclass(frozen=True)
class Junction:
    """Conjunction or disjunction; without operands, the constant true ("and") or false ("or").

    ``size``: the number of its parts, each as often as it occurs.
    """

    op: Literal["and", "or"]
    args: tuple[Form, ...]
    size: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", 1 + sum(a.size if isinstance(a, Junction) else 1 for a in self.args))


Form = Union[OneSided, Both, Compared, Computed, Junction]
_OTHER: dict[Literal["and", "or"], Literal["and", "or"]] = {"and": "or", "or": "and"}
TRUE, FALSE = Junction("and", ()), Junction("or", ())


def junction(op: Literal["and", "or"], args: Iterable[Form]) -> Form:
    """``args`` combined: flattened, without neutral operands, duplicates, and those that another one implies; what all
    of them have in common stands in front of them.
    """
    neutral, absorbing = (TRUE, FALSE) if op == "and" else (FALSE, TRUE)
    flat: list[Form] = []
    for a in args:
        if a == absorbing:
            return absorbing
        flat += a.args if isinstance(a, Junction) and a.op == op else (a,)
    distinct, other = dict.fromkeys(flat), _OTHER[op]
    known = {a for a in distinct if not isinstance(a, Junction)}
    kept = [x for a in distinct if (x := a if a in known else _given(a, known, op)) is not None]
    if kept != list(distinct):
        return junction(op, kept)
    if len(kept) < 2:
        return kept[0] if kept else neutral
    if op == "or" and len(joint := _united(kept)) < len(kept):
        return junction(op, joint)
    first, *others = (a.args if isinstance(a, Junction) else (a,) for a in kept)  # each combined by the other operator
    common = [x for x in first if all(x in of for of in others)]
    if not common:
        return Junction(op, tuple(kept))
    rests = (junction(other, (x for x in of if x not in common)) for of in (first, *others))
    return junction(other, (*common, junction(op, rests)))


def _united(forms: Sequence[Form]) -> list[Form]:
    """``forms``, one of which must hold, with one test in place of those of the same keys whose ranges touch."""
    tests: dict[tuple[Key, Key], list[tuple[Relation, ...]]] = {}
    for form in forms:
        if isinstance(form, Compared):
            tests.setdefault((form.r, form.s), []).append(form.relations)
    return [*(form for form in forms if not isinstance(form, Compared)),
            *(Compared(*keys, relations) for keys, of in tests.items() for relations in united(of))]


def _given(form: Form, known: Collection[Form], op: Literal["and", "or"]) -> Form | None:
    """``form`` beside the leaves ``known``, with which it is combined by ``op``; None if it makes no difference."""
    if not isinstance(form, Junction):
        never = op == "and" and isinstance(form, Compared) and any(
            isinstance(k, Compared) and (k.r, k.s) == (form.r, form.s) and exclude(k.relations, form.relations)
            for k in known)
        return FALSE if never else None if form in known else form
    found = [_given(a, known, op) for a in form.args]
    kept = [a for a in found if a is not None]
    if not kept or (form.op != op and len(kept) < len(found)):
        return None
    return form if kept == list(form.args) else junction(form.op, kept)


def present(cmp: Cmp, known: Container[Expr] = ()) -> tuple[OneSided, ...]:
    """Conditions that no one-sided part of ``cmp`` is NULL, except the parts ``known`` to be tested anyway."""
    return tuple(OneSided(next(iter(sides(c))), build.is_null(c, str(c)), frozenset(("false",)))
                 for c in dict.fromkeys((*causes(cmp.a), *causes(cmp.b))) if len(sides(c)) == 1 and c not in known)


def form_text(form: Form) -> str:
    """The stable text form, on one line; equal for equal forms."""
    match form:
        case OneSided():
            return f"[{form.side}: {text(form.condition)} is {' or '.join(sorted(form.values))}]"
        case Both():
            return text(form.cmp)
        case Compared():
            said = " and ".join(relation_text(x, "R", "S") for x in form.relations)
            return f"<{said}; R = {key_text(form.r)}; S = {key_text(form.s)}>"
        case Computed():
            return f"<{form.test}>"
        case Junction(args=()):
            return "TRUE" if form.op == "and" else "FALSE"
        case Junction():
            return "(" + f" {form.op.upper()} ".join(map(form_text, form.args)) + ")"
    raise AssertionError(form)


#: Largest number of steps to the form of one condition, and of parts of the form: nested CASEs can need exponentially
#: many.
_MOST = 1 << 12
_ALL: frozenset[TruthValue] = frozenset(("true", "false", "null"))
_OPPOSITE: dict[TruthValue, TruthValue] = {"true": "false", "false": "true", "null": "null"}


def positive(e: Expr) -> Form:
    """The two-valued form that is true exactly when condition ``e`` is true. Raises `TooManyCases`."""
    return _Logic().form(e)


class _Logic:
    """Makes the form of one condition; raises `TooManyCases` after `_MOST` steps, and for more parts."""

    def __init__(self) -> None:
        self._left = _MOST

    def form(self, e: Expr) -> Form:
        """The form that is true exactly when ``e`` is true."""
        return self._is(e, "true")

    def _step(self) -> None:
        """Count a step."""
        self._left -= 1
        if self._left < 0:
            raise TooManyCases

    def _junction(self, op: Literal["and", "or"], args: Iterable[Form]) -> Form:
        """As `junction`. A part that is too large ends the search at once: each step looks at all of its own."""
        form = junction(op, args)
        if isinstance(form, Junction) and form.size > _MOST:
            raise TooManyCases
        return form

    def _is(self, e: Expr, want: TruthValue) -> Form:
        """The form that is true exactly when ``e`` has the value ``want``."""
        self._step()
        streams = sides(e)
        if not streams:
            return TRUE if constant(e) == {"true": True, "false": False, "null": None}[want] else FALSE
        if isinstance(e, ir.Not):
            return self._is(e.a, _OPPOSITE[want])
        if len(streams) == 1:
            return OneSided(next(iter(streams)), e, frozenset((want,)))
        if want == "null":
            return self._junction("and", (self._complement(self._is(e, value)) for value in ("true", "false")))
        match e:
            case ir.And() | ir.Or():
                op: Literal["and", "or"] = "and" if isinstance(e, ir.And) == (want == "true") else "or"
                return self._junction(op, (self._is(a, want) for a in e.args))
            case ir.IsNull():
                if want == "false" and isinstance(e.a.type, Bool):
                    return self._junction("or", (self._is(e.a, "true"), self._is(e.a, "false")))
                null = self._is(e.a, "null") if isinstance(e.a.type, Bool) else self._null(e.a)
                return null if want == "true" else self._complement(null)
            case Cmp() if isinstance(e.a.type, Bool):
                # A condition is not always NULL when one of its columns is: FALSE AND NULL is false.
                return self._compare_conditions(e.op if want == "true" else NEGATED[e.op], e.a, e.b)
            case Cmp():
                return self._compare_values(e if want == "true" else Cmp(BOOL, NEGATED[e.op], e.a, e.b))
            case ir.Case():
                return self._case(e, lambda value: self._is(value, want))
            case ir.Extreme():  # NULLs are left out
                wins: TruthValue = "true" if e.kind == "greatest" else "false"
                some = self._junction("or", (self._is(a, want) for a in e.args))
                return some if want == wins else self._junction("and", (
                    some, *(self._complement(self._is(a, wins)) for a in e.args)))
        raise AssertionError(f"not a condition: {e}")

    def _case(self, e: ir.Case, of: Callable[[Expr], Form]) -> Form:
        """The form of ``e``, with ``of`` applied to each of its values."""
        branches: list[Form] = []
        before: list[Form] = []
        for when, then in zip(e.when, e.then, strict=True):
            true, value = self._is(when, "true"), of(then)
            branches.append(self._junction("and", (*before, true, value)))
            if value != TRUE:  # else what follows may be true there as well
                before.append(self._complement(true))
        return self._junction("or", (*branches, self._junction("and", (*before, of(e.otherwise)))))

    def _compare_values(self, cmp: Cmp) -> Form:
        """The form that is true exactly when ``cmp``, a comparison of values, is true."""
        self._step()
        if len(sides(cmp)) < 2:
            return _known(cmp) or self._is(cmp, "true")
        for a, b, op in ((cmp.a, cmp.b, cmp.op), (cmp.b, cmp.a, MIRRORED[cmp.op])):
            whole = a.a if isinstance(a, ir.Cast) else a
            if not isinstance(whole, ir.Extreme) or len(sides(whole)) < 2:
                continue
            if op in ("=", "<>"):
                halves: tuple[CmpOp, CmpOp] = ("<=", ">=") if op == "=" else ("<", ">")
                return self._junction("and" if op == "=" else "or",
                                (self._compare_values(Cmp(BOOL, half, a, b)) for half in halves))
            args = [replace(a, a=x) if isinstance(a, ir.Cast) else x for x in whole.args]
            each = [self._compare_values(Cmp(BOOL, op, x, b)) for x in args]
            if (whole.kind == "least") == (op in ("<", "<=")):
                return self._junction("or", each)
            if len({frozenset(causes(x)) for x in args}) == 1:  # all are NULL, or none is
                return self._junction("and", each)
            # Every operand that is not NULL satisfies the comparison, and at least one is not NULL.
            some = () if not all(may_be_null(x) for x in args) else (self._junction("or", each),)
            return self._junction("and", (*some, *(self._junction("or", (one, self._null(x)))
                                             for one, x in zip(each, args, strict=True))))
        return Both(cmp)

    def _null(self, e: Expr) -> Form:
        """The form that is true exactly when the value ``e`` is NULL."""
        self._step()
        if not may_be_null(e):
            return FALSE
        streams = sides(e)
        if not streams:
            return TRUE if constant(e) is None else FALSE
        if len(streams) == 1:
            nulls = [build.is_null(c, str(c)) for c in causes(e)]
            if any(isinstance(n.a, Lit) for n in nulls if isinstance(n, ir.IsNull)):
                return TRUE
            return OneSided(next(iter(streams)), nulls[0] if len(nulls) == 1 else build.or_(nulls, str(e)),
                            frozenset(("true",)))
        match e:
            case ir.Extreme():
                return self._junction("and", (self._null(a) for a in e.args))
            case ir.Case():
                return self._case(e, self._null)
            case ir.Arith(op="div" | "mod" | "//" | "%") if not isinstance(e.type, Float):
                zero = self._compare_values(Cmp(BOOL, "=", e.b, Lit(EXACT, 0)))
                return self._junction("or", (self._null(e.a), self._null(e.b), zero))
        return self._junction("or", (self._null(a) for a in e.children))

    def _compare_conditions(self, op: CmpOp, a: Expr, b: Expr) -> Form:
        """``a op b`` of two conditions, false before true."""
        t = {"a": self._is(a, "true"), "b": self._is(b, "true")}
        f = {"a": self._is(a, "false"), "b": self._is(b, "false")}
        ff, tt = self._junction("and", (f["a"], f["b"])), self._junction("and", (t["a"], t["b"]))
        ft, tf = self._junction("and", (f["a"], t["b"])), self._junction("and", (t["a"], f["b"]))
        cases: dict[CmpOp, tuple[Form, ...]] = {
            "=": (ff, tt), "<>": (ft, tf), "<": (ft,), "<=": (ff, ft, tt), ">": (tf,), ">=": (ff, tf, tt)}
        return self._junction("or", cases[op])

    def _complement(self, form: Form) -> Form:
        self._step()
        match form:
            case OneSided():
                return OneSided(form.side, form.condition, _ALL - form.values)
            case Both():
                cmp = form.cmp
                return self._junction("or", (self._null(cmp.a), self._null(cmp.b),
                                       Both(Cmp(BOOL, NEGATED[cmp.op], cmp.a, cmp.b))))
            case Junction():
                return self._junction("or" if form.op == "and" else "and", (self._complement(a) for a in form.args))
            case Compared() | Computed():
                raise AssertionError("comparisons are tests only when nothing is negated any more")


def _known(cmp: Cmp) -> Form | None:
    """TRUE or FALSE for a comparison of whole numbers of one stream whose ranges decide it, such as ``r.x - r.x > 3``,
    as least and greatest that are taken apart may have; else None.
    """
    if not (is_exact(cmp.a.type) and is_exact(cmp.b.type)) or cmp.op == "<>" or any(
            isinstance(e, Lit) for e in (*causes(cmp.a), *causes(cmp.b))):
        return None
    total, op = Total.compared(cmp)
    low, high = total.range
    if low > 0 or (op == "=" and high < 0):
        return FALSE
    always = high <= 0 and (op == "<=" or low == 0)
    return TRUE if always and not (may_be_null(cmp.a) or may_be_null(cmp.b)) else None
