"""`ChangesOfAll`: changes of all queries over shared streams, at one place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from splitjoin.base.errors import SplitJoinError
from splitjoin.engines.device import Device
from splitjoin.engines.registry import device as find_device, merged_options
from splitjoin.lang.windows import WindowSpec

from .common_join import CommonJoin
from .query import SharedQuery

__all__ = ["ChangesOfAll"]

Places = dict[str, tuple[int, int]]
Changed = TypeVar("Changed")
Answer = TypeVar("Answer")


class ChangesOfAll(ABC):
    """What `SharedStreams` changes for all of its queries, before the next tuple.

    Each change is that of the query's own method. It is checked for all queries first, and if it is refused for one,
    none changes. If a device fails later, the error's notes say which queries have changed.
    """

    def mask(self, cores: Collection[int], *, of: int) -> Places:
        """Mask sub-windows of all queries; see `SharedQuery.mask`. Each counts its own row ids.

        Returns, by the queries' names, the row ids (R's, S's) of the first tuples after the change.
        """
        with self._standing() as (queries, _):
            return _change(queries, lambda query: query.check(lambda of_query: of_query.mask(cores, of)),
                           lambda query: query.mask(cores, of=of))

    def precision(self, n: int) -> Places:
        """Change the precision of all queries; see `SharedQuery.precision`. Returns places as `mask`."""
        with self._standing() as (queries, _):
            return _change(queries, lambda query: query.check(lambda of_query: of_query.precision(n)),
                           lambda query: query.precision(n))

    def window(self, window: WindowSpec) -> Places:
        """Change the windows of all queries; see `SharedQuery.window`. Returns places as `mask`.

        Those of a common join, within which its queries' windows must lie, are changed by `CommonJoin.window`.
        """
        with self._standing() as (queries, _):
            return _change(queries, lambda query: query.check(lambda of_query: of_query.window(window)),
                           lambda query: query.window(window))

    def move(self, device: str | Device, *, device_options: Mapping[str, Any] | None = None,
             **options: object) -> None:
        """Move all queries, and the common joins that have queries, to ``device``; see `SharedQuery.move`."""
        given = merged_options(device_options, options, device, self.move)
        with self._standing() as (queries, joins):
            chosen = {name: find_device(device, **given) for name in (*queries, *joins)}
            movers = {f"query {name}": query for name, query in queries.items() if query.has_device} | {
                f"join {name}": join for name, join in joins.items()}
            _change(movers, lambda mover: mover.check_move(chosen[mover.name]),
                    lambda mover: mover.move(chosen[mover.name]))

    @abstractmethod
    def _standing(self) -> AbstractContextManager[tuple[Mapping[str, SharedQuery], Mapping[str, CommonJoin]]]:
        """The queries and the common joins that have not ended, by name; within the context nobody reads them, and no
        tuple becomes ready.
        """


def _change(chosen: Mapping[str, Changed], check: Callable[[Changed], None],
            act: Callable[[Changed], Answer]) -> dict[str, Answer]:
    """What ``act`` gives for each of ``chosen``, once all have passed ``check``."""
    for name, one in chosen.items():
        try:
            check(one)
        except SplitJoinError as error:
            error.add_note(f"that is so of {name!r}; nothing was changed")
            raise
    done: dict[str, Answer] = {}
    for name, one in chosen.items():
        try:
            done[name] = act(one)
        except Exception as error:
            rest = [other for other in chosen if other not in done]
            error.add_note(f"changed were {', '.join(done) or 'none'}; not changed were {', '.join(rest)}")
            raise
    return done
