"""A C header beside a circuit's Verilog that packs rows into records and unpacks items, for C99 and C++."""

from __future__ import annotations

import re

from ..axi import AxiShape
from ..registers import REGISTERS
from ..wire import NO_ITEM, Configuration, ItemKind, Op
from .rows import RowColumn, RowFields, Term

#: Names that a member of a struct cannot have.
_KEYWORDS = frozenset(re.findall(r"\w+", """alignas alignof and and_eq asm auto bitand bitor bool break case catch char
class compl concept const consteval constexpr constinit continue decltype default delete do double else enum explicit
export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator
or or_eq private protected public register reinterpret_cast requires restrict return short signed sizeof static
static_assert static_cast struct switch template this throw true try typedef typeid typename union unsigned using
virtual void volatile while xor xor_eq is_null"""))
_HEADER = """\
/* Packs rows into records, and unpacks the items of the circuit @ABI@; C99 or C++, little or big endian.
 *
 * Records and items are the bytes of a beat of AXI4-Stream, least significant byte first. */
#ifndef SJ_WIRE_H
#define SJ_WIRE_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SJ_ABI 0x@ABI@ULL
enum { SJ_RECORD_BYTES = @RECORD@, SJ_ITEM_BYTES = @ITEM@, SJ_PLACES = @PLACES@ };
enum { @KINDS@ };
enum { @REGISTERS@ };  /* word addresses; on AXI4-Lite four times that */

typedef struct { unsigned kind, side; uint32_t r, s; } sj_item;

static inline void sj_put(uint8_t *bytes, unsigned at, unsigned bits, uint64_t value) {
  for (unsigned n = 0; n < bits; n++, at++)
    bytes[at / 8] = (uint8_t)((bytes[at / 8] & ~(1u << at % 8)) | (unsigned)(value >> n & 1) << at % 8);
}
static inline uint64_t sj_get(const uint8_t *bytes, unsigned at, unsigned bits) {
  uint64_t value = 0;
  for (unsigned n = 0; n < bits; n++, at++) value |= (uint64_t)(bytes[at / 8] >> at % 8 & 1) << n;
  return value;
}

/* The items of a beat in their order; returns how many there are. */
static inline unsigned sj_decode(const uint8_t bytes[SJ_ITEM_BYTES], sj_item items[SJ_PLACES]) {
  unsigned found = 0;
  for (unsigned at = 0; at < @WIDTH@ * SJ_PLACES; at += @WIDTH@) {
    sj_item item;
    item.kind = (unsigned)sj_get(bytes, at + @KIND@);
    item.side = (unsigned)sj_get(bytes, at + @SIDE@);
    item.r = (uint32_t)sj_get(bytes, at + @R@);
    item.s = (uint32_t)sj_get(bytes, at + @S@);
    if (item.kind != @NONE@) items[found++] = item;
  }
  return found;
}

/* The record that the circuit answers with an END behind all results; last: no tuple follows. */
static inline void sj_flush(uint8_t record[SJ_RECORD_BYTES], bool last) {
  memset(record, 0, SJ_RECORD_BYTES);
  sj_put(record, 0, 2, @FLUSH@);
  sj_put(record, 2, 1, last && @WHOLE@);
}
@TICK@@ROWS@
#endif
"""
_ROWS = """
@WHOLE@
static inline sj_whole sj_div(sj_whole a, sj_whole b) { return a / b - (a % b < 0); }  /* rounds down; b > 0 */
static inline bool sj_below(sj_whole a, sj_whole b) { return a < b; }
static inline sj_whole sj_least(sj_whole a, sj_whole b) { return a < b ? a : b; }
static inline sj_whole sj_most(sj_whole a, sj_whole b) { return a > b ? a : b; }
static inline uint64_t sj_code(double value, unsigned bits, uint64_t nan) {
  uint64_t number = 0, sign = (uint64_t)1 << (bits - 1);
  float narrow = (float)value;
  uint32_t word;
  if (value != value) return nan;
  if (value == 0) return sign;
  if (bits == 64) memcpy(&number, &value, 8);
  else { memcpy(&word, &narrow, 4); number = word; }
  return number & sign ? sign - 1 - (number - sign) : number | sign;
}
@CLOCK@"""
_TICK = """
/* The record that says that event time has reached ts, as the circuit counts it; no item comes for it. */
static inline void sj_tick(uint8_t record[SJ_RECORD_BYTES], uint64_t ts) {
  memset(record, 0, SJ_RECORD_BYTES);
  sj_put(record, 0, 2, @OP@);
  sj_put(record, @AT@, @BITS@, ts);
}
"""
_CLOCK = """
/* The time of a @WHOSE@ as the circuit counts it: one for both streams, zero before the first tuple. */
typedef struct { bool began; int64_t last; uint64_t now; } sj_clock;
"""


