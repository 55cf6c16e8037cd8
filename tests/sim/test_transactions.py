"""What went over the link, told from captured bytes and from the pins in waveforms: frames, records, items, faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from splitjoin.cli import DONE, FAILURE, USAGE, main
from splitjoin.link.transactions import FROM, TO
from splitjoin_sim.run_view import read_run

from ..sw.link.test_transactions import ANSWER, check, session


def on_pins(frames: list[tuple[str, bytes]], bit: float) -> str:
    """Waveforms in ns of ``frames``, one after the other, in which a bit takes ``bit`` ns; b"!" is a board's input."""
    lines = ["$timescale\n 1 ns\n$end", "$scope module board $end", "$var wire 1 ! rx_pin $end",
             "$var wire 1 % tx_pin $end", "$upscope $end", "$enddefinitions $end", "#0", "1!", "1%"]
    at, level = 100.0, 1
    for way, data in frames:
        for byte in data:
            for value in (0, *(byte >> n & 1 for n in range(8)), 1):
                if value != level:
                    lines += [f"#{round(at)}", f"{value}{'!' if way == TO else '%'}"]
                level, at = value, at + bit
    return "\n".join([*lines, f"#{round(at + bit)}"])


def test_waveforms_of_serial_pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bit = 1e9 / 3e6
    Path("pins.vcd").write_text(on_pins(session(), bit))
    view = read_run(Path("pins.vcd"), pins=("rx_pin", "tx_pin"))
    check(view.rows)
    first = len(session()[0][1])
    assert view.rows[0].time == pytest.approx((100 + (10 * first - 0.5) * bit) * 1e-9, abs=2e-9)
    assert main(["waves", "pins.vcd", "--pins", "rx_pin,tx_pin", "--baud", "3000000", "-o", "link.csv", "-o",
                 "link.html", "-o", "link.gtkw"]) == DONE
    assert len(Path("link.csv").read_text().splitlines()) == 1 + len(view.rows)
    assert "<td>from circuit</td><td>reply ITEMS</td><td>3</td>" in Path("link.html").read_text()
    assert "\nboard.rx_pin\n" in Path("link.gtkw").read_text()
    assert main(["waves", "pins.vcd", "-o", "link.html"]) == FAILURE
    for wrong in (["--pins", "rx"], ["--row-bits", "33"], ["--baud", "0"], ["--replies", "x.bin"]):
        assert main(["waves", "pins.vcd", *wrong, "-o", "link.csv"]) == USAGE
    assert main(["waves", "run.fst", "-o", "link.csv"]) == USAGE


def test_captured_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for name, of in (("sent", TO), ("received", FROM)):
        Path(f"{name}.bin").write_bytes(b"".join(data for way, data in session() if way == of))
    assert main(["waves", "sent.bin", "--replies", "received.bin", "-o", "link.csv"]) == DONE
    rows = [line.split(",", 3) for line in Path("link.csv").read_text().splitlines()[1:]]
    assert [row[2] for row in rows if row[1] == TO][4:7] == ["TUPLE", "TUPLE", "FLUSH"]
    assert [row[2] for row in rows if row[1] == FROM][4:8] == [what for what, _ in ANSWER]
    assert main(["waves", "none.bin", "-o", "link.csv"]) == FAILURE
    assert "none.bin cannot be read: No such file" in capsys.readouterr().err
