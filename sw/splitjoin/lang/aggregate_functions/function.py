"""`AggregateFunction`: the definition of a built-in aggregate, and `Term`: what engines fold for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from splitjoin.base.errors import PredicateError

from ..eval.scalar import RowValue
from ..eval.vector import Vector
from ..ir import Expr, sides

__all__ = ["AggregateFunction", "Ints", "PairSums", "Term", "TermKind", "order_key"]

Ints = npt.NDArray[np.int64]
TermKind = Literal["rows", "count", "distinct", "sum", "least", "greatest", "first", "last", "fold"]
#: The exact sums of floats, rounded once: of values (n,) that lie one after the other, and of how many each is.
PairSums = Callable[[npt.NDArray[np.float64], Ints], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Term:
    """A value that engines fold for each base tuple, from which aggregates are computed.

    By ``kind``: ``rows``, the number of partners; ``count``, of those in which ``of`` is not NULL; ``distinct``, of the
    different values of ``of``; ``sum``, the exact sum of ``of``; ``least`` and ``greatest``, ``value`` of the first
    partner with the least or greatest ``of``, of those in which neither is NULL; ``first`` and ``last``, ``value`` of
    the partner that arrived first or last; ``fold``, what the program of a `FoldTerm` makes of all.
    """

    kind: TermKind
    of: Expr | None = None
    value: Expr | None = None

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """The expressions of which none may be NULL in a partner that is folded."""
        return () if self.of is None else (self.of,) if self.value in (None, self.of) else (self.of, self.value)

    @property
    def reads_ranges(self) -> bool:
        """True if ranges of S sorted by keys tell the value: it reads S alone, and no order of partners."""
        return self.kind in ("rows", "count", "sum", "least", "greatest") and self.value in (None, self.of) and (
            self.of is None or "r" not in sides(self.of))


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
        return

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

    def of_pairs(self, args: Sequence[Expr], values: Vector, counts: Ints, sums: PairSums) -> Vector:
        """The results of many base tuples, without `terms`. ``values``: the first argument in the partners in which no
        argument is NULL, by arrival, ``counts`` (n,) for each base tuple; ``sums``: adds floats up.
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


def order_key(value: Any) -> tuple[bool, Any]:
    """``value`` for comparisons: NaN equals NaN, and is greater than all others."""
    nan = value != value
    return nan, 0 if nan else value
