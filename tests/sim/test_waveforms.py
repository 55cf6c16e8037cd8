"""Waveforms of simulated runs: the files can be read, name signals as the source does, and change no answer."""

from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import Any

import pytest

from splitjoin import DeviceError, JoinResult, join
from splitjoin.cli import DONE, FAILURE, USAGE, main
from splitjoin.engines.registry import DEVICES, device as find_device
from splitjoin_sim import PysimDevice, SimDevice
from splitjoin_sim.run_view import read_run
from splitjoin_sim.waveforms import trace_file
from tests.support.html_page import Page, needs_chromium, seen_by_chromium

R = {"x": [7 * n % 23 for n in range(40)]}
S = {"a": [5 * n % 19 for n in range(40)]}


def run(device: str, cores: int = 2, **options: Any) -> JoinResult:
    return join(R, S, on="abs(r.x - s.a) <= 2", window="ROWS 8", device=device, cores=cores, capacity=8, **options)


def same(one: JoinResult, other: JoinResult) -> bool:
    return one.to_pydict() == other.to_pydict() and one.counters == other.counters


def lz4(block: bytes) -> bytes:
    """A block of LZ4 (its specification: github.com/lz4/lz4, doc/lz4_Block_format.md), decompressed."""
    out, at = bytearray(), 0

    def length(nibble: int) -> int:
        nonlocal at
        if nibble == 15:
            while True:
                nibble += block[at]
                at += 1
                if block[at - 1] != 255:
                    break
        return nibble

    while True:
        token = block[at]
        at += 1
        count = length(token >> 4)
        out += block[at:at + count]
        at += count
        if at == len(block):
            return bytes(out)
        back = int.from_bytes(block[at:at + 2], "little")
        at += 2
        for _ in range(length(token & 15) + 4):
            out.append(out[-back])


def fst_names(path: Path) -> tuple[set[str], int]:
    """The names of all scopes and signals of an FST file, and the time of its last change."""
    data, at, end, names = path.read_bytes(), 0, 0, set[str]()
    while at < len(data):
        kind, size = data[at], int.from_bytes(data[at + 1:at + 9], "big")
        body = data[at + 9:at + 1 + size]
        if kind == 0:  # the header
            end = int.from_bytes(body[8:16], "big")
        if kind == 6:  # the hierarchy
            text = lz4(body[8:])
            assert len(text) == int.from_bytes(body[:8], "big")
            # A scope begins with 254 and its kind, a signal with its kind and its direction; each name ends with 0.
            names |= {found.decode() for found in re.findall(rb"([A-Za-z_]\w*)(?: \[\d+:\d+\])?\0", text)}
        at += 1 + size
    return names, end


@pytest.mark.long  # compiles a writer of FST for ten seconds; VCD files come from the same circuit and harness
def test_the_compiled_circuit_writes_fst(tmp_path: Path) -> None:
    plain, file = run("sim"), tmp_path / "run.fst"
    assert same(plain, run("sim", trace=file))
    names, end = fst_names(file)
    assert {"clk", "i__valid", "o__payload", "core0", "core1", "emitter", "matcher", "credit"} <= names
    assert not [name for name in names if "$" in name]
    assert end >= plain.counters["cycles"] * 10_000  # ps
    # Many runs write the same file, one after the other.
    first = file.read_bytes()
    assert same(plain, run("sim", trace=str(file)))
    assert abs(len(file.read_bytes()) - len(first)) < 100


@pytest.mark.parametrize("device", ["sim", "pysim"])
def test_vcd(tmp_path: Path, device: str) -> None:
    file = tmp_path / "run.vcd"
    traced = run(device, 1, trace=file)
    assert traced.to_pydict() == join(R, S, on="abs(r.x - s.a) <= 2", window="ROWS 8", device="golden").to_pydict()
    view = read_run(file)
    for what in ("tuples_r", "tuples_s", "comparisons", "matches", "input_stalls", "output_stalls"):
        assert view.total("circuit", what) == traced.counters[what]
    assert view.cores == ["core0"]
    assert {what: view.total("core0", what) for what in ("comparisons", "matches", "pairs", "stars", "tuples")} == {
        "comparisons": traced.counters["comparisons"], "matches": traced.num_rows, "pairs": traced.num_rows,
        "stars": 80, "tuples": 80}
    assert view.total("core0", "waits") and view.total("core0", "scans") >= view.total("core0", "comparisons")
    assert view.cycles <= 240 * view.width and view.cycles >= traced.counters["cycles"]
    text = file.read_text()
    head, _, changes = text.partition("$enddefinitions $end")
    assert re.search(r"\$var wire +\d+ \S+ i__valid ", head) and "$scope module core0 " in head
    changed = re.findall(r"^#(\d+)$", changes, re.MULTILINE)
    assert len(changed) > 300 and sorted(map(int, changed)) == list(map(int, changed))


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, column in (("R", "x"), ("S", "a")):
        Path(f"{name}.csv").write_text("\n".join([column, *map(str, range(4))]))
    assert main(["join", "R.csv", "S.csv", "--on", "r.x = s.a", "--device", "pysim", "--cores", "1", "--capacity", "4",
                 "--trace", "run.vcd", "-o", "O.csv"]) == 0
    assert "$enddefinitions" in Path("run.vcd").read_text()
    assert main(["waves", "run.vcd", "-o", "run.html", "-o", "run.gtkw", "-o", "run.sucl"]) == DONE
    page = Page(Path("run.html").read_text())
    assert {"comparisons: 16, at most 4 a cycle", "core0"} <= set(page.texts)
    assert not {"script", "link", "img"} & {tag for tag, _ in page.elements}
    assert not {"src", "href"} & {name for _, attributes in page.elements for name in attributes}
    assert "\n@28\nbench.top.core0.i__valid\n" in Path("run.gtkw").read_text()
    assert f"load_file {tmp_path / 'run.vcd'}\n" in Path("run.sucl").read_text()
    assert "\ndivider_add core0\nvariable_add bench.top.core0.compared__0\n" in Path("run.sucl").read_text()
    assert main(["waves", "run.vcd", "-o", "run.png"]) == USAGE
    for other in ("R.csv", "none.vcd", "run.html"):
        assert main(["waves", other, "-o", "other.html"]) == FAILURE
    assert not Path("other.html").exists()


