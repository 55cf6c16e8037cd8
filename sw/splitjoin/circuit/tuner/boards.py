"""Boards and the resources of their FPGAs, for the families that this project places and routes."""

from __future__ import annotations

from dataclasses import dataclass

from splitjoin.base.errors import DeviceError
from splitjoin.lang.schema import suggest

from ..cost.resources import Family


@dataclass(frozen=True)
class Fpga:
    """An FPGA: ``lut`` LUT4, ``ff`` flip-flops, ``block_ram`` blocks of 18 Kbit, ``dsp`` 18 × 18 multipliers.

    Source: Lattice, ECP5 and ECP5-5G Family Data Sheet (FPGA-DS-02012), Table 1.1; LUT4 counts from nextpnr's device
    data. The 12F has the silicon of a 25F, and nextpnr uses all of it.
    """

    name: str
    family: Family
    lut: int
    ff: int
    block_ram: int
    dsp: int


_SIZES = {"12F": (24288, 56, 28), "25F": (24288, 56, 28), "45F": (43848, 108, 72), "85F": (83640, 208, 156)}
#: Part → FPGA.
FPGAS = {f"{kind}-{size}": Fpga(f"{kind}-{size}", "ecp5", lut, lut, blocks, multipliers)
         for kind in ("LFE5U", "LFE5UM", "LFE5UM5G") for size, (lut, blocks, multipliers) in _SIZES.items()
         if size != "12F" or kind == "LFE5U"}
#: Name of a board → its part. The names are those of amaranth-boards' files, with the size where there are several.
BOARDS = {
    "butterstick": "LFE5UM5G-85F", "colorlight_5a75b_r7_0": "LFE5U-25F", "ecp5_5g_evn": "LFE5UM5G-85F",
    "ecpix5_45f": "LFE5UM5G-45F", "ecpix5_85f": "LFE5UM5G-85F", "icepi_zero": "LFE5U-25F",
    "icesugar_pro": "LFE5U-25F", "logicbone_45f": "LFE5UM5G-45F", "logicbone_85f": "LFE5UM5G-85F",
    "orangecrab_25f": "LFE5U-25F", "orangecrab_85f": "LFE5U-85F", "supercon19badge": "LFE5U-45F",
    "ulx3s_12f": "LFE5U-12F", "ulx3s_25f": "LFE5U-25F", "ulx3s_45f": "LFE5U-45F", "ulx3s_85f": "LFE5U-85F",
    "versa_ecp5": "LFE5UM-45F", "versa_ecp5_5g": "LFE5UM5G-45F",
}


def board(name: str) -> Fpga:
    """The FPGA on board ``name``. Raises `DeviceError`, which lists the known names, for another name."""
    if name not in BOARDS:
        raise DeviceError(f"the tuner has no board {name!r}{suggest(name, BOARDS)}; it has those with an ECP5: "
                          f"{', '.join(BOARDS)}; for another board of `splitjoin boards` choose the circuit yourself "
                          f"(an iCE40 or a Tang Nano 9K needs --small)")
    return FPGAS[BOARDS[name]]
