"""`Closing`: what is closed at the end of a ``with`` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """Is a context manager that closes itself."""

    @abstractmethod
    def close(self) -> None:
        """Release what it holds. Closing again has no effect."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
