"""`Changes`: masks and precisions that change while a stream runs, each from a place in arrival order on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Ints
from splitjoin.engines.device import PAIR, Items, chosen_items
from splitjoin.lang.schema import SIDES


@dataclass(frozen=True)
class Mask:
    """From the tuples with row ids ``place`` (R's, S's) on, probes find nothing in sub-windows ``cores`` of ``of``."""

    place: tuple[int, int]
    cores: frozenset[int]
    of: int


class Changes:
    """The masks and precisions of a session, by row ids of the streams, so that they hold on any device session.

    Args:
        n: Probes of a stream between two stars, at first.
    """

    def __init__(self, n: int = 1):
        self._masks: list[Mask] = []
        #: The row ids (R's, S's) before which tuples may lack pairs that were hidden.
        self._hidden = 0, 0
        #: For each stream the first probes of groups from which on a precision holds, and the precisions.
        self._groups: tuple[list[tuple[int, int]], ...] = tuple([(0, n)] for _ in SIDES)

    def mask(self, place: tuple[int, int], cores: Collection[int], of: int) -> None:
        """Mask ``cores`` of ``of``, and only these, from ``place`` on; no mask may be later yet."""
        self._masks.append(Mask(place, frozenset(cores), of))

    def precision(self, place: tuple[int, int], n: int) -> None:
        """Let groups have ``n`` probes from the next star on that is due at ``place`` or later."""
        for groups, probe in zip(self._groups, place, strict=True):
            start, old = groups[-1]
            if start >= probe:  # the change before has not taken effect yet
                groups[-1] = (start, n)
            else:
                groups.append((start + -(-(probe - start) // old) * old, n))

    @property
    def n(self) -> int:
        """The precision that was set last."""
        return self._groups[0][-1][1]

    def hide(self, end: tuple[int, int]) -> None:
        """Note that tuples before row ids ``end`` may lack pairs, as cores were masked or left out."""
        self._hidden = max(self._hidden[0], end[0]), max(self._hidden[1], end[1])

    def forget(self, settled: tuple[int, int], needed: tuple[int, int] | None = None) -> None:
        """Drop what concerns only probes before row ids ``settled``, and rows of tuples before ``needed``."""
        while len(self._masks) > 1 and all(a <= b for a, b in zip(self._masks[1].place, settled, strict=True)):
            del self._masks[0]
            self.hide(self._masks[0].place)
        if len(self._masks) == 1 and not self._masks[0].cores and all(
                a <= b for a, b in zip(self._masks[0].place, settled, strict=True)):
            self._masks.clear()
        if needed is None or all(a <= b for a, b in zip(self._hidden, needed, strict=True)):
            self._hidden = 0, 0
        for groups, probe in zip(self._groups, settled, strict=True):
            while len(groups) > 1 and groups[1][0] <= probe:
                del groups[0]

    @property
    def has_masks(self) -> bool:
        """True if a mask may hide pairs of probes that are not settled."""
        return bool(self._masks)

    @property
    def hides_pairs(self) -> bool:
        """True if undecided tuples may lack pairs that were hidden, or that a mask will hide."""
        return self.has_masks or self._hidden != (0, 0)

    @property
    def closes_each(self) -> bool:
        """True if each probe closes its group."""
        return all(groups == [groups[0]] and groups[0][1] == 1 for groups in self._groups)

    def visible(self, items: Items) -> Items:
        """``items`` of the stream without pairs whose stored tuple is in a masked sub-window."""
        if not self._masks or not len(items):
            return items
        hidden = self.hidden(items)
        return chosen_items(items, ~hidden) if hidden.any() else items

    def hidden(self, items: Items) -> npt.NDArray[np.bool_]:
        """True (n,) for those of ``items`` that are pairs whose stored tuple is in a masked sub-window."""
        probe = np.where(items["side"] == 0, items["r"], items["s"])
        stored = np.where(items["side"] == 0, items["s"], items["r"])
        hidden = np.zeros(len(items), np.bool_)
        for number in range(len(SIDES)):
            places = np.array([mask.place[number] for mask in self._masks])
            mine = (items["side"] == number) & (items["kind"] == PAIR)
            which = np.searchsorted(places, probe, side="right") - 1
            for n, mask in enumerate(self._masks):
                if mask.cores:
                    hidden |= mine & (which == n) & np.isin(stored % mask.of, list(mask.cores))
        return hidden

    def due(self, side: int, probes: Ints) -> npt.NDArray[np.bool_]:
        """True for those ``probes`` (n,) of stream ``side``, as row ids, with which a group closes."""
        groups = self._groups[side]
        starts = np.array([start for start, _ in groups])
        every = np.array([n for _, n in groups])
        which = np.maximum(np.searchsorted(starts, probes, side="right") - 1, 0)
        found: npt.NDArray[np.bool_] = (probes + 1 - starts[which]) % every[which] == 0
        return found

    def is_open(self, side: int, end: int) -> bool:
        """True if a group is open when ``end`` probes of stream ``side`` have been."""
        start, n = self._groups[side][max(bisect_right(self._groups[side], end, key=lambda group: group[0]) - 1, 0)]
        return (end - start) % n != 0

    def state(self) -> dict[str, Any]:
        """The state as plain values, from which `restore` continues."""
        return {"masks": [[*mask.place, mask.of, sorted(mask.cores)] for mask in self._masks],
                "groups": [[[start, n] for start, n in groups] for groups in self._groups],
                "hidden": list(self._hidden)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the state of others. Raises `ValueError` or `TypeError` for what is none."""
        masks = [Mask((r, s), frozenset(cores), of) for r, s, of, cores in state["masks"]]
        groups = tuple([(start, n) for start, n in one] for one in state["groups"])
        hidden_r, hidden_s = state.get("hidden", (0, 0))  # older snapshots lack it
        numbers = [hidden_r, hidden_s, *(n for mask in masks for n in (*mask.place, mask.of, *mask.cores))]
        numbers += [n for one in groups for pair in one for n in pair]
        if any(type(n) is not int or n < 0 for n in numbers) or len(groups) != len(SIDES) or not all(groups) or any(
                n < 1 for one in groups for _, n in one) or any(
                core >= mask.of for mask in masks for core in mask.cores) or any(mask.of < 1 for mask in masks):
            raise ValueError("no masks and precisions are so")
        for ascending in ([mask.place[n] for mask in masks] for n in range(len(SIDES))):
            if ascending != sorted(ascending):
                raise ValueError("masks are by place")
        if any(one != sorted(one) for one in groups):
            raise ValueError("precisions are by place")
        self._masks, self._groups, self._hidden = masks, groups, (hidden_r, hidden_s)
