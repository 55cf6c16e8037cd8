"""Generated sources and the hashes that they contain."""

import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest
from numba.core import event

from splitjoin.engines.compiled import jit
from splitjoin.engines.compiled.jit import digest


def test_the_hash_of_a_module_is_the_same_in_a_zip_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's executors may have splitjoin in one (``--py-files``)."""
    found = []
    for name in ("folder", "packed.zip"):
        place = tmp_path / name
        if place.suffix:
            with zipfile.ZipFile(place, "w") as packed:
                packed.writestr("hashed_module.py", "x = 1\n")
        else:
            place.mkdir()
            (place / "hashed_module.py").write_text("x = 1\n")
        monkeypatch.syspath_prepend(place)
        monkeypatch.delitem(sys.modules, "hashed_module", raising=False)
        found.append(digest(import_module("hashed_module")))
    monkeypatch.delitem(sys.modules, "hashed_module")
    assert found[0] == found[1]


def _twice(x):  # type: ignore[no-untyped-def]  # numba finds the types
    return x + x


def test_a_compilation_is_told_and_loading_is_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told, seldom = list[str](), list[str]()
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path))
    with event.install_listener("numba:compile", jit.Teller(told.append, 0.0)), event.install_listener(
            "numba:compile", jit.Teller(seldom.append, 60.0)):
        assert jit.compiled(_twice)(4) == 8
        assert told == ["compiling loops that this query needs, once for this machine, which takes some seconds"]
        assert jit.compiled(_twice)(5) == 10  # from the disk
        assert len(told) == 1
        assert jit.compiled(_twice)(1.5) == 3.0  # compiled again, for another type, and told just before
        assert len(told) > len(seldom) == 1
