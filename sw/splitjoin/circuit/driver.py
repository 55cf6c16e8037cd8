"""The driver of circuits: the common part of every device that runs one, simulated or real."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from splitjoin.base.errors import DeviceError, DeviceLost, OrderError, UnsupportedError, WindowOverflow
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import (
    ITEM,
    PAIR,
    Device,
    Fault,
    Items,
    Session,
    check_inner,
    check_masked,
    checked_precision,
)
from splitjoin.lang.query import Query
from splitjoin.plan.keys import Codes

from .deciding_pairs import DecidingPairs
from .encode import Encoder, Words, decode, pack
from .folded_states import FoldedStates, StateDecoder, partner_items
from .folding import FoldChoice
from .lowering import longest_range, plan_for
from .parameters import CircuitParameters
from .plan import CircuitPlan
from .query_circuit import QueryCircuit, chosen_circuit, folding_circuit, folding_demanded, pairs_circuit
from .registers import (
    COMPLETE_BIT,
    DEAD_BIT,
    DEAD_CORES,
    LAST_PROBE,
    MAGIC,
    MEMORY_FAULT,
    REGION_COUNTERS,
    SELECTION_CYCLES,
    STAGES,
    register,
    selection,
)
from .row_ids import ProbeSides, RowIds
from .sources import SourceQueues, Sources
from .verify import Verifier
from .wire import ROW_BITS, Configuration, ItemKind, Op


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
    def transfer(self, records: Words, *, until_end: bool) -> Items:
        """Send all ``records`` and return the items that arrived meanwhile, as they are on the wire (`single_items`);
        with ``until_end``, up to the END item.

        Raises `DeviceStalled` when the circuit makes no progress.
        """

    def transfer_from(self, records: Words, sources: Sources, *, until_end: bool) -> Items:
        """As `transfer`, each of the ``records`` (n, words) from its source (n,), and those of a source in their order.

        Only simulations have it: elsewhere the sources are not in one process. Raises `UnsupportedError` there.
        """
        raise UnsupportedError(f"one process feeds several sources of a circuit in simulations only, not by "
                               f"{type(self).__name__}; build it with sources=1, or use device='sim' or 'pysim'")

    def received(self) -> Items:
        """The items that a `transfer` received before it raised `DeviceLost`."""
        return np.empty(0, ITEM)

    def latencies(self) -> npt.NDArray[np.int64] | None:
        """The latencies that `Session.latencies` returns."""
        return None

    def accepted(self) -> npt.NDArray[np.int64] | None:
        """The cycles that `CircuitSession.accepted` returns."""
        return None

    def pair_latencies(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
        """The latencies that `CircuitSession.pair_latencies` returns."""
        return None

    def counters(self) -> dict[str, int]:
        """Counters of the link to the circuit, for `Session.counters`."""
        return {}

    def close(self) -> None:  # noqa: B027  # not every transport holds resources
        """Release the transport's resources."""


