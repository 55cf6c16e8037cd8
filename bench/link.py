"""The link with faults, through the emulator: bytes a tuple, retransmissions, and the rate that a baud rate allows.

``python -m bench.link [--tuples N] [--share F] [--seed N]`` joins N random tuples a side over a line on which a share F
of the bytes is lost, flipped or doubled, checks the answer against the golden model, and prints figures.
"""

from __future__ import annotations

import argparse
import random
import resource

import numpy as np
import pyarrow as pa
from splitjoin.arrival import arrivals
from splitjoin.circuit.driver import CircuitSession
from splitjoin.device.registry import device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.link.transport import LinkTransport
from splitjoin.sim.emulator import Emulator, Faults

_BAUDS = (115_200, 1_000_000, 3_000_000)
_BITS = 10  # bits on the line for each byte


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuples", type=int, default=1000, help="of each stream (%(default)s)")
    parser.add_argument("--share", type=float, default=0.0005, help="share of faulty bytes (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the tuples and faults (%(default)s)")
    args = parser.parse_args()
    chance = random.Random(args.seed)
    r, s = (pa.table({name: pa.array([chance.randrange(60) for _ in range(args.tuples)], pa.int8())}) for name in "xy")
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="abs(r.x - s.y) <= 1", window="ROWS 8",
                       order="total")
    options = {"cores": 1, "capacity": 16}
    third = args.share / 3
    config = device("uart:none", **options).configuration(query)
    with (Emulator(config, Faults(drop=third, flip=third, double=third, seed=args.seed)) as board,
          device(f"uart:{board.path}", **options).open(query) as session):
        assert isinstance(session, CircuitSession)
        session.push(arrivals(query, r, s))
        found = session.flush()
        transport = session._transport
    with device("golden").open(query) as golden:
        golden.push(arrivals(query, r, s))
        right = np.array_equal(found, golden.flush())
    assert isinstance(transport, LinkTransport)
    count = 2 * args.tuples
    total = transport.sent_bytes + transport.received_bytes
    print(f"answer right: {right}; {count} tuples, {len(found)} items, {transport.retransmissions} retransmissions, "
          f"{transport.rejected} damaged replies")
    print(f"bytes a tuple: {transport.sent_bytes / count:.2f} sent, {transport.received_bytes / count:.2f} received; "
          f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    for baud in _BAUDS:
        # Request and reply take turns, so their times add up; the host's own latency comes on top.
        print(f"{baud:>8} baud: at most {baud / _BITS / (total / count):,.0f} tuples/s")
    if not right:
        raise SystemExit("the answer differs from the golden model's")


if __name__ == "__main__":
    main()
