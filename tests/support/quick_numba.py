"""numba's compiler without work that changes nothing: flags are compared by what is set, events have no listeners."""

from __future__ import annotations

from typing import Any

from llvmlite.binding import ffi
from numba.core import ir
from numba.core.targetconfig import TargetConfig

#: numba's own methods: they compare the values of fifty flags one by one at each call that is typed, and look into
#: each name, number and line of each instruction for variables, many times.
EQUAL, LIST_VARS = TargetConfig.__eq__, ir.Inst._rec_list_vars
#: Types of what holds no variables.
_PLAIN = {str, int, bool, float, type(None), ir.Loc, type(len)}


def _equal(self: TargetConfig, other: object) -> bool:
    if type(self) is type(other) and self._values == other._values:  # what is not set has its default in both
        return True
    return EQUAL(self, other)  # type: ignore[no-any-return]  # numba is not typed


def _hash(self: TargetConfig) -> int:
    return hash(type(self))  # numba's own is that of the names of all flags, whatever their values


def _list_vars(self: ir.Inst, value: Any) -> list[ir.Var]:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return LIST_VARS(self, value)  # type: ignore[no-any-return]  # numba is not typed
    found = []
    for one in value:
        if type(one) is ir.Var:
            found.append(one)
        elif type(one) not in _PLAIN:
            found += _list_vars(self, one)
    return found


def quicken() -> None:
    """Have this process compile so."""
    TargetConfig.__eq__, TargetConfig.__hash__, ir.Inst._rec_list_vars = _equal, _hash, _list_vars
    # An event each time that LLVM's lock is taken and released, for whoever asks how long it was held: nobody does.
    for callbacks in list(ffi.lib._lock._cblist):
        ffi.unregister_lock_callback(*callbacks)
