"""Compiles a loop of whole tables to machine code that needs nothing of numba."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm_binding
import numba
from numba import types
from numba.core import config as numba_config

from .object_code import self_contained
from .table_loop import scalar_kinds

__all__ = ["object_of"]

#: Without types.
llvm: Any = llvm_binding
njit: Any = numba.njit
config: Any = numba_config
pointer_to: Any = types.CPointer
carray: Any = numba.carray  # type: ignore[attr-defined]  # documented, but not exported by name

#: What numba calls for arrays that nobody uses any more. Those of `carray` are nobody's, so it is never called.
_FREED = re.compile(r"^declare void @NRT_MemInfo_call_dtor\(ptr[^)]*\).*$", re.MULTILINE)
_NOTHING_FREED = "define internal void @NRT_MemInfo_call_dtor(ptr %of) { ret void }"


def object_of(function: Callable[..., Any], kinds: str) -> tuple[bytes, int]:
    """Machine code of ``function``, whose arguments are of ``kinds``, and where in it the entry begins: numba's calling
    convention, with an address and a length for each array. Raises `NotAlone`.
    """
    names, given, signature = list[str](), list[str](), list[Any]()
    for n, kind in enumerate(kinds):
        element = scalar_kinds[kind.lower()]
        if kind in "nw":
            names.append(f"v{n}")
            given.append(f"v{n}")
            signature.append(element)
        else:
            names += f"p{n}", f"n{n}"
            given.append(f"carray(p{n}, (n{n},))")
            signature += pointer_to(element), types.int64
    space: dict[str, Any] = {"inner": njit(nogil=True)(function), "carray": carray}
    exec(f"def entry({', '.join(names)}):\n    return inner({', '.join(given)})", space)
    entry = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(space["entry"])
    entry.compile(tuple(signature))
    (compiled,) = entry.overloads.values()
    name = compiled.fndesc.llvm_func_name
    module = llvm.parse_assembly(_FREED.sub(_NOTHING_FREED, compiled.library.get_llvm_str()))
    for of in (*module.functions, *module.global_variables):
        if not of.is_declaration and of.name != name:
            of.linkage = "internal"  # so that what nobody calls is left out
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=config.CPU_NAME or llvm.get_host_cpu_name(),
        features=config.CPU_FEATURES or llvm.get_host_cpu_features().flatten(), opt=3, reloc="pic", codemodel="small")
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return self_contained(machine.emit_object(module), name)
