# amaranth: UnusedElaboratable=no
"""The harness of a proof: a circuit, assumptions about its environment, and named properties."""

from __future__ import annotations

from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, Const, Elaboratable, Fragment, Instance, Module, Signal, Value
from amaranth.hdl._mem import MemoryInstance


class _Elaborated(Elaboratable):
    """A fragment as a submodule."""

    def __init__(self, fragment: Fragment):
        self._fragment = fragment

    def elaborate(self, platform):
        return self._fragment


class Harness:
    """A component ``dut`` inside a module ``m`` that states properties about it.

    The component's inner signals can be looked up by name, for the invariants about its state that induction needs. The
    clock domain has no reset: proofs begin in the power-up state. The component is elaborated for ``platform``.
    """

    def __init__(self, dut: Any, platform: Any = None):
        self.m = Module()
        self._domain = ClockDomain("sync", reset_less=True)
        self.m.domains += self._domain
        self.dut = dut
        #: The stream at which items must be able to leave, if it is no port of the component.
        self.output: Any = None
        self._fragment = Fragment.get(dut, platform)
        self.m.submodules.dut = _Elaborated(self._fragment)
        self._asserts: dict[str, Value] = {}
        self._assumes: dict[str, Value] = {}
        self._inputs: list[Value] = []
        self._found: dict[str, tuple[dict[int, str], dict[str, dict[int, Signal]]]] = {}

    @property
    def properties(self) -> list[str]:
        """Names of all properties to be proved."""
        return list(self._asserts)

    def prove(self, name: str, holds: Any) -> None:
        """State that ``holds`` is true in every cycle."""
        assert name not in self._asserts, f"two properties are named {name!r}"
        self._asserts[name] = Value.cast(holds)

    def assume(self, name: str, holds: Any) -> None:
        """Assume that the environment keeps ``holds`` true in every cycle."""
        assert name not in self._assumes, f"two assumptions are named {name!r}"
        self._assumes[name] = Value.cast(holds)

    def free(self, name: str, shape: Any = 1) -> Any:
        """A signal that may have any value in any cycle."""
        signal = Signal(shape, name=name)
        self._inputs.append(Value.cast(signal))
        return signal

    def expose(self, *signals: Any) -> None:
        """Let ``signals`` of the component that nothing drives have any value in any cycle."""
        self._inputs += [Value.cast(signal) for signal in signals]

    def constant(self, name: str, shape: Any) -> Any:
        """A signal with any value, the same in all cycles."""
        signal, before = self.free(name, shape), Signal(shape, name=f"{name}_before")
        started = self.started()
        self.m.d.sync += Value.cast(before).eq(Value.cast(signal))
        self.assume(f"{name} is constant", ~started | (Value.cast(signal) == Value.cast(before)))
        return signal

    def started(self) -> Value:
        """False in the first cycle only."""
        if not hasattr(self, "_started"):
            self._started = Signal(name="started")
            self.m.d.sync += self._started.eq(1)
        return self._started

    def past(self, value: Any, name: str) -> Any:
        """``value`` in the previous cycle; 0 in the first one."""
        before = Signal(Value.cast(value).shape(), name=name)
        self.m.d.sync += before.eq(value)
        return before

    def inner(self, path: str, *, bits: int | None = None, domain: str | None = None) -> Signal:
        """The signal ``c`` at the path ``a.b.c``: in submodule ``b`` of the component's submodule ``a``.

        If several signals have that name: the one of ``bits`` bits, or driven in ``domain``, or that is not a port.
        """
        *folders, name = path.split(".")
        driven, found = self._signals(folders)
        if name not in found:
            raise LookupError(f"{'.'.join(folders) or 'the component'} has no signal {name!r}, but "
                              f"{', '.join(sorted(found))}")
        fitting = [signal for key, signal in found[name].items()
                   if bits in (None, len(signal)) and domain in (None, driven.get(key))]
        if len(fitting) > 1:
            ports = {id(Value.cast(port)) for _, _, port in self.dut.signature.flatten(self.dut)}
            fitting = [signal for signal in fitting if id(signal) not in ports]
        if len(fitting) != 1:
            raise LookupError(f"{len(fitting)} of {len(found[name])} signals named {name!r} in "
                              f"{'.'.join(folders) or 'the component'} fit; say how many bits it has, or its domain")
        return fitting[0]

    def look(self, path: str, address: Any) -> Signal:
        """The contents of the memory ``path`` at ``address`` now."""
        fragment = self._folder(path.split("."))
        while not isinstance(fragment, MemoryInstance):
            (fragment, _, _), = fragment.subfragments
        data = Signal(Value.cast(fragment._data[0]).shape(), name=f"look_{len(fragment._read_ports)}")
        fragment.read_port(domain="comb", addr=address, data=data, en=Const(1), transparent_for=())
        return data

    def _signals(self, folders: list[str]) -> tuple[dict[int, str], dict[str, dict[int, Signal]]]:
        """The domain that drives each signal of a submodule, by its identity; and all signals by name and identity."""
        if (path := ".".join(folders)) not in self._found:
            fragment = self._folder(folders)
            found: dict[str, dict[int, Signal]] = {}
            driven = {id(signal): of for of, statements in fragment.statements.items() for statement in statements
                      for signal in statement._lhs_signals()}
            for statements in fragment.statements.values():
                for statement in statements:
                    for signal in (*statement._lhs_signals(), *statement._rhs_signals()):
                        found.setdefault(signal.name, {})[id(signal)] = signal
            self._found[path] = driven, found
        return self._found[path]

    def _folder(self, folders: list[str]) -> Fragment:
        fragment = self._fragment
        for folder in folders:
            inside = {name: sub for sub, name, _ in fragment.subfragments}
            if folder not in inside:
                raise LookupError(f"there is no submodule {folder!r}, but {', '.join(map(str, inside))}")
            fragment = inside[folder]
        return fragment

    def rtlil(self, only: str | None = None, *, held: bool = False) -> str:
        """The harness as RTLIL with the top module ``proof``.

        ``only``: the name of the only property to prove. ``held``: assume that all properties held a cycle before.
        """
        chosen = {name: value for name, value in self._asserts.items() if only in (None, name)}
        assert chosen, f"there is no property {only!r}, but {', '.join(self._asserts)}"
        if held:
            before = Signal(len(self._asserts), name="held", init=-1)
            self.m.d.sync += before.eq(Cat(value.bool() for value in self._asserts.values()))
            self.assume("all properties held a cycle before", before.all())
        for kind, cells in (("assert", chosen), ("assume", self._assumes)):
            for name, value in cells.items():
                # An Assert of Amaranth has no name, which is needed to report the property that broke.
                cell = Instance(f"formal_{kind}", i_A=value.bool(), i_EN=Const(1))
                self.m.submodules[f"{kind}:{name.replace(' ', '.')}"] = cell
        # The clock must be a port: otherwise it would never tick, and every property would be proved.
        ports = [self._domain.clk, *(Value.cast(port) for _, _, port in self.dut.signature.flatten(self.dut))]
        text: str = rtlil.convert(self.m, name="proof", ports=[*ports, *self._inputs], emit_src=False)
        for kind in ("assert", "assume"):
            text = text.replace(f"cell \\formal_{kind} ", f"cell ${kind} ")
        return text
