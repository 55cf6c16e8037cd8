"""The benchmarks' page is what the committed results say."""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from bench import (
    circuits,
    conclusions,
    cpu,
    energy,
    evaluation,
    evaluation_pages,
    first_hour,
    hour_joins,
    large_files,
    latency,
    link_schedules,
    predicates,
    record,
    soak,
    synthesis,
    table_threads,
    tables,
)

from splitjoin.base.errors import DeviceError

BENCH = Path(__file__).parent.parent / "bench"


def test_scripts_find_what_they_import() -> None:
    for path in sorted(BENCH.glob("*.py")):
        module = importlib.import_module(f"bench.{path.stem}")
        assert module.__doc__, path
        assert hasattr(module, "main") == ("__main__" in path.read_text()), path


def test_a_rate_is_sustained_while_no_queue_grows() -> None:
    """Tuples that are accepted every ten cycles, however long the first ones waited."""
    run = evaluation.Run(np.arange(500, 4500, 10), np.empty(0, np.int64), {})
    assert run.cycles == 10
    assert not run.grows(0.1)
    assert not run.grows(0.05)
    assert run.grows(0.102)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 1.0])
def test_as_many_pairs_match_as_a_case_says(share: float) -> None:
    x, a = (np.random.default_rng(seed).integers(1, evaluation.VALUES + 1, 2000) for seed in (1, 2))
    found = float((abs(x[:, None] - a) <= evaluation.reach(share)).mean())
    assert found == pytest.approx(share, rel=0.05)


def test_no_figure_of_the_evaluation_is_there_twice() -> None:
    rows = tables.results()["evaluation"]["rows"]
    assert len({(row["metric"], row["part"], str(row["config"])) for row in rows}) == len(rows)


def test_visiting_latencies_are_those_of_splitjoins_equations() -> None:
    """Equations 6 and 2, in all committed figures of windows by time."""
    rows = [row for row in tables.results()["evaluation"]["rows"] if row["metric"].endswith("pair_latency")
            and row["config"]["architecture"] in ("splitjoin", "low-latency-handshake")
            and row["config"]["kind"] == "RANGE" and "load" not in row["config"]]
    assert len(rows) >= 9
    for row in rows:
        case = [row["config"][name] for name in ("architecture", "cores", "window")]
        assert evaluation_pages.visiting_latency(*case) == pytest.approx(row["value"], rel=0.02), case


def test_activity_is_the_share_of_bits_that_change(tmp_path: Path) -> None:
    """Of four bits beside the clock, from the second cycle on: one, and two of them, in two cycles."""
    waveform = tmp_path / "model.vcd"
    waveform.write_text("""$scope module TOP $end
  $var wire 1 ! clk $end
  $var wire 3 " word [2:0] $end
  $var wire 1 # bit $end
$enddefinitions $end
#5000\n0!\nb101 "\n0#
#10000\n1!\nb010 "
#15000\n0!
#20000\n1!\nb011 "
#25000\n0!
#30000\n1!\nb001 "\n1#
""")
    assert energy.activity(waveform, 1) == 3 / 2 / 4


def test_an_ordered_core_takes_a_tenth_of_the_cycles_of_a_scan() -> None:
    found = {row["config"]["core"]: row["value"] for row in tables.results()["circuits"]["rows"]
             if row["metric"] == "ordered_cycles_per_tuple" and row["config"]["window"] == 2**12
             and row["config"]["on"] == "r.x < s.a AND s.a < r.x + 1000"}
    assert 10 * found["ordered"] < found["scan"]


def test_the_pages_are_up_to_date() -> None:
    files = tables.results()
    assert conclusions.page(files) == tables.PAGE.read_text()
    assert set(files) == set(conclusions.TOPICS)
    written = tables.figures(files)
    assert set(written) == set(tables.FIGURES.iterdir())
    assert [path.name for path, text in {**written, **tables.topics(files)}.items() if path.read_text() != text] == []


def test_committed_results_are_full_runs_with_sound_rows() -> None:
    files = list((BENCH / "results").glob("*.json"))
    assert files
    for path in files:
        data = json.loads(path.read_text())
        assert data["quick"] is False, path
        for row in data["rows"]:
            assert set(row) - {"part", "quick"} == {"metric", "value", "unit", "config", "how"}


def test_the_circuits_results_hold_every_metric() -> None:
    rows = json.loads((BENCH / "results" / "circuits.json").read_text())["rows"]
    assert {row["metric"] for row in rows} >= {
        "scan_efficiency", "latency_constant_cycles", "ecp5_lut4_per_comparison", "ecp5_mhz", "ecp5_peak_gcmps",
        "xcup_lut_per_comparison", "index_cycles_per_tuple", "verilog_seconds", "verilator_build_seconds"}
    assert all(row["config"] for row in rows)


