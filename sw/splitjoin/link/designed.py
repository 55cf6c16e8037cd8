"""Devices that may have the sidecar of a built circuit, and the choice of how that circuit runs a query."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from splitjoin.base.errors import UnsupportedError
from splitjoin.circuit.driver import CircuitDevice, CircuitSession
from splitjoin.circuit.query_circuit import QueryCircuit, folding_circuit, pairs_circuit
from splitjoin.lang.query import Query

from .sidecar import Sidecar


@dataclass(frozen=True, kw_only=True)
class DesignedDevice(CircuitDevice):
    """A device that may be given the sidecar of its circuit.

    The sidecar then determines the parameters, except ``fold``, and lists the aggregates that the circuit folds. With
    ``fold`` ``never``, the device demands a circuit that gives pairs.
    """

    memories: ClassVar[tuple[str, ...]] = ("bram", "sdram")

    def start(self, circuit: QueryCircuit) -> CircuitSession:
        path = self._sidecar
        return super().start(circuit) if path is None else self._built(Sidecar.read(path)).start(circuit)

    def circuit(self, query: Query) -> QueryCircuit:
        path = self._sidecar
        if path is None:
            return super().circuit(query)
        design = Sidecar.read(path)
        return designed_circuit(path, design, query, self._built(design))

    @property
    @abstractmethod
    def _sidecar(self) -> str | None:
        """The path of the sidecar; None without one."""

    @abstractmethod
    def _built(self, design: Sidecar) -> CircuitDevice:
        """A device like this one, with the parameters of ``design`` and without the sidecar."""


def designed_circuit(path: str, design: Sidecar, query: Query, device: CircuitDevice) -> QueryCircuit:
    """The circuit of ``design``, read from ``path``, as it runs ``query``; ``device`` has the design's parameters.

    The aggregates of ``query`` may be any of those that the circuit was built for, in any order. Raises
    `UnsupportedError` if the circuit gives all pairs of a query with aggregates, or of kind semi, anti or as-of. Raises
    `DeviceError` if the circuit was not built for the query at all.
    """
    if not (query.aggregates or query.needs_few_pairs):
        found = device.circuit(query)
        design.check(path, query, found.config)
        return found
    found = folding_circuit(query, device, design.built_aggregates(query))
    if found.config.abi_hash != design.abi and pairs_circuit(query, device).config.abi_hash == design.abi:
        raise UnsupportedError(f"the design {path} was built without regard to aggregates and kinds of join")
    design.check(path, query, found.config)
    return found
