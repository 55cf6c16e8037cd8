"""The commands about boards."""

from __future__ import annotations

from pathlib import Path

import pytest
from splitjoin.cli import main

QUERY = ("--schema-r", "x:int8", "--schema-s", "x:int8", "--on", "r.x = s.x", "--cores", "1", "--lanes", "1",
         "--probes", "1", "--capacity", "64")


def test_boards_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boards"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:4] == ["ulx3s_85f", "ecp5", "25", "MHz"] for line in lines)


@pytest.mark.parametrize(("given", "said"), [
    (("--board", "nexys"), "no bitstream can be built for a board 'nexys'; the boards are icebreaker"),
    (("--board", "icebreaker", "--baud", "100"), "--baud must be 11719 to 3000000 Hz on board icebreaker"),
])
def test_wrong_boards_and_rates_are_refused(given: tuple[str, ...], said: str, tmp_path: Path,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", *QUERY, *given, "-o", str(tmp_path / "out")]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
