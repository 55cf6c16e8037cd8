"""Load shedding: which tuples a session that is full leaves out (ESJ, *Input adapter and load shedding*)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from splitjoin.base.arrays import Mask
from splitjoin.base.errors import InputError, UnsupportedError
from splitjoin.engines.device import Device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side

Curve = Literal["linear", "quadratic"]


@dataclass(frozen=True, kw_only=True)
class Shedding:
    """The rule by which a session drops tuples under load, for ``splitjoin.open(…, when_full="shed")``.

    The load of a stream is the number of its tuples in its RANGE window and in queues. A tuple that comes at load L is
    dropped with probability 0 below ``threshold``, and 1 from ``capacity`` on; between them with
    ``base + (1 − base) · x``, or ``x²`` in place of x, where x = (L − threshold) / (capacity − threshold).

    Attributes:
        capacity: The load from which every tuple is dropped, from 1; None: the tuples that a window holds on the
            device, which circuits alone limit.
        threshold: The load below which none is dropped, from 0 to less than ``capacity``; None: half of it.
        curve: ``"linear"`` or ``"quadratic"``.
        base: The least probability from ``threshold`` on, from 0 to 1.
        seed: The seed of the draws, from 0. The draw of the i-th tuple of a stream depends on it and on i alone.
    """

    capacity: int | None = None
    threshold: int | None = None
    curve: Curve = "linear"
    base: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("capacity", 1), ("threshold", 0), ("seed", 0)):
            value = getattr(self, name)
            if value is None and name != "seed":
                continue
            if type(value) is not int or value < least:
                raise InputError(f"the {name} of shedding must be a whole number from {least}"
                                 f"{'' if name == 'seed' else ', or None'}, not {value!r}")
        if self.capacity is not None and self.threshold is not None and self.threshold >= self.capacity:
            raise InputError(f"the threshold of shedding must be below its capacity, {self.capacity}, but is "
                             f"{self.threshold}")
        if self.curve not in get_args(Curve):
            raise InputError(f"the curve of shedding must be 'linear' or 'quadratic', not {self.curve!r}")
        if type(self.base) not in (int, float) or not 0 <= self.base <= 1:
            raise InputError(f"the base of shedding must be a number from 0 to 1, not {self.base!r}")


class Shedder:
    """Applies a `Shedding` to a query on a device.

    Attributes:
        rule: The rule.
        capacity, threshold: Its bounds on the device.
    """

    def __init__(self, rule: Shedding, query: Query, device: Device, *, in_order: bool):
        self.rule, self._query, self._in_order = rule, query, in_order
        self.move(device)

    def move(self, device: Device) -> None:
        """Go on with the bounds on ``device``. Raises `InputError` or `UnsupportedError` where these cannot be kept,
        and then changes nothing.
        """
        query, capacity, room = self._query, self.rule.capacity, device.window_room(self._query)
        if room is not None and any(query.window(side).rows is None for side in SIDES):
            if not self._in_order:
                raise UnsupportedError(f"in order 'none' tuples reach a device as they come, so how many of them the "
                                       f"windows of {device.name!r} must hold is not known before; use order='total' "
                                       f"with when_full='shed', or device='cpu'")
            if capacity is not None and capacity > room:
                raise InputError(f"the capacity of shedding must be at most {room}, the tuples that a window of the "
                                 f"device {device.name!r} holds, but is {capacity}; leave it out, or ask for a larger "
                                 f"device")
        if capacity is None:
            if room is None:
                raise InputError(f"when_full='shed' needs a capacity, as the device {device.name!r} has no bound of "
                                 f"its own; give shedding=splitjoin.Shedding(capacity=…)")
            capacity = room
        threshold = capacity // 2 if self.rule.threshold is None else self.rule.threshold
        if threshold >= capacity:
            raise InputError(f"the threshold of shedding must be below {capacity}, the tuples that a window of the "
                             f"device {device.name!r} holds, but is {threshold}")
        self.capacity, self.threshold = capacity, threshold

    def probability(self, load: int) -> float:
        """The probability with which a tuple is dropped that comes at ``load``."""
        if load < self.threshold:
            return 0.0
        share = min((load - self.threshold) / (self.capacity - self.threshold), 1.0)
        return self.rule.base + (1 - self.rule.base) * (share if self.rule.curve == "linear" else share * share)

    def dropped(self, side: Side, first: int, n: int, load: int) -> Mask:
        """True for those of the next ``n`` tuples of a stream that are dropped, bool (n,).

        ``first``: how many of its tuples came before, late ones apart; ``load``: how many of these are held.
        """
        out = np.zeros(n, np.bool_)
        at = min(max(self.threshold - load, 0), n)  # these come below the threshold
        load += at
        if at == n:
            return out
        generator = np.random.PCG64([self.rule.seed, SIDES.index(side)])
        generator.advance(first + at)
        draws = np.random.Generator(generator).random(n - at)
        for i, draw in enumerate(draws.tolist(), at):
            if load >= self.capacity:
                out[i:] = True
                break
            if draw < self.probability(load):
                out[i] = True
            else:
                load += 1
        return out
