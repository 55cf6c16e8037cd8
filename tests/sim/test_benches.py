"""The cocotb bench of a component, and the runner of benches."""

import pytest

from tests.testbench.runner import run_bench


def test_the_bench_of_the_combiner_passes(tmp_path):
    assert run_bench("combiner", tmp_path) >= 24


def test_a_failing_bench_fails(tmp_path, monkeypatch):
    """The runner itself: a failing bench raises with the end of its log, and so does one without tests."""
    (tmp_path / "bench_wrong.py").write_text(
        "import cocotb\n\n\n@cocotb.test()\nasync def never_holds(dut):\n    assert dut is None, 'it does not hold'\n")
    (tmp_path / "bench_empty.py").write_text("import cocotb\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AssertionError, match=r"(?s)bench combiner failed.*it does not hold"):
        run_bench("combiner", tmp_path / "wrong", module="bench_wrong")
    with pytest.raises(AssertionError, match=r"bench combiner"):
        run_bench("combiner", tmp_path / "empty", module="bench_empty")


@pytest.mark.long  # compiles a writer of VCD for benches alone; `test_waveforms` reads files of compiled circuits
def test_traces_are_opt_in(tmp_path, monkeypatch):
    (tmp_path / "bench_short.py").write_text(
        "import cocotb\nfrom cocotb.triggers import Timer\n\n\n"
        "@cocotb.test()\nasync def waits(dut):\n    await Timer(1, 'ns')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SPLITJOIN_TRACE", "1")
    run_bench("combiner", tmp_path / "traced", module="bench_short")
    monkeypatch.delenv("SPLITJOIN_TRACE")
    run_bench("combiner", tmp_path / "plain", module="bench_short")
    assert (tmp_path / "traced" / "dump.vcd").read_text().startswith("$version")
    assert not list((tmp_path / "plain").glob("dump.*"))
