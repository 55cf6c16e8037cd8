"""A circuit with AXI ports in LiteX: streams of records and items, and registers on the bus.

Copy this file beside a SoC of your own; it needs the folder that `splitjoin verilog --top axi -o FOLDER` wrote, and
LiteX, but nothing of splitjoin.
"""

import json
from pathlib import Path

from litex.gen import ClockSignal, LiteXModule, ResetSignal
from litex.soc.cores.dma import WishboneDMAReader, WishboneDMAWriter
from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect import stream, wishbone
from litex.soc.interconnect.axi import AXILiteInterface
from migen import Instance


class Circuit:
    """The circuit whose Verilog is in ``folder``, as its description there says.

    ``name``: that of the circuit, as in ``--name``. ``sources``: its Verilog files. ``record_bits``, ``item_bits``: of
    a beat; the record, or the item, is in the low bits.
    """

    def __init__(self, folder, name="splitjoin"):
        self.folder, self.name = Path(folder).resolve(), name
        self.described = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        if "axi" not in self.described or self.described["configuration"].get("sources", 1) > 1:
            raise SystemExit(f"the circuit {name} in {folder} must have AXI ports and one source; "
                             f"write it by splitjoin verilog --top axi")
        self.top = self.described["top"]
        self.sources = [self.folder / f"{name}.v", self.folder / f"{self.top}.v"]
        self.record_bits, self.item_bits = (8 * self.described["axi"][f"{kind}_bytes"] for kind in ("record", "item"))


class SplitJoin(LiteXModule):
    """An instance of ``circuit`` in the clock domain "sys".

    ``sink``: records, one a beat. ``source``: items, one a beat; ``last`` ends a packet. ``bus``: AXI4-Lite, the
    registers, with addresses as wide as the SoC's. Adds the Verilog to ``platform``.
    """

    def __init__(self, platform, circuit, address_width=32):
        self.sink = stream.Endpoint([("data", circuit.record_bits)])
        self.source = stream.Endpoint([("data", circuit.item_bits)])
        self.bus = AXILiteInterface(data_width=32, address_width=address_width)

        # # #

        address_bits = circuit.described["ports"]["s_axil_awaddr"]["width"]
        lite = {}
        for name, driver, fields in (("aw", "i", ("addr", "prot")), ("w", "i", ("data", "strb")), ("b", "o", ("resp",)),
                                     ("ar", "i", ("addr", "prot")), ("r", "o", ("data", "resp"))):
            channel = getattr(self.bus, name)
            lite[f"{driver}_s_axil_{name}valid"] = channel.valid
            lite[f"{'o' if driver == 'i' else 'i'}_s_axil_{name}ready"] = channel.ready
            for field in fields:
                value = getattr(channel, field, 0)
                lite[f"{driver}_s_axil_{name}{field}"] = value[:address_bits] if field == "addr" else value
        self.specials += Instance(
            circuit.top,
            i_aclk=ClockSignal("sys"), i_aresetn=~ResetSignal("sys"),
            i_s_axis_tdata=self.sink.data, i_s_axis_tvalid=self.sink.valid, o_s_axis_tready=self.sink.ready,
            i_s_axis_tlast=self.sink.last,
            o_m_axis_tdata=self.source.data, o_m_axis_tvalid=self.source.valid, i_m_axis_tready=self.source.ready,
            o_m_axis_tlast=self.source.last, **lite)
        for path in circuit.sources:
            platform.add_source(str(path))


def add_splitjoin(soc, circuit, with_dma=True):
    """Add ``circuit`` to ``soc`` by its name, with its registers on the bus.

    With ``with_dma``, the DMA engine NAME_reader sends records from memory, and NAME_writer stores items in memory;
    both are controlled by CSRs. The writer ignores packets: its CSR ``offset`` counts the words that it has stored, and
    the host sees by the last item whether END has come. Without it, connect the module's ``sink`` and ``source``.
    """
    name = circuit.name
    core = SplitJoin(soc.platform, circuit, soc.bus.address_width)
    soc.add_module(name=name, module=core)
    soc.bus.add_slave(name, core.bus, SoCRegion(origin=soc.mem_map.get(name), size=0x1000, cached=False))
    if not with_dma:
        return core
    width = soc.bus.data_width

    def port():
        return wishbone.Interface(data_width=width, address_width=soc.bus.address_width, addressing="word")

    # "big": words as they are in memory. The other value swaps their bytes.
    reader = WishboneDMAReader(port(), endianness="big", with_csr=True)
    writer = WishboneDMAWriter(port(), endianness="big", with_csr=True)
    wide, narrow = stream.Converter(width, circuit.record_bits), stream.Converter(circuit.item_bits, width)
    soc.add_module(name=f"{name}_reader", module=reader)
    soc.add_module(name=f"{name}_writer", module=writer)
    soc.add_module(name=f"{name}_wide", module=wide)
    soc.add_module(name=f"{name}_narrow", module=narrow)
    soc.bus.add_master(name=f"{name}_reader", master=reader.bus)
    soc.bus.add_master(name=f"{name}_writer", master=writer.bus)
    soc.comb += [reader.source.connect(wide.sink),
                 wide.source.connect(core.sink, keep={"valid", "ready", "last", "data"}),
                 core.source.connect(narrow.sink, omit={"last"}),
                 narrow.source.connect(writer.sink, keep={"valid", "ready", "data"})]
    return core
