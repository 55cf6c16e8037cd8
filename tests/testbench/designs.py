"""The design of the cocotb bench of a component: our Verilog of the combiner."""

from __future__ import annotations

from splitjoin_hw.backend.library import Converted, Library
from splitjoin_hw.gather.combiner import Combiner


def design(name: str) -> tuple[str, str]:
    """Verilog and top module of a design. Other components' stimuli run in Amaranth's simulator alone (`tests/hw`),
    and whole circuits' in `SimDevice`.
    """
    if name != "combiner":
        raise ValueError(f"Design must be combiner, not {name!r}")
    library = Library(name)
    library.add(Converted.of(Combiner(), name))
    return library.text(), name
