"""The figures that the tuner measures on a sample, and what it makes of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import splitjoin
from splitjoin.base.errors import InputError, SchemaError
from splitjoin.circuit.tuner import tune
from splitjoin.circuit.tuner.sample import measure_sample
from splitjoin.cli import main
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.golden import GoldenDevice

BAND = "abs(r.x - s.a) <= 10"


def tables(count: int = 600, *, gaps: int = 10, keys: int = 100) -> tuple[pa.Table, pa.Table]:
    random = np.random.default_rng(1)
    found = [pa.table({"ts": np.sort(random.integers(0, count * gaps, count)),
                       key: random.integers(0, keys, count).astype(np.int32)}) for key in ("x", "a")]
    return found[0], found[1]


def query(r: pa.Table, s: pa.Table, on: str = BAND, window: Any = "ROWS 64", **options: Any) -> splitjoin.Query:
    made: splitjoin.Query = splitjoin.Query.make(
        splitjoin.Schema.from_table("r", r), splitjoin.Schema.from_table("s", s), on=on, window=window,
        **{"time": "ts", **options})
    return made


@pytest.mark.parametrize("window", ["ROWS 64", "RANGE 300", "ROWS 20 RANGE 300", {"r": "RANGE 50", "s": "ROWS 9"}])
def test_figures_are_those_of_the_golden_model(window: Any) -> None:
    r, s = tables(150)
    asked = query(r, s, window=window)
    found = measure_sample(asked, (r, s))
    pairs: list[Any] = []
    visible: list[Any] = []
    with GoldenDevice().open(asked) as session, GoldenDevice().open(query(r, s, "r.x >= 0", window)) as every:
        for running, kept in ((session, pairs), (every, visible)):
            running.push(arrivals(asked, r, s))
            items = running.flush()
            kept += [items["side"][items["kind"] == 0]]
    assert found.tuples == 300
    assert found.pairs == len(pairs[0])
    for side in (0, 1):
        assert found.shares[side] == (pairs[0] == side).sum() / (visible[0] == side).sum()
    assert found.selectivity == len(pairs[0]) / len(visible[0])
    assert found.arrival == "random"
    assert found.matches(100, 50) == (50 * found.shares[0] + 100 * found.shares[1]) / 2


def test_an_index_goes_by_some_tests_only() -> None:
    r, s = tables()
    alone = measure_sample(query(r, s), (r, s))
    further = measure_sample(query(r, s, f"{BAND} AND (r.x > 60 OR s.a > 70)"), (r, s))
    assert alone.selectivity == further.selectivity
    assert further.pairs < 0.7 * alone.pairs
    assert measure_sample(query(r, s, "(r.x > 60 OR s.a > 70)"), (r, s)).selectivity is None


@pytest.mark.parametrize(("in_a_row", "arrival"), [(1, "alternating"), (2, "random"), (32, "bursts")])
def test_order_of_arrival(in_a_row: int, arrival: str) -> None:
    at = np.arange(256)
    r, s = (pa.table({"ts": at[at // in_a_row % 2 == side], key: np.zeros(128, np.int32)})
            for side, key in enumerate(("x", "a")))
    assert measure_sample(query(r, s), (r, s)).arrival == arrival


def test_the_tuner_ranks_by_the_sample() -> None:
    r, s = tables()
    options: dict[str, Any] = {"core": "scan", "lanes": 2, "probes": 4, "queue": 0}
    measured = tune(query(r, s, window="ROWS 256"), sample=(r, s), **options)
    load = measured.design.load
    assert load.matches == pytest.approx(256 * 0.2, rel=0.1)  # longer windows than the sample fills have as many more
    assert (load.arrival, measured.sample is not None) == ("random", True)
    assert "\nsample      1,200 tuples, " in str(measured)
    said = tune(query(r, s, window="ROWS 256"), matches=load.matches, arrival="random", **options)
    assert said.tuples_per_s == pytest.approx(measured.tuples_per_s)
    without = tune(query(r, s, window="ROWS 256"), **options)
    assert without.tuples_per_s > 2 * measured.tuples_per_s
    # What the user says counts, not the sample.
    load = tune(query(r, s), sample=(r, s), matches=0, arrival="alternating", **options).design.load
    assert (load.matches, load.arrival) == (0, "alternating")


def test_range_windows_hold_what_the_sample_shows() -> None:
    r, s = tables()
    options: dict[str, Any] = {"core": "scan", "cores": 1, "lanes": 2, "probes": 4, "queue": 0}
    load = tune(query(r, s, window="RANGE 1000"), sample=(r, s), **options).design.load
    assert 90 < load.r < 160
    assert 90 < load.s < 160
    assert tune(query(r, s, window="RANGE 1000"), sample=(r, s), window_tuples=300, **options).design.load.r == 300


def test_wrong_samples() -> None:
    r, s = tables(20)
    with pytest.raises(InputError, match=r"^sample must be two tables, one of R and one of S, not 'r.parquet'$"):
        tune(query(r, s), sample="r.parquet")
    with pytest.raises(InputError, match=r"^the sample of S must be a table, such as a pyarrow.Table, not int: "):
        tune(query(r, s), sample=(r, 5))
    with pytest.raises(SchemaError, match=r"^the sample of R must have the columns ts, x, but lacks x$"):
        tune(query(r, s), sample=(s, s))
    with pytest.raises(SchemaError, match=r"^the sample of R must have columns of the query's types: "):
        tune(query(r, s), sample=(r.set_column(1, "x", pa.array([2**40] * 20)), s))
    with pytest.raises(InputError, match=r"^a sample must have tuples of both streams that see each other in their "):
        tune(query(r, s), sample=(r, s.slice(0, 0)))


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    r, s = tables()
    paths = [str(tmp_path / f"{side}.parquet") for side in "rs"]
    for path, table in zip(paths, (r, s), strict=True):
        pq.write_table(table, path)
    arguments = ["tune", "--board", "ulx3s_85f", "--schema-r", paths[0], "--schema-s", paths[1], "--on", BAND,
                 "--time", "ts", "--window", "RANGE 1000", "--core", "scan", "--cores", "1", "--lanes", "2",
                 "--probes", "4", "--queue", "0"]
    assert main([*arguments, "--sample", *paths]) == 0
    said = capsys.readouterr().out
    assert "\nsample      1,200 tuples, " in said
    assert "results a tuple, both streams at random" in said
    assert main(arguments) == 2
    assert "a sample (--sample)" in capsys.readouterr().err
