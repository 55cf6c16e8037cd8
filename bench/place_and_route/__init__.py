"""Circuits and parts of them, mapped, placed and routed by themselves: the cells and clocks that benches measure."""
