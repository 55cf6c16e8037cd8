"""A simulated circuit behind the link: its endpoint is the model in Python, on a line in simulated time with faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import ClassVar

import numpy as np

from splitjoin.circuit.driver import CircuitDevice, Transport
from splitjoin.circuit.wire import Configuration, Op
from splitjoin.link.designed import DesignedDevice
from splitjoin.link.frames import PACKED_VERSION, VERSION, Request, RequestKind
from splitjoin.link.sidecar import Sidecar
from splitjoin.link.transport import LinkTransport
from splitjoin_sim.device import SimDevice

from .link_model import Line, ModelDevice
from .packed_items import item_words, packed

_BYTE = 10 / 3e6


class LinkedCircuit(ModelDevice):
    """The circuit of ``config``, simulated, with the endpoint of a board. ``pack``: its items are packed."""

    def __init__(self, config: Configuration, *, pack: bool, seed: int):
        self._config, self._pack = config, pack
        self._simulated = SimDevice(seed=seed, stall_in=0.3, stall_out=0.3)
        self._circuit: Transport | None = None
        super().__init__(-(-config.input_record.width // 8), config.abi_hash, PACKED_VERSION if pack else VERSION)

    def _begin(self, session: int, limit: int) -> None:
        super()._begin(session, limit)
        self.close()
        if session:
            self._circuit, self._last = self._simulated._connect(self._config), [0, 0]

    def close(self) -> None:
        """Release the simulated circuit."""
        if self._circuit is not None:
            self._circuit.close()
        self._circuit = None

    def _execute(self, request: Request) -> None:
        assert self._circuit is not None
        if request.kind == RequestKind.WRITE:
            self._circuit.write(request.payload[0], int.from_bytes(request.payload[1:5], "little"))
        elif request.kind == RequestKind.READ:
            self.registers[request.payload[0]] = self._circuit.read(request.payload[0])
        super()._execute(request)

    def _records(self, records: list[bytes]) -> None:
        assert self._circuit is not None
        width = 4 * self._config.input_record.words
        words = np.frombuffer(b"".join(r.ljust(width, b"\0") for r in records), "<u4").reshape(len(records), -1)
        ends = [n + 1 for n, record in enumerate(records) if record[0] & 3 == Op.FLUSH]
        for part in np.split(words, ends):
            if len(part):
                items = self._circuit.transfer(part, until_end=int(part[-1, 0]) & 3 == Op.FLUSH)
                if self._pack:
                    self._items.extend(
                        packed([item], self._config.row_bits, whole=bool(self._config.folds), last=self._last)
                        for item in items.tolist())
                else:
                    size = -(-self._config.item_record.width // 8)
                    words = item_words(self._config.item_record, items)
                    self._items.extend(bytes(row)[:size] for row in words.view(np.uint8))


@dataclass(frozen=True, kw_only=True)
class LinkedDevice(DesignedDevice):
    """Boards' driver on a `LinkedCircuit`, which may be that of the sidecar ``design``. ``share``: of bytes that are
    damaged, in both directions; ``power``: seconds of simulated time after which each board loses its state once.
    ``transports``: of all sessions.
    """

    name: ClassVar[str] = "linked"

    design: str | None = None
    seed: int = 0
    pack: bool = False
    share: float = 0.0
    power: tuple[float, ...] = ()
    transports: list[LinkTransport] = field(default_factory=list, compare=False)
    _opened: Iterator[int] = field(default_factory=count, init=False, repr=False, compare=False)

    @property
    def _sidecar(self) -> str | None:
        return self.design

    def _built(self, design: Sidecar) -> CircuitDevice:
        return replace(self, design=None, **{**design.parameters, "fold": self.fold})

    def _connect(self, config: Configuration) -> Transport:
        number = next(self._opened)
        seed = self.seed + 1000 * number
        events = tuple((at, "power") for at in self.power[number:number + 1])
        circuit = LinkedCircuit(config, pack=self.pack, seed=seed)
        line = Line(circuit, share=self.share, seed=seed, byte_seconds=_BYTE, events=events)
        self.transports.append(LinkTransport(line.open, config, clock=line.now, sleep=line.sleep, byte_seconds=_BYTE,
                                             session=1 + number))
        return self.transports[-1]
