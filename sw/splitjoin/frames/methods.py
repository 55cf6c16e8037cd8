"""The part of ``frame.splitjoin`` that all libraries share."""

from abc import ABC, abstractmethod
from typing import Any

from splitjoin.base.errors import InputError
from splitjoin.joins.join import join
from splitjoin.rows.result import JoinResult


class FrameJoin(ABC):
    """``frame.splitjoin``."""

    def __init__(self, frame: Any):
        self._frame = frame

    def join(self, other: Any, *, on: Any = None, order: Any = None, **options: Any) -> Any:
        """Join the rows of this frame, ``r`` in the condition ``on``, with those of ``other``, ``s``.

        ``options``: those of `splitjoin.join`. By default the rows are in the order of this frame (``"left"``).

        Returns a frame of the same kind. Raises what `splitjoin.join` raises, and `InputError` for ``to``.
        """
        if options.get("to") is not None:
            raise InputError("to= writes the rows to a file, and a frame holds them in memory; call splitjoin.join")
        return self._to_frame(join(self._frame, other, on=on, order="left" if order is None else order, **options))

    @abstractmethod
    def _to_frame(self, found: JoinResult) -> Any:
        """``found`` as a frame of this kind."""
