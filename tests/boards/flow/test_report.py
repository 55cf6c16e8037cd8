"""The report of a bitstream: critical path in names of components, JSON and back, and the picture."""

import pytest

from splitjoin_boards.flow.page import floorplan_svg, group, page
from splitjoin_boards.flow.report import BuildReport, PathStep, Prediction, component, timing

NEXTPNR = {
    "utilization": {"TRELLIS_COMB": {"used": 12, "available": 100}, "DP16KD": {"used": 0, "available": 56},
                    "VCC": {"used": 1, "available": 0}},
    "fmax": {"clk": {"achieved": 88.5, "constraint": 25.0}},
    "critical_paths": [
        {"from": "posedge clk", "to": "posedge clk", "path": [
            {"delay": 0.5, "type": "clk-to-q", "from": {"cell": "a"}, "to": {"cell": "linked.join.head_TRELLIS_FF_Q"}},
            {"delay": 1.25, "type": "routing", "from": {"cell": "a"},
             "to": {"cell": "linked.join.core0.left.scanner.next_LUT4_Z_3_D_LUT4_Z"}}]},
        # The critical path is the slowest one, not the one with most steps.
        {"from": "posedge clk", "to": "posedge clk", "path": [
            {"delay": 0.25, "type": "routing", "from": {"cell": "a"}, "to": {"cell": "b"}} for _ in range(3)]},
        {"from": "<async>", "to": "posedge clk", "path": [{"delay": 9.0, "type": "routing", "from": {"cell": "a"},
                                                           "to": {"cell": "pad"}}]}],
}


def test_figures_of_nextpnr():
    used, mhz, path = timing(NEXTPNR)
    assert used == {"TRELLIS_COMB": (12, 100)} and mhz == {"clk": (88.5, 25.0)}
    report = BuildReport("ulx3s_85f", used, mhz, path, {"yosys": 3.0, "nextpnr": 4.0}, Prediction(5e5, 9e4, 2.0))
    assert BuildReport.parse(report.json()) == report
    text = str(report)
    assert "TRELLIS_COMB: 12 of 100 (12%)" in text and "clk: 88.5 MHz reached, 25.0 MHz demanded" in text
    assert "critical path, 1.75 ns" in text and "1.25 routing  linked.join.core0.left.scanner.next\n" in text
    assert "90,000 tuples/s predicted: circuit 500,000, link 90,000 at 2 items a tuple; the link decides" in text
    assert "built in 7.0 s: yosys 3.0 s, nextpnr 4.0 s" in text


@pytest.mark.parametrize(("cell", "name"), [
    ("linked.endpoint.ring.head_SB_DFFESR_Q_3_D_SB_LUT4_O", "linked.endpoint.ring.head"),
    ("linked.join.core1.right.bank0.block2", "linked.join.core1.right.bank0.block2"),
    ("linked.join.level_DFFRE_Q", "linked.join.level"),
    ("$abc$123", "$abc$123"),
])
def test_names_of_components(cell, name):
    assert component(cell) == name


def test_parts_and_picture():
    cells = {"linked.join.core0.left.head": (3, 4), "linked.join.core0.right.head": (5, 4),
             "linked.endpoint.ring.x": (0, 0), "linked.endpoint.ring.y": (0, 0), "linked.join.turn": (9, 9),
             "linked.join.registers.a": (1, 1), "pin": (0, 0)}
    assert [group(name) for name in cells] == ["core0 left", "core0 right", "link", "link", "trees and counters",
                                               "registers", "rest"]
    picture = floorplan_svg(cells)
    assert picture.count("<rect ") == 5
    assert "<title>column 0, row 0: link: 2, rest: 1</title>" in picture and 'viewBox="0 0 80 80"' in picture
    path = [PathStep("logic", 1.0, "a_LUT4_Z")]
    html = page(BuildReport("<board>", {"LUT": (1, 2)}, {"clk": (30.0, 25.0)}, path), cells)
    assert "Bitstream for &lt;board&gt;" in html and "core0 left" in html and "Critical path" in html
