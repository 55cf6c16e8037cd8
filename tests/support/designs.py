"""The sorts of designs that ``splitjoin verilog`` writes, each as small as it can be."""

from __future__ import annotations

from pathlib import Path

from splitjoin.cli import main

_BAND = "abs(r.x - s.a) <= 3"
#: Name of a sort → the condition, and the options that make it.
DESIGNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "scan": (f"{_BAND} AND r.y < s.b", ("--cores", "1", "--lanes", "2", "--probes", "3")),
    "hash": ("r.y = s.b", ("--cores", "1", "--core", "hash")),
    "bucket": (_BAND, ("--cores", "1", "--core", "bucket")),
    "tables": (_BAND, ("--cores", "1", "--probes", "2", "--tables")),
    "fold": (_BAND, ("--cores", "2", "--aggregate", "n=count(*)", "--aggregate", "most=max(s.b)")),
    "semi": (_BAND, ("--cores", "1", "--how", "semi")),
    "two items": (_BAND, ("--cores", "2", "--root-width", "2")),
    "four items": (_BAND, ("--cores", "4", "--root-width", "4")),
    "queue": (_BAND, ("--cores", "1", "--queue", "64")),
    "region counters": (_BAND, ("--cores", "1", "--region-counters")),
    "small": (_BAND, ("--cores", "1", "--small", "--row-bits", "16")),
}
#: The same of circuits that exist to be compared with, which have no aggregates.
BASELINES: dict[str, tuple[str, tuple[str, ...]]] = {
    name: (_BAND, ("--architecture", name, *options)) for name, options in {
        "kang": ("--cores", "1", "--expire", "own"),
        "celljoin": ("--cores", "2"),
        "chain": ("--cores", "2"),
        "handshake": ("--cores", "2", "--order", "none"),
        "low-latency-handshake": ("--cores", "2", "--order", "none"),
        "cascade": ("--cores", "2", "--order", "none", "--block", "2", "--threshold", "2")}.items()}


def arguments(sort: str, folder: Path, *more: str, top: str = "axi") -> list[str]:
    """Arguments of ``splitjoin`` that write the design ``sort`` with the ports ``top`` ("streams" or "axi") to
    ``folder``, and ``more``.
    """
    on, options = (DESIGNS | BASELINES)[sort]
    return ["verilog", "--on", on, "--schema-r", "ts: int64, x: int16, y: int16", "--schema-s",
            "ts: int64, a: int16, b: int16", "--time", "ts", "--window", "ROWS 16 RANGE 40", "--capacity", "16",
            *options, "--top", top, *more, "-o", str(folder)]


def written(sort: str, folder: Path) -> Path:
    """The folder below ``folder`` with the design ``sort``, with AXI ports, which hold the module with streams; it is
    written once.
    """
    found = folder / sort.replace(" ", "_")
    if not found.exists():
        assert main(arguments(sort, found)) == 0
    return found
