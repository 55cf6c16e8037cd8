"""Finding the C++ compiler."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from splitjoin import ToolError
from splitjoin_sim.tools import cxx


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    cxx.cache_clear()
    yield
    cxx.cache_clear()


def test_cxx_may_be_several_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "env g++")
    assert cxx() == ("env", "g++")


def test_an_empty_cxx_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", " ")
    assert cxx()[0] in ("g++", "clang++", "c++")


@pytest.mark.parametrize("name", ["no-such-compiler -O9", "'no-such-compiler"])
def test_a_cxx_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("CXX", name)
    with pytest.raises(ToolError, match=r"the variable CXX must name a C.. compiler, .* no program .*no-such"):
        cxx()
