"""Python workers that Spark uses again exempt what they have loaded from the garbage collector."""

import gc
import json
import os
import sys
import traceback
from collections.abc import Iterator
from types import ModuleType

import pytest
from pyspark.sql.types import StructType

from splitjoin.base.errors import InputError
from splitjoin.catalyst.reused import Reused
from splitjoin.catalyst.task import load


def test_what_was_loaded_is_exempted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(gc, "collect", lambda: done.append("collect"))
    monkeypatch.setattr(gc, "freeze", lambda: done.append("freeze"))
    monkeypatch.setattr(Reused, "_loaded", 0)
    work = Reused(lambda batches: (2 * batch for batch in batches))
    running = work(iter([1, 2]))
    assert next(running) == 2
    assert done == []  # what a task still holds may be garbage when it ends
    assert list(running) == [4]
    assert done == ["collect", "freeze"]
    assert list(work(iter([3]))) == [6]
    assert done == ["collect", "freeze"]
    monkeypatch.setitem(sys.modules, "loaded_by_a_later_task", ModuleType("loaded_by_a_later_task"))
    assert list(work(iter([3]))) == [6]
    assert done == 2 * ["collect", "freeze"]


@pytest.mark.usefixtures("own_garbage")
def test_joins_of_plain_sql_do_so(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: done.append("freeze"))
    monkeypatch.setattr(Reused, "_loaded", 0)
    work, _ = load(json.dumps({"type": StructType().jsonValue()}))
    assert list(work(iter([]))) == []
    assert done == ["freeze"]


def test_errors_come_without_the_way_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark quotes it ahead of the sentence that says what to do. Other errors keep it: they are defects."""
    hidden = "SPARK_HIDE_TRACEBACK"  # by which Spark's worker leaves out its own part, too
    monkeypatch.setenv(hidden, "")

    def failing(kind: type[Exception]) -> Iterator[int]:
        try:
            raise OSError("below")
        except OSError as error:
            raise kind("do this") from error
        yield 0

    with pytest.raises(ValueError, match="do this") as other:
        list(Reused(failing)(ValueError))  # type: ignore[arg-type]  # what is read is the kind of error
    assert "in failing" in "".join(traceback.format_exception(other.value))
    assert not os.environ[hidden]
    with pytest.raises(InputError, match="do this") as found:
        list(Reused(failing)(InputError))  # type: ignore[arg-type]  # likewise
    said = "".join(traceback.format_exception(found.value))
    assert "in failing" not in said
    assert "below" not in said
    assert os.environ[hidden]
