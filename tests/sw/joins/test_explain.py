"""`splitjoin.joins.explain` of conditions that circuits do not decide, and of very long ones."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import UnsupportedError
from splitjoin.circuit.lowering import MOST_RECORD_BITS
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import chosen_circuit
from splitjoin.joins.explain import explain

from ...support.sampling import at_length

INT = pa.schema([pa.field("x", pa.int16(), nullable=False)])
NULLABLE = pa.schema([("x", pa.int16())])
BYTE = pa.schema([pa.field("x", pa.uint8())])


def told(schema: pa.Schema, on: str) -> list[str]:
    return explain(splitjoin.query(schema, schema, on=on, window="ROWS 64"), verify="host").splitlines()


@pytest.mark.parametrize("on", ["(r.x & s.x) < 8", "r.x * s.x * r.x < 100", "TRUE"])
def test_a_test_without_a_condition_is_told_as_such(on: str) -> None:
    lines = told(INT, on)
    assert "test        T0: lets every pair through" in lines
    assert not any("take part" in line for line in lines)


def test_tests_for_null_say_what_must_hold() -> None:
    assert "test        T0: R0 and S0 are 1" in told(NULLABLE, "(r.x & s.x) < 8")
    lines = told(BYTE, "least(r.x + s.x, 255) >= 200")  # least leaves out NULLs
    assert "key         R1: 1 where (r.x IS NULL) is true, else 0, 1 bit" in lines
    assert "test        T1: R1 is 1, whatever the other tuple" in lines


def test_many_tests_are_shortened_and_no_circuit() -> None:
    lines = told(NULLABLE, " AND ".join(f"r.x <> s.x + {n}" for n in range(300)))
    assert len("\n".join(lines)) < 40_000
    assert "test        … and 536 lines more" in lines
    assert max(map(len, lines)) < 4200
    refused, = (line for line in lines if line.startswith("circuits "))
    assert refused.startswith("circuits    no: a circuit must have at most 4096 comparators in a region and 8192 bits")
    assert any(line.startswith("cpu         yes") for line in lines)


@pytest.mark.parametrize(("tests", "parameters"), [
    (1 + MOST_RECORD_BITS // 34, {}), (17, {"lanes": 8, "probes": 16, "core": "scan"})])
def test_circuits_are_bounded_before_they_are_elaborated(tests: int, parameters: dict[str, object]) -> None:
    on = " OR ".join(f"abs(r.x - s.x - {100 * n}) <= {n + 1}" for n in range(tests))
    query = splitjoin.query(NULLABLE, NULLABLE, on=on, window="ROWS 64")
    with pytest.raises(UnsupportedError, match=rf"the {tests} tests of this condition make .*write a condition with "):
        chosen_circuit(query, CircuitParameters(**parameters))  # type: ignore[arg-type]  # by name


def limited(seconds: int, *words: str) -> subprocess.CompletedProcess[str]:
    """The command ``splitjoin`` with at most ``seconds`` of CPU time."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "splitjoin", *words, "--schema-r", "x:int32", "--schema-s", "a:int32",
         "--window", "ROWS 64"], capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)))


@pytest.mark.parametrize("tests", [400, at_length(3000)])
def test_long_conditions_take_little_time(tests: int, tmp_path: Path) -> None:
    """Elaboration of so many tests took minutes, or ended in a RecursionError."""
    on = " AND ".join(f"r.x <> s.a + {n}" for n in range(tests))
    made = limited(tests // 20, "verilog", "--on", on, "-o", str(tmp_path / "made"))
    assert (made.returncode, made.stdout) == (1, "")
    assert made.stderr.startswith("splitjoin: a circuit must have at most")
    assert not (tmp_path / "made").exists()
    explained = limited(tests // 20, "explain", "--on", on)
    assert explained.returncode == 0
    assert len(explained.stdout) < 50_000


def test_testbenches_have_a_bound(tmp_path: Path) -> None:
    made = limited(30, "verilog", "--on", "r.x = s.a", "--testbench", "verilog", "--testbench-tuples", "1000000000",
                   "-o", str(tmp_path / "made"))
    assert "--testbench-tuples must be 1 to 100000, not 1000000000" in made.stderr
    assert not (tmp_path / "made").exists()


def test_without_a_window_parts_of_a_circuit_are_left_out() -> None:
    query = splitjoin.query(INT, INT, on="r.x = s.x", window="ROWS 64")
    assert not any(word in explain(query, windowed=False) for word in ("LUT", "flip-flops", "link"))
    for options in {"windowed": True}, {"windowed": False, "cores": 2}:
        assert "LUT4" in explain(query, **options)
