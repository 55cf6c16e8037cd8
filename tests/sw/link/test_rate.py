"""The model of what a line carries, against the host's driver on a line in simulated time."""

import pytest

from splitjoin.link.frames import SLOT_BYTES
from splitjoin.link.rate import link_cost
from tests.support.link_model import ITEM_BYTES, Line

from .test_endpoint import BYTES, CONFIG, model, opened, records


@pytest.mark.parametrize("baud", [115_200, 3_000_000])
def test_the_line_carries_what_the_model_says(baud):
    """Each record of the model of the circuit comes back as an item, so replies decide: an item a tuple."""
    count = 4000
    line = Line(model(), byte_seconds=10 / baud, latency=0.0005)
    transport = opened(line, byte_seconds=10 / baud)
    sent, end = records(count, 0)
    start = line.now(), transport.sent_bytes, transport.received_bytes
    transport.transfer(sent, until_end=False)
    transport.transfer(end, until_end=True)
    cost = link_cost(CONFIG, 1.0)
    seconds = line.now() - start[0]
    assert transport.retransmissions == 0
    assert (transport.received_bytes - start[2]) / count == pytest.approx(cost.received, rel=0.1)
    # Requests carry acknowledgements too, in frames of their own when no records are due.
    assert cost.sent <= (transport.sent_bytes - start[1]) / count < 2 * cost.sent
    assert count / seconds == pytest.approx(cost.rate(baud), rel=0.15)


def test_bytes_by_hand():
    """Three bytes a record: 80 in a request of 3 × 80 + 8 bytes and two delimiters; 14 items of 9 bytes in a reply."""
    cost = link_cost(CONFIG, 0.5)
    assert BYTES == 3 and ITEM_BYTES == 9 and (SLOT_BYTES - 1) // 9 == 14
    assert cost.sent == pytest.approx((248 * (1 + 2 / 256) + 2) / 80)
    assert cost.received == pytest.approx((135 * (1 + 2 / 256) + 2) / 14 / 2)
    assert cost.rate(3_000_000) == pytest.approx(300_000 / max(cost.sent, cost.received))