def wire_header(config: Configuration, rows: dict[str, RowFields] | str, name: str) -> str:
    """The text of ``splitjoin_wire.h`` for ``config``, whose names begin with ``name``.

    ``rows``: as of `splitjoin.circuit.export.rows.row_fields`, or the reason why there are no row functions.
    """
    shape, item = AxiShape.of(config), config.item_record.offsets()
    if isinstance(rows, str):
        written = f"\n/* There are no functions encode_r and encode_s: {rows.replace('*/', '* /')}. */\n"
    else:
        wide = max(of.bits for of in rows.values()) > 64
        whole = ("#ifndef __SIZEOF_INT128__\n#error \"the numbers of this circuit need a compiler with __int128\"\n"
                 "#endif\n__extension__ typedef __int128 sj_whole;" if wide else "typedef int64_t sj_whole;")
        whose = "source" if rows["r"].gap is None else "session"
        clock = "" if rows["r"].time is None else _CLOCK.replace("@WHOSE@", whose)
        written = _ROWS.replace("@WHOLE@", whole).replace("@CLOCK@", clock) + "".join(
            _encode(config, side, of) for side, of in rows.items())
    at, bits = config.input_record.offsets().get("ts", (0, 0))
    tick = ""
    if bits:
        tick = _TICK.replace("@OP@", str(Op.TICK.value)).replace("@AT@", str(at)).replace("@BITS@", str(bits))
    values = {
        "ABI": f"{config.abi_hash:016x}", "RECORD": shape.record_bytes, "ITEM": shape.item_bytes,
        "PLACES": config.root_width, "KINDS": _enum("", {kind.name: kind.value for kind in ItemKind}),
        "REGISTERS": _enum("REG_", {reg.name: reg.address for reg in REGISTERS}),
        "WIDTH": f"{config.item_record.width}u",
        **{key.upper(): f"{at}, {bits}" for key, (at, bits) in item.items()}, "NONE": NO_ITEM if config.root_width > 1
        else 4, "TICK": tick, "FLUSH": Op.FLUSH.value, "WHOLE": int(config.whole_states), "ROWS": written}
    text = _HEADER
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    return re.sub(r"\bsj_", f"{name}_", re.sub(r"\bSJ_", f"{name.upper()}_", text))


def _enum(prefix: str, values: dict[str, int]) -> str:
    return ", ".join(f"SJ_{prefix}{name.upper()} = {value}" for name, value in values.items())


