import json
import re
from dataclasses import replace

import pytest

from splitjoin.base.version import __version__
from splitjoin.circuit.registers import MAGIC, REGISTERS
from splitjoin.circuit.wire import Configuration, item_record
from splitjoin_hw.top import padded
from splitjoin_hw.verilog import TOP, header, sidecar, to_verilog

from ..support.sampling import at_length

CORES = (1, 2, 8)


def configuration(cores):
    return Configuration(keys_r=(16, 8), keys_s=(16,), tests=((0, 0), (1, 0)), tree=("and", 0, 1), cores=cores,
                         capacity=16, time_bits=32, lanes=2, probes=3)


def module(text, name):
    """The text of one module."""
    return re.search(rf"^module {re.escape(name)} \(.*?^endmodule", text, re.MULTILINE | re.DOTALL)[0]


def instances(text, kind, within=TOP):
    """Number of instances of modules whose name matches ``kind`` are in module ``within``, at any depth."""
    inner = re.findall(r"^  (\w+) \w+ \($", module(text, within), re.MULTILINE)
    return sum((re.fullmatch(kind, name) is not None) + instances(text, kind, name) for name in inner)


def test_text_is_deterministic():
    config = configuration(2)
    assert to_verilog.__wrapped__(config) == to_verilog(config)


