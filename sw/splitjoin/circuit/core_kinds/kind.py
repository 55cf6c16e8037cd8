"""The interface of a kind of core: its limits, its record fields, and the choice of its index."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Protocol

from splitjoin.base.errors import check
from splitjoin.plan.encoding import TupleCodes
from splitjoin.plan.keys import Codes
from splitjoin.plan.linear import ExactRelation
from splitjoin.plan.plan import Plan, leading_tests
from splitjoin.plan.relations import FloatBand, FloatOrder, Product, Relation, TextOrder, WideRelation

__all__ = ["CoreKind", "Fields", "IndexCoder", "IndexConfiguration", "IndexKind", "RegionParameters", "bands", "points",
           "with_other_keys"]

#: Bit fields of a record: name and width of each.
Fields = tuple[tuple[str, int], ...]


class RegionParameters(Protocol):
    """The parameters of a circuit that a kind may limit."""

    @property
    def lanes(self) -> int: ...

    @property
    def probes(self) -> int: ...


class IndexConfiguration(Protocol):
    """The part of a configuration (`splitjoin.circuit.wire.Configuration`) that decides on index fields."""

    @property
    def keys_r(self) -> tuple[int, ...]: ...

    @property
    def keys_s(self) -> tuple[int, ...]: ...

    @property
    def tests(self) -> tuple[tuple[int, int], ...]: ...

    @property
    def index(self) -> tuple[int, ...]: ...

    @property
    def buckets(self) -> int: ...

    @property
    def window_capacity(self) -> int: ...


class IndexCoder:
    """Computes the index fields of records. This one is for kinds that have no such fields."""

    def learn(self, codes: Mapping[str, TupleCodes]) -> None:
        """Choose, from the first tuples of both streams, the parameters that stay fixed for the session."""

    def fields(self, side: str, codes: TupleCodes) -> dict[str, Codes | int]:
        """The values of the fields `CoreKind.stored_fields` and `CoreKind.probe_fields` of tuples of stream ``side``,
        each (n,).
        """
        return {}


class CoreKind(ABC):
    """A kind of core.

    Attributes:
        name: Its name among the parameters.
        has_index: True if it looks candidates up; False if it compares every stored tuple.
        has_tables: True if its tests may be looked up in tables (parameter ``tables``).
        folds: True if its regions can fold what they find (parameter ``fold``).
        index_must: The range of a configuration's ``index`` in words, to complete "… must be".
    """

    name: str
    has_index: bool
    has_tables: bool
    folds: bool
    index_must: str

    @abstractmethod
    def index_sizes(self, tests: int) -> range:
        """The numbers of tests that an index may be built on, for a condition with ``tests`` interval tests."""

    @abstractmethod
    def check_parameters(self, parameters: RegionParameters) -> None:
        """Raise `UnsupportedError` for parameters that this kind does not support."""

    @abstractmethod
    def suitable_index(self, plan: Plan) -> tuple[int, ...]:
        """The tests that an index for ``plan`` is built on, main one first; empty without an index.

        Raises `UnsupportedError` if the condition has no test for such an index.
        """

    @abstractmethod
    def index_with(self, plan: Plan, main: int) -> tuple[int, ...]:
        """The same tests, for a plan whose main test is already chosen."""

    @abstractmethod
    def ways(self, config: IndexConfiguration) -> int:
        """The largest number of buckets that a probe looks up."""

    @abstractmethod
    def index_widths(self, config: IndexConfiguration, side: str) -> tuple[int, ...]:
        """Widths in bits of the index fields of tuples of stream ``side``, one for each test of the index."""

    def stored_fields(self, config: IndexConfiguration, side: str) -> Fields:
        """The fields of a stored tuple of stream ``side`` for the index, beside its keys."""
        return ()

    def probe_fields(self, config: IndexConfiguration, side: str) -> Fields:
        """The fields of a probe of stream ``side`` for the index, beside its bounds."""
        return ()

    def index_coder(self, plan: Plan, config: IndexConfiguration) -> IndexCoder:
        """The coder that computes these fields in one session."""
        return IndexCoder()


class IndexKind(CoreKind):
    """A kind of core with an index: it compares a probe with one candidate at a time."""

    has_index, has_tables, folds = True, False, False

    def check_parameters(self, parameters: RegionParameters) -> None:
        check(f"lanes of core {self.name}", parameters.lanes, parameters.lanes == 1,
              "1, as it reads one candidate at a time")
        check(f"probes of core {self.name}", parameters.probes, parameters.probes == 1,
              "1, as each probe has candidates of its own")


def points(plan: Plan) -> list[int]:
    """The tests for an index in which a probe asks for one key."""
    return [j for j in leading_tests(plan) if plan.tests[j].is_point]


def bands(plan: Plan) -> list[int]:
    """The tests for an index whose intervals end on both sides, short of the keys' range."""
    return [j for j in leading_tests(plan) if not plan.tests[j].is_point
            and {end for relation in plan.tests[j].relations for end in _ends(relation)} == {"<", ">"}]


def with_other_keys(plan: Plan, main: int, others: Iterable[int]) -> tuple[int, ...]:
    """``main``, and those of ``others`` that share no key with an earlier one, in either stream."""
    out = [main]
    for j in others:
        if all(plan.tests[j].r != plan.tests[k].r and plan.tests[j].s != plan.tests[k].s for k in out):
            out.append(j)
    return tuple(out)


def _ends(relation: Relation) -> str:
    """``<`` if ``relation`` bounds a value that falls as the keys of S grow, ``>`` if one that rises, or both."""
    if isinstance(relation, WideRelation):
        relation = relation.exact
    if isinstance(relation, (ExactRelation, FloatBand, FloatOrder, TextOrder, Product)):
        ends = "<>" if relation.op == "=" else relation.op[0]
        turned = isinstance(relation, ExactRelation) and relation.h < 0
        return ends.translate(str.maketrans("<>", "><")) if turned else ends
    return ""
