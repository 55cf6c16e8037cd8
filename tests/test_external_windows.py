"""The model of a scan in external memory: against its bounds, the committed rows and the page."""

import json
import re
from pathlib import Path

import pytest
from bench.external import CLOCK_MHZ, MEMORIES, ExternalScan, Memory, bound, probes_for
from hypothesis import given, settings, strategies as st

from tests.support.sampling import examples

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "adr" / "0053-windows-in-external-memory.md").read_text()
ROWS = json.loads((ROOT / "bench" / "results" / "external.json").read_text())["rows"]


@given(st.floats(0.5, 256), st.integers(1, 60), st.sampled_from([1, 2, 8, 64]), st.sampled_from([4, 8, 16]),
       st.sampled_from([16, 128]), st.integers(1, 300))
@settings(max_examples=examples(60))
def test_a_pass_takes_what_the_slowest_part_takes(bytes_per_cycle, latency, requests, width, comparators, probes):
    memory = Memory("any", bytes_per_cycle, latency, requests)
    scan = ExternalScan(4096, width, comparators, probes)
    least = bound(scan, memory)
    # The start of a pass, with its stores, is not hidden by a FIFO that the comparators empty meanwhile.
    start = memory.latency + (probes * width + memory.burst) / bytes_per_cycle
    assert least * 0.999 <= scan.simulate(memory) <= least * 1.001 + start


def test_bandwidth_is_hidden_by_the_probes_of_the_formula():
    for memory in MEMORIES:
        enough = probes_for(memory, width=8, comparators=128)
        few, many = (ExternalScan(1 << 14, 8, 128, round(enough * factor)) for factor in (0.5, 1.15))
        assert few.efficiency(few.simulate(memory)) == pytest.approx(0.5, abs=0.07)
        assert many.efficiency(many.simulate(memory)) > 0.95


def test_one_request_at_a_time_waits_for_each_answer():
    memory = Memory("slow", 64, 30, 1)
    scan = ExternalScan(800, 8, 64, 8)  # bursts of 8 tuples, compared in a cycle
    assert scan.simulate(memory) == pytest.approx(100 * (30 + 1 + 1), rel=0.01)


def test_committed_rows_are_those_of_the_model():
    rows = [row for row in ROWS if row["config"]["window"] == 4096]
    assert len(rows) == 20
    for row in rows:
        config = row["config"]
        memory = next(m for m in MEMORIES if config["memory"].startswith(m.name))
        memory = Memory("", memory.bytes_per_cycle, memory.latency, config["requests"])
        scan = ExternalScan(4096, 8, 128, config["probes"])
        assert row["value"] == pytest.approx(scan.efficiency(scan.simulate(memory)), rel=1e-6)


def test_the_page_has_the_arithmetic_of_the_memories():
    for memory in MEMORIES:
        gigabytes, by_cycle, probes = re.search(
            rf"\| {re.escape(memory.name)} \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", PAGE).groups()
        assert float(by_cycle) == pytest.approx(memory.bytes_per_cycle, abs=0.01)
        assert float(gigabytes) * 0.85e3 / CLOCK_MHZ == pytest.approx(memory.bytes_per_cycle)
        assert float(probes) == pytest.approx(probes_for(memory, width=8, comparators=128), rel=0.01)


def test_the_page_has_the_rows_of_bursts_under_way():
    for requests in (1, 4, 16, 64):
        mine = [row["value"] for row in ROWS if row["config"]["window"] == 4096
                and row["config"]["requests"] == requests]
        assert f"| {requests} | " + " | ".join(f"{value:.1%}".replace("%", " %") for value in mine) + " |" in PAGE
