"""The GPU engine: its kernel, and end to end beside the CPU engine with all cores. Run: python -m bench.gpu"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from bench.band import ON, streams
from bench.record import Recorder, arguments, commit
from splitjoin.base.processors import processors
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.cpu.codes import LaneCoder
from splitjoin.engines.cpu.finder import Batch
from splitjoin.engines.device import Device
from splitjoin.engines.gpu import GpuDevice
from splitjoin.engines.gpu.comparison import of_plan, plan_layout
from splitjoin.engines.gpu.driver import Gpu, gpu_name, is_simulated, open_gpu
from splitjoin.engines.gpu.finder import SHAPE, GpuFinder
from splitjoin.engines.gpu.kernel_source import KernelShape
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema, other_side
from splitjoin.plan.passes.compiler import make_plan

#: Arrivals of a batch, and exponents of the window.
BATCH, BITS = (1 << 16, (15, 18, 20)) if not is_simulated() else (64, (6,))
#: A condition that compares no keys.
SUM = "abs(r.x - s.a) + abs(r.y - s.b) <= 4"
KERNEL = "probes of R against the whole window of S, by the GPU's own clock; the best of five"
WHOLE = "push and poll of a batch behind full windows, order total, ordered items in host memory; the fastest of ten"


def query(window: str, on: str = ON) -> Query:
    """The band join; with times where ``window`` is a RANGE."""
    r, s = (timed(t) if "RANGE" in window else t for t in streams(1))
    return Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window=window,
                      time="ts" if "RANGE" in window else None)


def timed(table: pa.Table) -> pa.Table:
    """``table`` with a tuple at each tick."""
    return table.append_column("ts", pa.array(np.arange(len(table)), pa.int64()))


def kernel_seconds(gpu: Gpu, bits: int, shape: KernelShape = SHAPE, repeats: int = 5) -> tuple[float, int]:
    """The least seconds that the kernel takes for `BATCH` probes of a full window, and the matches it found."""
    window = 1 << bits
    plan = make_plan(query(f"ROWS {window}").predicate)
    coder, finder = LaneCoder(plan), GpuFinder(plan_layout(plan), gpu, shape)
    finder.compare({side: of_plan(plan, other_side(side)) for side in SIDES})
    r, s = streams(max(window, BATCH))
    probes, stored = coder.codes("r", r[:BATCH]), coder.codes("s", s[:window])
    windows = {"r": (np.zeros(BATCH, np.int64), np.full(BATCH, window, np.int64)),
               "s": (np.zeros(window, np.int64), np.zeros(window, np.int64))}
    batch = Batch(np.zeros(BATCH, np.uint8), {"r": 0, "s": 0}, {"r": probes.keys, "s": stored.keys},
                  {"r": probes.lows + probes.highs, "s": stored.lows + stored.highs}, windows, {"r": 0, "s": 0})
    finder.keep(batch)
    finder.expire(batch)
    work, took = finder.works["r"], []
    work._room = 1 << 23
    with gpu:
        work.begin(batch, storing=False, finding=True)
        work.found(batch)
        begun, counters, hits = work._begun, work._buffers["counters"], work._buffers["hits"]
        assert begun is not None
        zero = np.zeros(len(counters), np.uint32)
        for _ in range(1 + repeats):
            counters.copy_to_device(zero, work.stream)
            work.stream.synchronize()
            before, after = gpu.cuda.event(), gpu.cuda.event()
            before.record(work.stream)
            work.start("append", begun.launch, begun.at, begun.room, counters, hits)
            after.record(work.stream)
            after.synchronize()
            took.append(before.elapsed_time(after) / 1000)
        matches = int(counters.copy_to_host(stream=work.stream).sum())
    finder.close()
    return min(took), matches


def batches(one: Query, bits: int, n: int) -> Iterator[Arrivals]:
    """The arrivals of full windows in one part, then ``n`` batches."""
    window = 1 << bits
    r, s = streams(window + n * BATCH // 2)
    if one.time is not None:
        r, s = timed(r), timed(s)
    yield arrivals(one, r[:window], s[:window])
    for at in range(window, len(r), BATCH // 2):
        part = slice(at, at + BATCH // 2)
        yield arrivals(one, r[part], s[part])


def end_to_end(device: Device, window: str, bits: int, n: int, on: str = ON) -> dict[str, Any]:
    """Seconds of the fastest of ``n`` batches behind full windows, its comparisons, and the session's plan."""
    one, times = query(window, on), []
    with device.open(one) as session:
        parts = batches(one, bits, n)
        session.push(next(parts))
        session.poll()
        first = session.counters()
        for part in parts:
            began = time.perf_counter()
            session.push(part)
            session.poll()
            times.append(time.perf_counter() - began)
        last = session.counters()
        moved = {name: (last[name] - first[name]) / (n * BATCH) for name in last if name.startswith("bytes")}
        compared = (last["comparisons"] - first["comparisons"]) / n
        return {"seconds": min(times), "comparisons": compared, "plan": session.plan(),
                "matches": last["matches"] - first["matches"], **moved}


def measure(out: Recorder, gpu: Gpu, quick: bool) -> None:
    """All figures."""
    name, cores = gpu_name(), processors()
    rate = {}
    for bits in BITS[:2] if quick else BITS:
        seconds, _ = kernel_seconds(gpu, bits)
        rate[bits] = BATCH * 2.0**bits / seconds / 1e12
        out.add("kernel_rate", rate[bits], "Tcmp/s", {"gpu": name, "window": f"2^{bits}", "probes": BATCH}, KERNEL)
    devices: dict[str, Device] = {"gpu": GpuDevice(), "cpu": CpuDevice(),
                                  "cpu, nested": CpuDevice(engine="nested")}
    for bits in BITS[:2] if quick else BITS:
        for window, text in ((f"ROWS {1 << bits}", f"ROWS 2^{bits}"), (f"RANGE {(1 << bits) - 1}", f"RANGE 2^{bits}")):
            for label, device in devices.items():
                if label == "cpu, nested" and (bits > 18 or "RANGE" in window):
                    continue  # seconds a batch
                best = end_to_end(device, window, bits, 3 if quick or label == "cpu, nested" else 10)
                config = {"device": label, "on": name if label == "gpu" else f"{cores} processors", "window": text,
                          "batch": BATCH}
                compared = best["comparisons"] / best["seconds"] / 1e12
                out.add("rate", BATCH / best["seconds"] / 1e6, "M tuples/s", config, WHOLE)
                out.add("comparisons", compared, "Tcmp/s", config, f"{WHOLE}; pairs within the windows")
                if label == "gpu":
                    out.add("share_of_kernel", compared / rate[bits], "", config, "of the rate of the kernel alone")
                    for way in ("sent", "received"):
                        out.add(f"bytes_{way}", best[f"bytes_{way}"], "bytes a tuple", config, "over PCIe")
    bits = BITS[min(1, len(BITS) - 1)]
    best = end_to_end(devices["gpu"], f"ROWS {1 << bits}", bits, 3, SUM)
    out.add("comparisons", best["comparisons"] / best["seconds"] / 1e12, "Tcmp/s",
            {"device": "gpu", "on": name, "window": f"ROWS 2^{bits}", "batch": BATCH, "condition": SUM}, WHOLE)


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("gpu", quick=options.quick, common={"commit": commit()})
    measure(out, open_gpu(0), options.quick)
    print(out.write())


if __name__ == "__main__":
    main()
