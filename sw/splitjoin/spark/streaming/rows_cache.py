"""`RowsCache`: what decides the rows of the groups, kept in a Python worker between the steps."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from splitjoin.engines.registry import device as find_device

from ..resources import leased
from .decisions import PairedGroupRows
from .folding import FoldedGroupRows
from .group import GroupJoin
from .group_rows import GroupRows
from .latest import LatestGroupRows
from .matched import MatchedRows

#: The most that a Python worker keeps.
_MOST_KEPT = 8


def _chosen(join: GroupJoin) -> GroupRows:
    """What decides the rows of a group of ``join``, which is no inner join."""
    if join.by_matches:
        return MatchedRows()
    if join.query.is_unbounded:
        return LatestGroupRows(find_device(join.device, **leased(join.device, join.options)))
    if join.query.aggregates:
        folded = FoldedGroupRows.of(join.query, find_device(join.device, **leased(join.device, join.options)))
        if folded is not None:
            return folded
    return PairedGroupRows()


@dataclass
class RowsCache:
    """The `GroupRows` by group, each with the token of the version that it can go on from."""

    _kept: OrderedDict[str, tuple[str, GroupRows]] = field(default_factory=OrderedDict)

    def take(self, key: str, token: str, join: GroupJoin) -> GroupRows:
        """That of ``key`` which goes on from ``token``, or a fresh one."""
        was, kept = self._kept.pop(key, ("", None))
        if kept is not None and was == token:
            return kept
        if kept is not None:
            kept.close()
        return _chosen(join)

    def keep(self, key: str, token: str, rows: GroupRows) -> None:
        """Keep ``rows``, which can go on from the version with ``token``, unless they hold nothing but pairs' rows."""
        if rows.takes_pairs:
            return
        self._kept[key] = token, rows
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)[1][1].close()

    def clear(self) -> None:
        """Close and forget all."""
        for _, rows in self._kept.values():
            rows.close()
        self._kept.clear()
