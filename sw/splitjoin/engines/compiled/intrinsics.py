"""Instructions that numba does not emit by itself: counting bits, and reading what blocks of compiled entries say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

__all__ = ["llvm_intrinsic", "load_int64", "matrix_at", "popcount", "vector_at"]

_LONG = ir.IntType(64)


def llvm_intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Numba's decorator; callers of the decorated function omit its first argument."""
    return cast(Callable[..., Any], intrinsic(function))


@llvm_intrinsic
def popcount(typing: Any, word: Any) -> Any:
    """The number of 1 bits of ``word``, an unsigned integer; in the type of ``word``."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return word(word), generate


@llvm_intrinsic
def load_int64(typing: Any, address: Any, at: Any) -> Any:
    """The entry ``at`` of the array of int64 at ``address``, of which the caller knows that it is there."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = builder.inttoptr(args[0], _LONG.as_pointer())
        return builder.load(builder.gep(data, [args[1]]))

    return types.int64(types.int64, types.int64), generate


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
