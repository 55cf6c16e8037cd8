"""Hand-over: the threads of a team take a compiled function from a board in memory, without the interpreter's lock.

An *entry* is a compiled function of a thread's number and of the address of a *block*, int64 numbers in memory that say
where its arrays lie. The first thread writes both on the board and opens it. Helpers that look at the board enter, and
the first thread closes it when it has no more work. A helper counts itself among those inside before it looks whether
the board is open, and the first thread closes it before it looks who is inside: so either sees the other, and no block
is left while a thread reads it. Helpers look for some time, and then leave for the interpreter.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from . import intrinsics
from .intrinsics import atomic_add, atomic_exchange, atomic_load, atomic_store, call_entry, relax, rest, yield_processor
from .jit import compiled
from .store import aligned

__all__ = ["address_of", "alone", "attend", "dismiss", "entry_address", "keep", "lend", "make_board", "share", "summon",
           "withdraw"]

#: Digests of these are part of what machine code here depends on.
COMPILED_WITH = (intrinsics,)

Array = npt.NDArray[Any]

#: Entries of a board, each on a cache line of its own: the job that is open, 0 for none; the threads inside; the number
#: of the next one; helpers that look, or were called to; how often all were dismissed; jobs so far.
OPEN, INSIDE, NUMBER, CALLED, DISMISSED, JOBS = 0, 8, 16, 24, 32, 40
#: The job: its entry, its block, how many threads may have it, and whether one failed.
ENTRY, BLOCK, SIZE, FAILED = 48, 49, 50, 56
#: How many helpers that look shall leave for the interpreter.
LEAVING = 64
_ENTRIES = 72
#: Looks at the board before a helper that shares its processor gives it to others.
_LOOKS = 64
#: Looks without a job, some 250 microseconds, after which a helper sleeps between two looks; for how many microseconds,
#: and the looks that it would have made meanwhile.
_ALERT, _REST, _RESTED = 6000, 50, 2200


def make_board() -> npt.NDArray[np.int64]:
    """A board without a job."""
    board = aligned(_ENTRIES, np.int64)
    board[:] = 0
    return board


def address_of(array: Array) -> int:
    """The address of the first entry of ``array``, which the caller keeps alive."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(cast(Any, array)))  # in a fifth of the time
    except (TypeError, ValueError):  # not to be written to, or empty
        address: int = array.__array_interface__["data"][0]
        return address


@lru_cache(maxsize=256)
def entry_address(function: Any) -> int:
    """The address of the compiled ``function``, which takes a thread's number and a block's address, and gives an
    int64.
    """
    from numba import int64

    function.compile((int64, int64))
    made = function.overloads[int64, int64]
    found: int = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    return found


@compiled
def summon(board: Any, wanted: Any) -> Any:
    """Count ``wanted`` helpers as called, and return how many of them do not look yet."""
    missing = wanted - atomic_load(board, CALLED)
    if missing <= 0:
        return np.int64(0)
    atomic_add(board, CALLED, missing)
    return missing


@compiled
def withdraw(board: Any, helpers: Any) -> None:
    """Count ``helpers`` as called no more, as they will not come."""
    atomic_add(board, CALLED, -helpers)


@compiled
def lend(board: Any, helpers: Any) -> None:
    """Have so many helpers that look leave for the interpreter, and count as many as called: those that look again when
    they have done what it has.
    """
    atomic_add(board, CALLED, helpers)
    atomic_store(board, LEAVING, helpers)


@compiled
def keep(board: Any) -> None:
    """Have no more helpers leave that were to be lent."""
    atomic_store(board, LEAVING, 0)


@compiled
def dismiss(board: Any) -> None:
    """Have helpers that look leave for the interpreter."""
    atomic_add(board, DISMISSED, 1)


@compiled
def share(board: Any, entry: Any, block: Any, size: Any) -> Any:
    """Run ``entry`` with ``block`` in this thread, as number 0, and in up to ``size`` − 1 helpers that look meanwhile.

    Returns when none is inside any more: True if one failed.
    """
    atomic_store(board, ENTRY, entry)
    atomic_store(board, BLOCK, block)
    atomic_store(board, SIZE, size)
    atomic_store(board, NUMBER, 1)
    atomic_store(board, FAILED, 0)
    atomic_store(board, OPEN, atomic_add(board, JOBS, 1) + 1)
    failed = call_entry(entry, 0, block)
    atomic_store(board, OPEN, 0)
    looks = 0
    while atomic_load(board, INSIDE):
        looks += 1
        if looks % _LOOKS:
            relax()
        else:
            yield_processor()
    return failed or atomic_load(board, FAILED) != 0


@compiled
def alone(entry: Any, block: Any) -> Any:
    """Run ``entry`` with ``block`` in this thread only. Returns True if it failed."""
    return call_entry(entry, 0, block)


@compiled
def attend(board: Any, patience: Any) -> None:
    """Take part in jobs, until there was none for ``patience`` looks, or this helper is lent, or all are dismissed."""
    dismissed, seen, looks = atomic_load(board, DISMISSED), np.int64(0), 0
    while looks < patience and atomic_load(board, DISMISSED) == dismissed:
        job = atomic_load(board, OPEN)
        if job == 0 or job == seen:
            leaving = atomic_load(board, LEAVING)
            if leaving > 0 and atomic_exchange(board, LEAVING, leaving, leaving - 1):
                break
            looks += 1
            if looks > _ALERT:
                rest(_REST)
                looks += _RESTED
            elif looks % _LOOKS:
                relax()
            else:
                yield_processor()
            continue
        atomic_add(board, INSIDE, 1)
        job = atomic_load(board, OPEN)
        if job and job != seen:
            number = atomic_add(board, NUMBER, 1)
            if number < atomic_load(board, SIZE) and call_entry(
                    atomic_load(board, ENTRY), number, atomic_load(board, BLOCK)):
                atomic_store(board, FAILED, 1)
            seen, looks = job, 0
        atomic_add(board, INSIDE, -1)
    atomic_add(board, CALLED, -1)
