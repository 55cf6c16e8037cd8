"""The commands about boards."""

from __future__ import annotations

import json
import re
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from splitjoin.base.errors import CapacityError
from splitjoin.cli import main
from splitjoin.cli.options import hertz
from splitjoin.link.sidecar import Sidecar

QUERY = ("--schema-r", "x:int8", "--schema-s", "x:int8", "--on", "r.x = s.x", "--cores", "1", "--lanes", "1",
         "--probes", "1", "--capacity", "64")


def test_boards_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boards"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:4] == ["ulx3s_85f", "ecp5", "25", "MHz"] for line in lines)


@pytest.mark.parametrize(("given", "said"), [
    (("--board", "nexys"), "no bitstream can be built for a board 'nexys'; the boards are icebreaker"),
    (("--board", "icebreaker", "--baud", "1e2"), "--baud must be 11719 to 3000000 Hz on board icebreaker"),
])
def test_wrong_boards_and_rates_are_refused(given: tuple[str, ...], said: str, tmp_path: Path,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", *QUERY, *given, "-o", str(tmp_path / "out")]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("text", "hz"), [("13000000", 13_000_000), ("13e6", 13_000_000), ("13.5E+6", 13_500_000),
                                          ("12_000_000", 12_000_000), ("1.5", None), ("0", None), ("-13e6", None),
                                          ("nan", None), ("inf", None), ("1e999999999", None), ("13 MHz", None)])
def test_frequencies(text: str, hz: int | None) -> None:
    if hz is not None:
        assert hertz(text) == hz
        return
    with pytest.raises(ArgumentTypeError, match="a whole number of Hz above 0, such as 13000000 or 13e6, not"):
        hertz(text)


def test_too_large_says_what_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                  capsys: pytest.CaptureFixture[str]) -> None:
    """The tuner's proposal for ECP5; for other families there is none."""
    def refuse(*_: object, **__: object) -> None:
        raise CapacityError("the circuit must fit")

    monkeypatch.setattr("splitjoin_boards.join.build_join", refuse)
    for board, said in (("ulx3s_25f", r"must fit; `splitjoin tune` proposes --cores 1 --capacity \d+ .*LUT4"),
                        ("icebreaker", r"must fit; .* hold a small circuit: --small --row-bits 16"),
                        ("icebreaker", "board icebreaker has 5,280 LUTs, and a circuit without --small hardly fits"),
                        ("icebreaker --small --cores 1", "must fit; block RAM limits the windows of a small circuit")):
        assert main(["build", *QUERY, "--board", *board.split(), "-o", str(tmp_path / "out")]) == 1
        err = capsys.readouterr().err
        assert re.search(said, err)
        assert ("hardly fits" in err) == (board == "icebreaker")
    assert not (tmp_path / "out").exists()


def test_a_project_for_vivado_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", *QUERY, "--board", "arty_a7_35", "-o", str(tmp_path)]) == 0
    assert "has a project for Vivado" in capsys.readouterr().out
    assert "set_property LOC E3" in (tmp_path / "top.xdc").read_text()
    assert "create_project -force -name top -part xc7a35ticsg324-1L" in (tmp_path / "top.tcl").read_text()
    design = json.loads((tmp_path / "design.json").read_text())
    assert design["pins"] == {"rx": "A9", "tx": "D10", "clk": "E3"} and design["baud"] == 3_000_000
    assert design["query"]["on"] == "r.x = s.x" and design["query"]["schema_r"] == "x:int8"
    assert Sidecar.read(tmp_path / "design.json").board == "arty_a7_35"
