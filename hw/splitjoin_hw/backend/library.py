"""All modules of a circuit, each written once: modules with the same text are one module."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from amaranth.back import rtlil
from amaranth.hdl import Fragment, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from .names import Names, stem
from .rtlil import read_rtlil
from .writer import WIDTH, Written, write_module

#: The place of a module's name in a text, with the module's number.
_MARK = re.compile("\x01(\\d+)\x02")


@dataclass(frozen=True)
class _Source:
    """The origin of a module: the ``kind`` and ``text`` that its component's class gives."""

    kind: str
    text: str


@dataclass(frozen=True)
class Converted:
    """RTLIL of a component as module ``name``, and what the classes of its parts say about them, by module."""

    name: str
    text: str
    sources: dict[str, _Source]

    @classmethod
    def of(cls, component: wiring.Component, name: str) -> Converted:
        """``component`` as module ``name``."""
        ports = {}
        for path, member, value in component.signature.flatten(component):
            direction = PortDirection.Input if member.flow == In else PortDirection.Output
            ports["__".join(map(str, path))] = (Value.cast(value), direction)
        fragment = Fragment.get(component, None)
        sources = dict(_sources(fragment, (name,)))
        text, _ = rtlil.convert_fragment(fragment, ports, name, emit_src=False)
        return cls(name, text, sources)


class Library:
    """Collects the modules of components, and writes them.

    ``prefix``: of the names of all modules.
    """

    def __init__(self, prefix: str):
        self._prefix = prefix
        self._known: dict[str, Written] = {}  # by RTLIL names
        self._key: dict[str, int] = {}  # RTLIL name → number of its text
        self._texts: dict[str, int] = {}
        self._modules: list[tuple[str, _Source]] = []
        self._paths: list[list[str]] = []  # of each module, the places that it was found at
        self._fixed: dict[int, str] = {}

    def declare(self, name: str, ports: wiring.Signature) -> None:
        """Make a module known that stands in another file."""
        flat = [("__".join(map(str, path)), member.flow) for path, member, _ in ports.flatten(ports.create())]
        names = ["clk", "rst", *(port for port, _ in flat)]
        self._known[name] = Written("", {port: port for port in names},
                                    frozenset(port for port, flow in flat if flow != In))
        self._key[f"\\{name}"] = len(self._modules)
        self._fixed[len(self._modules)] = name
        self._modules.append(("", _Source(name, "")))
        self._paths.append([])

    def add(self, component: Converted) -> None:
        """Add a component as a module, and its submodules; instances in it are of modules added before."""
        own: dict[str, Written] = {}
        # Amaranth writes a module before those that it has instances of.
        for module in reversed(read_rtlil(component.text)):
            path = re.sub(r"\$\d+", "", module.name.removeprefix("\\"))  # without numbers that Amaranth adds
            children = {cell.kind: own.get(cell.kind) or self._known[cell.kind.removeprefix("\\")]
                        for cell in module.cells if not cell.kind.startswith("$")}
            written = write_module(module, children, self._mark)
            source = component.sources.get(path) or _Source(stem(path.rpartition(".")[2]), "")
            self._key[module.name] = self._register(written.text, path, source, fixed=path == component.name)
            own[module.name] = written
        self._known[component.name] = own[f"\\{component.name}"]

    def _mark(self, kind: str) -> str:
        """A mark in the text for the name of a module, which is known at the end."""
        return f"\x01{self._key[kind]}\x02"

    def _register(self, text: str, path: str, source: _Source, *, fixed: bool) -> int:
        if fixed or text not in self._texts:
            self._texts.setdefault(text, len(self._modules))
            self._modules.append((text, source))
            self._paths.append([])
            if fixed:
                self._fixed[len(self._modules) - 1] = path
                return len(self._modules) - 1
        self._paths[self._texts[text]].append(path)
        return self._texts[text]

    def names(self) -> dict[int, str]:
        """The module names: those of parts as they are, others by their class, numbered if it has several."""
        taken = Names()
        for name in self._fixed.values():
            taken.take(name)
        return {n: self._fixed[n] if n in self._fixed else taken.take(f"{self._prefix}_{source.kind}")
                for n, (_, source) in enumerate(self._modules)}

    def text(self) -> str:
        """All modules, those before others that have instances of them."""
        names = self.names()
        parts = []
        for n, (text, source) in enumerate(self._modules):
            if text:
                places = ", ".join(path.removeprefix(f"{self._prefix}_") for path in sorted(self._paths[n])[:4])
                more = ", …" if len(self._paths[n]) > 4 else ""
                comment = [*textwrap.wrap(source.text, WIDTH - 3),
                           *(textwrap.wrap(f"At {places}{more}.", WIDTH - 3) if places else [])]
                body = _MARK.sub(lambda found: names[int(found[1])], text)
                parts.append("".join(f"// {line}\n" for line in comment) + f"module {names[n]} {body}")
        return "\n".join(parts)


def _sources(fragment: Fragment, path: tuple[str, ...]) -> list[tuple[str, _Source]]:
    """Path of a module → what its component's class says."""
    found = []
    origin = next((origin for origin in reversed(fragment.origins or ()) if isinstance(origin, wiring.Component)), None)
    if origin is not None:
        kind = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(origin).__name__.lstrip("_")).lower()
        first = (type(origin).__doc__ or "").strip().partition("\n\n")[0]
        sentence = re.split(r"(?<=[.:])\s", " ".join(first.split()))[0]
        found.append((".".join(path), _Source(kind, sentence.replace("``", "").replace("`", ""))))
    for n, (child, name, _) in enumerate(fragment.subfragments):
        found += _sources(child, (*path, name or f"U${n}"))
    return found
