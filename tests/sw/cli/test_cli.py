"""The command line: results, counters, exit codes, and one-paragraph errors without a traceback."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import splitjoin
from splitjoin.cli import DONE, FAILURE, USAGE, main

from ...support.sampling import at_length

ON = "abs(r.x - s.a) <= 10"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with R.parquet, S.parquet and odd files, as the working directory."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(7)
    for name, column, n in (("R", "x", 90), ("S", "a", 70)):
        table = pa.table({"ts": np.sort(random.integers(0, 60, n)), column: random.integers(0, 99, n).astype(np.int32)})
        pyarrow.parquet.write_table(table, f"{name}.parquet")
        pyarrow.parquet.write_table(table.slice(0, 0), f"{name}-empty.parquet")
        pyarrow.parquet.write_table(table.take(list(range(n))[::-1]), f"{name}-unsorted.parquet")
        pyarrow.csv.write_csv(table, f"{name}.csv")
    pyarrow.parquet.write_table(pa.table({"x": [[1]]}), "lists.parquet")
    Path("broken.parquet").write_text("this is no Parquet")
    Path("latin.csv").write_bytes("ts,größe,x\n1,2,3\n".encode("latin-1"))
    Path("folder.csv").mkdir()
    return tmp_path


def join(*more: str, r: str = "R.parquet", s: str = "S.parquet", on: str = ON, window: str = "ROWS 20",
         output: str = "O.parquet") -> int:
    return main(["join", r, s, "--on", on, "--window", window, "-o", output, *more])


#: Small enough to be built quickly; tests that only need some circuit share its model.
CIRCUIT = ("--device", "sim", "--cores", "2", "--capacity", "32")


@pytest.mark.parametrize(("window", "time", "circuits"), [
    at_length("ROWS 17", (), [("sim", "2"), ("pysim", "1")]),
    ("RANGE 9", ("--time", "ts"), [("sim", "2"), ("pysim", "1")]),
    *(at_length(window, time, [(device, cores) for device in ("sim", "pysim") for cores in ("1", "2", "4", "8")])
      for window, time in (("ROWS 17", ()), ("RANGE 9", ("--time", "ts"))))])
def test_the_same_file_from_every_device(folder: Path, window: str, time: tuple[str, ...],
                                         circuits: list[tuple[str, str]]) -> None:
    assert join(*time, "--device", "golden", window=window, output="golden.parquet") == DONE
    golden = Path("golden.parquet").read_bytes()
    assert pyarrow.parquet.read_table("golden.parquet").num_rows > 20
    for engine in ("auto", "index", "nested"):
        assert join(*time, "--engine", engine, "--threads", "2", window=window) == DONE
        assert Path("O.parquet").read_bytes() == golden, engine
    for device, cores in circuits:
        assert join(*time, "--device", device, "--cores", cores, "--capacity", "32", window=window) == DONE
        assert Path("O.parquet").read_bytes() == golden, (device, cores)


def test_prints_pairs_and_counters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert join(*CIRCUIT) == DONE
    printed = capsys.readouterr()
    words = {line.rsplit(None, 1)[0].strip(): line.rsplit(None, 1)[1] for line in printed.out.splitlines()}
    assert list(words) == ["pairs", "cycles", "comparisons", "results per comparison", "comparisons per cycle",
                           "cycles input waited", "cycles output waited"]
    assert int(words["pairs"].replace(",", "")) == pyarrow.parquet.read_table("O.parquet").num_rows
    ratio = int(words["comparisons"].replace(",", "")) / int(words["cycles"].replace(",", ""))
    assert float(words["comparisons per cycle"]) == pytest.approx(ratio, abs=1e-3)
    assert printed.err == ""


def test_csv_both_ways(folder: Path) -> None:
    assert join(r="R.csv", s="S.csv", output="O.csv") == DONE
    assert join(output="P.parquet") == DONE
    assert pyarrow.csv.read_csv("O.csv").to_pydict() == pyarrow.parquet.read_table("P.parquet").to_pydict()


def test_select(folder: Path) -> None:
    assert join("--select", "s.a, ts_r") == DONE
    assert pyarrow.parquet.read_table("O.parquet").column_names == ["a", "ts_r"]
    assert join("--select", "s.a as bid, r.ts, ts_y AS \tlater", "--suffixes", "_x,_y") == DONE
    assert pyarrow.parquet.read_table("O.parquet").column_names == ["bid", "ts_x", "later"]
    assert join("--suffixes", ",2") == DONE
    assert {"ts", "ts2"} < set(pyarrow.parquet.read_table("O.parquet").column_names)
    assert join("--select", "a AS b AS c") == USAGE
    assert join("--select", "s.a AS b, s.a AS c") == USAGE
    assert join("--suffixes", "_x") == USAGE


@pytest.mark.parametrize("device", [("--device", "golden"), CIRCUIT], ids=str)
@pytest.mark.parametrize(("r", "s", "on"), [
    ("R-empty.parquet", "S.parquet", ON), ("R.parquet", "S-empty.parquet", ON),
    ("R-empty.parquet", "S-empty.parquet", ON), ("R.parquet", "S.parquet", "r.x > s.a + 1000")])
def test_no_rows_is_a_result(folder: Path, device: tuple[str, ...], r: str, s: str, on: str) -> None:
    assert join(*device, r=r, s=s, on=on) == DONE
    table = pyarrow.parquet.read_table("O.parquet")
    assert (table.num_rows, table.column_names) == (0, ["ts_r", "x", "ts_s", "a"])


PYSIM = ("pysim", "--cores", "1", "--capacity", "32")


@pytest.mark.parametrize(("device", "window", "other"), [
    (case, *other) if case != PYSIM else at_length(case, *other)
    for case in (("cpu",), ("golden",), PYSIM)
    for other in (("RANGE 5", "R.csv"), ("ROWS 3", "times.parquet"), ("RANGE 1 MINUTE", "times.parquet"),
                  ("RANGE 1 MINUTE", "header.csv"), ("RANGE 5", "header.csv"))], ids=str)
def test_a_csv_of_a_header_is_an_empty_stream(folder: Path, device: tuple[str, ...], window: str, other: str) -> None:
    Path("header.csv").write_text("ts,x,name\n")
    times = pa.array([1, 2, 3], pa.timestamp("us"))
    pyarrow.parquet.write_table(pa.table({"ts": times, "x": [1, 2, 3], "name": ["a", "b", "c"]}), "times.parquet")
    for r, s in (("header.csv", other), (other, "header.csv")):
        assert join("--time", "ts", "--device", *device, r=r, s=s, on="r.x = s.x", window=window,
                    output="O.csv") == DONE
        assert pyarrow.csv.read_csv("O.csv").num_rows == 0
        assert main(["sql", "SELECT t.x, q.x AS y FROM t JOIN q ON t.x = q.x", f"t={r}", f"q={s}", "--time", "ts",
                     "--device", *device, "--window", window, "-o", "O.csv"]) == DONE
        assert Path("O.csv").read_text() == '"x","y"\n'


@pytest.mark.parametrize(("window", "time"), [("RANGE 5", "int64"), ("RANGE 1 MINUTE", "us")])
def test_explain_takes_a_csv_of_a_header(folder: Path, capsys: pytest.CaptureFixture[str], window: str, time: str,
                                         ) -> None:
    Path("header.csv").write_text("ts,x\n")
    explain = ["explain", "--time", "ts", "--window", window, "--on", "r.x = s.x"]
    for s in ("header.csv", "ts:int64, x:int64" if time == "int64" else "ts:timestamp, x:int64"):
        assert main([*explain, "--schema-r", "header.csv", "--schema-s", s]) == DONE
        printed = capsys.readouterr().out
        assert "time        r.ts and s.ts, R before S where they are equal\n" in printed
        assert f"not older than {'5 units of the time column' if time == 'int64' else '1 min'}" in printed
    Path("nulls.csv").write_text("ts,x\n,1\n")
    assert main([*explain, "--schema-r", "nulls.csv", "--schema-s", "header.csv"]) == USAGE
    assert "the time column r.ts must be an integer, a date or a timestamp, not null" in capsys.readouterr().err


@pytest.mark.parametrize("on", ["r.name LIKE 'a%'", "r.at - INTERVAL '1' MINUTE > s.at",
                                "s.at - r.at > INTERVAL '1' HOUR", "abs(r.x - s.x) < 5 AND r.name = s.name"])
def test_conditions_over_a_csv_of_a_header(folder: Path, on: str) -> None:
    Path("header.csv").write_text("ts,x,name,at\n")
    Path("full.csv").write_text("ts,x,name,at\n1,2,a,2020-01-01 00:00:00\n")
    for s in ("full.csv", "header.csv"):
        assert join("--time", "ts", r="header.csv", s=s, on=on, window="RANGE 5") == DONE
        assert pyarrow.parquet.read_table("O.parquet").num_rows == 0


WRONG = {
    "column": (USAGE, {"on": "r.x = s.q"}, "stream s has no column 'q'"),
    "type": (USAGE, {"on": "r.x + s.a = 'text'"}, "cannot be compared"),
    "predicate": (USAGE, {"on": "abs(r.x - "}, "cannot be read at line 1, column 9"),
    "unsupported": (USAGE, {"on": "exp(r.x - s.a) < 1"}, "exp"),
    "window": (USAGE, {"window": "ROWS"}, "'ROWS'"),
    "rows zero": (USAGE, {"window": "ROWS 0"}, "at least 1"),
    "range without time": (USAGE, {"window": "RANGE 5"}, "time column"),
    "order": (USAGE, {"more": ("--order", "sorted")}, "'total'"),
    "kind": (USAGE, {"more": ("--how", "sideways")}, "how must be 'inner'"),
    "tolerance of pairs": (USAGE, {"more": ("--tolerance", "5")}, "tolerance belongs to how='asof'"),
    "mask without cores": (FAILURE, {"more": ("--mask", "1", "--device", "cpu")}, "has no cores to mask"),
    "mask of no core": (FAILURE, {"more": ("--mask", "7", "--device", "sim")}, "numbers from 0 to 3, not 7"),
    "mask in words": (FAILURE, {"more": ("--mask", "one", "--device", "sim")}, "such as 0,3, not 'one'"),
    "trace of the cpu": (FAILURE, {"more": ("--trace", "run.vcd")}, "has no waveforms to write"),
    "trace as text": (FAILURE, {"more": ("--trace", "run.txt", "--device", "sim")}, "must be a path that ends in .fst"),
    "time column": (USAGE, {"more": ("--time", "when")}, "no column 'when'"),
    "unsorted": (FAILURE, {"r": "R-unsorted.parquet", "more": ("--time", "ts")}, "must not decrease"),
    "too large": (FAILURE, {"window": "ROWS 9999", "more": ("--device", "sim", "--capacity", "64")}, "ROWS 256"),
    "missing file": (FAILURE, {"r": "nowhere.parquet"}, "there is no file nowhere.parquet"),
    "broken file": (FAILURE, {"r": "broken.parquet"}, "cannot be read as PARQUET"),
    "unknown suffix": (FAILURE, {"output": "O.xlsx"}, ".parquet, .csv, .arrow or .feather"),
    "output folder": (FAILURE, {"output": "none/O.csv"}, "create it first"),
    "output cannot be written": (FAILURE, {"output": "/proc/x.csv"}, "/proc/x.csv cannot be written"),
    "output name too long": (FAILURE, {"output": "o" * 300 + ".csv"}, "cannot be written: File name too long"),
    "output is a folder": (FAILURE, {"output": "folder.csv", "r": "nowhere.csv"}, "folder.csv is a folder"),
    "input name too long": (FAILURE, {"r": "r" * 9000 + ".csv"}, "cannot be read: File name too long"),
    "header not UTF-8": (FAILURE, {"r": "latin.csv"}, "must have column names in UTF-8"),
    "columns that CSV cannot hold": (FAILURE, {"r": "lists.parquet", "on": "TRUE", "output": "O.csv"},
                                    "column 'x' of the result has"),
    "golden has no capacity": (FAILURE, {"more": ("--capacity", "64")}, "--capacity"),
    "golden has no cores": (FAILURE, {"more": ("--cores", "4", "--device", "golden")}, "inner(n) and --mask only"),
    "cpu has no cores": (FAILURE, {"more": ("--device", "cpu", "--cores", "2")}, "--cores"),
    "cores": (FAILURE, {"more": ("--device", "sim", "--cores", "0")}, "cores must be"),
    "window twice": (USAGE, {"more": ("--window-r", "ROWS 3", "--window-s", "ROWS 4")}, "not both"),
    "overflow": (FAILURE, {"window": "RANGE 50", "more": ("--time", "ts", *CIRCUIT)}, "larger capacity"),
}


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_errors_are_one_paragraph(folder: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    code, arguments, said = WRONG[case]
    more = arguments.pop("more", ()) if "more" in (arguments := dict(arguments)) else ()
    assert join(*more, **arguments) == code  # type: ignore[arg-type]  # all are text
    printed = capsys.readouterr()
    assert printed.err.startswith("splitjoin: ")
    assert said in printed.err
    # A message, and perhaps the place in the condition with a mark under it.
    assert printed.err.count("\n") == 1 or (printed.err.count("\n") == 3 and printed.err.rstrip().endswith("^"))
    assert printed.out == ""
    assert not Path("O.parquet").exists()


def test_a_failed_run_leaves_the_old_file(folder: Path) -> None:
    assert join() == DONE
    before = Path("O.parquet").read_bytes()
    assert join(r="R-unsorted.parquet", window="RANGE 5") == USAGE
    assert Path("O.parquet").read_bytes() == before
    assert not list(folder.glob(".splitjoin*"))


def test_the_longest_file_name(folder: Path) -> None:
    assert join(output="o" * 247 + ".parquet") == DONE
    assert Path("o" * 247 + ".parquet").exists()


def test_missing_compiler_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch,
                                   capsys: pytest.CaptureFixture[str]) -> None:
    from splitjoin_sim import tools

    tools.cxx.cache_clear()
    monkeypatch.setenv("SPLITJOIN_CACHE", str(folder / "cache"))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CXX", raising=False)
    try:
        assert join("--device", "sim") == FAILURE
    finally:
        tools.cxx.cache_clear()
    assert "C++ compiler" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["join"], ["join", "--device", "fpga"], ["explain", "--cores", "many"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == USAGE
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["join", "verilog", "explain"])
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == DONE
    assert "exit code" in capsys.readouterr().out


def test_verilog(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verilog", "--on", ON, "--schema-r", "x:int32", "--schema-s", "R.parquet", "-o", "v"]) == USAGE
    capsys.readouterr()
    assert main(["verilog", "--on", ON, "--schema-r", "x:int32", "--schema-s", "a:int32?", "--cores", "3",
                 "-o", "v"]) == DONE
    sidecar = json.loads(Path("v/splitjoin.json").read_text())
    text = Path("v/splitjoin.v").read_text()
    assert sidecar["configuration"]["cores"] == 3
    assert sidecar["configuration"]["keys_s"] == [33]
    assert sidecar["settings"] == {"order": 2, "precision": 1, "slice": 0, "rows_r": 3072, "rows_s": 3072,
                                   "range_r": 2**64 - 1, "range_s": 2**64 - 1}
    assert text.count("\nmodule splitjoin_core (") == 1
    assert f"condition {ON}\n" in text[:text.index("module ")], "the header names the query"
    assert sidecar["query"]["verified"] is None
    assert capsys.readouterr() == ("v/splitjoin.v\nv/splitjoin.vlt\nv/splitjoin.json\n", "")


def test_verilog_says_what_the_circuit_leaves_to_the_host(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verilog", "--on", "r.x < s.a AND r.n = s.n", "--schema-r", "x:string, n:int32", "--schema-s",
                 "a:string, n:int32", "--cores", "1", "-o", "v"]) == DONE
    said = "This circuit finds candidates; on each of them the host must check: (r.x < s.a)"
    assert capsys.readouterr().err == f"{said}; `splitjoin explain` says why\n"
    assert f"// {said}\n" in Path("v/splitjoin.v").read_text()
    assert json.loads(Path("v/splitjoin.json").read_text())["query"]["verified"] == "(r.x < s.a)"


def test_verilog_with_axi_ports(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verilog", "--on", ON, "--schema-r", "x:int32", "--schema-s", "a:int32?", "--cores", "2", "--top",
                 "axi", "-o", "v"]) == DONE
    assert capsys.readouterr().out.split() == ["v/splitjoin.v", "v/splitjoin_axi.v", "v/splitjoin.vlt",
                                               "v/splitjoin_axi.core", "v/component.xml", "v/splitjoin_axi.rdl",
                                               "v/splitjoin.json"]
    sidecar = json.loads(Path("v/splitjoin.json").read_text())
    text = Path("v/splitjoin_axi.v").read_text()
    assert re.findall(r"^  splitjoin circuit \(", text, re.MULTILINE)
    declared = {name: {"direction": way.removesuffix("put"), "width": int(high or 0) + 1} for way, high, name in
                re.findall(r"^  (input|output) +(?:wire|reg) +(?:\[(\d+):0\] )?(\w+)",
                           text[text.index("\nmodule splitjoin_axi ("):], re.MULTILINE)}
    assert sidecar["ports"] == declared
    assert (sidecar["top"], declared["s_axis_tdata"]["width"], declared["m_axis_tdata"]["width"]) == (
        "splitjoin_axi", 8 * sidecar["axi"]["record_bytes"], 8 * sidecar["axi"]["item_bytes"])
    assert sidecar["axi"]["byte_addresses"]["abi"] == 4


@pytest.mark.parametrize(("code", "options"), [
    (FAILURE, ("--window", "ROWS 1000000", "--cores", "1", "--capacity", "64")), (FAILURE, ("--lanes", "3")),
    (FAILURE, ("--memory", "axi", "--testbench", "verilog"))])
def test_verilog_that_could_not_run_the_query_is_not_written(folder: Path, code: int, options: tuple[str, ...]) -> None:
    assert main(["verilog", "--on", ON, "--schema-r", "x:int32", "--schema-s", "a:int32", "-o", "v", *options]) == code
    assert not Path("v").exists()


@pytest.mark.parametrize(("option", "said"), [("--cores", "cores must be 1 to 1024, not 0"),
                                             ("--capacity", "capacity must be a power of two from 2 to 65536, not 0")])
@pytest.mark.parametrize("command", [("explain",), ("verilog", "-o", "v")], ids=str)
def test_parameters_are_blamed_before_windows(folder: Path, capsys: pytest.CaptureFixture[str], option: str, said: str,
                                              command: tuple[str, ...]) -> None:
    assert main([*command, "--on", ON, "--schema-r", "x:int32", "--schema-s", "a:int32", option, "0"]) == FAILURE
    assert said in capsys.readouterr().err


def test_golden_takes_cores_for_inner(folder: Path) -> None:
    assert join("--device", "golden", "--order", "inner(2)", "--cores", "4") == DONE


def test_explain_shows_passes(capsys: pytest.CaptureFixture[str]) -> None:
    query = ["explain", "--schema-r", "x:int32", "--schema-s", "a:int32?", "--on", "NOT (r.x > s.a) AND 1 < 2"]
    assert main(query) == DONE
    assert "pass  " not in capsys.readouterr().out
    assert main([*query, "--passes"]) == DONE
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in out if line.startswith("pass ")] == [
        "fold:", "logic:", "bounds:", "split:", "merge:", "share:", "main:"]
    assert out[out.index("pass        logic: three-valued logic becomes two-valued") + 1:][:2] == [
        "    (r.x <= s.a)", "    TRUE"]
    assert "    main test   scan: T0: an interval may hold all keys" in out


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    schemas = ["--schema-r", "x:int32, y:float32, n:string", "--schema-s", "a:int32?, b:float32, m:string"]
    assert main(["explain", *schemas, "--on", "abs(r.x - s.a) <= 10 AND r.n = s.m"]) == DONE
    printed = capsys.readouterr().out
    assert ("windows     none given: joins of whole tables compare all rows; a circuit would hold R the last 4096 "
            "tuples; S the last 4096 tuples\n") in printed
    assert "33 bits" in printed
    assert "dictionary" in printed
    assert "circuits    yes" in printed
    assert "\ncpu         yes: an index by T0 (range), T1 (hash), or nested loops" in printed
    assert main(["explain", *schemas, "--on", "abs(r.y - s.b) + abs(r.x - s.a) <= 10"]) == DONE
    printed = capsys.readouterr().out
    assert "circuits    yes" in printed
    assert "verified    on the host" in printed
    assert "because     " in printed
    assert "\ncpu         yes: " in printed
    assert printed.endswith("\ngpu         yes: nested loops over the expression itself\ngolden      yes\n")
    assert main(["explain", *schemas, "--on", "r.y * s.b <= 10"]) == DONE
    assert "\ngpu         no: it has no code for '(r.y * s.b)'" in capsys.readouterr().out
    assert main(["explain", *schemas, "--on", "r.n = s.m AND (r.x * s.a) % 2 = 0"]) == DONE
    assert "\ngpu         yes: nested loops; candidates are verified on the CPU\n" in capsys.readouterr().out


def test_a_small_circuit_is_one_core(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --cores, and with the window that it holds; other numbers are refused."""
    query = ["explain", "--schema-r", "x:bool", "--schema-s", "a:bool", "--on", "r.x = s.a", "--small"]
    assert main(query) == DONE
    printed = capsys.readouterr().out
    assert ("yes: 1 core of 1024 tuples a stream (ROWS up to 1024), no bits of time; a tuple at a time, with a "
            "comparison a cycle") in printed
    assert "\ndatapath    for both streams: " in printed and "\ncomparing   a comparison a cycle, " in printed
    assert main([*query[:-1], "--cores", "1"]) == DONE
    printed = capsys.readouterr().out
    assert "(2 streams × 1 core × lanes 1 × probes 1)" in printed and "1 bits" not in printed
    assert main([*query, "--cores", "4"]) == FAILURE
    assert "cores of a small circuit must be 1, not 4" in capsys.readouterr().err


