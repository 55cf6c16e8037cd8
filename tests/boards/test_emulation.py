"""The unchanged driver of boards on whole emulated boards: right answers with faults of line and board."""

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import StreamJoin
from splitjoin.base.errors import DeviceError, InputError, UnsupportedError
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.cli import main
from splitjoin.engines.registry import device
from splitjoin.link.items import PackedItems
from splitjoin.link.sidecar import Sidecar
from splitjoin_boards import pads
from splitjoin_boards.catalog import find
from splitjoin_boards.pads import board_top
from splitjoin_boards.pll import clocked
from splitjoin_hw.memory.sdram import Sdram
from splitjoin_sim.emulator import Faults
from splitjoin_sim.sdram import SdramChip

from ..sim.test_folding import tables
from ..support.conformance import assert_conforms
from ..support.linked import small_join
from ..support.sampling import at_length

CIRCUIT = {"cores": 1, "capacity": 16}


@pytest.mark.parametrize("board", ["icebreaker", at_length("ulx3s_85f"), at_length("ecpix5_85f")])
def test_the_pins_of_a_board_are_those_of_its_platform(board):
    config = device("pysim", **CIRCUIT).configuration(small_join(1, 0)[0])
    text, pins = board_top(find(board), config, 115_200).make()
    for pin in (pins.clk, pins.rx, pins.tx):
        assert f"{pin}" in text.split(");")[0]
    for primitive in ("SB_", "TRELLIS", "GSR", "EHXPLLL"):
        assert primitive not in text


def test_a_rate_that_the_clock_cannot_make():
    config = device("pysim", **CIRCUIT).configuration(small_join(1, 0)[0])
    with pytest.raises(UnsupportedError, match=r"^the rate must be 11719 to 3000000 Hz on board icebreaker, .* not 5;"):
        board_top(find("icebreaker"), config, 5)


def answer(spec, query, arrivals, **options):
    with device(spec, **options).open(query) as session:
        session.push(arrivals)
        found = session.flush()
        board, transport = session._transport.board, session._transport
    with device("golden").open(query) as golden:
        golden.push(arrivals)
        assert_conforms(found, golden.flush(), query.order)
    return board, transport


@pytest.mark.long
@pytest.mark.parametrize("board", ["icebreaker", "ulx3s_85f"])
def test_a_board_by_its_name(board):
    answer(f"emulator:{board}", *small_join(40, 0), **CIRCUIT)


#: A circuit with windows in SDRAM.
IN_SDRAM = {"memory": "sdram", "contexts": 4, "capacity": 64}


@pytest.mark.long
@pytest.mark.parametrize("board", ["ulx3s_85f", "icepi_zero", "icesugar_pro", "colorlight_5a75b_r7_0"])
def test_windows_in_the_sdram_of_a_board(board):
    """With a chip at the board's pins that checks every time."""
    answer(f"emulator:{board}", *small_join(40, 0), **IN_SDRAM)


@pytest.mark.long
def test_a_board_is_silent_once_its_sdram_has_found_a_fault(monkeypatch):
    slow = Sdram(rcd=90).cycles(25_000_000)  # than the controller knows
    monkeypatch.setattr(pads, "SdramChip", lambda sdram, _, burst, words: SdramChip(sdram, slow, burst, words=words))
    with pytest.raises(DeviceError):
        answer("emulator:ulx3s_45f", *small_join(40, 0), **IN_SDRAM, timeout=2.0, reconnect=2.0)


def test_a_board_without_sdram():
    config = device("pysim", **IN_SDRAM).configuration(small_join(1, 0)[0])
    with pytest.raises(UnsupportedError, match="or sdram on a board that has SDRAM, as `splitjoin boards` says"):
        board_top(find("versa_ecp5"), config).make()
    with pytest.raises(UnsupportedError, match=r"must be at most 66000000 Hz, as .* not 75000000; give a lower --pll"):
        board_top(clocked(find("ulx3s_85f"), 75_000_000), config).make()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_the_plug_is_pulled_at_random_moments(seed):
    board, transport = answer("emulator:icebreaker", *small_join(200, seed), **CIRCUIT, unplug=1500, delay=0.001,
                              drop=0.001, fault_seed=seed)
    assert board.unplugged > 0 and transport.reconnections > 0


