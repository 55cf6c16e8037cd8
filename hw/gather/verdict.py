"""Which of two results goes first, from two comparisons of which at most one counts."""

from __future__ import annotations

from amaranth.hdl import Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Verdict"]


class Verdict(wiring.Component):
    """Two gates behind two comparisons, and no more: a module of its own, whose boundary `boards.flow` keeps.

    Synthesis spends as many gates as are on the longest path of a module; here those would come behind a carry chain.

    Ports: ``later``: of each comparison, whether the other's result is older. ``here``, ``others``: whether the two are
    there; ``asked``: whether the comparison counts. ``total``: without it a comparison that is asked says yes. ``o``:
    whether one that is asked says so: with ``older`` that its own result goes first, else that the other's does.
    """

    def __init__(self, *, older: bool):
        self._older = older
        super().__init__({"later": In(2), "here": In(1), "others": In(2), "asked": In(2), "total": In(1), "o": Out(1)})

    @property
    def older(self) -> bool:
        """Whether it is about its own result."""
        return self._older

    def elaborate(self, platform) -> Module:
        m = Module()
        later: Value = ~self.later if self._older else self.later
        says = (~self.total).replicate(2) | (self.here.replicate(2) & self.others & later)
        m.d.comb += self.o.eq((self.asked & says).any())
        return m
