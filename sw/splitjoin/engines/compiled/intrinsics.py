"""Instructions that numba does not emit by itself: comparing 64 slots at once, counting bits, and atomic access to
memory that threads share.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np import arrayobj

__all__ = ["BLOCK", "atomic_add", "atomic_exchange", "atomic_load", "atomic_store",
           "interval_mask", "llvm_intrinsic", "load_int64", "lowest_bit", "matrix_at", "pointer_to", "popcount",
           "relax", "vector_at", "yield_processor"]

#: Slots that are compared at once.
BLOCK = 64

_INT, _LONG = ir.IntType(32), ir.IntType(64)
#: The instruction that tells a processor that a thread waits in a loop.
_RELAX = {"x86_64": "llvm.x86.sse2.pause"}
#: The system's function that gives the processor to other threads.
_YIELD = "SwitchToThread" if os.name == "nt" else "sched_yield"


def llvm_intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Numba's decorator; callers of the decorated function omit its first argument."""
    return cast(Callable[..., Any], intrinsic(function))


@llvm_intrinsic
def interval_mask(typing: Any, array: Any, at: Any, low: Any, width: Any) -> Any:
    """A mask of the slots ``array[at]`` to ``array[at + 63]`` that lie within ``width`` above ``low``, modulo the width
    of their type: 64 bits, bit 0 the first. ``array`` has an unsigned type, and so have ``low`` and ``width``.
    """
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        word = ir.IntType(array.dtype.bitwidth)
        kind = ir.VectorType(word, BLOCK)
        keys = builder.load(builder.bitcast(builder.gep(data, [args[1]]), kind.as_pointer()), align=word.width // 8)

        def splat(value: Any) -> Any:
            undefined = ir.Constant(kind, ir.Undefined)
            one = builder.insert_element(undefined, value, ir.Constant(_INT, 0))
            return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(_INT, BLOCK), [0] * BLOCK))

        met = builder.icmp_unsigned("<=", builder.sub(keys, splat(args[2])), splat(args[3]))
        return builder.bitcast(met, ir.IntType(BLOCK))

    return types.uint64(array, types.int64, array.dtype, array.dtype), generate


@llvm_intrinsic
def lowest_bit(typing: Any, mask: Any) -> Any:
    """The number of the lowest bit that is set in ``mask``, a uint64; 64 if there is none."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@llvm_intrinsic
def popcount(typing: Any, word: Any) -> Any:
    """The number of 1 bits of ``word``, an unsigned integer; in the type of ``word``."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return word(word), generate


def _entry(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    return builder.gep(data, [args[1]])


@llvm_intrinsic
def atomic_load(typing: Any, array: Any, at: Any) -> Any:
    """``array[at]`` of int64, as threads have written it; what they wrote before is seen afterwards."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_entry(context, builder, signature, args), "seq_cst", 8)

    return types.int64(array, types.int64), generate


@llvm_intrinsic
def atomic_store(typing: Any, array: Any, at: Any, value: Any) -> Any:
    """Set ``array[at]`` of int64 to ``value``, after all that this thread wrote before."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _entry(context, builder, signature, args), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@llvm_intrinsic
def atomic_add(typing: Any, array: Any, at: Any, value: Any) -> Any:
    """Add ``value`` to ``array[at]`` of int64. Returns what was there before."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _entry(context, builder, signature, args), args[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), generate


@llvm_intrinsic
def atomic_exchange(typing: Any, array: Any, at: Any, expected: Any, value: Any) -> Any:
    """Set ``array[at]`` of int64 to ``value`` if it is ``expected``. Returns True if it was."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = builder.cmpxchg(_entry(context, builder, signature, args), args[2], args[3], "seq_cst", "seq_cst")
        return builder.extract_value(found, 1)

    return types.boolean(array, types.int64, types.int64, types.int64), generate


def _call(builder: Any, kind: Any, name: str, *args: Any) -> Any:
    """The code that calls the function ``name`` with ``args``, which gives a value of ``kind``."""
    function: Any = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]  # numba is not typed
        builder.module, ir.FunctionType(kind, [value.type for value in args]), name)
    return builder.call(function, args)


@llvm_intrinsic
def relax(typing: Any) -> Any:
    """Tell the processor that this thread waits in a loop."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if (name := _RELAX.get(platform.machine())) is not None:
            _call(builder, ir.VoidType(), name)
        return context.get_dummy_value()

    return types.void(), generate


@llvm_intrinsic
def yield_processor(typing: Any) -> Any:
    """Let other threads run on this processor."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _call(builder, _INT, _YIELD)
        return context.get_dummy_value()

    return types.void(), generate


@llvm_intrinsic
def load_int64(typing: Any, address: Any, at: Any) -> Any:
    """The entry ``at`` of the array of int64 at ``address``, of which the caller knows that it is there."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = builder.inttoptr(args[0], _LONG.as_pointer())
        return builder.load(builder.gep(data, [args[1]]))

    return types.int64(types.int64, types.int64), generate


@llvm_intrinsic
def pointer_to(typing: Any, address: Any) -> Any:
    """The address, an int64, as a pointer, for `numba.carray`."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate


def _array_at(dimensions: int, kind: Any) -> Any:
    arrays: Any = arrayobj  # numba is not typed

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = arrays.make_array(signature.return_type)(context, builder)
        numbers = builder.inttoptr(args[0], _LONG.as_pointer())
        told = [builder.load(builder.gep(numbers, [builder.add(args[1], ir.Constant(_LONG, n))]))
                for n in range(dimensions + 1)]
        size = ir.Constant(_LONG, arrays.get_itemsize(context, signature.return_type))
        strides = [size] if dimensions == 1 else [builder.mul(size, told[2]), size]
        data = builder.inttoptr(told[0], context.get_data_type(signature.return_type.dtype).as_pointer())
        arrays.populate_array(made, data=data, shape=told[1:], strides=strides, itemsize=size, meminfo=None)
        return made._getvalue()

    return types.Array(kind.dtype, dimensions, "C")(types.int64, types.int64, kind), generate


@llvm_intrinsic
def vector_at(typing: Any, block: Any, at: Any, kind: Any) -> Any:
    """The array of NumPy's type ``kind`` whose address and length are the numbers ``at`` and ``at + 1`` of the int64 at
    the address ``block``. The compiler takes less time for it than for `numba.carray` and what that needs.
    """
    return _array_at(1, kind)


@llvm_intrinsic
def matrix_at(typing: Any, block: Any, at: Any, kind: Any) -> Any:
    """The same with two dimensions, in the order of C."""
    return _array_at(2, kind)
