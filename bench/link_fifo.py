"""The link over the FIFO of an FT232H: tuples a second and bytes a second by the round trip, on an emulated board.

``python -m bench.link_fifo`` writes bench/results/link_fifo.json. A ULX3S with a small circuit on its clock of 25 MHz
runs in Verilator, cycle by cycle, behind the emulator's model of the chip and the driver of boards. Time is that of the
circuit's cycles: each way of the bytes takes half a round trip, and the host no time of its own, so figures are the
most that board and frames allow. Answers are compared with the golden model's. ``--quick``: few tuples.
"""

from __future__ import annotations

import ctypes
import random
from collections import deque
from typing import Any

import pyarrow as pa

from splitjoin.circuit.driver import CircuitSession
from splitjoin.circuit.lowering import settings
from splitjoin.circuit.wire import Configuration
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.registry import device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.link.transport import LinkTransport
from splitjoin_boards.catalog import find
from splitjoin_boards.ft232h import with_ft232h
from splitjoin_boards.pads import board_top
from splitjoin_sim.emulated import EmulatedTop, model

from .record import Recorder, arguments

BOARD, PINS = "ulx3s_85f", ",".join(f"gpio_0:{n}{side}" for n in range(8) for side in "+-").rpartition(",")[0]
CIRCUIT: dict[str, Any] = {"cores": 1, "capacity": 16, "small": True, "row_bits": 16}
#: Round trips in seconds. A microframe of USB has 125 µs.
TRIPS = (0.0, 125e-6, 250e-6, 500e-6, 1e-3, 2e-3)
_ROOM = 1 << 16


class ModelChannel:
    """The bytes of the emulated board ``top``, in time of its cycles at ``clock_hz``; ``trip``: seconds there and back.

    A byte channel of `LinkTransport`, whose ``clock`` and ``sleep`` are its own.
    """

    def __init__(self, top: EmulatedTop, clock_hz: int, trip: float = 0.0):
        self._lib, self._hz, self._way = model(top), clock_hz, round(trip / 2 * clock_hz)
        self._board = ctypes.c_void_p(self._lib.em_open(top.clkout or top.bit))
        self._received = ctypes.create_string_buffer(_ROOM)
        self.cycles = 0
        self._down, self._up = deque[tuple[int, bytes]](), deque[tuple[int, bytes]]()

    @property
    def broken(self) -> str:
        """The rule of the chip that the circuit has broken."""
        return (self._lib.em_broken(self._board) or b"").decode()

    def now(self) -> float:
        return self.cycles / self._hz

    def sleep(self, seconds: float) -> None:
        self._pass(self.cycles + max(1, round(seconds * self._hz)))

    def write(self, data: bytes) -> None:
        self._down.append((self.cycles + self._way, data))

    def read(self, seconds: float) -> bytes:
        until = self.cycles + max(1, round(seconds * self._hz))
        while not (self._up and self._up[0][0] <= self.cycles) and self.cycles < until:
            self._pass(min(until, self.cycles + 500))
        came = b""
        while self._up and self._up[0][0] <= self.cycles:
            came += self._up.popleft()[1]
        return came

    def close(self) -> None:
        self._lib.em_close(self._board)

    def _pass(self, until: int) -> None:
        while self.cycles < until:
            data = b""
            while self._down and self._down[0][0] <= self.cycles:
                data += self._down.popleft()[1]
            step = min([until, *(at for at, _ in [*self._down][:1])]) - self.cycles
            got = self._lib.em_run(self._board, data, len(data), self._received, _ROOM, step)
            self.cycles += step
            if got:
                self._up.append((self.cycles + self._way, self._received.raw[:got]))


def session(query: Query, top: EmulatedTop, clock_hz: int, trip: float = 0.0,
            ) -> tuple[CircuitSession, LinkTransport, ModelChannel]:
    """The driver's session on the emulated board ``top`` with the circuit `CIRCUIT` for ``query``."""
    made: Any = device("uart:none", **CIRCUIT)
    plan, config = made.plan(query), made.configuration(query)
    channel = ModelChannel(top, clock_hz, trip)
    transport = LinkTransport(lambda: channel, config, clock=channel.now, sleep=channel.sleep, session=1)
    return CircuitSession(query, plan, config, settings(query, config, verified=False), transport), transport, channel


def band(tuples: int) -> tuple[Query, Arrivals]:
    """A band join of ``tuples`` a stream, in which a tuple has about two partners."""
    chance = random.Random(tuples)
    r, s = (pa.table({name: pa.array([chance.randrange(20) for _ in range(tuples)], pa.int8())}) for name in "xy")
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="abs(r.x - s.y) <= 2", window="ROWS 8",
                       order="total")
    return query, arrivals(query, r, s)


def board(config: Configuration) -> tuple[EmulatedTop, int]:
    """The emulated board with the chip, and the frequency of its clock in Hz."""
    found = with_ft232h(find(BOARD), PINS)
    return board_top(found, config), found.clock_hz


def main() -> None:
    assert __doc__
    args = arguments(__doc__)
    recorder = Recorder("link_fifo", quick=args.quick)
    tuples = 200 if args.quick else 4000
    query, given = band(tuples)
    made: Any = device("uart:none", **CIRCUIT)
    top, clock_hz = board(made.configuration(query))
    with device("golden").open(query) as golden:
        golden.push(given)
        expected = golden.flush()
    for trip in TRIPS:
        running, transport, channel = session(query, top, clock_hz, trip)
        begin, moved = channel.cycles, (transport.sent_bytes, transport.received_bytes)
        running.push(given)
        found = running.flush()
        seconds = (channel.cycles - begin) / clock_hz
        if found.tolist() != expected.tolist() or channel.broken:
            raise SystemExit(f"the answer must be the golden model's, but differs; {channel.broken}")
        where = {"round trip": trip * 1e3, "board": BOARD, "clock": clock_hz}
        how = "simulated cycles of the emulated board; answer equal to the golden model's"
        recorder.add("fifo_tuples", 2 * tuples / seconds / 1e3, "k tuples/s", where, how)
        for metric, before, after in (("fifo_to_board", moved[0], transport.sent_bytes),
                                      ("fifo_to_host", moved[1], transport.received_bytes)):
            recorder.add(metric, (after - before) / seconds / 1e6, "MB/s", where, how)
        recorder.add("fifo_retransmissions", transport.retransmissions, "", where, how)
        running.close()
    print(recorder.write())


if __name__ == "__main__":
    main()
