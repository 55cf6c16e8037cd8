"""Loops of threads as generators, so that a seed chooses the order in which threads access what they share.

A library's own source (``threads.hpp``) is compiled so that a call stops before each atomic access, and before each
look of a thread that waits (``interleaving.cpp``). So any interleaving can be run in one thread, which a sanitizer of
threads cannot do.
"""

from __future__ import annotations

import ctypes
import random
import re
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from splitjoin.base.threads import System
from splitjoin.engines import loops
from splitjoin.engines.loops import address_of, build

#: What a function that is interleaved gives: steps, and then its result.
Steps = Generator[None, None, Any]
#: A piece of the source, and what is there instead.
Fault = tuple[str, str]

_NAMES = ("reset", "claim", "complete", "stop", "summon", "share", "attend")
#: Where these are, and below it the sources that have them.
_FILES = ("loops/loop.hpp", "loops/threads.hpp")
#: Steps after which the calls of a schedule count as waiting for each other.
_MOST = 300_000
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
        kept, given = _words(arguments), 0
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


class Fibers(System, Mapping[str, Callable[..., int]]):
    """The loops by name, as calls in which the loops of other threads run too, in an order that ``seed`` chooses; and
    such threads, of functions that call one loop at last.
    """

    def __init__(self, library: ctypes.CDLL, calls: Mapping[str, int], seed: int):
        self._library, self._calls = library, calls
        self._seed = ctypes.c_uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64 or 1)
        self._others: list[int] = []
        self._kept: list[Any] = []
        self._is_starting = False
        self.thread = self._thread

    def __getitem__(self, name: str) -> Callable[..., int]:
        return lambda *arguments: self._call(self._calls[name], arguments)

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def _call(self, address: int, arguments: tuple[Any, ...]) -> int:
        words = _words(arguments)
        self._kept.append((words, arguments))
        fiber = self._library.begin(address, words)
        if self._is_starting:
            self._others.append(fiber)
            return 0
        found = self._run(fiber)
        self._library.end(fiber)
        return found

    def _run(self, fiber: int) -> int:
        """Run all until ``fiber`` has ended, and return its value."""
        fibers = [fiber, *(other for other in self._others if other != fiber)]
        array = (ctypes.c_void_p * len(fibers))(*fibers)
        if self._library.together(array, len(fibers), ctypes.byref(self._seed), _MOST) < 0:
            raise AssertionError("the threads wait for each other")
        found: int = self._library.value(fiber, -1)
        return found

    def _thread(self, target: Callable[..., object], args: Sequence[Any] = (), **_: object) -> Any:
        def start() -> None:
            self._is_starting = True
            target(*args)
            self._is_starting = False
            one.fiber = self._others[-1]

        def join() -> None:
            self._run(one.fiber)
            self._others.remove(one.fiber)
            self._library.end(one.fiber)

        one = SimpleNamespace(start=start, join=join, fiber=0)
        return one


def fibers(names: Sequence[str], files: Sequence[str],
           faults: Mapping[str, Fault] | None = None) -> Callable[..., Fibers]:
    """The loops with ``names`` in ``files``, as they are by ``made(seed)``, and with one of ``faults`` by ``made(seed,
    name)``.
    """
    library, calls = _compiled(tuple((faults or {}).items()), tuple(names), tuple(files), "-O0")
    return lambda seed, fault=None: Fibers(library, dict(zip(names, calls[fault], strict=True)), seed)


def plain_calls(name: str, files: Sequence[str],
                faults: Mapping[str, Fault] | None = None) -> Callable[..., int]:
    """The function ``name`` of numbers in ``files``, which runs fibers by itself: ``call(*numbers, fault=None)``."""
    _, calls = _compiled(tuple((faults or {}).items()), (name,), tuple(files), "-O1")
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
    return lambda *numbers, fault=None: call(calls[fault][0])(_words(numbers))


def interleaved(faults: Mapping[str, Fault] | None = None) -> Callable[..., Interleaved]:
    """The loops as they are by ``made(enter)``, and with one of ``faults`` by ``made(enter, name)``."""
    library, calls = _compiled(tuple((faults or {}).items()), _NAMES, _FILES, "-O1")
    return lambda enter=None, fault=None: Interleaved(library, calls[fault], enter)


def _words(arguments: tuple[Any, ...]) -> Any:
    """The words of a call."""
    words = [word for a in arguments for word in (
        (int(a),) if isinstance(a, int) or a.ndim == 0 else (address_of(a) if len(a) else 0, len(a)))]
    return (ctypes.c_uint64 * len(words))(*(word % 2**64 for word in words))


@cache
def _compiled(faults: tuple[tuple[str, Fault], ...], names: tuple[str, ...], files: tuple[str, ...],
              level: str) -> tuple[ctypes.CDLL, dict[str | None, list[int]]]:
    """The library with the loops in ``files`` and those with each fault, and the addresses of ``names`` in each."""
    folder, variants = Path(loops.__file__).parents[1], dict[str | None, Fault]({None: ("", "")})
    variants.update(faults)
    lines = [Path(__file__).with_suffix(".cpp").read_text()]
    for n, (old, new) in enumerate(variants.values()):
        source = "\n".join((folder / name).read_text() for name in files)
        assert not old or source.count(old) == 1, f"{old!r} is not there once"
        source = re.sub(r'#pragma once|#include ".*', "", source.replace(old, new) if old else source)
        listed = ", ".join(f"&splitjoin::Called<splitjoin::{name}>::call" for name in names)
        calls = f"extern \"C\" int64_t (*calls_{n}[])(const uint64_t *) = {{{listed}}};"
        lines.append(f"#define splitjoin splitjoin_{n}\n{source}\n{calls}\n#undef splitjoin\n")
    with tempfile.TemporaryDirectory() as made:
        source_file, target = Path(made, "loops.cpp"), Path(made, "loops.so")
        source_file.write_text("\n".join(lines))
        options = "-std=c++20", level, "-w", "-shared", "-fPIC", "-o", str(target)
        subprocess.run([*build._compiler(), *options, str(source_file)], check=True)
        library = ctypes.CDLL(str(target))
    word, pointer = ctypes.c_int64, ctypes.c_void_p
    library.begin.restype, library.begin.argtypes = pointer, [pointer, pointer]
    library.resume.restype, library.resume.argtypes = word, [pointer, word]
    library.value.restype, library.value.argtypes = word, [pointer, word]
    library.end.argtypes = [pointer]
    library.together.restype, library.together.argtypes = word, [pointer, word, pointer, word]
    return library, {name: list((pointer * len(names)).in_dll(library, f"calls_{n}"))
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
