"""The playground's run: from a condition and two small tables to what the page shows.

worker.js runs it in the browser; the tests run it there and outside.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import splitjoin
from splitjoin.base.errors import InputError, SplitJoinError
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import chosen_circuit
from splitjoin.tables import read_table
from splitjoin_hw.verilog import to_verilog
from splitjoin_sim.run_view import read_run

#: The most rows of a table: the simulator takes some seconds for as many.
ROWS = 32


def run(r: str, s: str, on: str, cores: int) -> Iterator[tuple[str, str]]:
    """The parts of the page, each with its name as soon as it is there: ``rows``, ``plan`` and ``waves`` as HTML,
    ``circuit`` as a sentence, ``verilog`` as it is; at last ``error``, in words, if splitjoin refuses something.

    Args:
        r: The first table, as CSV with a header, of up to `ROWS` rows.
        s: The second one, likewise.
        on: The condition, in SQL.
        cores: The circuit's cores.
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield from _parts(Path(folder), {"R": r, "S": s}, on, cores)
    except SplitJoinError as error:
        yield "error", str(error)


def _parts(folder: Path, texts: dict[str, str], on: str, cores: int) -> Iterator[tuple[str, str]]:
    tables = []
    for name, text in texts.items():
        file = folder / f"{name}.csv"
        file.write_text(text.strip() + "\n", encoding="utf-8")
        tables.append(read_table(file))
        if not 1 <= len(tables[-1]) <= ROWS:
            raise InputError(f"a table of the playground has 1 to {ROWS} rows, but {name} has {len(tables[-1])}; "
                             f"install splitjoin for larger ones")
    rows = splitjoin.join(*tables, on=on, device="golden")
    yield "rows", rows._repr_html_()
    most = max(map(len, tables))
    query = splitjoin.query(*tables, on=on, window=f"ROWS {most}")
    circuit = {"cores": cores, "capacity": 1 << max(2, (most - 1).bit_length())}  # a core could hold either table
    yield "plan", splitjoin.explain(query, **circuit).html()
    trace = folder / "run.vcd"
    simulated = splitjoin.join(*tables, on=on, device="pysim", trace=trace, **circuit)
    view = read_run(trace)
    same = "the same rows" if simulated.equals(rows) else "other rows, which is a fault: please report it"
    yield "circuit", f"The simulated circuit took {view.cycles:,} cycles, and gave {same}."
    yield "waves", view.html()
    yield "verilog", to_verilog(chosen_circuit(query, CircuitParameters(**circuit)).config)
