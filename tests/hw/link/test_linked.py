# amaranth: UnusedElaboratable=no
"""The whole circuit behind its UART pins, driven by the host's own driver through a channel that damages bytes."""

import pytest

from splitjoin.circuit.driver import CircuitSession
from splitjoin.circuit.lowering import settings
from splitjoin.engines.registry import device
from splitjoin.link.transactions import FROM, FROM_JOIN, TO, TO_JOIN
from splitjoin.link.transport import LinkTransport
from splitjoin_hw.link.linked import LinkedJoin
from splitjoin_sim.run_view import read_run
from tests.support.conformance import assert_conforms
from tests.support.linked import BIT, PinChannel, small_join


@pytest.mark.long
@pytest.mark.parametrize(("share", "seed", "pack"), [(0.0, 0, False), (0.02, 1, False), (0.02, 1, True)])
def test_the_answer_is_that_of_the_golden_model(share, seed, pack, tmp_path):
    """The waveforms of the pins tell the same items."""
    query, arrivals = small_join(tuples=8, seed=seed)
    circuit = device("pysim", cores=1, capacity=16)
    plan, config = circuit.plan(query), circuit.configuration(query)
    linked = LinkedJoin(config, clock_hz=BIT * 1_000_000, baud=1_000_000, pack=pack)
    channel = PinChannel(linked, share=share, seed=seed, waveforms=tmp_path / "pins.vcd")
    transport = LinkTransport(lambda: channel, config, clock=channel.now, sleep=channel.sleep,
                              byte_seconds=10 * BIT * 1e-6, session=1)
    session = CircuitSession(query, plan, config, settings(query, config, verified=False), transport)
    session.push(arrivals)
    found = session.flush()
    with device("golden").open(query) as golden:
        golden.push(arrivals)
        assert_conforms(found, golden.flush(), query.order)
    counters = session.counters()
    assert counters["tuples_r"] == 8 and counters["retransmissions"] == transport.retransmissions
    assert (transport.retransmissions > 0) == (share > 0)
    channel.close()
    rows = read_run(tmp_path / "pins.vcd").rows
    moved = {way: [row[2:] for row in rows if row.way == way and row.what in ("TUPLE", "PAIR", "STAR")]
             for way in (TO, FROM, TO_JOIN, FROM_JOIN)}
    assert moved[TO] == moved[TO_JOIN] and len(moved[TO]) == 16
    assert moved[FROM] == moved[FROM_JOIN] and len(moved[FROM]) > 16


@pytest.mark.parametrize("baud", [0, 1_000_001, 3_000])
def test_a_baud_rate_out_of_range_is_refused(baud):
    config = device("pysim", cores=1, capacity=16).configuration(small_join(1, 0)[0])
    with pytest.raises(ValueError, match="The clock must have 4 to 1024 cycles a bit"):
        LinkedJoin(config, clock_hz=4_000_000, baud=baud)
