"""`GroupRows`: decides the result rows of a group's steps, for all queries but inner joins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from .group import Counts, GroupJoin, GroupStep
from .rows import Numbers, Rows

#: Tuples of R, of S, and positions in both, a pair each.
FoundPairs = tuple[Rows, Rows, Numbers, Numbers]


@dataclass(frozen=True)
class StepRows:
    """Rows that a step decides: the step with the state behind it, the number of result rows, and these."""

    step: GroupStep
    count: int
    tables: Iterator[pa.Table]


class GroupRows(ABC):
    """Decides the result rows of a group, step by step; what it holds beside the group's state is a cache."""

    #: True if it takes the pairs of a step, which the group finds; False if it finds what it needs itself.
    takes_pairs: ClassVar[bool] = True

    @abstractmethod
    def decided(self, join: GroupJoin, step: GroupStep, found: Iterable[FoundPairs], counts: Counts) -> StepRows:
        """The rows that are decided in ``step``, by the pairs ``found`` in it if it takes them."""

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Release what it holds; it cannot be used afterwards."""
