"""`-` on the command line: tables from standard input and to standard output, as Arrow IPC streams or CSV."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pytest

from splitjoin.cli import DONE, FAILURE, main, pipes

from ...support.patience import SOON, until

R = pa.table({"ts": [1, 4, 9], "x": [10, 20, 30]})
S = pa.table({"ts": [2, 5, 9], "a": [12, 70, 31]})
WANT = [{"ts_r": 1, "x": 10, "ts_s": 2, "a": 12}, {"ts_r": 9, "x": 30, "ts_s": 9, "a": 31}]
QUERY = ("--on", "abs(r.x - s.a) <= 5", "--window", "RANGE 4", "--time", "ts", "--device", "golden")


class Standard(io.TextIOWrapper):
    """A standard stream over bytes in memory, perhaps a terminal."""

    def __init__(self, data: bytes = b"", *, terminal: bool = False):
        self.bytes = io.BytesIO(data)
        self._terminal = terminal
        super().__init__(self.bytes, encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return self._terminal


def stream(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def text(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pyarrow.csv.write_csv(table, out)
    return out.getvalue()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(R, "R.csv")
    pyarrow.csv.write_csv(S, "S.csv")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str, given: bytes = b"", terminal: bool = False) -> tuple[int,
                                                                                                               bytes]:
    out = Standard(terminal=terminal)
    monkeypatch.setattr(sys, "stdin", Standard(given))
    monkeypatch.setattr(sys, "stdout", out)
    return main(arguments), out.bytes.getvalue()


@pytest.mark.parametrize("made", [stream, text])
@pytest.mark.parametrize("side", ["r", "s"])
def test_a_table_through_pipes(side: str, made: object, files: Path, monkeypatch: pytest.MonkeyPatch,
                               capsys: pytest.CaptureFixture[str]) -> None:
    names, given = (("-", "S.csv"), R) if side == "r" else (("R.csv", "-"), S)
    code, out = run(monkeypatch, "join", *names, *QUERY, "-o", "-", given=made(given))  # type: ignore[operator]
    assert code == DONE
    assert pa.ipc.open_stream(out).read_all().to_pylist() == WANT
    assert "pairs                  2" in capsys.readouterr().err  # the counters are not in the way


def test_csv_on_a_terminal(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out = run(monkeypatch, "join", "R.csv", "S.csv", *QUERY, "-o", "-", "--format", "csv", terminal=True)
    assert (code, out) == (DONE, b'"ts_r","x","ts_s","a"\n1,10,2,12\n9,30,9,31\n')


def test_sql_through_pipes(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out = run(monkeypatch, "sql", "SELECT x - a AS gap FROM r JOIN s ON abs(r.x - s.a) <= 5", "r=R.csv", "s=-",
                    "--window", "RANGE 4", "--time", "ts", "--device", "golden", "-o", "-", given=stream(S))
    assert code == DONE
    assert pa.ipc.open_stream(out).read_all().to_pydict() == {"gap": [-2, -1]}


BOTH = "standard input holds one table, but - stands for two; give the other one as a file"
WRONG = [
    (("join", "-", "-", *QUERY, "-o", "O.csv"), b"", False, BOTH),
    (("sql", "SELECT * FROM r JOIN s ON r.x = s.a", "r=-", "s=-", "--window", "ROWS 5", "-o", "O.csv"), b"", False,
     BOTH),
    (("join", "-", "S.csv", *QUERY, "-o", "O.csv"), b"", False, "standard input must hold a table, as an Arrow IPC "
     "stream or as CSV, but it is empty"),
    (("join", "-", "S.csv", *QUERY, "-o", "O.csv"), stream(R)[:60], False, "standard input cannot be read as an Arrow "
     "IPC stream"),
    (("join", "-", "S.csv", *QUERY, "-o", "O.csv"), b"a,b\n1\n", False, "standard input cannot be read as CSV"),
    (("join", "R.csv", "S.csv", *QUERY, "-o", "O.csv", "--format", "csv"), b"", False, "--format is for standard "
     "output, and the format of O.csv follows from its suffix; leave it out, or write -o -"),
    (("join", "R.csv", "S.csv", *QUERY, "-o", "-"), b"", True, "an Arrow IPC stream is not for a terminal"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case[3][:40])
def test_what_cannot_be(case: tuple[tuple[str, ...], bytes, bool, str], files: Path, monkeypatch: pytest.MonkeyPatch,
                        capsys: pytest.CaptureFixture[str]) -> None:
    arguments, given, terminal, said = case
    code, out = run(monkeypatch, *arguments, given=given, terminal=terminal)
    assert (code, out) == (FAILURE, b"")
    assert capsys.readouterr().err.startswith(f"splitjoin: {said}")
    assert not Path("O.csv").exists()


def test_lists_do_not_go_into_csv(files: Path, monkeypatch: pytest.MonkeyPatch,
                                  capsys: pytest.CaptureFixture[str]) -> None:
    nested = R.append_column("l", pa.array([[1], [2], [3]]))
    arguments = ("join", "-", "S.csv", *QUERY, "-o", "-")
    assert run(monkeypatch, *arguments, "--format", "csv", given=stream(nested)) == (FAILURE, b"")
    assert "a CSV file holds numbers, text and times, but column 'l'" in capsys.readouterr().err
    assert run(monkeypatch, *arguments, given=stream(nested))[0] == DONE


def test_ctrl_c_leaves_nothing_half_written(files: Path) -> None:
    """Interrupted while it waits for its input; the old file stays, and no part of a new one is there."""
    Path("O.csv").write_text("old")
    before = set(os.listdir())
    command = [sys.executable, "-m", "splitjoin", "join", "-", "S.csv", *QUERY, "-o", "O.csv"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait = Path(f"/proc/{process.pid}/wchan")
    until(lambda: "pipe" in wait.read_text())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SOON)
    assert (process.returncode, out, err) == (130, b"", b"splitjoin: interrupted\n")
    assert set(os.listdir()) == before
    assert Path("O.csv").read_text() == "old"


def test_a_reader_that_goes_away_is_no_error(files: Path) -> None:
    command = f"{sys.executable} -m splitjoin join R.csv S.csv {' '.join(map(repr, QUERY))} -o - | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["devices | true", "--help | true", "devices >&-"])
def test_output_that_nobody_reads(command: str) -> None:
    """The output of a command may go to ``head``: no traceback, and the exit code of success."""
    done = subprocess.run(["bash", "-o", "pipefail", "-c", f"{sys.executable} -m splitjoin {command}"],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("text", "said"), [
    (b"x,t\n9223372036854775809,a\n1.5,b\n", "the numbers in column 'x' of standard input are floats, as not all"),
    (b"x,t\n36893488147419103232,a\n", "the whole numbers in column 'x' of standard input must fit int64 or uint64"),
    ("x,t\n1,Köln\n".encode("latin-1"), "the text in column 't' of standard input must be in UTF-8, but row 0"),
    ("x,Köln\n1,a\n".encode("latin-1"), "standard input must have column names in UTF-8"),
])
def test_standard_input_is_read_as_exactly_as_files(text: bytes, said: str, files: Path,
                                                    monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("join", "-", "S.csv", "--on", "r.x = s.a", "--device", "golden", "-o", "O.csv")
    assert run(monkeypatch, *arguments, given=text)[0] == FAILURE
    assert capsys.readouterr().err.startswith(f"splitjoin: {said}")
    large = f"x,t\n{2**63 + 1},a\n{2**63},\n".encode()
    Path("S.csv").write_text(f"a\n{2**63}\n")
    code, out = run(monkeypatch, *arguments[:-1], "-", given=large)
    assert (code, pa.ipc.open_stream(out).read_all().to_pylist()) == (DONE, [{"x": 2**63, "t": None, "a": 2**63}])


def test_standard_input_of_three_bytes(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shorter than what an Arrow IPC stream begins with."""
    Path("S.csv").write_text("a\n1\n")
    code, out = run(monkeypatch, "join", "-", "S.csv", "--on", "r.x = s.a", "--device", "golden", "-o", "-",
                    given=b"x\n1")
    assert (code, pa.ipc.open_stream(out).read_all().to_pylist()) == (DONE, [{"x": 1, "a": 1}])


