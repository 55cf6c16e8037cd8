"""Checks of result streams for orders that allow more than one right answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from splitjoin.circuit.wire import ItemKind

from .models import Item


def check_merged(inputs: Sequence[Sequence[Item]], out: Sequence[Item], *, total: bool) -> None:
    """Fail unless ``out`` is a merge of ``inputs``: group by group the same pairs, then one star or END.

    A group has as many slices as the input with the most. With ``total`` each slice is sorted by stored row id; else
    each input's pairs keep their order.
    """
    wanted = [list(_sliced(i)) for i in inputs]
    found = list(_sliced(out))
    assert len(found) == len(wanted[0]), f"{len(found)} groups instead of {len(wanted[0])}"
    for n, (slices, barrier) in enumerate(found):
        assert barrier is not None
        assert barrier.essence() == wanted[0][n][1], f"group {n} ends with {barrier}, not {wanted[0][n][1]}"
        count = max(len(w[n][0]) for w in wanted)
        assert len(slices) == count, f"group {n} has {len(slices)} slices, not {count}"
        for at, pairs in enumerate(slices):
            _check_slice(pairs, [w[n][0][at] for w in wanted if at < len(w[n][0])], total, f"slice {at} of group {n}")


def check_combined(left: Sequence[Item], right: Sequence[Item], out: Sequence[tuple[int, Item]],
                   sequence: Sequence[int] | None) -> None:
    """Fail unless ``out`` (stream, item) combines both sides and ends with one END.

    ``sequence`` (total order): per star, the side whose results up to it pass. None: any order that keeps each side's.
    """
    assert out[-1][1].kind == ItemKind.END, f"the last item is {out[-1]}, not END"
    sides = [[i for i in side if i.kind != ItemKind.END] for side in (left, right)]
    for n in (0, 1):
        assert [i for side, i in out[:-1] if side == n] == sides[n], f"the {['left', 'right'][n]} side differs"
    if sequence is not None:
        parts = [iter(_groups(side)) for side in sides]
        wanted = []
        for n in sequence:
            pairs, star = next(parts[n])
            assert star is not None
            wanted += [(n, i) for i in [*pairs, star]]
        assert list(out[:-1]) == wanted


def check_answer(found: Sequence[tuple[int, Item]], wanted: Sequence[tuple[int, Item]], order: str) -> None:
    """Fail unless ``found`` (stream, item) is the answer ``wanted`` under ``order``: "none", "outer" or "total"."""
    if order == "total":
        at = next((n for n, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b), -1)
        assert at < 0, f"item {at} is {found[at]}, not {wanted[at]}"
        assert len(found) == len(wanted), f"{len(found)} items instead of {len(wanted)}"
        return
    for side in (0, 1):
        got, expected = (list(_groups(i for n, i in items if n == side)) for items in (found, wanted))
        assert [star for _, star in got] == [star for _, star in expected], f"the stars of {'rs'[side]} differ"
        for n, ((a, _), (b, _)) in enumerate(zip(got, expected, strict=True)):
            assert Counter(a) == Counter(b), f"group {n} of {'rs'[side]} is {sorted(a)}, not {sorted(b)}"


def _check_slice(pairs: Sequence[Item], parts: Sequence[Sequence[Item]], total: bool, name: str) -> None:
    everything = [pair for part in parts for pair in part]
    assert Counter(pairs) == Counter(everything), f"{name} is {pairs}, not a merge of {parts}"
    if total:
        # Row ids are 32 bits that wrap around; a window is far smaller than half their range.
        ages = [(pair.stored - everything[0].stored + 2**31) % 2**32 for pair in pairs]
        assert ages == sorted(ages), f"{name} is out of order: {pairs}"
    else:
        for part in parts:
            kept = [p for p in pairs if p in part]
            assert kept == part, f"{name} has {part} in another order: {kept}"


def _sliced(items: Iterable[Item]) -> Iterator[tuple[list[list[Item]], Item | None]]:
    """Like `_groups`, with each group cut into its slices."""
    slices: list[list[Item]] = []
    for pairs, barrier in _groups(items):
        slices.append(pairs)
        if barrier is None or barrier.kind != ItemKind.SLICE:
            yield slices, barrier
            slices = []
    assert not slices, "a slice ends the items"


def _groups(items: Iterable[Item]) -> Iterator[tuple[list[Item], Item | None]]:
    """Groups of pairs, each with the star or END behind it; None behind the last one if it is open."""
    pairs: list[Item] = []
    for item in items:
        if item.kind == ItemKind.PAIR:
            pairs.append(item)
        else:
            yield pairs, item
            pairs = []
    if pairs:
        yield pairs, None
