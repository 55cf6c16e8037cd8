"""README, docs/guides/ and docs/index.md: their examples print what they say, and their commands run.

After a change that is meant: python -m tests.test_guides
"""

from __future__ import annotations

from pathlib import Path

import pytest

from splitjoin.cli import main

from .support.page_examples import check_examples, write_examples
from .wheel.pages import blocks, commands, words

PAGES = ("../README.md", "index.md", "coming-from.md", "devices.md", "intervals.md", "guides/analyst.md",
         "guides/fpga.md", "guides/researcher.md")


@pytest.mark.parametrize("page", PAGES)
def test_examples(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    check_examples(page, least=1)


@pytest.mark.parametrize(("page", "files"), [("guides/analyst.md", 5), ("guides/fpga.md", 7)])
def test_commands(page: str, files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                  capsys: pytest.CaptureFixture[str]) -> None:
    """In the order of the page, in a folder with the tables that the guide for analysts begins with, and waveforms as
    the example of the other one writes them.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trades.csv").write_text("ts,price\n1,10\n4,20\n9,30\n20,40\n")
    (tmp_path / "quotes.csv").write_text("ts,bid\n2,8\n4,19\n7,29\n9,33\n12,99\n")
    (tmp_path / "run.vcd").write_text("$scope module top $end\n$var wire 1 ! clk $end\n$scope module core0 $end\n"
                                      "$var wire 2 a compared__0 $end\n$enddefinitions $end\n#0\nb11 a\n#1\n1!\n")
    runs = [words(command) for block in blocks(f"docs/{page}") if block.language == "sh"
            for command in commands(block.code)]
    runs = [run for run in runs if run[0] == "splitjoin"]
    assert len(runs) >= 2
    for run in runs:
        assert main(run[1:]) == 0, run
        assert capsys.readouterr().err == ""
    assert len(list(tmp_path.iterdir())) == files


if __name__ == "__main__":
    for page in PAGES:
        write_examples(page)
