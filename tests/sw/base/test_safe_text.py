"""Texts in messages: keys in URIs are left out, and a terminal gets no commands."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import InputError
from splitjoin.base.errors import WindowOverflow, first_line
from splitjoin.base.safe_text import printable, safe, without_secrets
from splitjoin.cli import main
from splitjoin.spark.streaming.state_files import StateFiles, check_root
from splitjoin.tables import read_table, write_table

KEY = "AKIAKEY:sec/ret+KEY"


@pytest.mark.parametrize(("text", "shown"), [
    (f"s3a://{KEY}@bucket/a", "s3a://…@bucket/a"),
    (f"no 's3://{KEY}@b', and no gs://token@b/c", "no 's3://…@b', and no gs://…@b/c"),
    ("https://host/x.parquet?X-Amz-Signature=KEY&b=2", "https://host/x.parquet?…"),
    ("hdfs://host:9000/a#KEY", "hdfs://host:9000/a?…"),
    ("abfs://container@account.dfs.core.windows.net/a", "abfs://container@account.dfs.core.windows.net/a"),
    ("abfs://name:KEY@account/a", "abfs://…@account/a"),
    ("s3://bucket/a, mail me@here", "s3://bucket/a, mail me@here"),
    ("r.x = 'a' ? what", "r.x = 'a' ? what"),
])
def test_keys_in_addresses_are_left_out(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert safe(shown) == shown, "what is safe stays as it is"


def test_what_a_terminal_obeys_is_shown() -> None:
    assert printable("a\x1b[31m\x07\x9b\r\x7f b\N{RIGHT-TO-LEFT OVERRIDE}\ud800\u2028") == (
        r"a\x1b[31m\x07\x9b\r\x7f b\u202e\ud800\u2028")
    for text in ("two\nlines\tand ü, 日本, é\u0301", "no-break\u00a0space", "joined \u0628\u200c\u0628"):
        assert printable(text) is text or printable(text) == text


def test_long_texts_take_no_longer_for_each_character() -> None:
    """Bounded by what the expressions can look at: a quadratic one would not end here."""
    assert len(safe("a" * 2_000_000 + "://" + "b" * 2_000_000)) > 2_000_000


def test_every_error_is_safe() -> None:
    error = InputError(f"\x1b]0;x\x07 s3a://{KEY}@bucket?KEY")
    error.add_note(f"s3a://{KEY}@bucket")
    assert str(error) == r"\x1b]0;x\x07 s3a://…@bucket?…"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert error.__notes__ == ["s3a://…@bucket"]
    assert first_line(OSError(f"s3a://{KEY}@bucket\nmore")) == "s3a://…@bucket"
    assert isinstance(pickle.loads(pickle.dumps(WindowOverflow("r", 1, 2))), WindowOverflow)


@pytest.mark.parametrize("call", [
    lambda: check_root(f"s3a://{KEY}@bucket/state", "state"),
    lambda: check_root(f"file:///proc/s3a://{KEY}@bucket/state", "late_to"),
    lambda: StateFiles(f"s3n://{KEY}@bucket", "query", "join").held(0),
    lambda: read_table(f"s3://{KEY}@bucket/t.parquet"),
    lambda: read_table(Path(f"/proc/s3://{KEY}@bucket/t.parquet")),
    lambda: write_table(pa.table({"x": [1]}), f"https://{KEY}@host/t.parquet?sig=KEY"),
    lambda: splitjoin.join(f"gs://{KEY}@bucket/*.parquet", pa.table({"x": [1]}), on="r.x = s.x"),
])
def test_keys_do_not_come_back(call: object) -> None:
    """Nor in what a traceback shows of the errors before, as Spark's logs have it."""
    with pytest.raises(InputError) as caught:
        call()  # type: ignore[operator]  # a lambda
    error: BaseException | None = caught.value
    while error is not None:
        assert "KEY" not in f"{error!r} {error}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_names_in_outputs_are_shown_and_not_obeyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "a\x1b[2J"
    table = pa.table({name: ["\x1b[31mred"]})
    result = splitjoin.join(table, table, on=f'r."{name}" = s."{name}"', device="golden")
    assert r"a\x1b[2J" in repr(result)
    assert "\x1b" not in repr(result)
    write_table(table, tmp_path / f"{name}.parquet")
    arguments = ["join", *[str(tmp_path / f"{name}.parquet")] * 2, "--on", f'r."{name}" = s."{name}"']
    assert main([*arguments, "-o", "-", "--format", "csv"]) == 0
    assert "\x1b[31mred" in capsys.readouterr().out, "a table is data, which stays as it is"
    assert main([*arguments, "-o", str(tmp_path / f"out{name}.csv")]) == 0
    assert main(["join", f"{name}.parquet", "s.parquet", "--on", "r.x = s.x", "-o", "o.csv"]) == 1
    schemas = ["--schema-r", "x:int32", "--schema-s", "a:int32"]
    assert main(["explain", *schemas, "--on", "r.x = s.a AND 'a\x1b' < 'b'"]) == 0
    assert not {"\x1b"} & set("".join(capsys.readouterr()))
