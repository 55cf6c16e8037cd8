"""Kang's three-step procedure, on one core: a baseline, by which the others can be measured."""

from __future__ import annotations

from ..architecture import SequentialArchitecture

__all__ = ["Kang"]


class Kang(SequentialArchitecture):
    """A tuple probes the whole window of the other stream, and then it is stored (`splitjoin_hw.baseline.kang`)."""

    name, title = "kang", "Kang's circuit"
    component = "splitjoin_hw.baseline.kang", "Kang"
    expires = "opposite", "own"
    baseline = True