@dataclass(frozen=True, kw_only=True)
class CircuitDevice(CircuitParameters, Device):
    """A device that is a circuit, with the parameters of circuits.

    Attributes:
        masked: Numbers of the cores that are masked from the start (see `Session.mask`).
    """

    settles: ClassVar[bool] = True
    #: True for simulations, which take architectures that are there to be compared with.
    simulated: ClassVar[bool] = False
    #: Values of the parameter ``memory`` that a device takes which is no simulation.
    memories: ClassVar[tuple[str, ...]] = ("bram",)
    masked: Collection[int] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.simulated:
            self.check_used(f"the device {self.name}", self.memories)
        check_masked(self.masked, self.cores)

    def open(self, query: Query) -> Session:
        """Build or find the circuit for ``query`` and start it.

        A query with aggregates gets a circuit that folds them (`CircuitSession.states`). A semi, anti or as-of join
        gets a circuit that gives the pairs that decide its rows (`circuit`). Where states leave whole, a session has no
        items, and a state comes when its base tuple expires.
        """
        return self.start(self.circuit(query))

    def start(self, circuit: QueryCircuit) -> CircuitSession:
        """Start ``circuit``, which `circuit` gave for a query."""
        words = circuit.settings
        transport = self._connect(circuit.config)
        try:
            session = CircuitSession(circuit.query, circuit.plan, circuit.config, words, transport, circuit.folding,
                                     circuit.decides)
            session.mask(self.masked)
            return session
        except BaseException:
            transport.close()
            raise

    def circuit(self, query: Query) -> QueryCircuit:
        """The circuit that `open` starts for ``query``. Raises `UnsupportedError`, with the reason, where pairs must
        leave: open ``query.pairs`` then.
        """
        if query.aggregates or query.needs_few_pairs:
            return folding_circuit(query, self)
        check_inner(query)
        return pairs_circuit(query, self)

    def open_deciding(self, query: Query) -> Session:
        if self.fold == "never" or not query.needs_few_pairs:
            return self.open(query.pairs)
        circuit = self._folding(query)
        return self.open(query.pairs) if circuit is None else self.start(circuit)

    def states_circuit(self, query: Query) -> QueryCircuit | None:
        found = self._folding(query) if query.aggregates and self.fold != "never" else None
        return None if self.masked else found

    def _folding(self, query: Query) -> QueryCircuit | None:
        """The `circuit`; None where pairs must leave, unless the parameter ``fold`` forbids that."""
        try:
            return self.circuit(query)
        except UnsupportedError as error:
            if self.fold == "always":
                raise folding_demanded(query, error) from error
            return None

    def plan(self, query: Query) -> CircuitPlan:
        """The tests that the device's circuits compute for ``query``."""
        return plan_for(query, self)

    def configuration(self, query: Query) -> Configuration:
        """The configuration that ``query`` needs on this device, by its parameter ``fold``."""
        return chosen_circuit(query, self).config

    def gives_all_pairs(self, query: Query) -> bool:
        if query.aggregates:
            return self.fold != "always"
        return super().gives_all_pairs(query) and (self.fold == "never" or not query.needs_few_pairs
                                                   or self._folding(query) is None)

    def window_room(self, query: Query) -> int | None:
        return self.configuration(query).window_capacity

    @abstractmethod
    def _connect(self, config: Configuration) -> Transport:
        """A transport to a freshly reset circuit of ``config``."""


def other_circuit_remedy(config: Configuration) -> str:
    """The end of an error: what to do if a device has another circuit than that of ``config``."""
    if not config.folds:
        return "build the circuit for this query, or name its design"
    return ("build the circuit for this query with its aggregates or its kind of join, name its design, or give "
            "fold='never' if it was built without them")


