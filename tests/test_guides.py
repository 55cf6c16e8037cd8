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


@pytest.mark.parametrize("page", ["guides/analyst.md", "guides/fpga.md"])
def test_commands(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                  capsys: pytest.CaptureFixture[str]) -> None:
    """In the order of the page, in a folder with the tables that the guide for analysts begins with."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trades.csv").write_text("ts,price\n1,10\n4,20\n9,30\n20,40\n")
    (tmp_path / "quotes.csv").write_text("ts,bid\n2,8\n4,19\n7,29\n9,33\n12,99\n")
    runs = [words(command) for block in blocks(f"docs/{page}") if block.language == "sh"
            for command in commands(block.code)]
    runs = [run for run in runs if run[0] == "splitjoin"]
    assert len(runs) >= 2
    for run in runs:
        assert main(run[1:]) == 0, run
        assert capsys.readouterr().err == ""
    assert len(list(tmp_path.iterdir())) == 4


if __name__ == "__main__":
    for page in PAGES:
        write_examples(page)
