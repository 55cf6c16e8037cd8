"""Compiled functions and classes in machine code: loops over arrays of operands, by numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from splitjoin.base.errors import InputError, ToolError, UnsupportedError
from splitjoin.lang.fold import Width

from .graph import Graph, Node
from .kernels import Kernel, Port, compiled
from .memories import READS

_INT64 = -(2**63), 2**63 - 1


def jit(fn: Any) -> Callable[..., Any]:
    """``fn`` in machine code: a function of arrays, one for each parameter, of n successive operands.

    It takes whole numbers (n,), for a tuple of m numbers (n, m), and returns int64 (n,), or a tuple of such arrays; of
    a kernel that returns None at times, only the results that there are. A class with a state begins anew with each
    call. Numbers in fixed point are whole numbers without the point. The values are those of the component, bit by bit.

    Raises `UnsupportedError` for a function that computes numbers of more than 64 bits, `InputError` for operands that
    do not fit their widths, and `ToolError` if numba is not installed.
    """
    kernel = compiled(fn)
    try:
        import numba
    except ModuleNotFoundError as error:
        raise ToolError("splitjoin.hls.jit needs the Python package 'numba', which is not installed; pip install "
                        "numba") from error
    space: dict[str, Any] = {"np": np}
    exec(_source(kernel), space)  # the text below, of operations alone
    loop = numba.njit(space["loop"])

    def run(*arrays: Any) -> Any:
        if len(arrays) != len(kernel.inputs):
            raise InputError(f"{kernel.name} takes {len(kernel.inputs)} arrays, not {len(arrays)}")
        given = [_operands(port, array) for port, array in zip(kernel.inputs, arrays, strict=True)]
        if len({len(a) for a in given}) != 1:
            raise InputError(f"the arrays of {kernel.name} must be equally long")
        out = np.empty((len(kernel.results), len(given[0])), np.int64)
        memories = [np.full(m.rows, m.init, np.int64) for m in kernel.memories]
        out = out[:, :loop(np.concatenate(given, axis=1), out, *memories)]
        return out[0] if len(out) == 1 else tuple(out)

    return run


def _operands(port: Port, array: Any) -> Any:
    made, many = np.asarray(array), len(port.field.names)
    if made.dtype.kind not in "iub" or made.ndim != 1 + bool(many) or (many and made.shape[1] != many):
        shape = f"(n, {many})" if many else "(n,)"
        raise InputError(f"{port.name} must be an array {shape} of whole numbers, not {made.dtype} {made.shape}")
    made = made.reshape(len(made), -1)
    for (name, width), values in zip(port.numbers, made.T, strict=True):
        low, high = width.range
        if values.size and not (low <= int(values.min()) and int(values.max()) <= high):
            raise InputError(f"{name} must fit {width}, but holds {values.min()} to {values.max()}")
    return made.astype(np.int64)


def _source(kernel: Kernel) -> str:
    """A function of operands (n, numbers) that fills results (results, n), and returns their number."""
    graph = kernel.graph
    for node in graph.nodes:
        if node.low < _INT64[0] or node.high > _INT64[1]:
            raise UnsupportedError(f"{kernel.name} computes numbers of {node.width} bits, and machine code has 64; "
                                   f"bound them with min and max, or & a mask")
    number = {name: n for n, (name, _) in enumerate(one for port in kernel.inputs for one in port.numbers)}
    slot = {s.name: n for n, s in enumerate(kernel.slots)}
    memory = {m.name: f"memory{n}" for n, m in enumerate(kernel.memories)}
    lines = [f"def loop({', '.join(['given', 'out', *memory.values()])}):", "    found = 0",
             *(f"    s{n} = np.int64({s.init})" for n, s in enumerate(kernel.slots)), "    for n in range(len(given)):"]
    for n, node in enumerate(graph.nodes):
        if node.kind == "write":
            continue
        value = (f"s{slot[node.name]}" if node.side == "r" else f"given[n, {number[node.name]}]") if (
            node.kind == "input") else f"{memory[node.name]}[v{node.args[0]}]" if node.kind in READS else _code(
                graph, node)
        lines.append(f"        v{n} = np.int64({value})")
    lines += [f"        out[{i}, found] = v{n}" for i, n in enumerate(kernel.results)]
    for name, n in kernel.writes.items():
        new, enable, address = graph.nodes[n].args[:3]
        lines += [f"        if v{enable}:", f"            {memory[name]}[v{address}] = v{new}"]
    lines += [f"        s{i} = v{n}" for i, n in zip(range(len(kernel.slots)), graph.outputs, strict=False)]
    lines += [f"        found += {'1' if kernel.present is None else f'v{kernel.present}'}", "    return found"]
    return "\n".join(lines)


def _code(graph: Graph, node: Node) -> str:
    a, b, c = (*(f"v{n}" for n in node.args), "", "", "")[:3]
    match node.kind:
        case "constant":
            return str(node.low)
        case "+" | "-" | "*" | "&" | "|" | "^":
            return f"{a} {node.kind} {b}"
        case "and":
            return f"{a} & {b}"
        case "or":
            return f"{a} | {b}"
        case "not":
            return f"1 - {a}"
        case "=":
            return f"{a} == {b}"
        case "<":
            return f"{a} < {b}"
        case "min" | "max":
            return f"{node.kind}({a}, {b})"
        case "abs":
            return f"abs({a})"
        case "choose":
            return f"{b} if {a} else {c}"
        case "shift":
            return f"{a} << {node.places}" if node.places > 0 else f"{a} >> {-node.places}"
        case "bits":
            return f"{a} & {(1 << node.places) - 1}"
        case "fit":
            width = Width(node.width, node.low < 0)
            return a if node.width == 64 else f"(({a} - {width.range[0]}) & {(1 << node.width) - 1}) + {width.range[0]}"
    raise TypeError(f"no operation {node.kind!r}")
