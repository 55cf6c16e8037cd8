import importlib
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import splitjoin
from splitjoin import DeviceError, InputError, PredicateError, SchemaError, ToolError, join
from splitjoin.engines.golden import GoldenDevice

R = pa.table({"ts": [1, 2, 4], "x": [10, 20, 30]})
S = pa.table({"ts": [1, 3, 9], "a": [11, 19, 31]})


@pytest.mark.parametrize("on", ["abs(r.x - s.a) <= 1", lambda r, s: abs(r.x - s.a) <= 1])
@pytest.mark.parametrize("device", ["golden", GoldenDevice(cores=2)])
def test_a_band_join(on: Any, device: Any) -> None:
    found = join(R, S, on=on, window="RANGE 4", time="ts", device=device)
    assert found.to_pylist() == [{"ts_r": 1, "x": 10, "ts_s": 1, "a": 11}, {"ts_r": 2, "x": 20, "ts_s": 3, "a": 19}]


def test_select_names_columns() -> None:
    assert join(R, S, on="x < a", window="ROWS 1", select=["a", "r.ts"]).column_names == ["a", "ts_r"]


@pytest.mark.parametrize("order", ["none", "outer(2)", "inner(1)", "total"])
def test_every_order_gives_the_rows(order: str) -> None:
    assert len(join(R, S, on="abs(r.x - s.a) <= 1", window="RANGE 5", time="ts", order=order)) == 3


def test_a_result_has_items_and_counters_too() -> None:
    found = join(R, S, on="abs(r.x - s.a) <= 1", window="RANGE 4", time="ts")
    assert found.counters == {"tuples_r": 3, "tuples_s": 3, "comparisons": 6, "candidates": 3, "matches": 2}
    assert len(found.items) == 8  # two pairs, and a star after each of six probes
    assert found.latencies is None
    assert len(found.table) == 2


def test_empty_input_and_no_match_keep_the_columns() -> None:
    for r, s in ((R.slice(0, 0), S), (R, S.slice(0, 0)), (R.slice(0, 0), S.slice(0, 0)), (R, S)):
        found = join(r, s, on="r.x > s.a + 100", window="ROWS 5")
        assert len(found) == 0
        assert found.column_names == ["ts_r", "x", "ts_s", "a"]


@pytest.mark.parametrize("convert", [
    lambda t: t, lambda t: t.to_batches()[0], lambda t: t.to_reader(), lambda t: t.to_pandas(), lambda t: OnlyStream(t),
], ids=["table", "batch", "reader", "pandas", "stream"])
def test_whatever_speaks_arrow_can_be_joined(convert: Any) -> None:
    found = join(convert(R), convert(S), on="abs(r.x - s.a) <= 1", window="RANGE 4", time="ts")
    assert found.column("a").to_pylist() == [11, 19]


def test_a_reader_joined_with_itself_is_read_once() -> None:
    once = R.to_reader()
    assert join(once, once, on="r.x < s.x", device="golden").column("x_s").to_pylist() == [20, 30, 30]


@pytest.mark.parametrize("how", [{"how": "asof"}, {"how": "asof_left", "direction": "nearest"},
                                 {"window": "RANGE 2"}, {"window": "RANGE 1 OPEN", "how": "semi"}])
def test_times_may_say_all(how: dict[str, Any]) -> None:
    r, s = ({"ts": ts, name: range(len(ts))} for ts, name in (([1, 4, 9], "x"), ([0, 2, 4, 8], "a")))
    found = join(r, s, time="ts", device="golden", **how)
    assert found.table == join(r, s, on="TRUE", time="ts", device="golden", **how).table
    assert len(found) > 0
    with pytest.raises(PredicateError, match=r"a join needs a condition, such as on='r\.k = s\.k', or on="):
        join(r, s, time="ts", **how | {"window": "ROWS 3", "how": "left", "direction": None})


def test_arguments_of_wrong_types() -> None:
    with pytest.raises(InputError, match="sort must be True or False, not 'ts'; the tables are sorted by the column"):
        join(R, S, on="TRUE", time="ts", sort="ts")
    with pytest.raises(InputError, match="sort must be True or False, not 'no'"):
        splitjoin.sql("SELECT x FROM r JOIN s ON TRUE", r=R, s=S, time="ts", sort="no")
    with pytest.raises(InputError, match=r"the output must be the path of a file, such as 'out\.parquet', not 3"):
        join(R, S, on="TRUE", to=3)
    with pytest.raises(InputError, match=r"the output must be the path of a file, such as 'out\.parquet', not 3"):
        splitjoin.sql("SELECT x FROM r JOIN s ON TRUE", r=R, s=S, to=3)
    with pytest.raises(SchemaError, match="select must name at least one column, as a table without columns has no"):
        join(R, S, on="TRUE", select=[])


class OnlyStream:
    def __init__(self, table: pa.Table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("data", [None, [1, 2], [], 5])
def test_what_is_no_table(data: Any) -> None:
    with pytest.raises(InputError, match=f"stream s must be an Arrow table, a DataFrame, a dict of columns, the path "
                                         f"of a file, or offer __arrow_c_stream__, not {type(data).__name__}"):
        join(R, data, on="TRUE", window="ROWS 1")


class Broken:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise RuntimeError("the source\nis gone")


@pytest.mark.parametrize("data", [pa.array([1, 2]), pd.DataFrame({"x": [1, "a", b"b"]}), Broken()],
                         ids=["array", "pandas", "broken"])
def test_what_gives_no_table(data: Any) -> None:
    with pytest.raises(InputError, match=r"stream s must be a table, but .* does not give one: .+") as caught:
        join(R, data, on="TRUE", window="ROWS 1")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spec", [[], None, 5])
def test_a_device_must_be_a_name_or_a_device(spec: Any) -> None:
    with pytest.raises(DeviceError, match=r"there is no device .*; devices are cpu, daemon, emulator, golden"):
        join(R, S, on="TRUE", window="ROWS 1", device=spec)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError("no module", name="numba")

    monkeypatch.setattr(importlib, "import_module", missing)
    for spec, advice in (("cpu", "'numba'"), ("sim", r"'splitjoin\[sim\]'")):
        with pytest.raises(ToolError, match=f"needs the Python package 'numba'.*pip install {advice}"):
            join(R, S, on="TRUE", window="ROWS 1", device=spec)


def test_devices_that_do_not_exist() -> None:
    with pytest.raises(DeviceError, match=r"there is no device 'goldn' \(did you mean 'golden'\?\); devices are"):
        join(R, S, on="TRUE", window="ROWS 1", device="goldn")


def test_strings_of_every_encoding_are_one_type() -> None:
    words = pa.array(["a", "b", None, "a"])
    r = pa.table({"w": words.dictionary_encode()})
    s = pa.table({"v": words.cast(pa.large_string())})
    assert len(join(r, s, on="r.w = s.v", window="ROWS 9")) == 5


def test_pandas_times_are_usable() -> None:
    times = pd.to_datetime(["2013-01-01 00:00", "2013-01-01 00:20"])
    frame = pd.DataFrame({"ts": times, "x": [1, 2]})
    assert len(join(frame, frame, on="r.x <= s.x", window="RANGE 15 MINUTES", time="ts")) == 2
    assert len(join(frame, frame, on="r.x <= s.x", window="RANGE 20 MINUTES", time="ts")) == 3


def test_the_public_names_exist() -> None:
    for name in splitjoin.__all__:
        assert getattr(splitjoin, name) is not None
