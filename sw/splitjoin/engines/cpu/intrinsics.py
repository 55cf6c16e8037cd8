"""Instructions that numba does not emit by itself: comparing 64 slots at once, and counting bits of a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir  # type: ignore[import-untyped]  # llvmlite is not typed
from numba.core import types
from numba.extending import intrinsic

__all__ = ["BLOCK", "interval_mask", "llvm_intrinsic", "lowest_bit", "popcount"]

#: Slots that are compared at once.
BLOCK = 64

_INT = ir.IntType(32)


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
