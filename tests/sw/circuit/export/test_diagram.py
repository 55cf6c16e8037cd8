"""Block diagrams: each part of each architecture's circuit is drawn once, with its cells, inside the picture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.circuit.architectures import ARCHITECTURES
from splitjoin.circuit.cost.circuit import circuit_cost
from splitjoin.circuit.export.diagram import diagram
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import chosen_circuit
from splitjoin.circuit.wire import Configuration
from splitjoin.cli import DONE, USAGE, main
from tests.support.html_page import Page, needs_chromium, seen_by_chromium

SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.int32()), ("k", pa.int32())])
BAND: dict[str, Any] = {"on": "abs(r.x - s.x) <= 5 AND r.k = s.k", "window": "RANGE 100", "time": "ts"}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "index": (BAND, {"cores": 8}),
    "sources": (BAND, {"cores": 3, "sources": 4, "core": "scan"}),
    "memory": (BAND, {"cores": 1, "memory": "axi", "core": "hash"}),
    "many": ({"on": "r.x < s.x", "window": "ROWS 6400"},
             {"cores": 100, "lanes": 2, "probes": 4, "queue": 64, "root_width": 4}),
    "states": ({"on": "r.x < s.x", "window": "ROWS 64", "aggregate": {"n": "count(*)"}}, {"cores": 4, "lanes": 2}),
    "states and pairs": ({"on": "r.x < s.x", "window": "ROWS 64", "aggregate": {"n": "min(s.k - r.k)"}}, {}),
    "dead cores": ({"on": "r.x < s.x", "window": "ROWS 64"}, {"fault_timeout": 2000}),
    **{name: ({"on": "r.x = s.x", "window": "ROWS 64", "order": "total" if name == "kang" else "none"},
              {"architecture": name}) for name in ARCHITECTURES},
}


def circuit(case: str) -> Configuration:
    query, parameters = CASES[case]
    return chosen_circuit(splitjoin.query(SCHEMA, SCHEMA, **query), CircuitParameters(**parameters)).config


def luts(texts: list[str]) -> int:
    """The LUTs of ``texts`` together."""
    return sum(int(found.replace(",", "")) for text in texts for found in re.findall(r"([\d,]+) LUT4", text))


@pytest.mark.parametrize("case", CASES)
def test_the_cells_of_all_blocks_are_those_of_the_circuit(case: str) -> None:
    config = circuit(case)
    page = Page(diagram(config))
    cost = circuit_cost(config)
    texts = [text for text in page.texts if text.strip()]
    begins = next(n for n, text in enumerate(texts) if re.match(r"(one|the) core,? of ", text))
    ends = next(n for n, text in enumerate(texts) if text.startswith("registers and counters"))
    blocks, core, all_in = texts[:begins], texts[begins:ends], texts[-1 - (config.memory != "bram")]
    assert luts(blocks) + luts(texts[ends:ends + 1]) == luts([all_in]) == cost.total.lut
    in_core = {name: part for name, part in cost.parts.items() if any(name.split(" of ")[0] in text for text in core)}
    assert luts(core) == sum(part.each.lut for part in in_core.values())
    total, = (blocks[n + 1] for n, text in enumerate(blocks) if re.match(r"\d+ cores?\b", text))
    assert luts([total]) == sum(part.total.lut for part in in_core.values())
    record, item = config.input_record, config.output_record
    assert f"records of {record.width} bits, in {record.words} words of 32" in texts
    assert any(text.endswith(f"items of {item.width} bits, in {item.words} words of 32") for text in texts)
    assert sum(attributes.get("class") == "core" for tag, attributes in page.elements if tag == "rect") == 1 + min(
        config.cores, 32)


@pytest.mark.parametrize("case", CASES)
def test_all_is_within_the_picture(case: str) -> None:
    drawn = diagram(circuit(case))
    page = Page(drawn)
    svg = page.elements[0][1]
    width, height = float(svg["width"]), float(svg["height"])
    for tag, at in page.elements:
        if tag == "rect":
            x, y, wide, high = (float(at[name]) for name in ("x", "y", "width", "height"))
            assert 0 <= x <= x + wide <= width
            assert 0 <= y <= y + high <= height
        elif tag == "path":
            assert all(0 <= float(x) <= width and 0 <= float(y) <= height
                       for x, y in re.findall(r"([-\d.]+) ([-\d.]+)", at["d"]))
    for attributes, said in re.findall(r"<text (.*?)>(.*?)</text>", drawn):
        x, y = (float(re.search(rf'\b{name}="([\d.]+)"', attributes)[1]) for name in "xy")  # type: ignore[index]
        assert 0 < y < height
        wide = 7 * len(said)  # of a sans-serif of 12 pixels, more than it takes
        assert 0 <= x - (wide if 'anchor="end"' in attributes else 0) < width
        assert x + (0 if 'anchor="end"' in attributes else wide / (1 + ("middle" in attributes))) < width


def test_explain_shows_it_and_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = splitjoin.explain(splitjoin.query(SCHEMA, SCHEMA, **BAND), cores=2, clock=100)
    assert told.svg() in told.html()
    assert told.svg().startswith('<svg class="splitjoin-diagram"')
    assert "datapaths have registers for 100 MHz on ECP5" in told.svg()
    assert "splitjoin-diagram" not in splitjoin.explain({"x": [1]}, {"x": [1]}, on="r.x = s.x").html()
    small = splitjoin.explain(splitjoin.query(SCHEMA, SCHEMA, on="r.x = s.x", window="ROWS 8"), small=True)
    command = ["verilog", "--schema-r", (schema := "ts:int64?, x:int32?, k:int32?"), "--schema-s", schema,
               "--on", "r.x = s.x", "--window", "ROWS 8", "--small", "-o", str(tmp_path)]
    assert main([*command, "--diagram", str(tmp_path / "circuit.svg")]) == DONE
    written = (tmp_path / "circuit.svg").read_text(encoding="utf-8")
    assert re.sub("<style>svg.*?</style>", "", written, count=1).rstrip() == small.svg()
    assert "prefers-color-scheme:dark" in written
    capsys.readouterr()
    assert main([*command, "--diagram", str(tmp_path / "circuit.png")]) == USAGE
    assert "to a file whose name ends in .svg, not" in capsys.readouterr().err


@pytest.mark.long
@needs_chromium
def test_a_browser_shows_the_page_of_explain(tmp_path: Path) -> None:
    page = tmp_path / "explain.html"
    page.write_text(splitjoin.explain(splitjoin.query(SCHEMA, SCHEMA, **BAND), cores=8).html(), encoding="utf-8")
    seen = seen_by_chromium(page.as_uri(), tmp_path / "user")
    assert seen.count('<rect class="core"') == 9
    assert "distribution tree</text>" in seen
    assert "<th>condition</th>" in seen
