"""The phases of a condition on its way through the compiler: each is a type, and `str` of one is its stable text form.

Conjuncts ── fold, narrow, lift ── logic ─→ Forms ── strength, bounds ── split ─→ SplitForms ── merge ─→ TreeOfTests
── share ─→ Shared ── main ─→ Shared, which holds the `Plan`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from ...lang.ir import And, Expr, text
from ...lang.types import BOOL
from ..forms import Form, form_text
from ..plan import Shared
from .merge import Node, node_text
from .split import Split

__all__ = ["Conjunct", "Conjuncts", "FormedConjunct", "Forms", "Phase", "SplitForms", "TreeOfTests"]


@dataclass(frozen=True)
class Conjunct:
    """A conjunct of the condition: as the user wrote it, and as an expression by now.

    ``undecided``: why tests will not decide it, once for each comparison.
    """

    origin: Expr
    condition: Expr
    undecided: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conjuncts:
    """The condition as three-valued expressions, all of which must be true."""

    conjuncts: tuple[Conjunct, ...]

    @classmethod
    def of(cls, predicate: Expr) -> Conjuncts:
        """Condition ``predicate`` before the first pass."""
        return cls(tuple(Conjunct(p, p) for p in (predicate.args if isinstance(predicate, And) else (predicate,))))

    def __str__(self) -> str:
        return "\n".join(text(c.condition) for c in self.conjuncts)


@dataclass(frozen=True)
class FormedConjunct:
    """A conjunct of the condition: as the user wrote it, and as a two-valued form by now."""

    origin: Expr
    form: Form
    undecided: tuple[str, ...] = ()


@dataclass(frozen=True)
class Forms:
    """The condition as two-valued forms, all of which must hold."""

    conjuncts: tuple[FormedConjunct, ...]

    @property
    def predicate(self) -> Expr:
        """The condition as the user wrote it."""
        origins = tuple(c.origin for c in self.conjuncts)
        return origins[0] if len(origins) == 1 else And(BOOL, origins)

    def __str__(self) -> str:
        return "\n".join(form_text(c.form) for c in self.conjuncts)


@dataclass(frozen=True)
class SplitForms:
    """The condition by the streams that its terms read."""

    forms: Forms
    split: Split

    def __str__(self) -> str:
        return str(self.split)


@dataclass(frozen=True)
class TreeOfTests:
    """The condition as tests, combined by AND and OR."""

    forms: Forms
    root: Node

    def __str__(self) -> str:
        return node_text(self.root)


#: What a pass takes and gives.
Phase = Union[Conjuncts, Forms, SplitForms, TreeOfTests, Shared]
