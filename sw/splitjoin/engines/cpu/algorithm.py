"""`Algorithm`: a way to find the partners of tuples, of whole tables or in the windows of a session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

Made = TypeVar("Made")


class Algorithm(ABC, Generic[Made]):
    """A way to find partners, for one join, which its constructor gets. What it computes to tell whether it suits is
    kept for `run`. README.md beside this file has the tables that algorithms are chosen from.

    Attributes:
        name: The name that the field knows it by.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def suits(self) -> bool:
        """True if it can run, by the plan and the sizes."""

    @property
    @abstractmethod
    def cost(self) -> float:
        """About how many nanoseconds it takes."""

    @property
    @abstractmethod
    def explain(self) -> str:
        """The algorithm, and what it has chosen, in words."""

    @abstractmethod
    def run(self) -> Made:
        """Find the partners: at once in whole tables; in a session, make what finds those of each batch."""
