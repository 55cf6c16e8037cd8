"""Loops of threads as generators, so that a seed chooses the order in which threads access what they share.

The library's own source (``threads.hpp``) is compiled so that a call stops before each atomic access, and before each
look of a thread that waits (``interleaving.cpp``). So any interleaving can be run in one thread, which a sanitizer of
threads cannot do.
"""

from __future__ import annotations

import ctypes
import random
import re
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from splitjoin.engines import loops
from splitjoin.engines.loops import address_of, build

__all__ = ["Fault", "Steps", "in_random_order", "interleaved"]

#: What a function that is interleaved gives: steps, and then its result.
Steps = Generator[None, None, Any]
#: A piece of the source, and what is there instead.
Fault = tuple[str, str]

_NAMES = ("reset", "claim", "complete", "stop", "summon", "share", "attend")
_STEP, _ENDED, _ASKS = 0, 1, 2


class Interleaved(Mapping[str, Callable[..., Steps]]):
    """The loops by name, as generators. ``enter``: what an entry does, as a generator of its address, a number and a
    block; it gives 1, or 0 if it failed.
    """

    def __init__(self, library: ctypes.CDLL, calls: list[int], enter: Callable[[int, int, int], Steps] | None):
        self._library, self._calls, self._enter = library, dict(zip(_NAMES, calls, strict=True)), enter

    def __getitem__(self, name: str) -> Callable[..., Steps]:
        return lambda *arguments: self._call(self._calls[name], arguments)

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def _call(self, address: int, arguments: tuple[Any, ...]) -> Steps:
        words = [word for a in arguments for word in (
            (int(a),) if isinstance(a, int) or a.ndim == 0 else (address_of(a), len(a)))]
        kept, given = (ctypes.c_uint64 * len(words))(*words), 0
        fiber = self._library.begin(address, kept)
        try:
            while (state := self._library.resume(fiber, given)) != _ENDED:
                if state == _STEP:
                    yield
                else:
                    assert self._enter is not None
                    given = int((yield from self._enter(*(self._library.value(fiber, n) for n in range(3)))))
            return self._library.value(fiber, -1)
        finally:
            self._library.end(fiber)


def interleaved(faults: Mapping[str, Fault] | None = None) -> Callable[..., Interleaved]:
    """The loops as they are by ``made(enter)``, and with one of ``faults`` by ``made(enter, name)``."""
    library, calls = _compiled(tuple((faults or {}).items()))
    return lambda enter=None, fault=None: Interleaved(library, calls[fault], enter)


@cache
def _compiled(faults: tuple[tuple[str, Fault], ...]) -> tuple[ctypes.CDLL, dict[str | None, list[int]]]:
    """The library with the loops and those with each fault, and the addresses of all, in the order of `_NAMES`."""
    folder, variants = Path(loops.__file__).parent, dict[str | None, Fault]({None: ("", "")})
    variants.update(faults)
    lines = [Path(__file__).with_suffix(".cpp").read_text()]
    for n, (old, new) in enumerate(variants.values()):
        source = "\n".join((folder / name).read_text() for name in ("loop.hpp", "threads.hpp"))
        assert not old or source.count(old) == 1, f"{old!r} is not there once"
        source = re.sub(r'#pragma once|#include ".*', "", source.replace(old, new) if old else source)
        listed = ", ".join(f"&splitjoin::Called<splitjoin::{name}>::call" for name in _NAMES)
        calls = f"extern \"C\" int64_t (*calls_{n}[])(const uint64_t *) = {{{listed}}};"
        lines.append(f"#define splitjoin splitjoin_{n}\n{source}\n{calls}\n#undef splitjoin\n")
    with tempfile.TemporaryDirectory() as made:
        source_file, target = Path(made, "loops.cpp"), Path(made, "loops.so")
        source_file.write_text("\n".join(lines))
        options = "-std=c++20", "-O1", "-w", "-shared", "-fPIC", "-o", str(target)
        subprocess.run([*build._compiler(), *options, str(source_file)], check=True)
        library = ctypes.CDLL(str(target))
    word, pointer = ctypes.c_int64, ctypes.c_void_p
    library.begin.restype, library.begin.argtypes = pointer, [pointer, pointer]
    library.resume.restype, library.resume.argtypes = word, [pointer, word]
    library.value.restype, library.value.argtypes = word, [pointer, word]
    library.end.argtypes = [pointer]
    return library, {name: list((pointer * len(_NAMES)).in_dll(library, f"calls_{n}"))
                     for n, name in enumerate(variants)}


def in_random_order(threads: list[Iterator[None]], chance: random.Random) -> Iterator[None]:
    """Run ``threads`` to their ends in a random order of steps, and yield after some; at times some of them do not run,
    as others take their processors. Fails if they seem to wait for each other.
    """
    for _ in range(20_000):
        if not threads:
            return
        one = chance.choice(threads[:chance.randrange(1, len(threads) + 1)])
        for _ in range(chance.choice((1, 1, 3, 20))):
            if next(one, False) is False:
                threads.remove(one)
                break
        yield
    raise AssertionError("the threads wait for each other")
