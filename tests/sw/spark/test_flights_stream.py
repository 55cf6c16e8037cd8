"""The example of flights as streams: killed halfway, it goes on and has every pair once."""

from pathlib import Path

import pytest
from examples.flights import stream

from splitjoin import ToolError


@pytest.mark.long  # starts Spark twice; `tests/chaos` kills a query in every run
def test_killed_query_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stream.main(["--days", "5", "--output", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "killed the query" in said and "equal: " in said


def test_only_folders_of_an_earlier_run_are_removed(tmp_path: Path) -> None:
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "thesis.tex").write_text("mine")
    with pytest.raises(ToolError, match=r"--output must be .* that of an earlier run, as .*pairs is to be"):
        stream._cleared(tmp_path)
    assert (tmp_path / "pairs" / "thesis.tex").exists()
    (tmp_path / "carrier.parquet").touch()
    stream._cleared(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["carrier.parquet"]
