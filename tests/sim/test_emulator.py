"""The unchanged driver of boards talks to the emulator: right answers with faults on the line, clear errors else."""

import subprocess
import sys
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import splitjoin
from splitjoin.base.errors import DeviceError
from splitjoin.cli import main
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.registry import device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.link.sidecar import Sidecar
from splitjoin_sim.emulator import Emulator

from ..support.conformance import assert_conforms
from ..support.formula_conditions import CONDITIONS, SCHEMAS, rows
from ..support.linked import small_join
from ..support.user_aggregates import Checksum, Rises

# These are tests in real time; `tests/sw/link` has the protocol with faults, in simulated time, in every run.
pytestmark = pytest.mark.long

CIRCUIT = {"cores": 1, "capacity": 16}
#: A busy machine may take long to simulate an answer.
OPTIONS = {**CIRCUIT, "timeout": 60}


def answers(path, seed, tuples=40):
    query, arrivals = small_join(tuples=tuples, seed=seed)
    with device(f"uart:{path}", **OPTIONS).open(query) as session:
        session.push(arrivals)
        found = session.flush()
        transport = session._transport
    with device("golden").open(query) as golden:
        golden.push(arrivals)
        assert_conforms(found, golden.flush(), query.order)
    return transport.retransmissions


def config():
    return device("uart:none", **OPTIONS).configuration(small_join(1, 0)[0])


def test_folds_in_order():
    """A class without a merge, by the unit behind the gather trees of the circuit on the board."""
    r, s = (pa.table({name: pa.array([n * step % 23 for n in range(40)], pa.uint8())}) for name, step in (("x", 7),
                                                                                                          ("y", 5)))
    asked = splitjoin.query(r.schema, s.schema, on="abs(r.x - s.y) <= 6", window="ROWS 8", how="left", aggregate={
        "crc": Checksum("s.y"), "rises": Rises("s.y"), "n": "count(*)"})
    circuit = device("uart:none", **OPTIONS).states_circuit(asked)
    assert circuit.config.in_order
    found = []
    with Emulator(circuit.config) as board:
        for where in (f"uart:{board.path}", "golden"):
            with splitjoin.open(asked, device=where, **(OPTIONS if where != "golden" else {})) as session:
                session.push_r(r)
                session.push_s(s)
                found.append(session.flush().to_pydict())
        assert board.received > 0
    assert found[0] == found[1]


@pytest.mark.parametrize(("name", "alone"), [("dot product", 11), ("remainder by a value", 4), ("LIKE", 14)])
def test_a_formula_sends_its_answer_alone(name, alone):
    """Beyond what leaves where no pair matches, as for copies of row ``alone``, the bytes are those of the answer."""
    asked = Query.make(*(Schema.from_arrow(side, SCHEMAS[side]) for side in "rs"), on=CONDITIONS[name],
                       window="ROWS 16", order="total")
    r, s, options, sent = rows("r", 24, 7), rows("s", 24, 7), OPTIONS | {"verify": "core"}, {}
    for given in (r, r.take([alone] * 24)):
        with (Emulator(device("uart:none", **options).configuration(asked)) as board,
              device(f"uart:{board.path}", **options).open(asked) as session):
            session.push(arrivals(asked, given, s))
            found = session.flush()
            sent[int((found["kind"] == 0).sum())] = board.sent
    least, answer = sorted(sent)
    assert least == 0 and answer > 40
    # An item has 9 bytes; a frame of items has a few more, as do replies that tell nothing yet.
    assert 9 * answer <= sent[answer] - sent[0] <= 12 * answer


def test_a_board_has_one_user():
    query, _ = small_join(1, 0)
    with (Emulator(config()) as board, device(f"uart:{board.path}", **OPTIONS).open(query),
          pytest.raises(DeviceError, match="in use by no other process")):
        device(f"uart:{board.path}", **OPTIONS).open(query)


def test_the_command_answers_on_the_terminal_that_it_prints():
    query = ["--schema-r", "x:int8", "--schema-s", "y:int8", "--on", "abs(r.x - s.y) <= 2", "--window", "ROWS 8"]
    command = [sys.executable, "-m", "splitjoin", "emulate", *query, "--cores", "1", "--capacity", "16"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        killer = threading.Timer(120, process.kill)
        killer.start()
        try:
            answers(process.stdout.readline().strip(), 0)
        finally:
            killer.cancel()
            process.terminate()


def test_a_join_on_the_command_line_by_the_design_of_a_build(tmp_path, monkeypatch, capsys):
    """The design stands for the circuit's parameters; another query than the one that was built is refused."""
    monkeypatch.chdir(tmp_path)
    for side, column in (("R", "x"), ("S", "y")):
        pq.write_table(pa.table({column: pa.array(range(20), pa.int8())}), f"{side}.parquet")
    made = device("uart:none", **OPTIONS)
    query = Query.make(*(Schema.from_table(side, pq.read_table(f"{side.upper()}.parquet")) for side in "rs"),
                       on="abs(r.x - s.y) <= 2", window="ROWS 8")
    built = made.configuration(query)
    Sidecar.of(made, built, board="ulx3s_85f", clock_hz=25_000_000, baud=115_200).write("design.json")
    with Emulator(built) as board:
        join = ["join", "R.parquet", "S.parquet", "--window", "ROWS 8", "--device", f"uart:{board.path}"]
        assert main([*join, "--on", "abs(r.x - s.y) <= 2", "--design", "design.json", "-o", "out.parquet"]) == 0
        assert main([*join, "--on", "abs(r.x - s.y) <= 2", "--design", "design.json", "--cores", "1",
                     "-o", "other.parquet"]) == 1
        assert "leave out --cores" in capsys.readouterr().err
        assert main([*join, "--on", "r.x = s.y AND r.x > 3", "--design", "design.json", "-o", "other.parquet"]) == 1
        assert "must be built for this query" in capsys.readouterr().err
    assert main(["join", "R.parquet", "S.parquet", "--window", "ROWS 8", "--on", "abs(r.x - s.y) <= 2", "--device",
                 "golden", "-o", "golden.parquet"]) == 0
    assert pq.read_table("out.parquet").equals(pq.read_table("golden.parquet"))
    assert pq.read_metadata("out.parquet").num_rows == 94
    assert main(["join", "R.parquet", "S.parquet", "--window", "ROWS 8", "--on", "r.x = s.y", "--design", "design.json",
                 "-o", "other.parquet"]) == 1
    assert "choose --device uart:PORT" in capsys.readouterr().err


def test_a_target_is_refused_where_there_is_none_and_needed_where_there_is():
    with pytest.raises(DeviceError, match="the device 'golden' takes no target"):
        device("golden:x")
    with pytest.raises(DeviceError, match="the device 'uart' needs a target, as in 'uart:/dev/ttyUSB0'"):
        device("uart")
