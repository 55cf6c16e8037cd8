"""The example of flights as streams: killed halfway, it goes on and has every pair once."""

from pathlib import Path

import pytest
from splitjoin.spark import flights_stream


@pytest.mark.long  # starts Spark twice; `tests/chaos` kills a query in every run
def test_killed_query_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert flights_stream.main(["--days", "5", "--output", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "killed the query" in said and "equal: " in said