SELECT = "SELECT t.ts, x - a AS gap FROM trades t JOIN quotes q ON abs(x - a) <= 10 WHERE x < 50"
TABLES = ("trades=R.parquet", "quotes=S.csv")


def test_sql_gives_the_rows_of_the_join(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert join("--select", "r.ts, x, a", on=f"{ON} AND x < 50") == DONE
    printed = capsys.readouterr().out
    want = [{"ts": row["ts_r"], "gap": row["x"] - row["a"]}
            for row in pyarrow.parquet.read_table("O.parquet").to_pylist()]
    for more in ((), ("--device", "golden"), CIRCUIT):
        assert main(["sql", SELECT, *TABLES, "--window", "ROWS 20", "-o", "Q.parquet", *more]) == DONE
        assert pyarrow.parquet.read_table("Q.parquet").to_pylist() == want
    assert capsys.readouterr().out.startswith(printed.split("\n")[0])
    near = ("--window", "RANGE 1", "--time", "ts", "--closed", "neither", "-o", "O.parquet")
    assert main(["sql", "SELECT r.ts FROM r, s", "r=R.parquet", "s=S.parquet", *near]) == DONE
    want = pyarrow.parquet.read_table("O.parquet").column("ts")
    assert main(["join", "R.parquet", "S.parquet", *near]) == DONE
    assert pyarrow.parquet.read_table("O.parquet").column("ts_r") == want
    assert 0 < len(want) < len(splitjoin.join("R.parquet", "S.parquet", window="RANGE 1", time="ts"))


def test_a_result_that_goes_nowhere_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = splitjoin.join("R.parquet", "S.parquet", on=ON)
    assert whole.num_rows > 20
    statement = f"SELECT * FROM R.parquet AS r, 'S.parquet' s WHERE {ON}"
    shown = list[str]()
    for command in (["join", "R.parquet", "S.parquet", "--on", ON], ["sql", statement]):
        assert main(command) == DONE
        table, counters = capsys.readouterr().out.split("\n\n")
        head, *rows, more = table.split("\n")
        assert (head.split(), len(rows), more) == (whole.column_names, 20, f"… {whole.num_rows - 20:,} more rows")
        assert counters.split("\n")[0] == f"{'pairs':22} {whole.num_rows:,}"
        shown.append(table)
    assert shown[0] == shown[1] == whole.text(20)
    assert main(["join", "R.parquet", "S.parquet", "--on", ON, "--format", "csv"]) == DONE
    assert len(capsys.readouterr().out.splitlines()) == whole.num_rows + 1


def test_what_nobody_counts_is_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A small circuit counts no comparisons, nor do rows that no join has found."""
    assert join("--device", "golden", output="golden.parquet") == DONE
    pairs = capsys.readouterr().out.split("\n")[0]
    small = ("--device", "pysim", "--small", "--capacity", "32")
    assert join(*small, "--how", "left") == DONE
    assert "comparisons" not in capsys.readouterr().out
    assert join(*small) == DONE
    assert capsys.readouterr().out == f"{pairs}\n"
    assert Path("O.parquet").read_bytes() == Path("golden.parquet").read_bytes()
    assert main(["sql", "SELECT * FROM trades POSITIONAL JOIN quotes", *TABLES, "-o", "Q.csv"]) == DONE
    assert re.fullmatch(r"pairs +\d+\nengine +rows by their places; the rest by DuckDB\n", capsys.readouterr().out)


@pytest.mark.long
def test_sql_with_tables_in_the_circuit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for more in ((), ("--device", "pysim", "--cores", "1", "--capacity", "32", "--tables")):
        assert main(["sql", SELECT.partition(" WHERE")[0], "trades=R.parquet", "quotes=S.parquet",
                     "--window", "ROWS 20", "-o", "Q.parquet", *more]) == DONE
        found.append(pyarrow.parquet.read_table("Q.parquet"))
    assert found[0].num_rows and found[1].equals(found[0])


@pytest.mark.parametrize(("more", "said"), [
    (("trades", "--window", "ROWS 2", "-o", "Q.csv"),
     "a table must be given as NAME=FILE, such as trades=trades.parquet, not 'trades'"),
    (("t=R.csv", "t=S.csv", "--window", "ROWS 2", "-o", "Q.csv"), "the table 't' is given twice; give it once"),
    ((*TABLES, "--explain", "--threads", "2", "--device", "golden"),
     "--explain runs nothing, on no device, and has no --threads, --device; leave it out"),
])
def test_sql_refuses(folder: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], said: str) -> None:
    assert main(["sql", SELECT, *more]) in (USAGE, FAILURE)
    assert capsys.readouterr().err == f"splitjoin: {said}\n"


def test_sql_shows_the_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "SELECT missing FROM trades, quotes"
    assert main(["sql", text, *TABLES, "--window", "ROWS 2", "-o", "Q.csv"]) == USAGE
    assert capsys.readouterr().err.split("\n")[1:3] == [f"    {text}", "    " + " " * 7 + "^" * 7]


def test_the_kind_of_core(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert join("--device", "golden", output="golden.parquet") == DONE
    assert join("--device", *PYSIM, "--core", "bucket") == DONE
    assert Path("O.parquet").read_bytes() == Path("golden.parquet").read_bytes()
    capsys.readouterr()
    assert join("--device", "pysim", "--core", "hash") == FAILURE
    assert "core hash needs an equality" in capsys.readouterr().err
    assert join("--core", "hash") == FAILURE
    assert "no circuit and has no --core" in capsys.readouterr().err
    schemas = ["--schema-r", "x:int32", "--schema-s", "a:int32"]
    for more, said in (((), "cores       hash by T0; "), (("--core", "scan"), "cores       scan; it was asked for\n"),
                       (("--probes", "4"), "cores       scan; lanes and probes, ")):
        assert main(["explain", *schemas, "--on", "r.x = s.a", *more]) == DONE
        assert said in capsys.readouterr().out
    assert main(["explain", *schemas, "--on", "r.x < s.a", "--core", "bucket"]) == DONE
    assert "circuits    no: core bucket needs a test" in capsys.readouterr().out


def test_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for on, more, said in (("r.x = s.a", ("--core", "hash"), "tables with core hash must be False, as it compares"),
                           ("r.x < s.a", (), "tables must be False for a condition without a test that is looked up")):
        assert join("--device", "pysim", "--tables", *more, on=on) == FAILURE
        assert said in capsys.readouterr().err
    assert join("--tables") == FAILURE
    assert "no circuit and has no --tables" in capsys.readouterr().err
    assert join("--fault-timeout", "9000") == FAILURE
    assert "no circuit and has no --fault-timeout" in capsys.readouterr().err
    schemas = ["--schema-r", "x:int32, y:int32", "--schema-s", "a:int32, b:int32"]
    explain = ["explain", *schemas, "--probes", "8", "--on"]
    assert main([*explain, "r.x = s.a AND r.y < s.b AND r.y > s.a - 4 AND r.y <= s.a", "--tables"]) == DONE
    assert "\ntables      T0, T2 looked up in LUT RAM, " in capsys.readouterr().out
    assert main(["explain", *schemas, "--on", "abs(r.x - s.a) <= 3", "--tables"]) == DONE
    assert "\ncores       scan; tables, which are asked for, are of scans\n" in capsys.readouterr().out
    assert main([*explain, "r.x = s.a"]) == DONE
    assert "\ntables " not in capsys.readouterr().out
    assert main([*explain, "r.x < s.a", "--tables"]) == DONE
    assert "\ncircuits    no: tables must be False for a condition without" in capsys.readouterr().out
    assert main(["verilog", *schemas, "--on", "r.x = s.a", "--cores", "1", "--probes", "4", "--tables",
                 "-o", "v"]) == DONE
    assert "table0_" in Path("v/splitjoin.v").read_text()


def test_verilog_without_its_condition(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For Verilog that is given to others; all but the texts is the same."""
    texts = {}
    for more in ([], ["--hide-condition"]):
        assert main(["verilog", "--schema-r", "x:int32", "--schema-s", "a:int32", "--on", "abs(r.x - s.a) <= 4711",
                     "--window", "ROWS 8", "--cores", "1", "--capacity", "64", "-o", "v", *more]) == 0
        texts[bool(more)] = Path("v/splitjoin.v").read_text(), json.loads(Path("v/splitjoin.json").read_text())
    assert "4711" in texts[False][0]
    assert texts[True][0] == texts[False][0].replace("condition abs(r.x - s.a) <= 4711", "condition (not shown)")
    assert texts[False][1].pop("query")["on"] == "abs(r.x - s.a) <= 4711"
    assert texts[True][1] == texts[False][1]
    assert main(["verilog", "--schema-r", "x:int32", "--schema-s", "a:int32, price:int16", "--on", "r.x = s.a",
                 "--window", "ROWS 8", "--cores", "1", "--capacity", "16", "--aggregate", "n=sum(s.price)",
                 "-o", "folds", "--hide-condition"]) == 0
    assert json.loads(Path("folds/splitjoin.json").read_text())["state"]["results"][0]["of"] == "(not shown)"
    assert not any("price" in path.read_text() for path in Path("folds").iterdir())