class CircuitSession(Session):
    """One query on one circuit, over a `Transport`."""

    row_limit = 2**ROW_BITS - 1

    def __init__(self, query: Query, plan: CircuitPlan, config: Configuration, words: dict[str, int],
                 transport: Transport, folding: FoldChoice | None = None, decides: DecidingPairs | None = None):
        self._query, self._config, self._transport, self._folding = query, config, transport, folding
        self._decides = decides
        self._encoder = Encoder(plan, config, longest_range(query), folding)
        self._states = None if folding is None else StateDecoder(config)
        self._verifier = None if plan.residual is None else Verifier(query, plan.residual, keeps=config.expire == "own")
        self._row_ids: RowIds | ProbeSides | None = RowIds(config.row_bits) if config.row_bits < ROW_BITS else None
        if "outer" not in config.structure.orders:
            self._row_ids = ProbeSides()
        # No answer in order none has stars; the circuit was asked for them.
        self._drops_stars = query.order.kind == "none" and not (self._verifier is None and self._row_ids is None)
        self._sources = SourceQueues(config) if config.sources > 1 else None
        self._ready: list[Items] = []
        self._pushed = {"r": 0, "s": 0}
        self._flushed = False
        self._masked: frozenset[int] = frozenset()
        self._noted = [0, 0, 0]
        self._faults: list[Fault] = []
        self._check_abi()
        for name, value in words.items():
            self._write(name, value)
        self._watch()

    @property
    def config(self) -> Configuration:
        """The configuration that the circuit is built for."""
        return self._config

    def push(self, arrivals: Arrivals) -> None:
        self.push_from(arrivals, None)

    def push_from(self, arrivals: Arrivals, sources: Sources | None) -> None:
        """As `push`, with the number of the source (n,) that hands over each tuple; None for sources in turn.

        Tuples of one stream and event time must come from sources that do not fall, as the circuit's gate orders them
        by their sources. The results of the last event time come when later tuples do, or by `advance` or `settle`.
        """
        if self._flushed:
            raise DeviceError("the session has been flushed and takes no more tuples; open a new one")
        for side, n in (("r", len(arrivals.r)), ("s", len(arrivals.s))):
            self._pushed[side] += n
            if self._pushed[side] > self.row_limit:
                raise DeviceError(f"stream {side} has more than {self.row_limit} tuples, which is what a session of "
                                  f"this release can number; open a new one")
        if self._verifier is not None:
            self._verifier.push(arrivals)
        if self._row_ids is not None:
            self._row_ids.push(arrivals)
        records = self._encoder.encode(arrivals)
        if self._sources is None:
            if sources is not None:
                raise DeviceError("the circuit has one source; give sources=n to the device for more")
            self._receive(records, until_end=False)
            return
        of = self._sources.spread(arrivals) if sources is None else np.asarray(sources, np.intp)
        self._receive(*self._sources.push(arrivals, records, of), until_end=False)

    def poll(self) -> Items:
        items = np.concatenate(self._ready) if self._ready else np.empty(0, ITEM)
        self._ready.clear()
        return items

    @property
    def faults(self) -> tuple[Fault, ...]:
        return tuple(self._faults)

    @property
    def folding(self) -> FoldChoice | None:
        """The aggregates' parts that the circuit folds; None if pairs leave."""
        return self._folding

    def states(self) -> FoldedStates:
        """The folded states of R's tuples, in their order, that were not returned before, in place of pairs."""
        if self._states is None or self._decides is not None:
            raise DeviceError("the circuit does not fold; open a query with aggregates")
        return self._states.take()

    def flush(self) -> Items:
        if not self._flushed:
            self._flushed = True
            self._end(last=True)
        return self.poll()

    def advance(self, now: int) -> None:
        """Promise that no tuple below event time ``now`` will be pushed: older ones expire as at one of then."""
        if self._sources is not None:
            self._receive(*self._sources.advance(now), until_end=False)
            return
        self._receive(self._encoder.tick(now), until_end=False)

    def settle(self) -> Items:
        order, structure = self._query.order, self._config.structure
        if not structure.settles:
            raise UnsupportedError(f"{structure.title} gives the last results of a tuple when it has passed all cores, "
                                   f"and cannot settle before; use flush, or another architecture")
        if order.kind == "outer" and order.n > 1:
            raise OrderError(f"a circuit tells by a star that results are complete, and a star closes a group, so "
                             f"settle needs another order than {order}; use 'none', 'outer(1)', 'inner(n)' or 'total'")
        # The circuit answers a FLUSH with an END behind all results, and takes tuples afterwards. In these orders no
        # group is open between two probes, so no star comes with it.
        if not self._flushed:
            self._end(last=False)
        return self.poll()

    def mask(self, cores: Collection[int]) -> None:
        masked = check_masked(cores, self._config.cores)
        if masked and self._config.structure.moves:
            raise UnsupportedError(f"a core of {self._config.structure.title} has no tuples of its own, so none can be "
                                   f"masked; use another architecture")
        if masked and self._config.routed:
            raise UnsupportedError(f"a core can be masked if it has every n-th tuple, but tuples of a circuit with "
                                   f"{self._config.cores} memories go to the core of their key; use cores=1, or "
                                   f"memory='bram'")
        if masked and self._sources is not None:
            raise UnsupportedError("a core is masked between two tuples, which the circuit orders itself where it has "
                                   "several sources; give sources=1")
        if self._flushed:
            raise DeviceError("the session has been flushed and takes no more tuples; open a new one")
        # The mask travels as records among the tuples, so every core applies it between the same two tuples, whatever
        # the timing.
        changed = sorted(masked ^ self._masked)
        fields: dict[str, Codes | int] = {
            "op": Op.MASK, "stream": np.array([core in masked for core in changed], np.uint64),
            "body": np.array(changed, np.uint64)}
        if changed:
            self._receive(pack(self._config.input_record, fields, len(changed)), until_end=False)
        self._masked = masked
        self.rotation = self._config.cores if masked else self.rotation

    def precision(self, n: int) -> None:
        # Settings stay while records are in flight, so the circuit is drained first.
        slice_ = min(checked_precision(self._query.order, n, ("inner",)), self._config.capacity)
        self._ready.append(self.settle())
        self._write("slice", slice_)
        self.waiting()  # no record waits while it is drained

    def waiting(self) -> float | None:
        """The share of cycles in which a record was not accepted, less those in which cores compare. A core with an
        index looks few tuples up, so that its share is too high.
        """
        names = ("cycles", "input_stalls", "comparisons")
        if not set(names) <= set(self._config.structure.counters):
            return None
        before, self._noted = self._noted, [self._read(name) for name in names]
        cycles, stalls, compared = (now - then for now, then in zip(self._noted, before, strict=True))
        busy = compared / (2 * self._config.cores * self._config.lanes)  # of both regions; a pass has one probe
        return min(1.0, max(0.0, stalls - busy) / max(1, cycles))

    def counters(self) -> dict[str, int]:
        found = {name: self._read(name) for name in self._config.structure.counters}
        if self._verifier is not None:
            # What the circuit counts as matches becomes one only after the host has verified it.
            if "matches" in found:
                found["unverified"] = found["matches"]
            found["matches"] = self._verifier.matches
        return found | self._transport.counters()

    def region_counters(self) -> dict[str, npt.NDArray[np.int64]] | None:
        if not self._config.region_counters:
            return None
        found = self._region_counters()
        self._watch()
        return found

    def _region_counters(self) -> dict[str, npt.NDArray[np.int64]]:
        out = {c.name: np.empty((self._config.cores, 2), np.int64) for c in REGION_COUNTERS}
        for number, counter in enumerate(REGION_COUNTERS):
            for core in range(self._config.cores):
                for side in (0, 1):
                    # The first region of a core stores S.
                    out[counter.name][core, side] = self._selected(selection(core, 1 - side, number))
        return out

    def stage_cycles(self) -> dict[str, int] | None:
        """Stage → the cycles of all probes in it, of all cores but for the combiner, so far; divided by the probes and
        the cores, the mean time in it. None without ``stage_counters``. `settle` before, so that all have left.

        Raises `OrderError` if not every probe has just one star, by which it is known where it is.
        """
        if not self._config.stage_counters:
            return None
        order = self._query.order
        if order.kind != "total" and str(order) != "outer(1)":
            raise OrderError(f"stages are counted by the one star of a probe, which order {order} does not have; use "
                             f"'outer(1)' or 'total'")
        return {name: self._selected(selection(0, 0, n)) for n, name in enumerate(STAGES)}

    def _selected(self, word: int) -> int:
        self._write("select", word)
        for _ in range(SELECTION_CYCLES):  # a read takes a cycle at least
            self._read("select")
        return self._read("selected")

    def latencies(self) -> npt.NDArray[np.int64] | None:
        return self._transport.latencies()

    def accepted(self) -> npt.NDArray[np.int64] | None:
        """The cycle (n,) in which each tuple was accepted, in arrival order; None beyond simulations."""
        return self._transport.accepted()

    def pair_latencies(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
        """Pairs (n, 2) as row ids, and the cycles (n,) from accepting the later tuple of each to the pair: the visiting
        latency of SplitJoin, section 7. None where it is not known: beyond simulations, with narrow row ids, and where
        circuits fold.
        """
        whole = self._config.row_bits == ROW_BITS and not self._config.folds
        return self._transport.pair_latencies() if whole else None

    def close(self) -> None:
        self._transport.close()

    def _end(self, *, last: bool) -> None:
        """Send a FLUSH, and receive everything up to its END."""
        record = self._encoder.flush(last=last)
        if self._sources is None:
            self._receive(record, until_end=True)
        else:
            self._receive(*self._sources.everywhere(record), until_end=True)

    def _receive(self, records: Words, sources: Sources | None = None, *, until_end: bool) -> None:
        try:
            if sources is None:
                items = self._transport.transfer(records, until_end=until_end)
            else:
                items = self._transport.transfer_from(records, sources, until_end=until_end)
        except DeviceStalled:
            self._check_overflow()
            self._look_for_faults()
            if len(self._faults) == self._config.cores:
                raise DeviceError("all cores of the circuit stood still and were left out, so nothing comes any more; "
                                  "open a new session, on another device if this happens again") from None
            raise
        except DeviceLost:
            # Where cores may be left out, nobody can tell any more whether these lack pairs; a new session finds them.
            if not self._config.fault_timeout:
                self._accept(self._transport.received())
            raise
        self._look_for_faults()
        self._accept(items)

    def _accept(self, items: Items) -> None:
        """Keep ``items``, which are as on the wire, for the next poll."""
        if not len(items):
            return
        if self._states is not None:
            items = self._states.without_states(items)
        items = decode(items)
        # Where states leave whole, stars come with them, when tuples of R expire, and tell nothing more.
        items = items[:0] if self._config.whole_states else items[items["kind"] != ItemKind.END]
        if self._decides is not None and self._states is not None:
            items = partner_items(items, self._states.take())
        if self._row_ids is not None:
            self._row_ids.restore(items)
        if self._verifier is not None:
            items = self._verifier.filter(items)
        if self._drops_stars:
            items = items[items["kind"] == PAIR]
        self._ready.append(items)

    def _watch(self) -> None:
        """Let the register ``selected`` show the number of dead cores."""
        if self._config.fault_timeout:
            self._write("select", selection(0, 0, DEAD_CORES))

    def _look_for_faults(self) -> None:
        """Note the cores that the circuit has left out since the last call."""
        if not self._config.fault_timeout or self._transport.read(register("selected").address) == len(self._faults):
            return
        cores, known = self._config.cores, {fault.core for fault in self._faults}
        for core in range(cores):
            # The first region gives the results of R's probes, and stores S.
            last = [self._selected(selection(core, side, LAST_PROBE)) for side in (0, 1)]
            if core not in known and last[0] >> DEAD_BIT:
                r, s = ((word + (word >> COMPLETE_BIT & 1)) % 2**ROW_BITS for word in last)
                self._faults.append(Fault(core, cores, r, s, core, core))
        self._watch()

    def _check_overflow(self) -> None:
        overflow = self._read("overflow")
        if overflow >> MEMORY_FAULT:
            raise DeviceError("the circuit's external memory answered a request with an error, so the circuit stopped; "
                              "results so far are right; open a new session, on another device if this happens again")
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
                              f"{self._config.abi_hash:016x}, the device has {abi:016x}; "
                              f"{other_circuit_remedy(self._config)}")

    def _read(self, name: str) -> int:
        reg = register(name)
        low = self._transport.read(reg.address)
        return low if reg.bits == 32 else low | self._transport.read(reg.address + 1) << 32

    def _write(self, name: str, value: int) -> None:
        reg = register(name)
        for n in range(reg.bits // 32):
            self._transport.write(reg.address + n, value >> 32 * n & 0xFFFFFFFF)
