"""The command ``waves``: what a simulated circuit did in a run, from its waveform file."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from splitjoin.base.disk import replacing
from splitjoin.base.errors import InputError, OptionError, needing
from splitjoin.circuit.wire import ROW_BITS, item_record
from splitjoin.tables import target_of

#: Ending of a file that is written → its text from a view.
_WRITERS: dict[str, Callable[[Any], str]] = {
    ".html": lambda view: view.html(), ".csv": lambda view: view.csv(), ".gtkw": lambda view: view.gtkw(),
    ".sucl": lambda view: view.sucl()}


def waves_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("file", metavar="RUN.vcd",
                        help="the waveforms of a run, written by --trace of --device sim or pysim, or by a logic "
                             "analyzer at a board's serial pins; or the bytes that went to the circuit (.bin)")
    parser.add_argument("--replies", metavar="FILE.bin", help="of a .bin, the bytes that came from the circuit")
    parser.add_argument("--pins", metavar="RX,TX", default="rx,tx",
                        help="names of the circuit's serial input and output in the waveforms (%(default)s)")
    parser.add_argument("--baud", type=int, metavar="HZ", help="their rate (default: measured)")
    parser.add_argument("--row-bits", type=int, default=ROW_BITS, metavar="N",
                        help="bits of row ids in the circuit's items on the link (%(default)s)")
    parser.add_argument("-o", "--output", metavar="FILE", action="append", required=True,
                        help="a page (.html), what went in and out (.csv), a save file for GTKWave (.gtkw) or a "
                             "command file for Surfer (.sucl); may be given several times")


def run_waves(args: argparse.Namespace) -> None:
    """Write what was asked for. Raises `InputError` for a file that is no such run, or that cannot be written."""
    outputs = [Path(one) for one in args.output]
    for one in outputs:
        if one.suffix not in _WRITERS:
            raise OptionError(f"-o must be a file that ends in {', '.join(_WRITERS)}, not {str(one)!r}; give another "
                              f"name")
    file, pins = Path(args.file), tuple(args.pins.split(","))
    if file.suffix == ".fst":
        raise OptionError(f"waves reads VCD, not FST, as {args.file} is; write it by --trace run.vcd, or convert it by "
                          f"fst2vcd, which comes with GTKWave")
    if args.replies is not None and file.suffix != ".bin":
        raise OptionError(f"--replies goes with the bytes of the other way in a .bin file, not with {args.file}; "
                          f"waveforms have both")
    if len(pins) != 2 or not 1 <= args.row_bits <= ROW_BITS or (args.baud is not None and args.baud < 1):
        raise OptionError(f"--pins must be two names with a comma between them, --row-bits 1 to {ROW_BITS} and --baud "
                          f"1 or more, not {args.pins!r}, {args.row_bits} and {args.baud}")
    with needing("a view of a run needs", "sim"):
        from splitjoin_sim.run_view import read_bytes, read_run
    items = item_record(args.row_bits)
    view = (read_bytes(file, args.replies and Path(args.replies), items) if file.suffix == ".bin" else
            read_run(file, pins=pins, baud=args.baud, items=items))
    for one in outputs:
        try:
            with replacing(target_of(one)) as out:
                out.write(_WRITERS[one.suffix](view).encode())
        except OSError as error:
            raise InputError(f"{one} cannot be written: {error.strerror or error}") from None
        print(one)
