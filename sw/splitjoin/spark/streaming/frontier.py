"""`Frontier`: the watermark of a streaming join, for a later join of the same query that gets its rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from .micro_batch import MicroBatch
from .state_files import StateFiles


@dataclass(frozen=True)
class Frontier:
    """Where the watermark of an earlier join is found.

    A row of an inner join has a tuple of the micro-batch in which it comes, and that is not late: the time of its
    latest tuple is not below the watermark before the micro-batch. So the watermark after a micro-batch bounds the rows
    of all later ones, whether rows come or not: it is the heartbeat of joined rows (semantics, section 11).

    Attributes:
        root: The folder of the state files; None: below the query's checkpoint.
        name: The name of the earlier join.
        groups: The number of its groups.
    """

    root: str | None
    name: str
    groups: int

    def after(self, batch: MicroBatch, group: int) -> int | None:
        """The watermark after ``batch``, in ticks; None while none is known.

        To be called in the later join's task of ``group``, which runs when all tasks that read rows of the earlier join
        have ended. These have written the states of its groups, from the same input and by the same rule.
        """
        files = StateFiles(batch.root(self.root), batch.query, self.name)
        return files.header(batch.number, group % self.groups, self.groups).state.progress.watermark


def digest_of(root: str | None) -> str:
    """A short text that differs for folders of states."""
    return "" if root is None else hashlib.blake2b(root.encode(), digest_size=8).hexdigest()