def _encode(config: Configuration, side: str, of: RowFields) -> str:
    """The struct of a row of ``side``, and the function that packs it."""
    names = {name: name if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and name not in _KEYWORDS else f"column{n}"
             for n, name in enumerate(of.columns)}
    lines = [f"\n/* A row of {side.upper()}: numbers are as in Arrow, decimals without their point, times in ticks. */",
             "typedef struct {"]
    lines += [f"  {_type(column)} {names[name]};  /* {column.type}{', may be NULL' if column.null else ''} */"
              for name, column in of.columns.items()]
    nulls = [names[name] for name, column in of.columns.items() if column.null]
    lines += [f"  struct {{ bool {', '.join(nulls)}; }} is_null;"] if nulls else []
    clock = ", sj_clock *clock" if of.time else ""
    lines += [f"}} sj_row_{side};", "", "/* Packs a row; returns NULL, or what must hold of it. */",
              f"static inline const char *sj_encode_{side}(const sj_row_{side} *row{clock}, "
              f"uint8_t record[SJ_RECORD_BYTES]) {{"]
    for name, column in of.columns.items():
        checks = [] if column.bits else [
            f"row->{names[name]} {op} {_literal(end)}" for op, end, least in (
                ("<", column.low, -2**63 if _type(column) == "int64_t" else 0),
                (">", column.high, 2**63 - 1 if _type(column) == "int64_t" else 2**64 - 1)) if end != least]
        guard = f"!row->is_null.{names[name]} && " if column.null else ""
        lines += [f"  if ({guard}({' || '.join(checks)}))",
                  f"    return \"{side}.{names[name]} must be from {column.low} to {column.high}\";"] if checks else []
    at = config.input_record.offsets()
    if of.time:
        time = f"row->{names[of.time]}"
        lines += [f"  if (row->is_null.{names[of.time]}) return \"an event time must not be NULL\";"
                  ] if of.columns[of.time].null else []
        lines += [f"  if (clock->began && {time} < clock->last) return \"event times must not decrease\";",
                  *((f"  clock->now = (uint64_t){time};",) if of.gap is None else (
                      f"  if (clock->began) {{\n    const uint64_t gap = (uint64_t){time} - (uint64_t)clock->last;",
                      f"    clock->now += gap < {of.gap}u ? gap : {of.gap}u;\n  }}")),
                  f"  clock->began = true;\n  clock->last = {time};"]
    lines += ["  memset(record, 0, SJ_RECORD_BYTES);", f"  sj_put(record, 0, 2, {Op.TUPLE.value});",
              f"  sj_put(record, {at['stream'][0]}, 1, {'rs'.index(side)});"]
    lines += [f"  sj_put(record, {at['ts'][0]}, {at['ts'][1]}, clock->now);"] if of.time else []
    for name, (low, bits) in config.body(side).offsets().items():
        lines.append(f"  sj_put(record, {at['body'][0] + low}, {bits}, (uint64_t){_c(of.fields[name], names)});"
                     f"  /* {name} */")
    return "\n".join([*lines, "  return NULL;", "}", ""])


def _type(column: RowColumn) -> str:
    if column.bits:
        return "float" if column.bits == 32 else "double"
    return "uint64_t" if column.high >= 2**63 else "int64_t"


def _literal(n: int) -> str:
    if -2**63 < n < 2**63:
        return f"({n}LL)" if n < 0 else f"{n}LL"
    if n == -2**63:
        return f"(-{2**63 - 1}LL - 1)"
    return f"{n}ULL" if 0 <= n < 2**64 else f"((sj_whole){n >> 62} * ((sj_whole)1 << 62) + {n & 2**62 - 1}LL)"


def _c(term: Term, names: dict[str, str]) -> str:
    if isinstance(term, int):
        return f"(sj_whole){_literal(term)}"
    if isinstance(term, str):
        return f"(sj_whole)row->{names[term]}"
    op, *parts = term
    if op == "null":
        return f"row->is_null.{names[parts[0]]}"
    if op == "float":
        return f"(sj_whole)sj_code(row->{names[parts[0]]}, {parts[1]}, {parts[2]}ULL)"
    made = [_c(part, names) for part in parts]
    if op == "pick":
        return f"({made[0]} ? {made[1]} : {made[2]})"
    if op in ("//", "least", "most"):
        return f"sj_{'div' if op == '//' else op}({', '.join(made)})"
    if op in ("<", ">", ">="):
        a, b = made if op == "<" else made[::-1]
        return f"!sj_below({made[0]}, {made[1]})" if op == ">=" else f"sj_below({a}, {b})"
    infix = " || " if op == "|" else f" {op} "
    return f"({infix.join(made)})"
