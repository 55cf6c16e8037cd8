"""`AggregateFunction`: the definition of a built-in aggregate, and `Term`: what engines fold for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import pyarrow as pa
from sqlglot import exp

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import PredicateError

from ..eval.scalar import RowValue
from ..eval.vector import Vector
from ..ir import Expr, sides

TermKind = Literal["rows", "count", "distinct", "sum", "least", "greatest", "first", "last", "fold", "deviation",
                   "quantile", "upper quantile", "mode", "bit_and", "bit_or", "bit_xor"]
#: Kinds of which a state tells the value that partners are added to and removed from, one by one.
_SLIDING = {"rows", "count", "distinct", "sum", "least", "greatest", "first", "last", "fold"}


@dataclass(frozen=True)
class Term:
    """A value that engines fold for each base tuple, from which aggregates are computed.

    By ``kind``: ``rows``, the number of partners; ``count``, of those in which ``of`` is not NULL; ``distinct``, of the
    different values of ``of``; ``sum``, the exact sum of ``of``; ``least`` and ``greatest``, ``value`` of the first
    partner with the least or greatest ``of``, of those in which neither is NULL; ``first`` and ``last``, ``value`` of
    the partner that arrived first or last; ``fold``, what the program of a `FoldTerm` makes of all; ``deviation``,
    the exact sum of the squared distances of floats ``of`` from their average, rounded once; ``quantile`` and ``upper
    quantile``, the value ``of`` at the place `place_of` the ``share``; ``mode``, the most frequent one, of several the
    one that arrived first; ``bit_…``, the bits of all.
    """

    kind: TermKind
    of: Expr | None = None
    value: Expr | None = None
    share: Fraction = Fraction(0)

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """The expressions of which none may be NULL in a partner that is folded."""
        return () if self.of is None else (self.of,) if self.value in (None, self.of) else (self.of, self.value)

    @property
    def reads_ranges(self) -> bool:
        """True if ranges of S sorted by keys tell the value: it reads S alone."""
        return self.kind != "fold" and not any("r" in sides(e) for e in (self.of, self.value) if e is not None)

    @property
    def slides(self) -> bool:
        """True if a state tells the value that partners are added to and removed from, one by one."""
        return self.kind in _SLIDING


#: The value of a term for each base tuple: of its values (n,), which lie one after the other, and of how many each has.
PairFold = Callable[[Term, Vector, Ints], Vector]


@dataclass(frozen=True)
class AggregateFunction(ABC):
    """An aggregate, built-in or the user's.

    Attributes:
        name: Its stable name, in messages and in the digests of queries.
        usages: Ways to write it, for errors, such as ``"sum(x)"``.
        nodes: The classes by which sqlglot knows it.
        words: The names, in small letters, of functions that sqlglot does not know.
        arities: The numbers of arguments that it may have.
    """

    name: str
    usages: tuple[str, ...]
    nodes: tuple[type[exp.Expr], ...] = ()
    words: tuple[str, ...] = ()
    arities: tuple[int, ...] = (1,)

    #: What the first argument must be, and the same in words; None for any.
    takes: ClassVar[tuple[Callable[[Expr], bool], str] | None] = None
    #: False if the value is never NULL.
    nullable: ClassVar[bool] = True
    #: True if the value depends on the order of the partners.
    ordered: ClassVar[bool] = False
    #: True if the value is the list of x in all partners, NULL too.
    listed: ClassVar[bool] = False
    #: True if it compares the first argument's values by their order.
    compares: ClassVar[bool] = False
    #: True if an exact value may leave the type of the result, which is an error.
    may_overflow: ClassVar[bool] = False
    #: True if its name and arguments tell what it is, as they do of what is built in.
    named: ClassVar[bool] = True
    #: True if the value is that of an expression, which may leave the type of the result.
    computed: ClassVar[bool] = False

    @property
    def digest_text(self) -> str:
        """The stable text of what its name does not tell."""
        return ""

    def check(self, args: Sequence[Expr], text: str) -> None:
        """Raise `PredicateError` if it does not take ``args``, which the user wrote in ``text``."""
        if self.takes is not None and not self.takes[0](args[0]):
            raise self.refused(text, self.takes[1], args[0].type)

    def result(self, args: Sequence[Expr]) -> Expr | None:
        """An expression whose values have the type from which `type` makes that of the result; None without one."""
        return args[0] if args else None

    def result_text(self, text: str) -> str:
        """What errors call the result of what the user wrote in ``text``."""
        return text

    def type(self, value: pa.DataType | None) -> pa.DataType:
        """The Arrow type of the result, by that of `result`."""
        assert value is not None
        return value

    @abstractmethod
    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        """The terms that engines fold; none if it needs the values of all partners at once (`of_pairs`)."""

    def finish(self, terms: Sequence[Vector]) -> Vector:
        """The results of many base tuples, (n,), by the values of `terms`; those without a value are NULL in it."""
        return terms[0]

    def of_pairs(self, args: Sequence[Expr], values: Vector, counts: Ints, fold: PairFold) -> Vector:
        """The results of many base tuples, without `terms`. ``values``: the first argument in the partners in which no
        argument is NULL, by arrival, ``counts`` (n,) for each base tuple; ``fold``: folds a term over such values.
        """
        raise NotImplementedError

    @abstractmethod
    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        """The result, in plain Python, of the arguments' values for each partner, by arrival; None for NULL."""

    def references(self, bases: Sequence[Sequence[Sequence[RowValue]]], args: Sequence[Expr]) -> list[Any]:
        """`reference` for the partners of each of many base tuples."""
        return [self.reference(rows, args) for rows in bases]

    def refused(self, text: str, needs: str, of: Any) -> PredicateError:
        """The error for an argument of type ``of``."""
        return PredicateError(f"{text!r}: {self.name} needs {needs}, but this is {of}")


def place_of(share: Fraction, count: int, upper: bool = False) -> int:
    """The place of a quantile among ``count`` sorted values, from 0: of the least value that at least the ``share`` of
    them do not exceed, or with ``upper`` of the least one that more of them do not exceed.
    """
    if upper:
        return max(min(share.numerator * count // share.denominator, count - 1), 0)
    return max(-(-share.numerator * count // share.denominator), 1) - 1


def order_key(value: Any) -> tuple[bool, Any]:
    """``value`` for comparisons: NaN equals NaN, and is greater than all others."""
    nan = value != value
    return nan, 0 if nan else value
