"""Device sessions that live on between micro-batches: the same pairs, and only new tuples are pushed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import splitjoin
from splitjoin.engines.device import Device
from splitjoin.engines.golden import GoldenDevice
from splitjoin.link.daemon.client import DaemonDevice
from splitjoin.spark.streaming import task as tasks
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ....support.micro_batches import MicroBatches
from ....support.sampling import at_length
from ....support.spark_streams import rows
from ...link.daemon.conftest import counts, serving, until

ON = "abs(r.x - s.a) <= 4"
#: Tuples of each stream in a micro-batch.
N = 20


def batches(n: int, *, back: int = 0, seed: int = 1) -> list[tuple[pa.Table, pa.Table]]:
    """Micro-batches of 10 ticks each, whose times may be up to ``back`` ticks before."""
    rng = np.random.default_rng(seed)
    found = []
    for batch in range(n):
        made = [pa.table({"ts": np.maximum(0, rng.integers(10 * batch - (back if batch else 0), 10 * batch + 10, N)),
                          name: rng.integers(0, 30, N).astype(np.int32)}) for name in ("x", "a")]
        found.append((made[0], made[1]))
    return found


def joined(root: Path, device: str | Device, window: Any = "RANGE 25", *, late: int = 0, order: str = "none",
           groups: int = 1, kept: bool = True) -> MicroBatches:
    (r, s), = batches(1)
    return MicroBatches(str(root), r.schema, s.schema, late, {"on": ON, "window": window, "time": "ts", "order": order},
                        groups, device, {"r": ("x",), "s": ("a",)}, kept=kept)


def run(query: MicroBatches, parts: Sequence[tuple[pa.Table, pa.Table]]) -> tuple[pa.Table, list[int]]:
    """The pairs, and the tuples pushed in each micro-batch."""
    found, pushed = [], []
    for r, s in parts:
        found.append(query.run([r], [s]))
        pushed.append(query.counts["pushed_rows"])
    return pa.concat_tables(found), pushed


def want(parts: Sequence[tuple[pa.Table, pa.Table]], window: Any = "RANGE 25") -> Any:
    r, s = (pa.concat_tables(part[n] for part in parts) for n in (0, 1))
    r, s = (table.sort_by([("ts", "ascending"), (name, "ascending")]) for table, name in ((r, "x"), (s, "a")))
    return rows(splitjoin.join(r, s, on=ON, window=window, time="ts", device="golden"))


@pytest.mark.parametrize("device", ["golden", "cpu", SimDevice(cores=2, capacity=64, stall_in=0.3, stall_out=0.3),
                                    at_length(PysimDevice(cores=2, capacity=64, stall_in=0.3, stall_out=0.3))], ids=str)
def test_only_new_tuples_are_pushed(tmp_path: Path, device: str | Device) -> None:
    parts = batches(5)
    found, pushed = run(joined(tmp_path / "kept", device), parts)
    assert rows(found) == want(parts)
    assert pushed == [2 * N] * 5
    again, windows = run(joined(tmp_path / "anew", device, kept=False), parts)
    assert rows(again) == rows(found)
    assert windows[-1] > 2.5 * pushed[-1]


def test_groups_divide_one_stream_and_share_the_comparisons(tmp_path: Path) -> None:
    parts = batches(5)
    one = joined(tmp_path / "one", "golden")
    run(one, parts)
    query = joined(tmp_path / "three", "golden", groups=3)
    found, pushed = run(query, parts)
    assert rows(found) == want(parts)
    assert pushed == [N + 3 * N] * 5  # R once, S to every group
    assert query.counts["comparisons"] == one.counts["comparisons"]


def test_the_order_total_and_windows_of_rows_keep_sessions_too(tmp_path: Path) -> None:
    parts = batches(5)
    window = {"r": "ROWS 30", "s": "ROWS 9 RANGE 30"}
    end = tuple(pa.table({"ts": [10**6], name: pa.array([None], pa.int32())}) for name in ("x", "a"))
    for groups in (1, 2):
        query = joined(tmp_path / str(groups), "golden", window, groups=groups,
                       order="none" if groups > 1 else "total")
        found, pushed = run(query, [*parts, (end[0], end[1])])
        assert rows(found) == want(parts, window)
        assert sum(pushed) <= 5 * N * (1 + groups) + 2


def test_tuples_that_come_out_of_order_widen_the_windows_of_a_session(tmp_path: Path) -> None:
    parts = batches(12, back=6)
    query = joined(tmp_path, "golden", {"r": "RANGE 25", "s": "RANGE 18"}, late=10)
    found, pushed = run(query, parts)
    assert rows(found) == want(parts, {"r": "RANGE 25", "s": "RANGE 18"})
    assert sum(n == 2 * N for n in pushed) >= 9
    assert max(pushed) > 2 * N  # opened again with more slack


def test_tuples_too_far_out_of_order_do_without_a_session(tmp_path: Path) -> None:
    parts = batches(8, back=60)
    query = joined(tmp_path, "golden", late=100)
    found, pushed = run(query, parts)
    assert rows(found) == want(parts)
    assert pushed[-1] > 2 * N
    assert all(entry.kept is None and entry.pause for entry in tasks._SESSIONS._entries.values())


def test_a_micro_batch_that_runs_again_fills_a_session_from_the_state(tmp_path: Path) -> None:
    parts = batches(6)
    query = joined(tmp_path, "golden")
    run(query, parts[:3])
    query.batch = 2
    found, pushed = run(query, parts[2:])
    assert pushed[0] > 2 * N  # the session was at the version after it
    assert pushed[-1] == 2 * N
    first, _ = run(joined(tmp_path / "first", "golden"), parts[:2])
    assert rows(first) + rows(found) == want(parts)


def test_a_daemons_session_outlives_the_python_worker(tmp_path: Path) -> None:
    parts = batches(6)
    with serving(tmp_path, [GoldenDevice()]) as server:
        query = joined(tmp_path / "state", DaemonDevice(socket=server.path))
        found = []
        for r, s in parts:
            found.append(query.run([r], [s]))
            assert query.counts["pushed_rows"] == 2 * N
            tasks._CACHE.clear()
            tasks._SESSIONS = type(tasks._SESSIONS)()  # another worker, which knows nothing
        assert rows(pa.concat_tables(found)) == want(parts)
        assert (counts(server)["sessions"], counts(server)["attached"]) == (1, 5)


def test_a_circuit_behind_a_daemon(tmp_path: Path) -> None:
    parts = batches(4)
    with serving(tmp_path, [SimDevice(cores=2, capacity=64)]) as server:
        query = joined(tmp_path / "state", DaemonDevice(socket=server.path))
        assert rows(run(query, parts)[0]) == want(parts)
        assert counts(server)["tuples"] == 2 * N * 4
        until(lambda: server.status()["devices"][0]["state"] == "detached")


def test_a_daemon_that_ends_costs_a_reload(tmp_path: Path) -> None:
    parts = batches(6)
    query = joined(tmp_path / "state", "golden")
    found = []
    for n, (r, s) in enumerate(parts):
        if n % 2 == 0:
            folder = tmp_path / str(n)
            folder.mkdir(mode=0o700)
            server = serving(folder, [GoldenDevice()])
            query = replace(query, device=DaemonDevice(socket=server.__enter__().path))
        found.append(query.run([r], [s]))
        if n % 2:
            server.__exit__(None, None, None)
    assert rows(pa.concat_tables(found)) == want(parts)


def test_two_groups_with_one_device_soon_stop_taking_it_from_each_other(tmp_path: Path) -> None:
    parts = batches(12)
    with serving(tmp_path, [GoldenDevice()]) as server:
        query = joined(tmp_path / "state", DaemonDevice(socket=server.path), groups=2)
        found, _ = run(query, parts)
        assert rows(found) == want(parts)
        assert counts(server)["taken"] < 8


def test_settings_may_change_what_is_kept(tmp_path: Path) -> None:
    parts = batches(9)
    query, found = joined(tmp_path, "golden", groups=2), []
    for n, (r, s) in enumerate(parts):
        query = replace(query, kept=n % 4 != 2, groups=2 if n < 6 else 3)
        found.append(query.run([r], [s]))
    assert rows(pa.concat_tables(found)) == want(parts)


@pytest.mark.parametrize("device", ["golden", "daemon"])
def test_two_attempts_of_a_task_at_the_same_time(tmp_path: Path, device: str) -> None:
    """As speculative tasks run: each gives all pairs, and the query goes on from either one's state."""
    parts = batches(6)
    with serving(tmp_path, [GoldenDevice(), GoldenDevice()]) as server:
        query = joined(tmp_path / "state", DaemonDevice(socket=server.path) if device == "daemon" else device)
        found = []
        for n, (r, s) in enumerate(parts):
            attempts = [query._group(query.task(), 0, [r], [s]) for _ in range(2)]
            rows_of: list[list[pa.RecordBatch]] = [[], []]
            going = {0, 1}
            while going:
                for attempt in sorted(going, reverse=n % 2 == 1):
                    one = next(attempts[attempt], None)
                    rows_of[attempt] += [] if one is None else [one]
                    going -= {attempt} if one is None else set()
            first, second = (pa.Table.from_batches(part).filter(pc.field("__splitjoin").is_null()) for part in rows_of)
            assert rows(first) == rows(second)
            found.append(first.drop_columns(["__splitjoin"]).cast(query.task().result))
            query.batch += 1
    assert rows(pa.concat_tables(found)) == want(parts)
