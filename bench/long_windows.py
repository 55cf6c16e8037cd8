"""SplitJoin's Figures 12, 13, 17 and 19 in simulated cycles with long windows: 2^11 to 2^17 tuples of each stream.

Run: python -m bench.long_windows, or --architecture splitjoin --cores 32 --window 8192 for a part, beside what is
there; the longest windows take hours on a shared processor core. Queries are those of `bench.evaluation`. To fill both
windows, each tuple would be compared with all that are there: weeks. R alone meets nothing, so its window is filled in
a few cycles a tuple; then tuples of both streams come by turns, and those of S are compared with a full window. Regions
of both streams do not wait for each other, so the rate is that of two full windows; results are those of one. Chains of
handshake join balance both streams, so they have no such short cut; with one window full, low-latency handshake join's
probes visit for a shorter time than Equation 2 says. Rates are at full speed: a queue before the circuit
is short against the run. Latencies are at half of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bench.evaluation import QUICK, Case, query_of
from bench.record import Recorder, options_of
from splitjoin.circuit.driver import CircuitSession
from splitjoin.engines.arrival import arrivals
from splitjoin_sim.device import SimDevice

#: Windows; tuples of each stream that are measured; shares of Figure 17 with its window; sub-window of Figure 19.
WINDOWS, MEASURED = tuple(2**n for n in (11, 13, 15, 17)), 96
SHARES, SHARE_WINDOW, SUB_WINDOW = (1e-3, 1e-2, 0.1, 0.5, 1.0), 2**13, 2**11
#: Architecture → its numbers of cores.
SYSTEMS = {"splitjoin": (4, 32)}
HOW = ("simulated; |x - a| <= w, values uniform in 1 to 10,000,000, R and S by turns, one lane, one probe, order none "
       "if nothing else is said; R's window full, as both regions work side by side")


def run(case: Case, most: int, pace: float | None = None) -> tuple[float, npt.NDArray[np.int64]]:
    """Tuples of both streams a cycle, and the latencies of pairs that tuples of S complete. ``most``: the largest
    window of the circuit, so that one model is enough.
    """
    query, r, s = query_of(case, case.window + MEASURED)
    share = -(-most // case.cores)
    device = SimDevice(architecture=case.system, cores=case.cores, capacity=2 << (share - 1).bit_length(), core="scan",
                       pace=pace)
    with device.open(query) as session:
        assert isinstance(session, CircuitSession)
        session.push(arrivals(query, r.slice(0, case.window), s.slice(0, 0)))
        session.push(arrivals(query, r.slice(case.window), s.slice(case.window)))
        session.flush()
        accepted, found = session.accepted(), session.pair_latencies()
    assert accepted is not None
    assert found is not None
    pairs, latencies = found
    # The first tuples fill queues; of the others, those of S are behind those of R.
    rate = float(1 / np.diff(accepted[case.window + MEASURED:]).mean())
    return rate, latencies[pairs[:, 0] <= case.window + pairs[:, 1]]


def rates(out: Recorder, case: Case, most: int) -> None:
    """Figures 12 and 13 of one window."""
    rate, _ = run(case, most)
    out.add("long_rate", 1000 * rate, "tuples/1,000 cycles", case.config, HOW)
    out.write()  # the next run takes twice as long
    _, latencies = run(case, most, rate / 2)
    out.add("long_pair_latency", float(latencies.mean()), "cycles", case.config, HOW)


def more(out: Recorder, cores: int, most: int, shares: tuple[float, ...]) -> None:
    """Figure 17 with the most cores, and Figure 19 with the fewest, of SplitJoin."""
    for share in shares if cores == max(SYSTEMS["splitjoin"]) else ():
        case = Case("splitjoin", cores, min(SHARE_WINDOW, most), share=share)
        out.add("long_rate_by_selectivity", 1000 * run(case, most)[0], "tuples/1,000 cycles", case.config, HOW)
    every, inner = 2, Case("splitjoin", cores, min(cores * SUB_WINDOW, most), "ROWS", 1e-4)
    while cores == min(SYSTEMS["splitjoin"]) and every <= inner.window // cores:
        case = replace(inner, order=f"inner({every})")
        out.add("long_rate_by_precision", 1000 * run(case, most)[0], "tuples/1,000 cycles", case.config, HOW)
        every *= 4


def main() -> None:
    """All figures, or some."""
    parser = options_of((__doc__ or "").partition("\n")[0])
    parser.add_argument("--architecture", choices=SYSTEMS, nargs="+", default=list(SYSTEMS), help="these alone (all)")
    parser.add_argument("--cores", type=int, choices=(4, 32), help="with so many cores alone")
    parser.add_argument("--window", type=int, choices=(0, *WINDOWS), nargs="+", default=(*WINDOWS, 0),
                        help="these alone; 0 for Figures 17 and 19 (all)")
    options = parser.parse_args()
    most, windows = (2**8, (2**8, 0)) if options.quick else (WINDOWS[-1], options.window)
    for name in options.architecture:
        for cores in QUICK.cores if options.quick else SYSTEMS[name]:
            if options.cores not in (None, cores):
                continue
            for window in windows:
                out = Recorder("evaluation", quick=options.quick,
                               part=f"long windows, {name}, {cores} cores, {window or 'others'}")
                if window:
                    rates(out, Case(name, cores, window), most)
                elif name == "splitjoin":
                    more(out, cores, most, SHARES[:1 if options.quick else None])
                print(out.write())


if __name__ == "__main__":
    main()
