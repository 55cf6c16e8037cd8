"""Amaranth and its simulator without half of their work: masks of what is within its width, checks, equal values."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

from amaranth.hdl import _ast as ast, _nir as nir
from amaranth.sim import _pyrtl, pysim

_RHS, _STATEMENTS = _pyrtl._RHSValueCompiler, _pyrtl._StatementCompiler
#: Amaranth's own methods.
OWN: dict[tuple[Any, str], Any] = {(of, name): vars(of)[name] for of, name in [
    (pysim._PySignalState, "commit"), (pysim._PyMemoryState, "write"), (pysim._PyEngineState, "get_signal"),
    (_RHS, "sign"), (_RHS, "on_Operator"), (_RHS, "on_Slice"), (_RHS, "on_Concat"), (_STATEMENTS, "on_Assign"),
    (ast.Operator, "shape"), (ast.Value, "cast"), (nir.Value, "__new__"), (nir.Value, "from_const"),
    (nir.Netlist, "resolve_value")]}
_WRITE, _GET_SIGNAL, _OPERATOR, _SHAPE, _CAST = (getattr(of, name) for of, name in [
    (pysim._PyMemoryState, "write"), (pysim._PyEngineState, "get_signal"), (_RHS, "on_Operator"),
    (ast.Operator, "shape"), (ast.Value, "cast")])
_BITS = nir.Net.from_const(0), nir.Net.from_const(1)
#: Values of exactly these classes need no look at their base classes, which have a slow one.
_PLAIN = {ast.Const, ast.Signal, ast.Operator, ast.Slice, ast.Part, ast.Concat, ast.SwitchValue}
#: Operators whose values fit their width if their operands do, and are not negative.
_FIT = {"&", "|", "^", "+", "*", "<<", ">>"}


def _commit(self: Any) -> bool:
    before, after = self.curr, self.next
    if before == after:
        return False
    stay = [waker for waker in self.wakers if waker(before, after)]
    if len(stay) != len(self.wakers):
        self.wakers[:] = stay
    self.curr = after
    return True


def _write(self: Any, addr: int, value: int, mask: int | None = None) -> None:
    if mask != 0:  # else the port writes no bit
        _WRITE(self, addr, value, mask)


def _fits(value: Any) -> bool:
    """True if the code of ``value`` gives a number from 0 on within its width."""
    kind = type(value)
    if kind in (ast.Slice, ast.Part, ast.Concat):
        return True
    if kind is ast.Operator:
        return value.operator in _FIT and not any(of.shape().signed for of in value.operands)
    return kind in (ast.Signal, ast.SwitchValue) and not value.shape().signed


def _mask(self: Any, value: Any) -> str:
    if type(value) is ast.Operator and value.operator in ("u", "s"):
        return _mask(self, value.operands[0])
    if type(value) is ast.Const:
        return str(value.value & (1 << len(value)) - 1)
    code = self(value)
    return str(code) if _fits(value) else f"({(1 << len(value)) - 1:#x} & {code})"


def _sign(self: Any, value: Any) -> str:
    if not value.shape().signed:
        return _mask(self, value)
    if type(value) in (ast.Signal, ast.Const):
        return str(self(value))
    return f"sign({_mask(self, value)}, {-1 << (len(value) - 1):#x})"


def _operator(self: Any, value: Any) -> str:
    if len(value.operands) == 1:
        return {"~": "(~{})", "b": "bool({})", "r|": "(0 != {})"}[value.operator].format(_mask(
            self, value.operands[0])) if value.operator in ("~", "b", "r|") else str(_OPERATOR(self, value))
    if value.operator in ("//", "%"):
        return str(_OPERATOR(self, value))
    left, right = value.operands
    return f"({_sign(self, left)} {value.operator} {_sign(self, right)})"


def _slice(self: Any, value: Any) -> str:
    if value.start == 0 and len(value) == len(value.value):
        return _mask(self, value.value)
    return f"({(1 << len(value)) - 1:#x} & ({self(value.value)} >> {value.start}))"


def _concat(self: Any, value: Any) -> str:
    codes, at = [], 0
    for _, same in groupby(value.parts, id):
        part, *more = same
        code = _mask(self, part)
        if more and len(part) == 1:
            codes.append(f"({code} * {(1 << len(more) + 1) - 1:#x} << {at})")
            at += 1 + len(more)
            continue
        for _ in range(1 + len(more)):
            codes.append(f"({code} << {at})")
            at += len(part)
    return f"({' | '.join(codes)})" if codes else "0"


def _assign(self: Any, statement: Any) -> None:
    to, value = statement.lhs, statement.rhs
    if type(to) is ast.Signal and not (to.shape().signed or value.shape().signed) and len(value) <= len(to):
        self.emitter.append(f"next_{self.state.get_signal(to)} = {_sign(self.rhs, value)}")
    else:
        self.lhs(to)(self.rhs.sign(value))


def _shape(self: Any) -> Any:
    found = vars(self).get("quick_shape")
    if found is None:
        found = self.quick_shape = _SHAPE(self)
    return found


def _cast(obj: Any) -> Any:
    return obj if type(obj) in _PLAIN else _CAST(obj)


def _get_signal(self: Any, signal: Any) -> Any:
    found = vars(self).setdefault("quick_signals", {})
    if signal.duid not in found:
        found[signal.duid] = _GET_SIGNAL(self, signal)
    return found[signal.duid]


def _value(cls: Any, nets: Any = ()) -> Any:
    return tuple.__new__(cls, (nets,) if type(nets) is nir.Net else nets)  # which Amaranth checks one by one


def _from_const(cls: Any, value: int, width: int) -> Any:
    return tuple.__new__(cls, [_BITS[value >> bit & 1] for bit in range(width)])


def _resolve_value(self: Any, value: Any) -> Any:
    found, connections = [], self.connections
    for net in value:
        while net < 0:
            net = connections[net]
        found.append(net)
    return tuple.__new__(nir.Value, found)


def _exec(code: Any, names: dict[str, Any]) -> None:
    if "slots" in names:
        code = re.sub(r"slots\[(\d+)\]\.update\((\w+), ", r"if \2 != slots[\1].next: slots[\1].update(\2, ", code)
        slots = set(re.findall(r"slots\[(\d+)\]", code))
        names |= {f"slot_{n}": names["slots"][int(n)] for n in slots}
        code = compile(re.sub(r"slots\[(\d+)\]", r"slot_\1", code), "<string>", "exec")
    exec(code, names)


def quicken() -> None:
    """Have this process elaborate, convert and simulate so."""
    ours = (_commit, _write, _get_signal, _sign, _operator, _slice, _concat, _assign, _shape, staticmethod(_cast),
            staticmethod(_value), classmethod(_from_const), _resolve_value)
    for (of, name), method in zip(OWN, ours, strict=True):
        setattr(of, name, method)
    # What is compiled is the text, once it is known which signals it reads.
    vars(_pyrtl)["compile"] = lambda code, *how: code if code.startswith("def run") else compile(code, *how)
    vars(_pyrtl)["exec"] = _exec
