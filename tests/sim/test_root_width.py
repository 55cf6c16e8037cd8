# amaranth: UnusedElaboratable=no
"""Circuits that give several results in a cycle: the golden model's answer in every order, and what is refused."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from splitjoin.base.errors import UnsupportedError
from splitjoin.circuit.encode import pack, single_items
from splitjoin.circuit.wire import NO_ITEM, Configuration, ItemKind
from splitjoin.link.zynq import ZynqTransport
from splitjoin_hw.link import axi
from splitjoin_hw.verilog import AXI_TOP, sidecar
from splitjoin_sim import PysimDevice, SimDevice

from ..support.conformance import conforms
from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS

ORDERS = ("total", "none", "outer(1)", "inner(3)", "outer(3)", "outer(100)", "inner(1)")
STALLS = {"stall_in": 0.3, "stall_out": 0.3}
BAND = next(case for case in SCENARIOS if case.name == "band-rows-17")
CONFIG = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=2, root_width=4)


@pytest.mark.parametrize(("width", "cores", "queue", "order"), [
    at_length(2, 1, 0, "total"), (4, 2, 0, "outer(3)"), at_length(4, 3, 16, "total"), at_length(2, 2, 16, "none"),
    *(at_length(4, 2, 0, order) for order in ORDERS)])
def test_every_order_on_pysim(width, cores, queue, order):
    conforms(PysimDevice(cores=cores, capacity=32, lanes=2, probes=2, queue=queue, root_width=width, **STALLS), BAND,
             order)


@pytest.mark.parametrize(("width", "cores", "fanin", "queue"), [
    at_length(2, 3, 3, 0), at_length(4, 3, 3, 0), at_length(4, 5, 2, 0), at_length(4, 2, 2, 64),
    at_length(2, 1, 2, 64), at_length(4, 8, 4, 0)])
def test_every_order_on_sim(width, cores, fanin, queue):
    for scenario in SCENARIOS:
        if scenario.name in ("band-rows-17", "band-rows-1", "single-pair", "zero-matches", "empty-both"):
            for seed, order in enumerate(ORDERS):
                device = SimDevice(cores=cores, capacity=64, fanin=fanin, lanes=2, probes=4, seed=seed, queue=queue,
                                   root_width=width, **STALLS)
                conforms(device, scenario, order)


def test_records_are_taken_apart():
    kinds, record = [[0, 0, 1, NO_ITEM], [ItemKind.END, NO_ITEM, NO_ITEM, NO_ITEM]], CONFIG.output_record
    words = pack(record, {f"{name}{n}": [row[n] if name == "kind" else 4 * of + n for of, row in enumerate(kinds)]
                          for n in range(4) for name in ("kind", "r")}, 2)
    items, numbers = single_items(words, CONFIG)
    assert (items[["kind", "r"]].tolist(), numbers.tolist()) == ([(0, 0), (0, 1), (1, 2), (2, 4)], [0, 0, 0, 1])
    assert record.width == 4 * CONFIG.item_record.width


def test_an_item_a_cycle_is_as_it_was():
    assert "root_width" not in Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0).describe()[
        "configuration"]


@pytest.mark.parametrize(("options", "text"), [
    ({"root_width": 3}, "root_width must be 1, 2 or 4, not 3"),
    ({"root_width": 4, "cores": 1},
     "cores with root_width 4 must be 2 or more, as a core finds one result of each stream's probes in a cycle, not 1"),
    ({"root_width": 2, "cores": 1, "small": True},
     "root_width of a small circuit must be 1, as it compares one pair a cycle, not 2")])
def test_what_has_no_wide_root(options, text):
    with pytest.raises(UnsupportedError, match=f"^{re.escape(text)}$"):
        SimDevice(**options)


def test_a_dma_engine_as_vivado_makes_it_receives_a_packet(monkeypatch):
    def write(*_):
        raise InterruptedError  # the driver has found nothing to refuse, and resets the circuit

    nodes = SimpleNamespace(memory=bytes(1 << 16), user=SimpleNamespace(write=write), close=lambda: None,
                            dma=SimpleNamespace(write=lambda *_: None))
    made = []
    monkeypatch.setattr(axi, "Packetizer", lambda width, *, beats=256: made.append(width // 8 * beats))
    monkeypatch.setattr(axi, "AxiLiteSlave", lambda *bits: None)
    for width in (1, 2, 4):
        config = replace(CONFIG, root_width=width)
        with pytest.raises(InterruptedError):
            ZynqTransport(nodes, config)
        axi.AxiJoin(config)
        shape = sidecar(config, AXI_TOP, axi=True)["axi"]
        assert made.pop() == shape["item_bytes"] * shape["packet_beats"] < 2**14
