"""The driver of circuits: what every device that runs one has in common, simulated or real."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrival import Arrivals
from ..errors import CapacityError, DeviceError, WindowOverflow
from ..lang.keys import Codes
from ..lang.order import Order
from ..lang.passes.clock import check_clock
from ..lang.plan import Plan, make_plan
from ..lang.query import Query
from .api import ITEM, PAIR, Device, Items, Session, check_masked
from .core_kind import choose_core
from .encode import Encoder, Words, decode, pack
from .registers import MAGIC, REGION_COUNTERS, REGISTERS, SELECTION_CYCLES, register, selection
from .verify import Verifier
from .wire import ROW_BITS, Axis, Configuration, ItemKind, Op, OrderMode, Sum, check_parameters

__all__ = ["CircuitDevice", "CircuitSession", "DeviceStalled", "Transport", "configure", "plan_for", "settings"]


#: What order none runs as where the host verifies the pairs; it drops the stars.
_STARRED = Order("outer", 64)


class DeviceStalled(DeviceError):
    """The circuit made no progress within the cycle limit; the session looks for the reason."""


class Transport(ABC):
    """Moves records and register words to and from one circuit. Implemented by simulators and links."""

    @abstractmethod
    def read(self, address: int) -> int:
        """The 32-bit register word at ``address``."""

    @abstractmethod
    def write(self, address: int, word: int) -> None:
        """Write the 32-bit register word at ``address``."""

    @abstractmethod
    def transfer(self, records: Words, *, until_end: bool) -> Words:
        """Send all ``records`` and return the items that arrived meanwhile; with ``until_end``, up to the END item.

        Raises `DeviceStalled` when the circuit makes no progress.
        """

    def latencies(self) -> npt.NDArray[np.int64] | None:
        """As `Session.latencies`."""
        return None

    def close(self) -> None:  # noqa: B027  # not every transport holds something
        """Release what the transport holds."""


@dataclass(frozen=True, kw_only=True)
class CircuitDevice(Device):
    """A device that is a circuit. Its parameters are those of `Configuration` that the query does not decide.

    Attributes:
        cores: Join cores, 1 to 1024.
        capacity: Tuples of one stream that a core can hold, a power of two; None for what the ROWS windows need, and
            1024 for RANGE windows alone.
        fanout, fanin: Children of a distribution-tree node, inputs of a merger.
        lanes, probes: Stored tuples that a region reads in a cycle, and probes that it compares each of them with.
        core: How cores find what a probe matches: ``scan``, ``hash``, ``bucket``, or ``auto`` for what suits the
            condition and the sub-window (`splitjoin.device.core_kind`).
        clock: MHz that the datapaths get registers for, on ECP5; None for as few as there can be.
        region_counters: Whether every region of every core counts on its own.
        masked: Numbers of cores that are masked from the start, as by `Session.mask`.
    """

    cores: int = 4
    capacity: int | None = None
    fanout: int = 2
    fanin: int = 2
    lanes: int = 1
    probes: int = 1
    core: str = "auto"
    clock: float | None = None
    region_counters: bool = False
    masked: Collection[int] = ()

    def __post_init__(self) -> None:
        _check_options(cores=self.cores, capacity=self.capacity, fanout=self.fanout, fanin=self.fanin,
                       lanes=self.lanes, probes=self.probes, core=self.core)
        check_masked(self.masked, self.cores)
        check_clock(self.clock)
        if not isinstance(self.region_counters, bool):
            raise DeviceError(f"region_counters must be True or False, not {self.region_counters!r}")

    def open(self, query: Query) -> Session:
        """Build or find the circuit for ``query`` and start it."""
        plan = self.plan(query)
        config = self.configuration(query, plan)
        words = settings(query, config, verified=plan.residual is not None)
        transport = self._connect(config)
        try:
            session = CircuitSession(query, plan, config, words, transport)
            session.mask(self.masked)
            return session
        except BaseException:
            transport.close()
            raise

    def plan(self, query: Query) -> Plan:
        """What tests its circuits make for ``query``."""
        return plan_for(query, cores=self.cores, capacity=self.capacity, lanes=self.lanes, probes=self.probes,
                        core=self.core, clock=self.clock)

    def configuration(self, query: Query, plan: Plan | None = None) -> Configuration:
        """The configuration that ``query`` needs on this device."""
        return configure(query, plan or self.plan(query), cores=self.cores, capacity=self.capacity,
                         fanout=self.fanout, fanin=self.fanin, lanes=self.lanes, probes=self.probes,
                         core=self.core, region_counters=self.region_counters)

    @abstractmethod
    def _connect(self, config: Configuration) -> Transport:
        """A transport to a freshly reset circuit of ``config``."""


def configure(query: Query, plan: Plan, *, cores: int = 4, capacity: int | None = None, fanout: int = 2,
              fanin: int = 2, lanes: int = 1, probes: int = 1, core: str = "auto", region_counters: bool = False,
              **_: object) -> Configuration:
    """The configuration of a circuit for ``plan`` with the windows of ``query``; what `plan_for` takes besides is in
    the plan.
    """
    _check_options(cores=cores, capacity=capacity, fanout=fanout, fanin=fanin, lanes=lanes, probes=probes, core=core)
    capacity = _capacity(query, cores, capacity)
    longest = _longest(query)
    chosen = choose_core(plan, core, capacity=capacity, lanes=lanes, probes=probes)
    return Configuration(
        keys_r=tuple(s.key.width for s in plan.slots_r), keys_s=tuple(s.key.width for s in plan.slots_s),
        tests=tuple((t.r, t.s) for t in plan.tests), tree=plan.tree, cores=cores, capacity=capacity, fanout=fanout,
        fanin=fanin, lanes=lanes, probes=probes, core=chosen.kind, index=chosen.index, region_counters=region_counters,
        sums=_sums(plan), time_bits=0 if longest is None else _time_bits(longest), registers=plan.registers,
        widths=tuple(t.width for t in plan.tests) if any(t.width is not None for t in plan.tests) else ())


def plan_for(query: Query, *, cores: int = 4, capacity: int | None = None, lanes: int = 1, probes: int = 1,
             core: str = "auto", clock: float | None = None, **_: object) -> Plan:
    """The plan of ``query`` for a circuit with these of its parameters: with sum tests, and with the interval tests
    that they imply, and both ends of all intervals, only where an index finds candidates; with registers for
    ``clock``, in MHz.
    """
    _check_options(cores=cores, capacity=capacity, fanout=2, fanin=2, lanes=lanes, probes=probes, core=core)
    plan = make_plan(query.predicate, "beside", clock)
    chosen = choose_core(plan, core, capacity=_capacity(query, cores, capacity), lanes=lanes, probes=probes)
    return plan if chosen.index else make_plan(query.predicate, "instead", clock)


def _capacity(query: Query, cores: int, capacity: int | None) -> int:
    """``capacity``, or what the windows need: a power of two from 64 on, so that few circuits serve all windows."""
    if capacity is not None:
        return capacity
    need = max(1024 if w.rows is None else -(-w.rows // cores) for w in (query.window_r, query.window_s))
    found = 64
    while found < min(need, 65536):
        found *= 2
    return found


def _sums(plan: Plan) -> tuple[Sum, ...]:
    return tuple(Sum(tuple(Axis(a.kind, r, s, a.bits, a.shift)
                           for a, r, s in zip(t.relation.axes, t.r, t.s, strict=True)),
                     max(t.relation.most, -1) if t.rest_r is not None or t.rest_s is not None else t.relation.limit,
                     t.relation.above, (t.rest_r, t.rest_s)) for t in plan.sums)


def _check_options(*, capacity: int | None, **others: object) -> None:
    # Where the capacity is left to the windows, `configure` chooses one that is right.
    check_parameters(capacity=64 if capacity is None else capacity, **others)


def _longest(query: Query) -> int | None:
    lengths = [w.length for w in (query.window_r, query.window_s) if w.length is not None]
    return max(lengths) if lengths else None


def _time_bits(longest: int) -> int:
    """Ages reach twice the RANGE plus one (see `Encoder`). Whole bytes, so that few circuits serve all RANGEs."""
    bits = (2 * longest + 2).bit_length()
    if bits > 64:
        raise CapacityError(f"a RANGE of {longest} ticks needs {bits} bits of time, and circuits have up to 64; use a "
                            f"coarser time unit, or device='cpu'")
    return max(32, -(-bits // 8) * 8)


def settings(query: Query, config: Configuration, *, verified: bool = False) -> dict[str, int]:
    """Register name → value for ``query``. Raises what `Device.open` raises.

    ``verified``: the host verifies the pairs, and needs stars to know which tuples it may let go of.
    """
    order = query.order
    if verified and order.kind == "none":
        order = _STARRED
    modes = {"none": OrderMode.NONE, "outer": OrderMode.OUTER, "total": OrderMode.TOTAL, "inner": OrderMode.INNER}
    precision = {"none": 0, "outer": order.n, "inner": 1, "total": 1}[order.kind]
    # No sub-window holds more than the capacity, so that a longer slice is the whole of it.
    slice_ = min(order.n, config.capacity) if order.kind == "inner" else 0
    out = {"order": int(modes[order.kind]), "precision": precision, "slice": slice_}
    for side in ("r", "s"):
        window = query.window(side)
        if window.rows is not None and window.rows > config.window_capacity:
            if window.length is None:
                raise CapacityError(
                    f"the window of stream {side} must fit the device, but ROWS {window.rows} is more than "
                    f"{config.cores} cores of {config.capacity} tuples can hold; the largest that fits is ROWS "
                    f"{config.window_capacity}; use more cores or a larger capacity")
            out[f"rows_{side}"] = min(window.rows, 2**ROW_BITS - 1)
        else:
            out[f"rows_{side}"] = 2**ROW_BITS - 1 if window.rows is None else window.rows
        out[f"range_{side}"] = 2**64 - 1 if window.length is None else window.length
    return out


class CircuitSession(Session):
    """One query on one circuit, over a `Transport`."""

    row_limit = 2**ROW_BITS - 1

    def __init__(self, query: Query, plan: Plan, config: Configuration, words: dict[str, int], transport: Transport):
        self._query, self._config, self._transport = query, config, transport
        self._encoder = Encoder(plan, config, _longest(query))
        self._verifier = None if plan.residual is None else Verifier(query, plan.residual)
        self._ready: list[Items] = []
        self._pushed = {"r": 0, "s": 0}
        self._flushed = False
        self._masked: frozenset[int] = frozenset()
        self._check_abi()
        for name, value in words.items():
            self._write(name, value)

    @property
    def config(self) -> Configuration:
        """What the circuit is built for."""
        return self._config

    def push(self, arrivals: Arrivals) -> None:
        if self._flushed:
            raise DeviceError("the session has been flushed and takes no more tuples; open a new one")
        for side, n in (("r", len(arrivals.r)), ("s", len(arrivals.s))):
            self._pushed[side] += n
            if self._pushed[side] > self.row_limit:
                raise DeviceError(f"stream {side} has more than {self.row_limit} tuples, which is what a session of "
                                  f"this release can number; open a new one")
        if self._verifier is not None:
            self._verifier.push(arrivals)
        self._receive(self._encoder.encode(arrivals), until_end=False)

    def poll(self) -> Items:
        items = np.concatenate(self._ready) if self._ready else np.empty(0, ITEM)
        self._ready.clear()
        return items

    def flush(self) -> Items:
        if not self._flushed:
            self._flushed = True
            self._receive(self._encoder.flush(), until_end=True)
        return self.poll()

    def mask(self, cores: Collection[int]) -> None:
        masked = check_masked(cores, self._config.cores)
        if self._flushed:
            raise DeviceError("the session has been flushed and takes no more tuples; open a new one")
        # Records like tuples: so every core knows between which two it happened, whatever the timing.
        changed = sorted(masked ^ self._masked)
        fields: dict[str, Codes | int] = {
            "op": Op.MASK, "stream": np.array([core in masked for core in changed], np.uint64),
            "body": np.array(changed, np.uint64)}
        if changed:
            self._receive(pack(self._config.input_record, fields, len(changed)), until_end=False)
        self._masked = masked

    def counters(self) -> dict[str, int]:
        others = {"id", "selected", "abi", "overflow", "overflow_row_r", "overflow_row_s"}
        found = {reg.name: self._read(reg.name) for reg in REGISTERS if reg.access == "r" and reg.name not in others}
        if self._verifier is not None:
            # What the circuit calls matches are candidates; those that it has not handed out yet are none so far.
            found |= {"candidates": found["matches"], "matches": self._verifier.matches}
        return found

    def region_counters(self) -> dict[str, npt.NDArray[np.int64]] | None:
        if not self._config.region_counters:
            return None
        out = {c.name: np.empty((self._config.cores, 2), np.int64) for c in REGION_COUNTERS}
        for number, counter in enumerate(REGION_COUNTERS):
            for core in range(self._config.cores):
                for side in (0, 1):
                    # The first region of a core stores S.
                    self._write("select", selection(core, 1 - side, number))
                    for _ in range(SELECTION_CYCLES):  # a read takes a cycle at least
                        self._read("select")
                    out[counter.name][core, side] = self._read("selected")
        return out

    def latencies(self) -> npt.NDArray[np.int64] | None:
        return self._transport.latencies()

    def close(self) -> None:
        self._transport.close()

    def _receive(self, records: Words, *, until_end: bool) -> None:
        try:
            words = self._transport.transfer(records, until_end=until_end)
        except DeviceStalled:
            self._check_overflow()
            raise
        items, kinds = decode(words)
        items = items[kinds != ItemKind.END]
        if self._verifier is not None:
            items = self._verifier.filter(items)
            if self._query.order.kind == "none":
                items = items[items["kind"] == PAIR]
        self._ready.append(items)

    def _check_overflow(self) -> None:
        overflow = self._read("overflow")
        if overflow:
            side = "r" if overflow & 1 else "s"
            raise WindowOverflow(side, self._read(f"overflow_row_{side}"), self._config.window_capacity)

    def _check_abi(self) -> None:
        magic, abi = self._read("id"), self._read("abi")
        if magic != MAGIC:
            raise DeviceError(f"the device must answer with ID {MAGIC:08x}, but answered {magic:08x}; is it a "
                              f"splitjoin circuit?")
        if abi != self._config.abi_hash:
            raise DeviceError(f"the device was built for another configuration: the driver needs ABI "
                              f"{self._config.abi_hash:016x}, the device has {abi:016x}; build it again")

    def _read(self, name: str) -> int:
        reg = register(name)
        low = self._transport.read(reg.address)
        return low if reg.bits == 32 else low | self._transport.read(reg.address + 1) << 32

    def _write(self, name: str, value: int) -> None:
        reg = register(name)
        for n in range(reg.bits // 32):
            self._transport.write(reg.address + n, value >> 32 * n & 0xFFFFFFFF)
