"""Generated sources and the hashes that they contain."""

import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest
from splitjoin.cpu.jit import digest


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