def test_standard_input_that_cannot_be_kept(files: Path, monkeypatch: pytest.MonkeyPatch,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    def full(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pipes.shutil, "copyfileobj", full)
    assert run(monkeypatch, "join", "-", "S.csv", *QUERY, "-o", "O.csv", given=text(R))[0] == FAILURE
    assert "that failed: No space left on device; make room there, or set TMPDIR" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", None)  # as after <&-
    assert main(["join", "-", "S.csv", *QUERY, "-o", "O.csv"]) == FAILURE
    assert "standard input must hold a table, but it is closed" in capsys.readouterr().err


class Short(io.RawIOBase):
    """Unbuffered output that takes a few bytes at once, and no more than ``room``."""

    def __init__(self, room: int):
        self.taken, self._room = b"", room

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if len(self.taken) >= self._room:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = bytes(data[:7])
        self.taken += part
        return len(part)


@pytest.mark.parametrize("form", ["csv", "arrow"])
def test_unbuffered_output_is_written_whole_or_is_an_error(form: str, files: Path, monkeypatch: pytest.MonkeyPatch,
                                                           capsys: pytest.CaptureFixture[str]) -> None:
    """As PYTHONUNBUFFERED=1 makes it: each write may take a part only, as always beyond 2 GiB."""
    arguments = ("join", "R.csv", "S.csv", *QUERY, "-o", "-", "--format", form)
    for room, code in ((1 << 20, DONE), (20, FAILURE)):
        raw = Short(room)
        out = io.TextIOWrapper(raw, write_through=True)  # type: ignore[type-var]  # as Python makes it
        monkeypatch.setattr(sys, "stdout", out)
        assert main(arguments) == code
        if code == DONE and form == "arrow":
            assert pa.ipc.open_stream(raw.taken).read_all().to_pylist() == WANT
        elif code == DONE:
            assert pyarrow.csv.read_csv(io.BytesIO(raw.taken)).to_pylist() == WANT
        else:
            assert "standard output cannot be written: No space left on device" in capsys.readouterr().err


def test_statements_hold_csv_columns_to_its_types(files: Path, monkeypatch: pytest.MonkeyPatch,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("sql", "SELECT l, t FROM r JOIN s ON r.x = s.a", "r=-", "s=S.csv", "--device", "golden", "-o", "-",
                 "--format", "csv")
    categories = pa.array(["a", "b", "a"]).dictionary_encode()
    nested = pa.table({"x": [12, 70, 1], "l": [[1], [2], [3]], "t": categories})
    assert run(monkeypatch, *arguments, given=stream(nested)) == (FAILURE, b"")
    assert "a CSV file holds numbers, text and times, but column 'l'" in capsys.readouterr().err
    flat = nested.set_column(1, "l", pa.array([None, 1.5, 2.5], pa.float32()))
    assert run(monkeypatch, *arguments, given=stream(flat)) == (DONE, b'"l","t"\n,"a"\n1.5,"b"\n')


KILLED = """
import os, sys, time
from pathlib import Path
if sys.argv[1] == "named":
    del os.O_TMPFILE  # as on other systems, and on file systems without such files
from splitjoin.base.disk import replacing
from splitjoin.base.interrupts import orderly_termination
with orderly_termination(), replacing(Path("O.csv")) as part:
    part.write(b"half")
    print("written", flush=True)
    for _ in range(6000):  # a signal that comes just before a system call does not interrupt it
        time.sleep(0.1)
"""


@pytest.mark.parametrize(("way", "number"), [("named", signal.SIGTERM), ("nameless", signal.SIGTERM),
                                             ("nameless", signal.SIGKILL)])
def test_a_process_that_is_ended_leaves_no_part(way: str, number: signal.Signals, files: Path) -> None:
    Path("O.csv").write_text("old")
    before = set(os.listdir())
    with subprocess.Popen([sys.executable, "-c", KILLED, way], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"written\n"
            if way == "nameless" and set(os.listdir()) != before:
                pytest.skip("this file system has no files without names")
            process.send_signal(number)
            assert process.communicate(timeout=SOON) == (b"", b"")
        finally:
            process.kill()  # where it has not ended: its pipes would trouble later tests
    assert process.returncode == -number
    assert set(os.listdir()) == before
    assert Path("O.csv").read_text() == "old"


@pytest.mark.parametrize("name", ["shown", "reporting"])
def test_who_keeps_the_output_may_reset_the_terminal_at_the_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As colorama does, which numba imports: the escaped sequence stood behind what a long run had printed."""
    out = Standard(terminal=True)
    monkeypatch.setattr(sys, "stdout" if name == "shown" else "stderr", out)
    with pipes.shown() if name == "shown" else pipes.reporting(pipes.STANDARD):
        kept = sys.stdout
        kept.write("\x1b[0m")
    kept.write("\x1b[0m")
    assert out.bytes.getvalue() == rb"\x1b[0m" + b"\x1b[0m"
