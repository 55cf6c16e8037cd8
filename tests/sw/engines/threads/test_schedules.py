"""Threads of the papers' architectures give golden's answer however they are interleaved.

The library's own loops run as fibers that stop before each access to what threads share, and a seed chooses the order
of all (`tests.support.interleaving`). Queues are so short that they are full at times. Faults that are planted in the
source are found.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from splitjoin.base.threads import using
from splitjoin.engines.cpu.device import CpuDevice
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.threads import ARCHITECTURES, session
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema

from ....support.conformance import assert_conforms, run
from ....support.interleaving import fibers
from ....support.sampling import at_length

NAMES = ("open_session", "close_session", "stop_session", "feed", "collect", "adjust",
         *dict.fromkeys(of.loop for of in ARCHITECTURES.values()))
FILES = (*(f"loops/{name}.hpp" for name in ("loop", "threads", "tests")), *(f"threads/{name}.hpp" for name in (
    "queue", "scalegate", "parts", "splitjoin", "scalejoin", "celljoin", "handshake", "low_latency", "session")))
#: Architectures and what is planted in their sources.
FAULTS = {
    "splitjoin: a star too early": (
        "splitjoin", ("++probes.open < session.every) return", "++probes.open < session.every - 1) return")),
    "splitjoin: the merger does not sort": ("splitjoin", ("if (least < 0 || of_stored < row)", "if (least < 0)")),
    "splitjoin: the writer does not wait for all readers": (
        "splitjoin", ("read = least_of(read, acquire(marks + r * apart));", "read = acquire(marks + r * apart);")),
    "splitjoin: done before results are given": (
        "splitjoin", ("        const int64_t side = message[of_kind], row = message[of_row];\n        Segment &mine",
                      "        const int64_t side = message[of_kind], row = message[of_row];\n"
                      "        session.input[0].pop(core);\n        Segment &mine")),
    "celljoin: parts of the window that came meanwhile": (
        "celljoin", ("window = message[of_start] - from;", "window = session.windows[1 - side].end - from;")),
    "scalejoin: nothing says that a core is behind a probe": (
        "scalejoin", ("        if (side == at_end) {\n            result[0] = of_slice;",
                      "        if (side == at_end) {\n            continue;")),
    "scalejoin: a record is ready before its source goes on": (
        "scalejoin", ("if (!found || acquire(last_of(found[source])) == address(found)) return nullptr;",
                      "if (!found) return nullptr;")),
    "handshake: no acknowledgement": (
        "handshake", ("        if (side)\n            copies++;\n        else\n            leave(0);",
                      "        leave(side);")),
    "handshake: acknowledged before the tuple is compared": (
        "handshake", ("if (!arrive(message)) return -1;\n            if (side && !last) received++;",
                      "if (side && !last) received++;\n            if (answer) {\n                answer[of_kind] = "
                      "acknowledge, answer[of_row] = received;\n                out_right->publish();\n                "
                      "received = 0;\n                answer = nullptr;\n                send(0);\n            }\n"
                      "            if (!arrive(message)) return -1;")),
    "handshake: expiry does not wait": (
        "handshake", ("            if (!unsent(of)) return 0;\n            leave(of);",
                      "            if (unsent(of)) leave(of);")),
    "cascade: R goes on before a block is acknowledged": (
        "cascade", ("(!side && received)) return 0;", "false) return 0;")),
    "low-latency: no tuples in flight": (
        "low-latency-handshake", ("return s % cores < core && row % cores >= core;", "return false;")),
    "low-latency: those of R that came later": (
        "low-latency-handshake", ("return core >= home || r < before;", "return true;")),
    "low-latency: expiry does not wait": (
        "low-latency-handshake", ("        if ((kind == expire_r && last && came[0] <= row) || ",
                                  "        if (kind == expire_r && last && came[0] <= row) return in_left.pop(), 1;\n"
                                  "        if (")),
}


#: Those that short runs plant, as each takes a compilation.
SHORT = ("splitjoin: a star too early", "splitjoin: done before results are given", "handshake: no acknowledgement",
         "handshake: expiry does not wait", "low-latency: no tuples in flight", "low-latency: expiry does not wait")


@pytest.fixture(scope="module", autouse=True)
def short_queues() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "processors", lambda: 0)  # fibers have no processor of their own
        yield


def check(name: str, seed: int, fault: str | None = None) -> None:
    """A small join by a random schedule of the threads."""
    chance, of = random.Random(seed), ARCHITECTURES[name]
    is_long = name == "celljoin" and chance.random() < 0.1  # so that rings of windows are full
    n, m = (chance.randrange(75, 90) if is_long else chance.randrange(12) for _ in "rs")
    span = chance.choice((4, 20, 100))
    r, s = ({"ts": pa.array(sorted(chance.randrange(span) for _ in range(k)), pa.int64()),
             key: pa.array([chance.randrange(4) for _ in range(k)], pa.int32())} for k, key in ((n, "x"), (m, "a")))
    kind = of.orders[seed % len(of.orders)]
    order = f"{kind}({chance.randrange(1, 4)})" if kind in ("outer", "inner") else kind
    rows = range(61, 65) if is_long else range(1, 6)
    kinds = seed // len(of.orders)  # of windows, R's and S's
    windows = tuple(f"RANGE {chance.randrange(6)}" if kinds >> n & 1 else f"ROWS {chance.choice(rows)}" for n in (0, 1))
    tables = pa.table(r), pa.table(s)
    query = Query.make(*(Schema.from_table(side, table) for side, table in zip(SIDES, tables, strict=True)),
                       on="r.x <= s.a", window=windows, time="ts", order=order)
    cores, cuts = chance.randrange(1, 5), [chance.randrange(12) for _ in range(2)]
    precisions = [chance.randrange(1, 4) for _ in range(3)] if kind == "inner" else []
    planted = {one: change for one, (_, change) in FAULTS.items() if one in SHORT or fault not in (None, *SHORT)}
    system = fibers(NAMES, FILES, planted)(seed, fault)
    with pytest.MonkeyPatch.context() as patch, using(system):
        patch.setattr(session, "loops", lambda package: system)
        patch.setitem(ARCHITECTURES, name, replace(of, places=chance.choice((2, 4)), results=2, items=3))
        got = run(CpuDevice(engine="threads", architecture=name, threads=cores), query, *tables, cuts, precisions)
    assert_conforms(got, run(GoldenDevice(cores=cores), query, *tables, cuts, precisions), order)


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("each", [1, at_length(200)], ids=["few", "many"])
def test_any_schedule_gives_the_answer(name: str, each: int) -> None:
    """So many schedules of each order with each kind of windows; in order inner, precisions change between pushes."""
    for seed in range(4 * len(ARCHITECTURES[name].orders) * each):
        check(name, seed)


@pytest.mark.parametrize("fault", [fault if fault in SHORT else at_length(fault) for fault in FAULTS])
def test_planted_faults_are_found(fault: str) -> None:
    with pytest.raises(AssertionError):  # noqa: PT012  # by one of many schedules
        for seed in range(400):
            check(FAULTS[fault][0], seed, fault)
