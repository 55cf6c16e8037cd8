"""Designs for the cocotb benches: our Verilog of a component and of whole circuits."""

from __future__ import annotations

from splitjoin_hw.backend.library import Converted, Library
from splitjoin_hw.gather.combiner import Combiner
from splitjoin_hw.verilog import TOP, to_verilog

from .driver import top_configuration

__all__ = ["DESIGNS", "TOPS", "design"]

#: Name → configuration.
TOPS = {f"k{k}b{b}c{c}l{lanes}p{probes}": top_configuration(k, b, c, 4 * lanes, lanes, probes)
        for k, b, c, lanes, probes in ((1, 2, 2, 1, 1), (5, 2, 3, 2, 3))}


#: All designs: a component, and the whole circuit in each of `TOPS`. Stimuli of other components run in Amaranth's
#: simulator alone (`tests/hw`).
DESIGNS = ("combiner", *(f"top-{name}" for name in TOPS))


def design(name: str) -> tuple[str, str]:
    """Verilog and top module of a design."""
    if name not in DESIGNS:
        raise ValueError(f"Design must be one of {', '.join(DESIGNS)}, not {name!r}")
    if name.startswith("top-"):
        return to_verilog(TOPS[name.removeprefix("top-")]), TOP
    library = Library(name)
    library.add(Converted.of(Combiner(), name))
    return library.text(), name
