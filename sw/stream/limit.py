"""How much a streaming session holds before it takes no more."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InputError

__all__ = ["Limit"]


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Bounds from which on `push` blocks or raises; None is no bound.

    Attributes:
        rows: Result rows that were not polled.
        nbytes: Their bytes.
        waiting: Input rows that are not ready, since another source is behind. A source that others wait for is never
            held up by it.
        late: Late rows of a stream that are kept until they are taken; beyond it the oldest are forgotten.

    A push is held up when a bound is reached, so what it brings may exceed a bound once: its results by those of one
    stretch of arrival order, its waiting rows by the batch itself.
    """

    rows: int | None = 1 << 20
    nbytes: int | None = 1 << 30
    waiting: int | None = 1 << 22
    late: int = 1 << 16

    def __post_init__(self) -> None:
        for name, value in (("rows", self.rows), ("nbytes", self.nbytes), ("waiting", self.waiting)):
            if value is not None and (type(value) is not int or value < 1):
                raise InputError(f"the limit of {name} must be a whole number from 1, or None, not {value!r}")
        if type(self.late) is not int or self.late < 0:
            raise InputError(f"the limit of late must be a whole number from 0, not {self.late!r}")
