"""Row functions beside a circuit, in Python and in C: their records are those of the encoder, bit by bit."""

from __future__ import annotations

import ctypes
import datetime
import decimal
import subprocess
from pathlib import Path
from typing import Any

import pytest

import splitjoin
from splitjoin.circuit.axi import AxiShape
from splitjoin.circuit.encode import pack
from splitjoin.circuit.export.header import wire_header
from splitjoin.circuit.export.helpers import wire_helpers
from splitjoin.circuit.export.rows import RowFields, described_rows, row_fields
from splitjoin.circuit.export.vectors import Vectors, random_arrivals, vectors
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import QueryCircuit, chosen_circuit
from splitjoin.circuit.sources import SourceQueues
from splitjoin.circuit.wire import Op
from splitjoin.engines.arrival import Arrivals
from splitjoin.lang.schema import SIDES, Side
from splitjoin.tables.schema_text import parse_schema

#: Name → schemas of R and S, the query, and the circuit's parameters.
CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "band": ("x:int32", "a:int32", {"on": "abs(r.x - s.a) <= 3"}, {}),
    "bucket": ("x:int32", "a:int32", {"on": "abs(r.x - s.a) <= 3"}, {"core": "bucket"}),
    "null": ("ts:int64,x:int32?,p:float32", "ts:int64,a:int16?,q:float32?",
             {"on": "2*r.x - s.a <= 3 AND r.p < s.q", "window": "RANGE 2", "time": "ts"}, {}),
    "wide": ("x:int64,p:float64?", "a:int64,q:float64", {"on": "abs(r.x - s.a) <= 3 AND r.p >= s.q"}, {}),
    "decimal": ("x:decimal(9,2)", "a:decimal(7,1)?", {"on": "abs(r.x - s.a) <= 3.25"}, {}),
    "hash": ("x:int32,y:int16,k:int8", "a:int32,b:int16,k:int8",
             {"on": "r.k = s.k AND abs(r.x - 3 * s.a) <= 3 AND r.x + r.y < s.b"}, {"core": "hash"}),
    "sum": ("x:int16,y:int16,d:int16?", "a:int16,b:int16", {"on": "abs(r.x - s.a) + abs(r.y - s.b) <= r.d"}, {}),
    "fold": ("x:int16", "a:int16,p:int16?",
             {"on": "abs(r.x - s.a) <= 3", "how": "left", "aggregate": {"n": "count(*)", "t": "sum(s.p)"}}, {}),
    "formula": ("x:int16,y:int16", "a:int16,b:int16", {"on": "r.x * s.b - r.y * s.a < 9 AND abs(r.x - s.a) <= 2"}, {}),
    "times": ("t:timestamp[us, UTC],d:date", "t:timestamp[us, UTC],d:date",
              {"on": "abs(r.d - s.d) <= 2", "window": "RANGE 2 MICROSECONDS", "time": "t"}, {}),
    "sources": ("ts:int64,x:int32", "ts:int64,a:int32",
                {"on": "abs(r.x - s.a) <= 3", "window": "RANGE 40", "time": "ts"}, {"sources": 3}),
    "names": ("int:uint64,null:int8?", "double x:uint64,is_null:int8?",
              {"on": 'r.int <= s."double x" AND r.null <= s.is_null'}, {}),
}


def given(name: str) -> tuple[QueryCircuit, Arrivals, Vectors, dict[str, RowFields] | str]:
    """The circuit of a case, tuples, its vectors for them, and the description of its rows."""
    r, s, of, parameters = CASES[name] if name in CASES else (*REFUSED[name][:2], {"on": REFUSED[name][2]}, {})
    query = splitjoin.query(parse_schema(r), parse_schema(s), **({"window": "ROWS 64"} | of))
    circuit = chosen_circuit(query, CircuitParameters(**({"cores": 2, "capacity": 64} | parameters)))
    sample = random_arrivals(query, 40, seed=5)
    return circuit, sample, vectors(query, circuit, sample), described_rows(query, circuit, sample)