@pytest.mark.parametrize("cores", CORES)
def test_core_stands_once_and_is_instantiated_for_each_core(cores):
    text = to_verilog(configuration(cores))
    assert len(re.findall(rf"^module {TOP}_core \(", text, re.MULTILINE)) == 1
    assert len(re.findall(rf"^module {TOP} \(", text, re.MULTILINE)) == 1
    assert len(re.findall(rf"^  {TOP}_core core\d+ ", text, re.MULTILINE)) == cores
    # So do the nodes of the trees: k − 1 in each of the three, two children or inputs each, but for the root of one.
    # Mergers behind others have offer inputs.
    inner = 2 * (cores // 2 - 1) if cores > 1 else 0
    nodes = {"merger2": 2 * (cores - 1) - inner, "merger2_offer_input": inner, "pipeline_register1": 2 * (cores - 1),
             "broadcast2": max(0, cores - 2)}
    for kind, count in nodes.items():
        assert len(re.findall(rf"^module {TOP}_{kind} \(", text, re.MULTILINE)) == (count > 0)
        assert instances(text, f"{TOP}_{kind}") == count
    # Queues at the leaves differ by the nodes before them.
    assert instances(text, rf"{TOP}_credit_fifo\d+") == (cores if cores > 1 else 0)
    names = re.findall(r"^module (\w+) \($", text, re.MULTILINE)
    assert len(names) == len(set(names)), "a module is defined twice"


def test_length_grows_little_with_the_cores():
    """Each further core adds instances and their wires, of itself and of a node of every tree."""
    two, eight = (to_verilog(configuration(k)) for k in (2, 8))
    assert two.count("\n") < 5000
    assert (eight.count("\n") - two.count("\n")) / 6 <= 200


def test_left_and_right_regions_share_what_is_equal():
    """One module serves both regions, unless keys differ; only the storage knows which stream it stores."""
    text = to_verilog(configuration(2))
    assert len(re.findall(rf"^module {TOP}_sorting_emitter \(", text, re.MULTILINE)) == 1
    assert instances(text, f"{TOP}_sorting_emitter") == 4
    same = to_verilog(replace(configuration(2), keys_r=(16,), keys_s=(16,), tests=((0, 0),), tree=0))
    for kind, modules in {"scanner": 1, "matcher": 1, "sorting_emitter": 1, "storage": 2, "gather_tree": 1}.items():
        assert len(re.findall(rf"^module {TOP}_{kind}(?:_\d+)? \(", same, re.MULTILINE)) == modules, kind


def test_names_are_those_of_the_source():
    text = to_verilog(configuration(2))
    assert "$" not in text.replace("$signed", "")
    assert "\\" not in text, "an escaped identifier"
    assert "\n// At core.left.emitter, core.right.emitter.\nmodule splitjoin_sorting_emitter (\n" in text
    before = [text[:found.start()].rstrip("\n").rpartition("\n")[2] for found in
              re.finditer(r"^module ", text, re.MULTILINE)]
    assert all(line.startswith("// ") for line in before), "a comment at each module"


@pytest.mark.parametrize("cores", CORES)
def test_nothing_is_computed_that_is_known_before(cores):
    text = to_verilog(configuration(cores))
    for known in (r"if \(1'b", r"\|\d+'d", r"[%/] \d+'d", r"!1'b", r"[&|] [01]'b", r"1'b[01] [&|?]", r"<< \d",
                  r"output reg .*=", r"begin\n *end\n"):
        assert re.search(known, text) is None, known


def test_header_tells_version_parameters_and_query_in_comments():
    config = configuration(2)
    lines = header(config, ["Query: a\nmodule evil; */ /* \u2028 ends with \\"]).splitlines()
    assert all(line.startswith("//") and line.isascii() and not line.endswith("\\") for line in lines)
    assert f"splitjoin {__version__}" in lines[0]
    assert lines[0].endswith("SPDX-License-Identifier: Apache-2.0")
    assert "*/" not in lines[1]
    assert "capacity 16" in "".join(lines)
    assert f"{config.abi_hash:016x}" in lines[-1]
    assert to_verilog(config).startswith(header(config))


@pytest.mark.parametrize("cores", CORES)
def test_sidecar_tells_the_ports_of_the_verilog(cores):
    config = configuration(cores)
    text = module(to_verilog(config), TOP)
    declared = {}
    for direction, high, name in re.findall(r"^  (input|output) +(?:wire|reg) +(?:\[(\d+):0\] )?(\w+)", text,
                                            re.MULTILINE):
        declared[name] = {"direction": direction.removesuffix("put"), "width": int(high or 0) + 1}
    assert sidecar(config)["ports"] == declared
    assert declared["i__payload"]["width"] == padded(config.input_record)
    assert declared["o__payload"]["width"] == padded(item_record())


def test_sidecar_tells_records_registers_and_parameters():
    config = configuration(4)
    found = json.loads(json.dumps(sidecar(config)))
    assert found["top"] == TOP
    assert int(found["abi_hash"], 16) == config.abi_hash
    assert int(found["id"], 16) == MAGIC
    assert found["configuration"]["cores"] == 4
    assert found["configuration"]["tree"] == ["and", 0, 1]
    assert found["records"]["input"] == [list(f) for f in config.input_record.fields]
    assert found["output_record"] == [list(f) for f in item_record().fields]
    assert [(r["name"], r["address"], r["bits"], r["access"]) for r in found["registers"]] == [
        (r.name, r.address, r.bits, r.access) for r in REGISTERS]
    assert found["opcodes"] == {"TUPLE": 0, "TICK": 1, "FLUSH": 2, "MASK": 3}
    assert found["item_kinds"] == {"PAIR": 0, "STAR": 1, "END": 2, "SLICE": 3}
    assert found["orders"] == {"NONE": 0, "OUTER": 1, "TOTAL": 2, "INNER": 3}


@pytest.mark.parametrize(("cores", "ports"), [(1, ["m"]), (4, ["m__0", "m__1", "m__2", "m__3"])])
def test_sidecar_tells_the_ports_to_memory(cores, ports):
    config = Configuration(keys_r=(32,), keys_s=(32,), tests=((0, 0),), tree=0, cores=cores, capacity=2**18,
                           core="bucket", index=(0,), memory="axi", contexts=16)
    found = json.loads(json.dumps(sidecar(config)))
    memory = found["memory"]
    assert memory["ports"] == ports
    assert memory["lines"] * memory["line_bytes"] == 2**24 + 2**23 // cores
    for port in ports:
        for channel, fields in memory["payloads"].items():
            assert found["ports"][f"{port}__{channel}__payload"]["width"] == sum(width for _, width in fields)
    assert memory["payloads"]["r"] == [["data", 128], ["resp", 2], ["id", 6]]


def test_sidecar_is_a_function_of_the_configuration():
    assert sidecar(configuration(2)) == sidecar(configuration(2))
    assert sidecar(configuration(2))["abi_hash"] != sidecar(configuration(1))["abi_hash"]


@pytest.mark.parametrize(("architecture", "kinds"), [
    at_length("celljoin", ["segment_r", "segment_s"]), *((name, ["core", "link_r", "link_s"]) for name in (
        "cascade", "low-latency-handshake"))])
def test_parts_of_baselines_are_instances(architecture, kinds):
    """So models of many cores are compiled in the time of one."""
    text = to_verilog(replace(configuration(2), architecture=architecture, probes=1))
    for kind in kinds:
        assert text.count(f"\nmodule {TOP}_{kind} (") == 1
