"""`Limit`: the bounds of a session."""

from __future__ import annotations

from dataclasses import dataclass

from splitjoin.base.errors import InputError

__all__ = ["Limit"]


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Bounds at which `push` blocks or raises; None is no bound.

    Attributes:
        rows: Number of result rows that were not polled.
        nbytes: Their bytes.
        waiting: Number of input rows that are not ready because another source is behind. The bound never holds up a
            source that others wait for.
        late: Number of late rows of a stream, and of dropped ones, that are kept until they are taken; beyond it the
            oldest are forgotten.

    A push is held up only after a bound is reached, so one push may exceed it: the result rows by those of one slice of
    arrival order, the waiting rows by the batch itself.
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
