"""Energy of each architecture by switching activity: cells × the share of nets that change in a cycle × cycles a tuple.

Run: python -m bench.energy, or --architecture handshake for one; each takes a minute on an idle core. Dynamic power is
½ · C · V² a transition. Vendors publish no capacitance of a wire, so the figures are transitions, which compare
circuits of one chip, and no joules. Circuits are those of `bench.routed`, with the cells that Yosys maps for ECP5.
Their activity is that of all nets of the simulated model, from its waveform, with full windows while input waits.
Glitches within a cycle, the clock tree and accesses of block RAMs are not seen. LUT · cycles, the plainer proxy, is
beside it.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.evaluation import QUICK, SYSTEMS, Bench, Case, query_of
from bench.record import Recorder, committed, options_of
from bench.routed import CORES, WINDOW
from splitjoin.circuit.driver import CircuitSession
from splitjoin.engines.arrival import arrivals
from splitjoin_sim.device import SimDevice

#: Tuples of each stream that are measured behind full windows.
MEASURED = 24
HOW = f"windows of {WINDOW} rows, full, input saturated"


def activity(waveform: Path, first: int) -> float:
    """The share of all bits of nets but the clock that change in a cycle, of a VCD file from cycle ``first`` on."""
    widths: dict[str, int] = {}
    clock = ""
    last: dict[str, str] = {}
    changed = cycle = 0
    with waveform.open() as lines:
        for line in lines:
            if line.lstrip().startswith("$var"):
                _, _, width, name, called, *_ = line.split()
                widths[name] = int(width)
                clock = name if called == "clk" and not clock else clock
            elif line.startswith("$enddefinitions"):
                break
        for line in lines:
            if line[0] in "01":
                value, name = line[0], line[1:-1]
            elif line[0] == "b":
                value, name = line[1:-1].split(" ")
            else:
                continue
            if name == clock:
                cycle += value == "1"
            elif cycle > first:
                changed += (int(value, 2) ^ int(last.get(name, "0"), 2)).bit_count()
            last[name] = value
    return changed / (cycle - first) / (sum(widths.values()) - 1)


def measured(out: Recorder, name: str) -> tuple[Case, float, float]:
    """The case, cycles a tuple and the activity of one architecture."""
    case = Case(name, 1 if name == "kang" else CORES, WINDOW, "ROWS")
    query, r, s = query_of(case, WINDOW + MEASURED)
    with tempfile.TemporaryDirectory() as folder:
        waveform = Path(folder, "model.vcd")
        device = Bench(out, QUICK, {}, quick=False).device(case)
        assert isinstance(device, SimDevice)
        with replace(device, trace=waveform).open(query) as session:
            assert isinstance(session, CircuitSession)
            for at, n in ((0, WINDOW), (WINDOW, MEASURED)):
                session.push(arrivals(query, r.slice(at, n), s.slice(at, n)))
            accepted = session.accepted()
        assert accepted is not None
        # Queues are filled by the first tuples behind full windows.
        first, last = int(accepted[2 * WINDOW + MEASURED]), int(accepted[-1])
        return case, (last - first) / (MEASURED - 1), activity(waveform, first)


def main() -> None:
    """All architectures, or some."""
    parser = options_of((__doc__ or "").partition("\n")[0])
    parser.add_argument("--architecture", choices=SYSTEMS, nargs="+", default=list(SYSTEMS), help="these alone (all)")
    options = parser.parse_args()
    for name in options.architecture:
        out = Recorder("routed", quick=options.quick, part=f"energy, {name}")
        case, cycles, share = measured(out, name)
        what: dict[str, Any] = case.config
        cells = {row["metric"]: row["value"] for row in committed("routed") if row["config"]["architecture"] == name}
        lut4, ff = cells["mapped_lut4"], cells["mapped_ff"]
        out.add("energy_cycles", cycles, "cycles a tuple", what, f"simulated; {HOW}")
        out.add("energy_activity", share, "of all bits", what, f"changes of nets in a cycle, by the waveform; {HOW}")
        out.add("energy_lut_cycles", lut4 * cycles, "LUT4 · cycles", what, "mapped_lut4 × energy_cycles")
        out.add("energy_transitions", (lut4 + ff) * share * cycles, "a tuple", what,
                "(mapped_lut4 + mapped_ff) × energy_activity × energy_cycles")
        print(out.write())


if __name__ == "__main__":
    main()