def module(circuit: QueryCircuit, rows: dict[str, RowFields] | str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(wire_helpers(circuit.config, rows), names)
    return names


def compiled(header: str, folder: Path, *functions: str) -> ctypes.CDLL:
    """A library with ``functions`` of ``header``, which C99 and C++ compile without a warning."""
    (folder / "wire.h").write_text(header)
    exports = "".join(f"void *get_{name}(void); void *get_{name}(void) {{ return (void *)near_{name}; }}\n"
                      for name in functions)
    (folder / "wire.c").write_text(f'#include "wire.h"\n{exports}')
    (folder / "only.cpp").write_text('#include "wire.h"\nint main() { return 0; }\n')
    strict = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    subprocess.run(["g++", *strict, "-pedantic", "-fsyntax-only", "only.cpp"], cwd=folder, check=True)
    subprocess.run(["gcc", "-std=c99", *strict, "-shared", "-fPIC", "-fsanitize=undefined",
                    "-fsanitize-undefined-trap-on-error", "wire.c", "-o", "wire.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "wire.so"))


def function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
    address = getattr(library, f"get_{name}")
    address.restype = ctypes.c_void_p
    return ctypes.CFUNCTYPE(result, *arguments)(address())


class Clock(ctypes.Structure):
    _fields_ = [("began", ctypes.c_bool), ("last", ctypes.c_int64), ("now", ctypes.c_uint64)]


def struct_of(rows: RowFields, values: list[Any], nulls: list[bool]) -> ctypes.Structure:
    """A row of C: ``values`` of its columns, 0 where NULL, and ``nulls`` of those that may be."""
    types = [(ctypes.c_float if c.bits == 32 else ctypes.c_double) if c.bits else
             ctypes.c_uint64 if c.high >= 2**63 else ctypes.c_int64 for c in rows.columns.values()]
    fields = [*((f"c{n}", kind) for n, kind in enumerate(types)),
              *((f"n{n}", ctypes.c_bool) for n in range(len(nulls)))]
    row = type("Row", (ctypes.Structure,), {"_fields_": fields})
    return row(*values, *nulls)  # type: ignore[no-any-return]


def rows_of_sources(circuit: QueryCircuit, sample: Arrivals) -> list[list[tuple[Side, dict[str, Any]]]]:
    """Source → the streams and rows that it sends."""
    several = circuit.config.sources > 1
    of = SourceQueues(circuit.config).spread(sample).tolist() if several else [0] * len(sample.stream)
    left = {side: iter(sample.table(side).to_pylist()) for side in SIDES}
    found: list[list[tuple[Side, dict[str, Any]]]] = [[] for _ in range(circuit.config.sources)]
    for stream, source in zip(sample.stream, of, strict=True):
        found[source].append((SIDES[stream], next(left[SIDES[stream]])))
    return found


@pytest.mark.parametrize("name", CASES)
def test_rows_give_the_records_of_the_encoder(name: str, tmp_path: Path) -> None:
    circuit, sample, job, rows = given(name)
    assert not isinstance(rows, str), rows
    wire = module(circuit, rows)
    timed, data = bool(rows["r"].time), ctypes.create_string_buffer(wire["RECORD_BYTES"])
    library = compiled(wire_header(circuit.config, rows, "near"), tmp_path, "encode_r", "encode_s", "flush",
                       *(["tick"] if timed else []))
    left = [(iter(those), [wire["Clock"]()] if timed else [], Clock()) for those in rows_of_sources(circuit, sample)]
    for source, wanted in zip(job.sources, job.records, strict=True):
        those, clock, ticks = left[source]
        if wanted & 3 != Op.TUPLE:
            end = wanted & 3 == Op.FLUSH
            ts = 0 if end or sample.ts is None else clock[0](int(sample.ts[-1]))
            assert int.from_bytes(wire["flush_record"]() if end else wire["tick_record"](ts), "little") == wanted
            made = function(library, "flush" if end else "tick", None, ctypes.c_void_p,
                            ctypes.c_bool if end else ctypes.c_uint64)
            made(ctypes.addressof(data), True if end else ts)
            assert int.from_bytes(data.raw, "little") == wanted
            continue
        side, row = next(those)
        of = rows[side]
        assert int.from_bytes(wire[f"encode_{side}"](row, *clock), "little") == wanted
        values = wire["_values"](side, row)
        nulls = [values[column] is None for column, found in of.columns.items() if found.null]
        packed = struct_of(of, [v or 0 for v in values.values()], nulls)
        arguments = [ctypes.addressof(packed), *([ctypes.addressof(ticks)] if clock else []), ctypes.addressof(data)]
        encode = function(library, f"encode_{side}", ctypes.c_char_p, *[ctypes.c_void_p] * len(arguments))
        assert encode(*arguments) is None
        assert int.from_bytes(data.raw, "little") == wanted
    assert all(next(those, None) is None for those, *_ in left)


#: Name → schemas of R and S, a condition, and what its row functions are refused for.
REFUSED = {"text": ("n:string", "n:string", "r.n = s.n", "the key r.n: the dictionary of a session gives texts"),
           "guard": ("x:int16", "a:int16", "abs(r.x - s.a) <= 3 AND r.x > 5", r"the condition \(r.x > 5\) on r alone"),
           "float": ("x:float32", "a:float32", "abs(r.x - s.a) <= 3", r"tests of this sort \(FloatBand\)")}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_row_function_cannot_do_is_refused_by_name(name: str) -> None:
    circuit, sample, _, rows = given(name)
    with pytest.raises(splitjoin.UnsupportedError, match=f"do not compute {REFUSED[name][3]}.*tuple_record"):
        row_fields(circuit.query, circuit, sample)
    with pytest.raises(NotImplementedError, match=REFUSED[name][3]):
        module(circuit, rows)["encode_r"]({"x": 1})
    header = wire_header(circuit.config, rows, "near")
    assert f"no functions encode_r and encode_s: {rows}" in header and "near_encode" not in header


@pytest.mark.parametrize(("case", "row", "match"), [
    ("band", {}, r"a row must have the column r\.x, but has \[\]"),
    ("band", 5, "a row must be a mapping of columns to values, not int"),
    ("band", {"x": None}, r"r\.x must not be NULL"),
    ("band", {"x": 2**31}, r"r\.x must be of type int32, a whole number from -2147483648 to 2147483647, not 2147"),
    ("band", {"x": "7"}, r"r\.x must be of type int32, not '7': it is a text"),
    ("band", {"x": 0.5}, r"r\.x must be of type int32, a whole number"),
    ("decimal", {"x": decimal.Decimal("1.234")}, r"r\.x must be of type decimal\(9, 2\), a whole .* / 100, not"),
    ("wide", {"x": 1, "p": "a"}, r"r\.p must be of type float64, not 'a'"),
    ("times", {"t": datetime.datetime(2026, 1, 1), "d": datetime.date(2026, 1, 1)}, r"r\.t .* it must have a time"),
])
def test_a_row_that_does_not_fit_is_refused(case: str, row: Any, match: str) -> None:
    circuit, _, _, rows = given(case)
    wire = module(circuit, rows)
    with pytest.raises(ValueError, match=match):
        wire["encode_r"](row, *([wire["Clock"]()] if "Clock" in wire else []))


def test_times_go_on_and_c_says_what_must_hold(tmp_path: Path) -> None:
    circuit, _, _, rows = given("null")
    assert not isinstance(rows, str)
    wire = module(circuit, rows)
    clock = wire["Clock"]()
    assert [clock(ts) for ts in (100, 101, 10**9, 10**9)] == [0, 1, 4, 4]  # a gap beyond RANGE 2 is one of 3
    with pytest.raises(ValueError, match="event times must not decrease, but 7 comes after 1000000000"):
        clock(7)
    library = compiled(wire_header(circuit.config, rows, "near"), tmp_path, "encode_r")
    encode = function(library, "encode_r", ctypes.c_char_p, *[ctypes.c_void_p] * 3)
    ticks, data = Clock(), ctypes.create_string_buffer(wire["RECORD_BYTES"])

    def said(**values: Any) -> Any:
        row = struct_of(rows["r"], [values[column] for column in rows["r"].columns], [False] * sum(
            column.null for column in rows["r"].columns.values()))
        return encode(ctypes.addressof(row), ctypes.addressof(ticks), ctypes.addressof(data))

    assert said(ts=5, x=2**31, p=0.0) == b"r.x must be from -2147483648 to 2147483647"
    assert said(ts=5, x=2, p=0.0) is None
    assert said(ts=4, x=2, p=0.0) == b"event times must not decrease"
    assert said(ts=10**9, x=2, p=0.0) is None and ticks.now == 3


class Item(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint), ("side", ctypes.c_uint), ("r", ctypes.c_uint32), ("s", ctypes.c_uint32)]


@pytest.mark.parametrize("width", [1, 2])
def test_c_unpacks_items_and_ends_the_input(width: int, tmp_path: Path) -> None:
    r, s, of, _ = CASES["band"]
    query = splitjoin.query(parse_schema(r), parse_schema(s), window="ROWS 64", **of)
    circuit = chosen_circuit(query, CircuitParameters(cores=2, capacity=64, root_width=width))
    header = wire_header(circuit.config, "a reason", "near")
    assert f"#define NEAR_ABI 0x{circuit.config.abi_hash:016x}ULL" in header
    library = compiled(header, tmp_path, "decode", "flush")
    names = ("kind", "side", "r", "s")
    fields = dict(zip(names, (0, 1, 7, 9), strict=True)) if width == 1 else {
        f"{name}{n}": value for n, item in enumerate(((0, 1, 7, 9), (3, 0, 0, 0)))
        for name, value in zip(names, item, strict=True)}
    data = pack(circuit.config.output_record, dict(fields), 1).tobytes().ljust(
        AxiShape.of(circuit.config).item_bytes, b"\0")
    items = (Item * width)()
    decode = function(library, "decode", ctypes.c_uint, ctypes.c_char_p, ctypes.c_void_p)
    assert decode(data, ctypes.addressof(items)) == 1
    assert (items[0].kind, items[0].side, items[0].r, items[0].s) == (0, 1, 7, 9)
    record = ctypes.create_string_buffer(AxiShape.of(circuit.config).record_bytes)
    function(library, "flush", None, ctypes.c_void_p, ctypes.c_bool)(ctypes.addressof(record), True)
    assert record.raw == module(circuit, "a reason")["flush_record"]()