@pytest.mark.long
def test_a_design_stands_for_its_board_and_parameters(tmp_path):
    query, arrivals = small_join(20, 0)
    path = tmp_path / "design.json"
    parameters = CircuitParameters(**CIRCUIT)
    config = device("pysim", **CIRCUIT).configuration(query)
    Sidecar.of(parameters, config, board="icebreaker", clock_hz=12_000_000, baud=115_200, pack=True).write(path)
    assert Sidecar.read(path).pack
    _, transport = answer(f"emulator:{path}", query, arrivals)
    assert isinstance(transport._items, PackedItems)  # the board says so itself
    with pytest.raises(DeviceError, match="must be built for this query"):
        Sidecar.read(path).check(path, query, device("pysim", cores=2, capacity=16).configuration(query))
    with pytest.raises(InputError, match="a design must be a readable JSON file"):
        device("emulator:missing.json").open(query)


@pytest.mark.long
@pytest.mark.parametrize("seed", [9, 11, 12, *range(20, 37)])
def test_a_stream_goes_on_when_the_board_loses_its_state(seed):
    """In the middle of frames, at random moments: windows are reloaded, and no row is lost or repeated."""
    query, arrivals = small_join(300, seed)
    board = device("emulator:icebreaker", **CIRCUIT, reset=12_000, fault_seed=seed)
    batches = []
    with StreamJoin(query, board) as session:
        for at in range(0, 300, 20):
            session.push_r(arrivals.r.slice(at, 20))
            session.push_s(arrivals.s.slice(at, 20))
            batches.append(session.poll())
        batches.append(session.flush())
        counters = session.counters()  # which may find the board without its state, too
        assert counters["tuples_r"] == 300 and (counters["restarts"] > 0 or counters["device_bytes_received"] > 9000)
    with StreamJoin(query, device("golden")) as session:
        for at in range(0, 300, 20):
            session.push_r(arrivals.r.slice(at, 20))
            session.push_s(arrivals.s.slice(at, 20))
        expected = session.flush()
    assert pa.Table.from_batches(batches).to_pylist() == expected.to_pylist()


FEATURES = {"on": "abs(r.x - s.a) <= 9", "time": "ts", "window": "RANGE 6", "how": "left", "select": ["ts", "x"],
            "aggregate": {"n": "count(*)", "prices": "sum(s.p)", "low": "min(s.p)"}}
FOLDING = {"cores": 2, "capacity": 16, "lanes": 2, "probes": 2, "fold": "always"}


@pytest.mark.long
@pytest.mark.parametrize("pack", [False, True])
def test_a_board_folds_aggregates_behind_a_bad_line(pack):
    r, s = tables(60, 3)
    board = device("emulator:ulx3s_85f", pack=pack, drop=0.001, flip=0.001, double=0.001, **FOLDING)
    found = splitjoin.join(r, s, device=board, **FEATURES)
    assert found.counters["retransmissions"] > 0
    assert found.table.equals(splitjoin.join(r, s, device="golden", **FEATURES).table)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_a_stream_of_aggregates_goes_on_when_the_board_loses_its_state(seed):
    r, s = tables(300, seed)
    board = device("emulator:ulx3s_85f", reset=8_000, unplug=20_000, fault_seed=seed, **FOLDING)
    query = splitjoin.query(r.schema, s.schema, **{name: of for name, of in FEATURES.items() if name != "select"})
    rows = []
    with splitjoin.open(query, device=board, select=["ts", "x"]) as session:
        for at in range(0, 300, 20):
            session.push_r(r.slice(at, 20))
            session.push_s(s.slice(at, 20))
            session.heartbeat(min(table["ts"][at + 19].as_py() for table in (r, s)))
            rows.append(session.poll())
        rows.append(session.flush())
        counters = session.counters()
        assert counters["restarts"] > 0 or counters["device_bytes_received"] > 6_000
    expected = splitjoin.join(r, s, device="golden", **FEATURES).table
    assert pa.Table.from_batches(rows).to_pylist() == expected.to_pylist()


def test_wrong_targets_and_faults():
    with pytest.raises(DeviceError, match="no bitstream can be built for a board 'nothing'; the boards are"):
        device("emulator:nothing")
    with pytest.raises(DeviceError, match="needs a target, as in 'emulator:ulx3s_85f"):
        device("emulator")
    with pytest.raises(DeviceError, match=r"a sum of at most 1, not \[0.9, 0.9, 0.0, 0.0\]"):
        device("emulator:icebreaker", drop=0.9, flip=0.9)
    with pytest.raises(DeviceError, match="pack must be True or False, not 1"):
        device("emulator:icebreaker", pack=1)
    with pytest.raises(DeviceError, match="reset must be a number of bytes from 0, not -1"):
        Faults(reset=-1)


def test_a_rate_without_a_board_is_refused(capsys):
    assert main(["emulate", "--schema-r", "x:int8", "--schema-s", "y:int8", "--on", "r.x = s.y", "--window", "ROWS 8",
                 "--cores", "1", "--capacity", "16", "--baud", "9600"]) == 1
    assert "choose a --board, or leave them out" in capsys.readouterr().err
