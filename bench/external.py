"""A region's scan of a sub-window in external memory: how many probes of a batch hide latency and bandwidth.

A model of cycles, not a circuit: nothing like it is built. docs/adr/0053-windows-in-external-memory.md has the
arithmetic and the results.
Run: python -m bench.external
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from bench.record import Recorder, arguments


@dataclass(frozen=True)
class Memory:
    """An external memory as a region sees it.

    ``bytes_per_cycle``: what it transfers in a cycle of the circuit, reads and writes together. ``latency``: cycles
    from a request to its first byte. ``requests``: bursts that may be under way at once, and have a place in the FIFO
    of the region. ``burst``: bytes of a request.
    """

    name: str
    bytes_per_cycle: float
    latency: int
    requests: int
    burst: int = 64


@dataclass(frozen=True)
class ExternalScan:
    """A region that scans an external sub-window.

    ``tuples`` of ``width`` bytes are stored. ``comparators`` compare as many pairs in a cycle. A pass serves ``probes``
    probes; between two passes as many tuples are stored as there were probes, R and S alternating.
    """

    tuples: int
    width: int
    comparators: int
    probes: int

    def bursts(self, memory: Memory) -> int:
        """Requests of a pass."""
        return -(-self.tuples * self.width // memory.burst)

    def compare_cycles(self, memory: Memory) -> float:
        """Cycles in which the tuples of a burst are compared with all probes of the batch."""
        return memory.burst / self.width * self.probes / self.comparators

    def simulate(self, memory: Memory, passes: int = 3) -> float:
        """Cycles of a pass in the long run: the time from the end of the first pass to that of the last, over their
        number.

        A request is sent as soon as the FIFO has a place for its answer. The memory answers in order, after its
        latency and when its bus is free. The first request of a pass needs no result of the pass before, but the
        batch, which is complete when the pass before begins.
        """
        transfer = memory.burst / memory.bytes_per_cycle
        compare = self.compare_cycles(memory)
        written = self.probes * self.width / memory.bytes_per_cycle  # stores of a pass, in one piece
        count = self.bursts(memory)
        bus = compared = sent = 0.0
        left: deque[float] = deque()  # when each burst in the FIFO has been compared, or will have been
        ends = []
        for _ in range(passes + 1):
            bus += written
            for _ in range(count):
                if len(left) == memory.requests:
                    sent = max(sent, left.popleft())
                bus = max(bus, sent + memory.latency) + transfer
                compared = max(compared, bus) + compare
                left.append(compared)
            ends.append(compared)
        return (ends[-1] - ends[0]) / passes

    def efficiency(self, cycles: float) -> float:
        """The share of the comparators' cycles in which they compare, if a pass takes ``cycles``."""
        return self.tuples * self.probes / (self.comparators * cycles)


def bound(scan: ExternalScan, memory: Memory) -> float:
    """Cycles of a pass by the slowest of bandwidth, comparators and requests under way (Little's law)."""
    bursts, compare = scan.bursts(memory), scan.compare_cycles(memory)
    transfer = memory.burst / memory.bytes_per_cycle
    return max(bursts * transfer + scan.probes * scan.width / memory.bytes_per_cycle, bursts * compare,
               bursts * (memory.latency + transfer + compare) / memory.requests)


def probes_for(memory: Memory, *, width: int, comparators: int) -> float:
    """The probes of a batch from which on a long scan is not limited by the bandwidth: each tuple that is transferred
    must occupy the comparators for as long as it is transferred.
    """
    return comparators * width / memory.bytes_per_cycle


#: Clock of the circuit for which bytes a second become bytes a cycle, in MHz.
CLOCK_MHZ = 150
#: Share of its nominal bandwidth that a memory gives to long bursts, refresh and turns of the bus included.
_USABLE = 0.85


def _memory(name: str, gigabytes: float, nanoseconds: float, requests: int = 64) -> Memory:
    return Memory(name, _USABLE * gigabytes * 1e3 / CLOCK_MHZ, round(nanoseconds * CLOCK_MHZ / 1e3), requests)


#: Nominal bandwidth in GB/s, and assumed nanoseconds from a request to its first byte, controller included.
MEMORIES = (
    _memory("SDR SDRAM, 16 bits at 166 MHz", 0.332, 80),
    _memory("DDR3-800, 16 bits", 1.6, 150),
    _memory("DDR4-2400, 64 bits", 19.2, 150),
    _memory("HBM2, one of 32 pseudo-channels", 14.4, 250),
)
#: Probes of a batch.
PROBES = (1, 4, 16, 64, 256, 1024)
BY = ("model of cycles at 150 MHz (bench/external.py): 85 % of the nominal bandwidth, bursts of 64 bytes, 64 of them "
      "under way where nothing else is said, passes one after the other, as many stores as probes")


def sweep(out: Recorder, memory: Memory, *, tuples: int, width: int, comparators: int,
          probes: tuple[int, ...] = PROBES) -> None:
    """Efficiency against the probes of a batch."""
    for many in probes:
        scan = ExternalScan(tuples, width, comparators, many)
        cycles = scan.simulate(memory)
        out.add("external_efficiency", scan.efficiency(cycles), "of the peak", {
            "memory": memory.name, "bytes a cycle": round(memory.bytes_per_cycle, 2), "latency": memory.latency,
            "requests": memory.requests, "window": tuples, "tuple bytes": width, "comparators": comparators,
            "probes": many,
            "ktuples/s": float(f"{2 * many * CLOCK_MHZ * 1e3 / cycles:.3g}")}, BY)


def main() -> None:
    """The sweep over all memories."""
    quick = arguments(__doc__ or "").quick
    out = Recorder("external", quick=quick)
    for memory in MEMORIES[:1] if quick else MEMORIES:
        sweep(out, memory, tuples=1 << (14 if quick else 20), width=8, comparators=128)
    # Latency alone: a short window, where passes are hardly longer than the latency, with few requests under way.
    for requests in (1, 4, 16, 64):
        memory = replace(MEMORIES[2], name=f"{MEMORIES[2].name}, bursts under way: {requests}", requests=requests)
        sweep(out, memory, tuples=1 << 12, width=8, comparators=128, probes=PROBES[:-1])
    print(out.write())


if __name__ == "__main__":
    main()
