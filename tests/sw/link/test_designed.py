"""A design tells what its circuit folds: queries get the states that it has, and others are refused by name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import DeviceError, InputError, UnsupportedError
from splitjoin.circuit.driver import CircuitDevice
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import chosen_circuit
from splitjoin.cli import main
from splitjoin.engines.registry import device
from splitjoin.lang.query import Query
from splitjoin.link.sidecar import Sidecar

from ...support.user_aggregates import Variance

R = pa.schema([pa.field("ts", pa.int64(), False), pa.field("x", pa.int16(), False)])
S = pa.schema([pa.field("ts", pa.int64(), False), pa.field("a", pa.int16(), False), pa.field("p", pa.int16())])
CIRCUIT: dict[str, Any] = {"cores": 1, "capacity": 16, "core": "scan"}
BUILT = {"n": "count(*)", "mean": "avg(s.p)", "high": "max(s.a)"}


def query(aggregate: Any = None, **other: Any) -> Query:
    given = {"on": "abs(r.x - s.a) <= 6", "window": "RANGE 6", "time": "ts", **other}
    return splitjoin.query(R, S, aggregate=aggregate, **given)


def built(path: Path, asked: Query, **options: Any) -> str:
    parameters = CircuitParameters(**CIRCUIT, **options)
    Sidecar.of(parameters, chosen_circuit(asked, parameters).config, board="ulx3s_85f", clock_hz=25_000_000,
               baud=3_000_000, aggregates=asked.aggregates, query={"how": asked.kind.how}).write(path)
    return str(path)


def board(design: str | None, **options: Any) -> CircuitDevice:
    made = device("uart:none", design=design, **options)
    assert isinstance(made, CircuitDevice)
    return made


@pytest.mark.parametrize(("asked", "parts"), [
    (BUILT, [[0], [1, 2], [3]]), ({"top": "max(s.a)"}, [[3]]),
    ({"mean": "avg(s.p)", "total": "sum(s.p)", "prices": "count(s.p)", "n": "count(*)"}, [[1, 2], [1], [2], [0]]),
])
def test_a_query_may_ask_for_some_of_the_aggregates_in_any_order(asked: dict[str, str], parts: list[list[int]],
                                                                 tmp_path: Path) -> None:
    found = board(built(tmp_path / "design.json", query(BUILT))).circuit(query(asked))
    assert found.config == board(None, **CIRCUIT).circuit(query(BUILT)).config
    assert found.folding is not None
    assert [list(one) for one in found.folding.outputs] == parts


@pytest.mark.parametrize(("made", "asked", "said"), [
    (query(BUILT), query({**BUILT, "low": "min(s.p)"}),
     r"; it folds n = count\(\*\) and mean = avg\(s.p\) and high = max\(s.a\), not low = min\(s.p\): ask for some of "
     r"these aggregates, or build the circuit for this query$"),
    (query(BUILT), query(), r"high = max\(s.a\), and gives no pairs: ask for some of these aggregates, or build the c"),
    (query(BUILT), query(how="semi"), r"and gives no pairs: ask for some"),
    (query(BUILT), query({"n": "first(s.p)"}), r"and gives no pairs: ask for some"),
    (query(BUILT), query(BUILT, window={"r": "RANGE 0", "s": "RANGE 6"}), r"has ABI 0; build the circuit for this q"),
    (query(how="semi"), query(how="inner"), r"; it gives the pairs that decide a join of kind 'semi': ask for this k"),
    (query(how="semi"), query(BUILT), r"; it gives the pairs that decide a join of kind 'semi'"),
])
def test_other_queries_are_refused_by_name(made: Query, asked: Query, said: str, tmp_path: Path) -> None:
    where = board(built(tmp_path / "design.json", made))
    with pytest.raises(DeviceError) as error:
        splitjoin.open(asked, device=where).close()
    assert re.search(said, re.sub(r"\b[0-9a-f]{16};", "0;", str(error.value)))


def test_a_circuit_that_gives_pairs_still_runs_everything(tmp_path: Path) -> None:
    """As one that was built before circuits on boards folded."""
    where = board(built(tmp_path / "design.json", query()))
    assert not where.states_circuit(query(BUILT))
    for asked in (query(BUILT), query(how="semi")):
        with pytest.raises(UnsupportedError, match=r"design.json was built without regard to aggregates and kinds"):
            where.circuit(asked)
        assert where.circuit(asked.pairs).folding is None
    always = board(built(tmp_path / "design.json", query()), fold="always")
    with pytest.raises(UnsupportedError, match=r"fold='always' needs a circuit that folds .*without regard to"):
        always.states_circuit(query(BUILT))
    with pytest.raises(UnsupportedError, match=r"fold='always' needs a circuit that gives only .*without regard to"):
        always.open_deciding(query(how="semi"))


def test_kinds_that_need_the_same_pairs_share_a_circuit(tmp_path: Path) -> None:
    where = board(built(tmp_path / "design.json", query(how="semi")))
    assert where.circuit(query(how="anti")).decides is not None
    assert not Sidecar.read(tmp_path / "design.json").aggregates
    with pytest.raises(DeviceError, match="must be built for this query"):
        board(str(tmp_path / "design.json"), fold="never").open_deciding(query(how="semi"))


def test_classes_must_be_the_same_in_the_same_order(tmp_path: Path) -> None:
    """No sidecar has their definitions. This one has the name of a built-in aggregate, and is not taken for it."""
    both = {"v": Variance("s.a"), "n": "count(*)"}
    where = board(built(tmp_path / "design.json", query(both)))
    assert where.states_circuit(query(both))
    with pytest.raises(DeviceError, match="must be built for this query, which needs ABI"):
        where.states_circuit(query({"n": "count(*)"}))


def test_an_emulated_design_folds_too(tmp_path: Path) -> None:
    pytest.importorskip("splitjoin_boards.emulation")
    path = built(tmp_path / "design.json", query(BUILT))
    assert device(f"emulator:{path}").states_circuit(query({"high": "max(s.a)"}))
    assert device("emulator:ulx3s_85f", **CIRCUIT).states_circuit(query(BUILT))


def test_aggregates_of_a_design_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "design.json"
    built(path, query(BUILT))
    assert Sidecar.read(path).aggregates == BUILT
    path.write_text(path.read_text().replace('"count(*)"', "1"))
    with pytest.raises(InputError, match="must have valid fields aggregates"):
        Sidecar.read(path)


def test_a_build_with_aggregates_makes_the_circuit_that_folds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                              capsys: pytest.CaptureFixture[str]) -> None:
    """A project for Vivado, as it takes no tools."""
    given = ["build", "--schema-r", "ts:int64, x:int16", "--schema-s", "ts:int64, a:int16, p:int16?", "--on",
             "abs(r.x - s.a) <= 6", "--window", "RANGE 6", "--time", "ts", "--board", "arty_a7_35", "-o", str(tmp_path),
             "--cores", "1", "--capacity", "16"]
    folds = [text for name, of in BUILT.items() for text in ("--aggregate", f"{name}={of}")]
    assert main([*given, *folds, "--core", "scan"]) == 0
    design = Sidecar.read(tmp_path / "design.json")
    assert design.aggregates == BUILT
    assert design.abi == board(None, **CIRCUIT).circuit(query(BUILT)).config.abi_hash
    assert board(str(tmp_path / "design.json")).states_circuit(query(BUILT))
    capsys.readouterr()
    monkeypatch.setattr("splitjoin_boards.join.build_join", lambda *_, **__: [])  # the rest is as without aggregates
    assert main([*given, "--core", "bucket", *folds]) == 0
    assert "gives all pairs, which the host folds or decides by: cores of kind bucket do not" in capsys.readouterr().err
    assert not Sidecar.read(tmp_path / "design.json").aggregates
    assert main([*given, "--core", "bucket", *folds, "--fold", "always"]) == 0
    assert Sidecar.read(tmp_path / "design.json").aggregates == BUILT
    assert main([*given, "--core", "scan", "--aggregate", "n=first(s.p)", "--fold", "always"]) == 1
    assert "fold='always' needs a circuit that folds the aggregates, but: first(s.p)" in capsys.readouterr().err
    assert main([*given, "--core", "scan", "--how", "semi"]) == 0
    assert Sidecar.read(tmp_path / "design.json").query["how"] == "semi"


def test_verilog_with_aggregates_is_that_of_the_circuit_that_folds(tmp_path: Path) -> None:
    given = ["verilog", "--schema-r", "ts:int64, x:int16", "--schema-s", "ts:int64, a:int16, p:int16?", "--on",
             "abs(r.x - s.a) <= 6", "--window", "RANGE 6", "--time", "ts", "--top", "axi", "-o", str(tmp_path),
             "--cores", "1", "--capacity", "16", "--core", "scan", "--aggregate", "n=count(*)", "--fold", "always"]
    assert main(given) == 0
    found = json.loads((tmp_path / "splitjoin.json").read_text())
    board = device("xdma:none", **CIRCUIT)
    assert isinstance(board, CircuitDevice)
    assert int(found["abi_hash"], 16) == board.circuit(query({"n": "count(*)"})).config.abi_hash
    assert found["query"]["aggregates"] == {"n": "count(*)"}
    header = (tmp_path / "splitjoin_axi.v").read_text().split("module", 1)[0].replace("\n// ", " ")
    assert "It folds n = count(*): items of kind PAIR on side 0 carry parts of states, no pairs" in header
