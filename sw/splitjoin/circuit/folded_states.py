"""Folded states as the host receives them: items that carry states become arrays of the states' fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.engines.device import ITEM, PAIR, STAR, Items

from .encode import Words, unpack
from .wire import ROW_BITS, Configuration, ItemKind, Record

_WORD = 64


@dataclass(frozen=True)
class FoldedStates:
    """The states of consecutive tuples of R, of which the first one has row id ``first``.

    ``fields``: by the names of `Configuration.state`, arrays (n,): bool for flags; slots as int64, or Python integers
    where they may not fit.
    """

    first: int
    fields: dict[str, npt.NDArray[Any]]

    def __len__(self) -> int:
        return len(self.fields["any"])


class StateDecoder:
    """Takes the items of states out of the items of a circuit of ``config``, and collects the states."""

    def __init__(self, config: Configuration):
        self._config = config
        self._beats: list[Words] = []  # of the state whose star has not come
        self._rows: list[Words] = []
        self._first = 0

    def without_states(self, items: Items) -> Items:
        """Wire ``items`` without those that carry states alone; the stars of R's probes stay."""
        mine = (items["side"] == 0) & (items["kind"] <= ItemKind.STAR)
        carried = np.stack([items["r"][mine], items["s"][mine]], axis=1).astype(np.uint32)
        pending = np.concatenate([*self._beats, carried.reshape(-1, 2)])
        beats = self._config.beats + 1
        n = len(pending) // beats
        self._beats = [pending[n * beats:]]
        # A star carries bits in its field ``s`` alone, and row ids in ``r``.
        whole = pending[:n * beats].reshape(n, 2 * beats)
        self._rows.append(np.concatenate([whole[:, :-2], whole[:, -1:]], axis=1))
        stays: Items = items[~(mine & (items["kind"] == ItemKind.PAIR))]
        return stays

    def take(self) -> FoldedStates:
        """The states that were not taken before."""
        state = self._config.state
        words = np.concatenate([np.empty((0, 2 * self._config.beats + 1), np.uint32), *self._rows])
        first, self._rows = self._first, []
        self._first += len(words)
        parts = unpack(_narrow(state), words)
        slots = {f"slot{n}_{i}": slot for n, part in enumerate(self._config.folds)
                 for i, slot in enumerate(part.slots)}
        found: dict[str, npt.NDArray[Any]] = {}
        for name, width in state.fields:
            low = parts[name]
            if name not in slots:
                found[name] = low.astype(np.bool_)
            elif width < _WORD or (width == _WORD and slots[name].signed):
                whole = low.view(np.int64)
                found[name] = (whole ^ (1 << width - 1)) - (1 << width - 1) if slots[name].signed and width < _WORD \
                    else whole
            else:
                exact = low.astype(object)
                for at in range(_WORD, width, _WORD):
                    exact += parts[f"{name}.{at}"].astype(object) * 2**at
                if slots[name].signed:
                    exact = np.where(exact >= 2**(width - 1), exact - 2**width, exact)
                found[name] = exact
        return FoldedStates(first, found)


def partner_items(items: Items, states: FoldedStates) -> Items:
    """``items`` with a pair in front of the star of each probe of R whose state has a partner: with that partner, or
    with −1 if the state does not tell which one. ``states``: those of all of R's stars in ``items``, in their order.
    """
    stars = np.flatnonzero((items["kind"] == STAR) & (items["side"] == 0))
    some = states.fields["any"]
    found = np.zeros(int(np.count_nonzero(some)), ITEM)
    found["kind"], found["r"] = PAIR, states.first + np.flatnonzero(some)
    found["s"] = states.fields["slot0_0"][some] if "slot0_0" in states.fields else -1
    out: Items = np.insert(items, stars[some], found)
    return out


def _narrow(state: Record) -> Record:
    """``state`` with fields of up to 64 bits: wider ones in parts, the further ones named by their place."""
    fields: list[tuple[str, int]] = []
    for name, width in state.fields:
        fields += [(f"{name}.{at}" if at else name, min(_WORD, width - at)) for at in range(0, width, _WORD)]
    return Record(tuple(fields))


assert ROW_BITS == 32  # a word of the transport
