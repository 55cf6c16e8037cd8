# amaranth: UnusedElaboratable=no
import pytest

from splitjoin.circuit.wire import Configuration, Record, item_record
from splitjoin_hw.splitjoin import SplitJoin
from splitjoin_hw.top import padded


@pytest.mark.parametrize(("width", "bits"), [(1, 96), (96, 96), (97, 128), (128, 128), (129, 160)])
def test_ports_are_whole_words(width, bits):
    assert padded(Record((("a", width),))) == bits


def test_ports_are_as_wide_as_the_padded_records():
    config = Configuration(keys_r=(16,), keys_s=(16,), tests=((0, 0),), tree=0, cores=2, capacity=4, time_bits=8)
    top = SplitJoin(config)
    assert top.config == config
    assert len(top.i.payload) == padded(config.input_record)
    assert len(top.o.payload) == padded(item_record())
