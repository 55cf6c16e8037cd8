"""Python workers that Spark uses again exempt what they have loaded from the garbage collector."""

import gc
import json
import sys
from types import ModuleType

import pytest
from pyspark.sql.types import StructType

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


def test_joins_of_plain_sql_do_so(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: done.append("freeze"))
    monkeypatch.setattr(Reused, "_loaded", 0)
    work, _ = load(json.dumps({"type": StructType().jsonValue()}))
    assert list(work(iter([]))) == []
    assert done == ["freeze"]
