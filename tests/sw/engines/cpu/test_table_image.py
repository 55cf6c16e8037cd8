"""Loops of whole tables as an image of machine code: the same answers without numba, and no call that could do harm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splitjoin.engines.cpu import table_compilation
from splitjoin.engines.cpu.object_code import NotAlone, self_contained
from splitjoin.engines.cpu.table_compilation import TableCompilation
from splitjoin.engines.cpu.table_image import has_images, image_name, load_image, save_image
from splitjoin.engines.cpu.table_loops import LOOPS

pytestmark = pytest.mark.skipif(not has_images(), reason="images are for Linux on x86-64")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with an image of two loops, one of which returns a number; together they have all kinds of arguments."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPLITJOIN_CACHE", str(folder))
        save_image([(name, LOOPS[name].kinds, LOOPS[name].plain) for name in ("fill_table", "add_dense")],
                   image_name())
    return folder


@pytest.fixture(autouse=True)
def images_are_looked_for_again() -> Iterator[None]:
    """A process keeps what it has found: no test may find another's image, or leave its own."""
    load_image.cache_clear()
    yield
    load_image.cache_clear()


@pytest.fixture
def image(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    monkeypatch.setenv("SPLITJOIN_CACHE", str(cache))
    found = TableCompilation().for_rows(1, "background")  # of as few rows as there are
    assert found is not None
    return found


def test_loops_of_an_image_answer_as_python_does(image: Mapping[str, Any]) -> None:
    chance = np.random.default_rng(1)
    plain = {name: LOOPS[name].plain for name in image}
    for _ in range(20):
        n = int(chance.integers(0, 60))
        keys, numbers = chance.integers(0, 2**64, n, np.uint64) % np.uint64(40), chance.integers(-1, 1, n)
        answers = []
        for loops in (plain, image):
            known, taken, count = np.zeros(64, np.uint64), np.full(64, -1), np.zeros(1, np.int64)
            until = loops["fill_table"](keys, numbers, n // 3, known, taken, count)
            dense = numbers.copy()
            loops["add_dense"](keys, np.uint64(3), np.uint64(30), 28, dense)
            answers.append([until, *(of.tolist() for of in (known, taken, count, dense))])
        assert answers[0] == answers[1]


@pytest.mark.parametrize("numbers", [np.zeros(4, np.int32), np.zeros(8, np.int64)[::2], np.zeros((2, 2), np.int64)])
def test_an_image_refuses_memory_that_it_would_read_wrongly(image: Mapping[str, Any], numbers: Any) -> None:
    keys, scale = np.zeros(4, np.uint64), (np.uint64(0), np.uint64(9), 10)
    with pytest.raises(TypeError, match="add_dense takes contiguous arrays of int64"):
        image["add_dense"](keys, *scale, numbers)
    fixed = np.zeros(4, np.int64)
    fixed.flags.writeable = False
    with pytest.raises(TypeError, match="add_dense"):
        image["add_dense"](keys, *scale, fixed)
    with pytest.raises(TypeError, match="5 arguments, not 4"):
        image["add_dense"](keys, *scale)


@pytest.mark.parametrize("harm", ["damaged", "of others"])
def test_an_image_that_others_may_have_changed_is_not_run(cache: Path, monkeypatch: pytest.MonkeyPatch,
                                                         harm: str) -> None:
    monkeypatch.setenv("SPLITJOIN_CACHE", str(cache))
    (file,) = cache.rglob("*.image")
    content, mode = file.read_bytes(), file.stat().st_mode
    try:
        if harm == "damaged":
            file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        else:
            file.chmod(0o666)
        load_image.cache_clear()
        assert load_image(image_name()) is None
    finally:
        file.write_bytes(content)
        file.chmod(mode)
        load_image.cache_clear()
    assert load_image(image_name()) is not None


def test_code_that_needs_more_than_its_arguments_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from splitjoin.engines.cpu.table_objects import object_of

    def makes_an_array(n: Any) -> Any:
        return np.empty(n, np.int64)[0]

    with pytest.raises(NotAlone, match=r"is not in the code|must be of constants"):
        object_of(makes_an_array, "n")
    with pytest.raises(NotAlone, match="ELF"):
        self_contained(b"\xcf\xfa\xed\xfe" + bytes(60), "entry")

    # Then each loop is compiled by itself, as where there are no images.
    ready = list[bool]()
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path))
    monkeypatch.setattr(table_compilation, "save_image", lambda *_: (_ for _ in ()).throw(NotAlone("…")))
    monkeypatch.setattr(type(LOOPS["pack"]), "ready", lambda _: ready.append(True))
    table_compilation.compile_loops()
    assert len(ready) == len(LOOPS) and TableCompilation._is_known()
