"""Verilog of today beside that of an older commit, for circuits that both make: which modules are the same but for
names, and LUTs and flip-flops of those that are not, mapped by Yosys for ECP5, each without the modules in it.

Run: python -m bench.areas COMMIT [--only NAME …]
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path

from splitjoin_boards.flow.tools import YOSYS, cached

ROOT = Path(__file__).parents[1]
#: Folders of the packages, in commits of any age.
_PACKAGES = ("sw", "hw", "sim", "boards")
_SCHEMA = ("--schema-r", "ts:int64, x:int32, y:int16", "--schema-s", "ts:int64, a:int32, b:int16")
_SIZE = ("--capacity", "64", "--cores", "2")
_RANGE = ("--window", "RANGE 40", "--time", "ts")
#: Circuits, by the arguments of ``splitjoin verilog``.
DESIGNS = {
    "band": ("--on", "abs(r.x - s.a) <= 10", "--window", "ROWS 64"),
    "equality and band": ("--on", "r.x = s.a AND abs(r.y - s.b) <= 3", "--core", "hash", *_RANGE),
    "buckets": ("--on", "abs(r.x - s.a) <= 10", "--core", "bucket", *_RANGE),
    "two tests": ("--on", "r.x < s.a OR r.y >= s.b", "--lanes", "2", "--probes", "4", "--order", "none", *_RANGE),
    "squared distance": ("--on", "(r.x - s.a) * (r.x - s.a) + (r.y - s.b) * (r.y - s.b) <= 100", *_RANGE),
    "folds": ("--on", "r.x = s.a", "--how", "left", "--aggregate", "n=count(*)", "--aggregate", "t=sum(s.b)",
              "--aggregate", "m=max(s.b)", *_RANGE),
    "gate of two sources": ("--on", "abs(r.x - s.a) <= 10", "--sources", "2", *_RANGE),
    "small": ("--on", "abs(r.x - s.a) <= 10", "--small", "--window", "ROWS 16"),
}


def written(sources: Path, design: str, folder: Path) -> str:
    """The Verilog of ``design`` by the packages in ``sources``."""
    size = () if design == "small" else _SIZE
    paths = os.pathsep.join(str(sources / name) for name in _PACKAGES)
    done = subprocess.run([sys.executable, "-m", "splitjoin", "verilog", *_SCHEMA, *DESIGNS[design], *size, "-o",
                           str(folder)], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True,
                          check=False, cwd=folder.parent)
    if done.returncode:
        raise RuntimeError(f"{design}: {done.stderr[-1000:]}")
    return (folder / "splitjoin.v").read_text()


def modules(text: str) -> dict[str, str]:
    """Module → its text, without comments."""
    plain = re.sub(r"//[^\n]*|\(\*.*?\*\)", "", text)
    return {found[1]: found[0] for found in re.finditer(r"^module (\S+?)\b.*?^endmodule", plain, re.M | re.S)}


def nameless(text: str) -> str:
    """``text`` with a number for each name, in the order in which they come, and without names of inner ports."""
    numbers: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        name = found[0]
        return name if name in _KEYWORDS else numbers.setdefault(name, f"n{len(numbers)}")

    return " ".join(re.sub(r"(?<!['\w])\\?[A-Za-z_][\w$]*", number, re.sub(r"\.\w+\(", ".(", text)).split())


_KEYWORDS = frozenset([
    "module", "endmodule", "input", "output", "inout", "wire", "reg", "assign", "always", "begin", "end", "if", "else",
    "case", "casez", "endcase", "default", "posedge", "negedge", "initial", "integer", "for", "parameter", "localparam",
    "signed", "function", "endfunction", "genvar", "generate", "endgenerate", "or"])


def mapped(of: dict[str, str], name: str) -> tuple[int, int]:
    """LUT4, with two for a cell of a carry chain and six for one of LUT RAM, and flip-flops of module ``name``."""
    inner = [other for other in of if other != name and re.search(rf"\b{re.escape(other)}\b", of[name])]
    text = "\n".join(of[n] for n in (name, *inner))
    script = f"read_verilog design.v; {f'blackbox {chr(32).join(inner)}; ' if inner else ''}" \
             f"synth_lattice -family ecp5 -noiopad -top {name}; tee -q -o cells.json stat -json"

    def make(folder: Path) -> None:
        (folder / "design.v").write_text(text)
        YOSYS.run(["-q", "-p", script], folder)

    cells = Counter(json.loads((cached("areas", (text, script, YOSYS.version), make) / "cells.json").read_text())[
        "modules"][f"\\{name}"]["num_cells_by_type"])
    return cells["LUT4"] + 2 * cells["CCU2C"] + 6 * cells["TRELLIS_DPR16X4"], cells["TRELLIS_FF"]


def main() -> None:
    """A line for each circuit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="an older commit")
    parser.add_argument("--only", nargs="*", choices=DESIGNS, default=list(DESIGNS), help="circuits")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        before = Path(temporary, "before")
        archive = subprocess.run(["git", "archive", options.commit, *_PACKAGES], cwd=ROOT, check=True,
                                 capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as file:
            file.extractall(before, filter="data")
        for design in options.only:
            both = [modules(written(sources, design, Path(temporary, f"{design}-{n}")))
                    for n, sources in enumerate((before, ROOT))]
            texts = [Counter(map(nameless, of.values())) for of in both]
            differ = [[name for name, text in of.items() if nameless(text) in texts[n] - texts[1 - n]]
                      for n, of in enumerate(both)]
            print(f"{design}: {len(both[1])} modules, {len(both[1]) - len(differ[1])} as before but for names",
                  flush=True)
            totals = []
            for of, names in zip(both, differ, strict=True):
                found = {name: mapped(of, name) for name in names}
                totals.append([sum(n[i] for n in found.values()) for i in range(2)])
                print("    " + ", ".join(f"{name} {lut} LUT4 {ff} FF" for name, (lut, ff) in found.items()), flush=True)
            if differ[1]:
                print(f"    {totals[0][0]} → {totals[1][0]} LUT4, {totals[0][1]} → {totals[1][1]} flip-flops",
                      flush=True)


if __name__ == "__main__":
    main()
