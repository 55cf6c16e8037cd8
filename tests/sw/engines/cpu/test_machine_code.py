"""Machine code in the cache: found again by other processes, and never read where others could have written it."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import config

from splitjoin.base import cache as cache_module
from splitjoin.engines.compiled import jit, machine_code
from splitjoin.engines.compiled.jit import compiled, compiled_as_numpy, load
from tests.support.users import of_another_user


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kernels of an empty cache."""
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "splitjoin-cache" / "kernels"


def double(x: int) -> int:
    return 2 * x


def hits(function: Any) -> tuple[int, int]:
    return len(function.stats.cache_hits), len(function.stats.cache_misses)


def made() -> Any:
    """The function as a new process would compile it."""
    return compiled(double)


class Planted:
    """Runs code when it is unpickled."""

    def __init__(self, target: Path):
        self._target = target

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self._target,)


def test_it_is_found_again(cache: Path) -> None:
    first, again = made(), made()
    assert [first(1), first(1.5), again(2), again(1.5)] == [2, 3.0, 4, 3.0]
    assert (hits(first), hits(again)) == ((0, 2), (2, 0))
    assert sorted(path.suffix for path in cache.iterdir()) == [".code", ".code"]


def test_settings_and_source_tell_code_apart(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made()(1)
    monkeypatch.setattr(config, "OPT", type(config.OPT)(2) if int(config.OPT) != 2 else 3)
    other = made()
    other(1)
    monkeypatch.setattr(jit, "_digest_of", lambda module: "changed")
    changed = made()
    changed(1)
    assert hits(other) == hits(changed) == (0, 1)


def test_numba_s_own_cache_is_not_used(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It unpickles whatever it finds, whoever has put it there."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "numba"))
    made()(1)
    load("from splitjoin.engines.compiled.jit import compiled\n\n@compiled\ndef half(x):\n    return x / 2\n").half(3)
    assert not (tmp_path / "numba").exists()
    assert not list(Path(__file__).parent.glob("__pycache__/*.nb?"))


@pytest.mark.parametrize("how", ["owner", "mode", "link", "damaged", "short", "empty"])
def test_what_others_could_have_written_is_compiled_again(how: str, cache: Path, tmp_path: Path) -> None:
    made()(1)
    (code,) = cache.iterdir()
    ran, content = tmp_path / "ran", code.read_bytes()
    planted = pickle.dumps(Planted(ran))
    if how == "damaged":
        planted = content[:-1] + bytes([content[-1] ^ 1])
    code.write_bytes({"short": content[:20], "empty": b"", "damaged": planted}.get(how, _sealed(planted)))
    if how == "mode":
        code.chmod(0o666)
    if how == "link":
        code.rename(tmp_path / "there")
        code.symlink_to(tmp_path / "there")
    again = made()
    if how == "owner":
        with of_another_user(code):
            assert again(1) == 2
    else:
        assert again(1) == 2
    assert hits(again) == (0, 1)
    assert not ran.exists()
    assert hits_of_another() == (1, 0)


def test_the_planted_code_would_have_run(cache: Path, tmp_path: Path) -> None:
    """A file of one's own is trusted; so the test before this one can fail."""
    made()(1)
    (code,) = cache.iterdir()
    code.write_bytes(_sealed(pickle.dumps(Planted(tmp_path / "ran"))))
    with pytest.raises(TypeError):
        made()(1)
    assert (tmp_path / "ran").exists()


def test_without_a_folder_it_stays_in_memory(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_usable_folders", lambda: cache_module._Folders(why="it is gone"))
    cache_module._say.cache_clear()
    function = made()
    with pytest.warns(RuntimeWarning, match="compiled code stays in memory"):
        assert function(1) == 2
    assert not cache.exists()


def test_a_full_disk_is_no_reason_to_fail(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(machine_code, "publish", full)
    assert made()(1) == 2
    assert list(cache.iterdir()) == []


def test_generated_modules_are_run_from_their_text(cache: Path) -> None:
    """No file of source is read, nor Python's own compiled file beside it. Errors still show the line."""
    text = ("from splitjoin.engines.compiled.jit import compiled\n\n@compiled\ndef third(x):\n    return x / 3\n\n"
            "def wrong():\n    return 1 / 0\n")
    module = load(text)
    assert module.third(3) == 1
    assert [path.suffix for path in cache.iterdir()] == [".code"]
    with pytest.raises(ZeroDivisionError) as error:
        module.wrong()
    assert str(error.traceback[-1].statement).strip() == "return 1 / 0"


def test_division_by_zero_as_in_numpy() -> None:
    assert np.isinf(load("from splitjoin.engines.compiled.jit import compiled_as_numpy\n\n"
                         "@compiled_as_numpy\ndef over(x):\n    return 1 / x\n").over(0.0))
    assert compiled_as_numpy is not compiled


def hits_of_another() -> tuple[int, int]:
    function = made()
    function(1)
    return hits(function)


def _sealed(content: bytes) -> bytes:
    return hashlib.sha256(content).digest() + content