def folders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Folders in ``folder`` that the recorder has from now on for full runs, and for quick ones."""
    monkeypatch.setattr(record, "RESULTS", folder / "results")
    monkeypatch.setattr(record, "QUICK", folder / "new" / "quick")
    return record.RESULTS, record.QUICK


def test_recorder_writes_what_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                           capsys: pytest.CaptureFixture[str]) -> None:
    for folder, quick in zip(folders(tmp_path, monkeypatch), (False, True), strict=True):
        out = record.Recorder("some", quick=quick)
        out.add("speed", 1.5, "m/s", {"wind": 3}, "by eye")
        assert out.write() == folder / "some.json"
        data = json.loads((folder / "some.json").read_text())
        assert data["quick"] is quick
        assert data["rows"] == [{"metric": "speed", "value": 1.5, "unit": "m/s", "config": {"wind": 3},
                                 "how": "by eye"}]
        assert "speed" in capsys.readouterr().out


def test_recorder_replaces_its_own_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full, short = folders(tmp_path, monkeypatch)
    for part, quick, value in (("a", False, 1), ("b", False, 2), ("a", True, 3), ("a", False, 4), ("b", True, 5)):
        out = record.Recorder("some", quick=quick, part=part)
        out.add("speed", value, "m/s", {"wind": 3}, "by eye")
        out.write()
    for folder, quick, want in ((full, False, [("b", 2), ("a", 4)]), (short, True, [("a", 3), ("b", 5)])):
        data = json.loads((folder / "some.json").read_text())
        assert data["quick"] is quick
        assert [(row["part"], row["value"]) for row in data["rows"]] == want


def test_only_the_recorder_knows_where_results_go() -> None:
    """The others that name the folder read it: `boards` to go on where a run ended, `predicates --only` to replace
    rows of a full run in it, and `sustained` for the clocks of routed circuits.
    """
    named = {path.stem for path in BENCH.glob("*.py") if "RESULTS" in path.read_text()}
    assert named == {"record", "against", "boards", "predicates", "sustained"}


def test_quick_results_go_where_git_does_not_look() -> None:
    quick = record.QUICK
    assert quick.is_relative_to(BENCH.parent / "build")
    assert "build/" in (BENCH.parent / ".gitignore").read_text().splitlines()


def quick_run(script: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch, measuring: dict[str, Any],
              more: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """The rows of ``--quick``, ``measuring`` in the place of what takes long; nothing committed may be written."""
    _, quick = folders(folder, monkeypatch)
    for attribute, value in measuring.items():
        monkeypatch.setattr(script, attribute, value)
    monkeypatch.setattr(sys, "argv", [script.__name__, "--quick", *more])
    files = [p for top in ("bench/results", "docs") for p in (BENCH.parent / top).rglob("*") if p.is_file()]
    before = [p.stat().st_mtime_ns for p in files]
    script.main()
    assert [p.stat().st_mtime_ns for p in files] == before
    (written,) = quick.iterdir()
    data = json.loads(written.read_text())
    assert data["quick"] is True
    return list(data["rows"])


def some(out: Any, *_: Any, **__: Any) -> None:
    out.add("speed", 1.5, "m/s", {"wind": 3}, "by eye")


def test_a_quick_synthesis_leaves_what_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = quick_run(synthesis, tmp_path, monkeypatch, {"matcher": some, "core": some})
    assert [row["part"] for row in rows] == ["synthesis"] * 2


def test_quick_circuits_leave_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = quick_run(circuits, tmp_path, monkeypatch, {"QUICK": {"scan": some, "build": some},
                                                         "PARTS": {"scan": None, "build": None}})
    assert [row["part"] for row in rows] == ["scan", "build"]


@pytest.mark.parametrize("more", [(), ("--only", "manhattan")])
def test_quick_predicates_leave_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                         more: tuple[str, ...]) -> None:
    def measure(out: Any, case: Any, *_: Any, **__: Any) -> None:
        out.add("agree", 1, "", {"predicate": case.name}, "")

    rows = quick_run(predicates, tmp_path, monkeypatch, {"measure": measure, "bands": some}, more)
    names = [row["config"].get("predicate") for row in rows]
    assert names == ["manhattan"] if more else names[-1] is None and len(names) > 40


def test_cpu_bench_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders(tmp_path, monkeypatch)
    out = record.Recorder("cpu", quick=True)
    cpu.nested(out, 8, 5000)
    cpu.index(out, 8, 20_000, 1)  # asserts that DuckDB finds as many pairs
    cpu.scaling(out, 8, "nested", 5000)
    rows = json.loads(out.write().read_text())["rows"]
    assert {r["metric"] for r in rows} == {"nested_gcmps_per_core", "index_mtuples_per_s", "duckdb_mtuples_per_s",
                                           "index_to_duckdb", "polars_mtuples_per_s", "thread_scaling"}
    assert all(r["value"] > 0 for r in rows)


def test_latency_bench_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "WINDOW", 256)
    assert latency.sustainable(2000) > 0
    found = latency.latencies(2000, 1.5)
    assert len(found) == 499
    assert (found > 0).all()


def test_soak_finds_what_differs() -> None:
    same = soak.Load(64, 200, 900, {"cpu": "cpu", "golden": "golden"})
    same.push(200)
    assert same.differs() is None
    assert same.pairs > 100
    same._sums["cpu"].update(b"more")
    assert "golden" in same.differs()


def test_each_schedule_of_faults_has_its_own_and_names_what_is_wrong(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = [link_schedules.schedule(seed) for seed in range(300)]
    assert drawn == [link_schedules.schedule(seed) for seed in range(300)]
    assert len({tuple(faults.values()) for faults in drawn}) == 300
    for name in ("drop", "flip", "double", "delay", "unplug", "reset", "pack"):
        assert 0 < sum(bool(faults[name]) for faults in drawn) < 300
    for faults in drawn:
        assert any(value for name, value in faults.items() if name not in ("pack", "fault_seed"))

    def run(seed: int, faults: dict[str, Any]) -> tuple[Any, bool]:
        if seed == 8:
            raise DeviceError("it hangs")
        return link_schedules.Counter(restarts=1), seed != 6

    monkeypatch.setattr(link_schedules, "run", run)
    for first, text in ((3, "the rows of schedule 6 differ from the golden model's"),
                        (7, "schedule 8 ended with an error")):
        monkeypatch.setattr(sys, "argv", ["link_schedules", "--schedules", "5", "--first", str(first)])
        assert link_schedules.main() == 1
        assert text in capsys.readouterr().err


def test_every_engine_agrees_on_every_condition() -> None:
    data = json.loads((BENCH / "results" / "predicates.json").read_text())
    assert predicates.PAGE.read_text(encoding="utf-8") == predicates.page(data)
    rows = {row["config"]["predicate"]: row for row in data["rows"] if row["metric"] == "agree"}
    assert set(rows) == {case.name for case in predicates.cases()}
    assert len(rows) >= 40
    for row in rows.values():
        assert row["value"] == 1
        assert set(row["config"]["agree"]) == set(predicates.BACK_ENDS)


def test_a_condition_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders(tmp_path, monkeypatch)
    out = record.Recorder("predicates", quick=True)
    case = next(c for c in predicates.cases() if c.name == "manhattan")
    predicates.measure(out, case, ("duckdb", "cpu"), mapped=False)
    (row,) = json.loads(out.write().read_text())["rows"]
    assert row["value"] == 1
    assert row["config"]["agree"] == {"duckdb": True, "cpu": True}
    assert row["config"]["plan"] == "2 tests, keys of R 33+33, of S 33+33 bits"
    assert row["config"]["lut4"] is None
    assert row["config"]["stages"] == 3
    assert row["config"]["lut4_predicted"] > 4 * 4 * 33


def test_large_files_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any order on the disk, with the rows that all pairs give."""
    folders(tmp_path, monkeypatch)
    monkeypatch.setattr(large_files, "FEW", 500)
    out = record.Recorder("large_files", quick=True)
    large_files.measure(out, 1000, ("sorted first",))
    index = np.arange(1000, dtype=np.uint64)
    x, a = (large_files.drawn(index, column) for column in (0, 8))
    near = abs(np.subtract.outer(np.arange(1000), np.arange(1000))) <= 250
    expected = np.count_nonzero(near & (abs(np.subtract.outer(x, a)) <= 10))
    assert [row["config"]["result"] for row in out.rows] == [expected, expected]


def test_threads_give_the_same_rows_of_whole_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders(tmp_path, monkeypatch)
    out = record.Recorder("table_threads", quick=True)
    table_threads.measure(out, "left, a band", 2000, [1, 2])
    rows = json.loads(out.write().read_text())["rows"]
    assert [row["config"]["engine"] for row in rows] == [*6 * ["splitjoin"], *4 * ["duckdb"]]
    assert [row["config"]["threads"] for row in rows[::2]] == [1, 2, "auto", 1, 2]


def test_first_hour_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each engine in a process of its own, and pairs compared."""
    folders(tmp_path, monkeypatch)
    out = record.Recorder("first_hour", quick=True)
    first_hour.joins(out, hour_joins.BANDS, 2000, ("duckdb", "polars"))
    rows = json.loads(out.write().read_text())["rows"]
    assert [row["metric"] for row in rows] == 2 * [*2 * ["join_cpu_seconds", "join_seconds"], "join_memory"]
    (pairs,) = {row["config"]["pairs"] for row in rows if "pairs" in row["config"]}
    assert pairs > 1