@pytest.mark.long
@needs_chromium
def test_a_browser_shows_the_page_of_a_run(tmp_path: Path) -> None:
    run("pysim", trace=tmp_path / "run.vcd")
    page = tmp_path / "run.html"
    page.write_text(read_run(tmp_path / "run.vcd").html(), encoding="utf-8")
    seen = seen_by_chromium(page.as_uri(), tmp_path / "user")
    assert seen.count("<svg") == 6 + 8
    assert seen.count(">core1</text>") == 8


def test_slices_are_merged_and_unknown_values_are_nothing(tmp_path: Path) -> None:
    """Two cores, of which one is busy in the second half of a thousand cycles."""
    file = tmp_path / "run.vcd"
    head = "$scope module top $end\n$var wire 1 ! clk $end\n"
    for n in range(2):
        head += f"$scope module core{n} $end\n$var wire 5 {'ab'[n]} compared__0 $end\n$upscope $end\n"
    cycles = [f"#{2 * n}\n1!\n{'b11 b' if n > 500 else 'bxx b'}\n#{2 * n + 1}\n0!\n" for n in range(1000)]
    file.write_text(head + "$enddefinitions $end\nb0 a\n" + "".join(cycles))
    view = read_run(file)
    assert (view.cycles, view.width) == (1000, 8)
    assert (view.total("core0", "comparisons"), view.total("core1", "comparisons")) == (0, 3 * 498)
    assert min(view.counts["core1", "comparisons"]) == 502 // 8
    assert Page(view.html()).texts.count("core1") == 1


@pytest.mark.parametrize(("made", "ends"), [(SimDevice, r"\.fst or \.vcd"), (PysimDevice, r"\.vcd")])
@pytest.mark.parametrize("value", ["run", "run.txt", 3, True])
def test_device_wrong_trace(made: Any, ends: str, value: Any) -> None:
    with pytest.raises(DeviceError, match=rf"^trace of the device '\w+' must be a path that ends in {ends}, not "
                                          rf"{value!r}$"):
        made(trace=value)


def test_pysim_writes_no_fst() -> None:
    with pytest.raises(DeviceError, match=r"must be a path that ends in \.vcd, not 'run\.fst'"):
        PysimDevice(trace="run.fst")


@pytest.mark.parametrize("name", sorted(set(DEVICES) - {"sim", "pysim"}))
def test_other_devices_have_no_trace(name: str) -> None:
    target = {"emulator": ":ulx3s_85f", "uart": ":/dev/none", "xdma": ":/dev/none", "zynq": ":none"}.get(name, "")
    with pytest.raises(DeviceError, match=f"^the device '{name}' has no option 'trace'; its options are "):
        find_device(name + target, trace="run.vcd")


def test_a_file_has_the_waveforms_of_one_session(tmp_path: Path) -> None:
    with trace_file(tmp_path / "run.vcd"), pytest.raises(DeviceError, match="another session is writing"):
        run("pysim", trace=tmp_path / "run.vcd")
    with pytest.raises(DeviceError, match="cannot be written: No such file"):
        run("pysim", trace=tmp_path / "none" / "run.vcd")


def test_a_file_is_written_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on some file systems, and in a browser."""
    monkeypatch.setattr("filelock._native._descriptor.lock_fd_nonblocking", planted_no_locks)
    with trace_file(tmp_path / "run.vcd") as file:
        assert file.writable()


def planted_no_locks(_: int) -> bool:
    raise OSError(errno.ENOSYS, "no locks")
