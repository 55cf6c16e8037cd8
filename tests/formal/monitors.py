"""Properties that many circuits share: the stream contract, and that items pass unchanged and in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Signal, Value

from .harness import Harness


def past_offer(h: Harness, name: str, port: Any) -> tuple[Signal, Signal]:
    """A flag that ``port`` made an offer in the previous cycle that was not taken, and the payload of the offer."""
    name = name.replace(" ", "_")
    return h.past(port.valid & ~port.ready, f"{name}_pending"), h.past(Value.cast(port.payload), f"{name}_offer")


def _is_stable(h: Harness, name: str, port: Any) -> Value:
    pending, offer = past_offer(h, name, port)
    return ~pending | (port.valid & (Value.cast(port.payload) == offer))


def _all_stable(h: Harness, name: str, ports: Sequence[Any]) -> Value:
    return Cat(_is_stable(h, f"{name} {n}", port) for n, port in enumerate(ports)).all()


def prove_stable_offers(h: Harness, name: str, *ports: Any) -> None:
    """Prove the stream contract at outputs: an offer is neither withdrawn nor changed before it is taken."""
    h.prove(f"offers at {name} are stable", _all_stable(h, name, ports))


def assume_stable_offers(h: Harness, name: str, *ports: Any) -> None:
    """Assume the stream contract at inputs."""
    h.assume(f"offers at {name} are stable", _all_stable(h, name, ports))


class Event:
    """A signal as a stream whose offers are taken at once, for the output of a `Harness`."""

    def __init__(self, valid: Value):
        self.valid, self.ready = valid, Const(1)


class Follower:
    """Follows items through a circuit that passes on the items it accepts, one at a time and in order.

    The solver picks an item as it enters (``mark``), any one at any time. From then on ``ahead`` is the number of
    others that must leave first, and ``token`` the expected value. ``inside``: the number of items in the circuit.
    Properties proved of the picked item hold for all: none is lost, doubled, changed or overtaken.

    To be proved: ``honest``, an item is offered only if one is inside; ``ordered``, the picked item is offered when no
    other is ahead; ``present``, it is inside until then.
    """

    def __init__(self, h: Harness, name: str, *, entered: Any, entering: Any, port: Any, capacity: int,
                 left: Any = None, leaving: Any = None):
        left = port.valid & port.ready if left is None else left
        entering = Value.cast(entering)
        leaving = Value.cast(port.payload if leaving is None else leaving)
        mark = h.free(f"{name}_mark")
        self.inside = Signal(range(capacity + 2), name=f"{name}_inside")
        self.ahead = Signal(range(capacity + 2), name=f"{name}_ahead")
        self.picked = Signal(name=f"{name}_picked")
        self.token = Signal(len(entering), name=f"{name}_token")
        m = h.m
        m.d.sync += self.inside.eq(self.inside + entered - left)
        with m.If(self.picked & left):
            m.d.sync += [self.ahead.eq(self.ahead - 1), self.picked.eq(self.ahead != 0)]
        with m.Elif(~self.picked & entered & mark):
            m.d.sync += [self.picked.eq(1), self.ahead.eq(self.inside - left), self.token.eq(entering)]
        self.honest = ~port.valid | (self.inside != 0)
        self.ordered = ~(self.picked & (self.ahead == 0) & port.valid) | (leaving == self.token)
        self.present = ~self.picked | (self.ahead < self.inside)


def follow(h: Harness, *followers: Follower) -> None:
    """Prove the properties of each of ``followers``."""
    h.prove("nothing leaves that did not enter", Cat(f.honest for f in followers).all())
    h.prove("items leave unchanged and in order", Cat(f.ordered for f in followers).all())
    h.prove("the picked item is inside", Cat(f.present for f in followers).all())
