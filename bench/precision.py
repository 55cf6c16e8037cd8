"""An adaptive precision under bursts: the delay of tuples and the order, beside precisions that stay.

Run: python -m bench.precision, some minutes. Tuples of R and S come by turns, in calm and in bursts, whose rate the
finest precision does not sustain and the coarsest does. They are pushed as they come, and those that come meanwhile
are pushed together afterwards. Time is the device's own: the cycles of a simulated circuit, or the seconds of pushes to
threads of the CPU; while no tuple is there, it goes on to the next one. So figures of circuits are exact, and those of
threads move with the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import splitjoin
from bench.record import Recorder, arguments
from splitjoin.circuit.driver import CircuitSession
from splitjoin.circuit.query_circuit import QueryCircuit
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.device import Device
from splitjoin_sim.device import SimDevice

#: Values of both keys: 0 to below this number.
VALUES = 10_000
#: The most tuples of both streams of a push in calm: so many are waited for.
FEW = 16
#: Comparisons between two stars: the finest and the coarsest.
FINEST, COARSEST = 1, 64


@dataclass(frozen=True)
class Load:
    """Tuples of both streams by phases, calm and burst in turns: their number, and the time from one to the next."""

    calm: tuple[int, float]
    burst: tuple[int, float]
    phases: int

    def arrivals(self) -> npt.NDArray[np.float64]:
        """The times at which tuples come, behind time 0."""
        gaps = [np.full(*(self.burst if n % 2 else self.calm)) for n in range(self.phases)]
        found: npt.NDArray[np.float64] = np.cumsum(np.concatenate(gaps))
        return found


class KeptDevice(SimDevice):
    """Keeps the session that was started last."""

    started: CircuitSession | None = None

    def start(self, circuit: QueryCircuit) -> CircuitSession:
        KeptDevice.started = super().start(circuit)
        return KeptDevice.started

    @classmethod
    def cycles(cls) -> float:
        """The cycles of that session."""
        assert cls.started is not None
        return float(cls.started.counters()["cycles"])


class Clock:
    """Time of a device that works, and of which the device takes a part: the rest is waited for."""

    def __init__(self, worked: Callable[[], float]):
        self._worked, self.idle = worked, 0.0

    def __call__(self) -> float:
        return self.idle + self._worked()


def delays(session: splitjoin.StreamJoin, clock: Clock, load: Load,
           window: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Feed ``session``, whose windows are filled first, under ``load``: the delay of each tuple, from its arrival to
    the end of its push, and its precision.
    """
    due, rng, at = load.arrivals(), np.random.default_rng(1), 0
    keys = rng.integers(0, VALUES, len(due) + 2 * window).astype(np.int32)
    delay, precision = np.empty(len(due)), np.empty(len(due), np.int64)

    def push(first: int, end: int) -> None:
        for side, name in ((0, "x"), (1, "a")):
            ts = np.arange(first + (first + side) % 2, end, 2)
            part = pa.table({"ts": ts, name: keys[ts]})
            (session.push_s if side else session.push_r)(part)
        session.poll_items()

    for n in range(0, 2 * window, FEW):
        push(n, n + FEW)
    clock.idle = -clock()
    while at < len(due):
        clock.idle += max(0.0, due[min(at + FEW, len(due)) - 1] - clock())
        end = int(np.searchsorted(due, clock(), side="right"))
        precision[at:end] = session.counters()["precision"]
        push(2 * window + at, 2 * window + end)
        delay[at:end] = clock() - due[at:end]
        at = end
    return delay, precision


def measured(out: Recorder, device: Device, config: dict[str, Any], load: Load, window: int, latency: float, how: str,
             scale: float = 1) -> None:
    """The device with the finest, the coarsest, and an adaptive precision that is to keep ``latency``. ``scale``: of
    figures in the unit of ``config``.
    """
    streams = [pa.schema([("ts", pa.int64()), (name, pa.int32())]) for name in "xa"]
    for n, bounds in ((FINEST, None), (COARSEST, None),
                      (FINEST, splitjoin.AdaptivePrecision(coarsest=COARSEST, latency=latency))):
        query = splitjoin.query(*streams, window=f"ROWS {window}", time="ts", on="abs(r.x - s.a) <= 1",
                                order=f"inner({n})")
        clock = Clock(KeptDevice.cycles if isinstance(device, KeptDevice) else time.perf_counter)
        with splitjoin.open(query, device, punctuation=True, clock=clock, precision=bounds) as session:
            delay, precision = delays(session, clock, load, window)
        shape = {"precision": f"inner({n})" if bounds is None else f"{FINEST} to {COARSEST}", **config}
        for metric, value in (("50", np.median(delay)), ("99", np.percentile(delay, 99)), ("most", delay.max())):
            out.add(f"precision_delay_{metric}", round(scale * value, 1), config["unit"], shape, how)
        out.add("precision_mean", float(np.exp(np.log(precision).mean())), "comparisons", shape, how)


def main() -> None:
    """Both devices."""
    options = arguments((__doc__ or "").partition("\n")[0])
    out = Recorder("precision", quick=options.quick)
    phases = 2 if options.quick else 6
    measured(out, KeptDevice(cores=4, capacity=128, core="scan"), {"device": "circuit, 4 cores", "unit": "cycles"},
             Load((1_000, 150.0), (1_000, 45.0), phases), 256, 3_000, "simulated; windows of 256 rows, R and S by "
             "turns, |x - a| <= 1, a tuple in 150 cycles, and in 45 in bursts of 1,000; from a tuple's arrival until "
             "its push has ended; latency 3,000 cycles")
    measured(out, CpuDevice(engine="threads", threads=2), {"device": "2 threads", "unit": "ms"},
             Load((1_000, 4e-4), (4_000, 4e-5), phases), 1024, 0.02, "threads of the CPU; windows of 1,024 rows, R and "
             "S by turns, |x - a| <= 1, a tuple in 400 microseconds, and in 40 in bursts of 4,000; from a tuple's "
             "arrival until its push has ended; latency 20 ms", scale=1000)
    print(out.write())


if __name__ == "__main__":
    main()
