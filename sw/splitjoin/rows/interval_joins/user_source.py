"""Source of the kernels by which engines fold a user-defined aggregate, in numba's Python."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

from splitjoin.engines.compiled import jit
from splitjoin.engines.compiled.exact_source import NotCompiled
from splitjoin.lang.fold import Fold

from ..aggregates.user_source import HEAD, step_source

#: ``valid`` of a row: 0 if an argument is NULL, 1 if all are there, 2 if one is outside of its width.
_RUN = '''@compiled_as_numpy
def run(ops, slots, n, valid, mask, {arrays}link, head, count, front, behind, adds, bad, dirty, states, suffix,
        suffix_adds, suffix_dirty, limit, out):
    """Carry out ``n`` operations, as `accumulate.fold` does, on the states of one aggregate."""
    for i in range(n):
        op, slot = ops[i], slots[i]
        code, row = op & 3, op >> np.int64(2)
        place = row & mask
        if code == 0:
            if count[slot] == 0:
                head[slot] = row
            count[slot] += 1
            v = valid[place]
            if v == 2:
                bad[slot] += 1
            elif v == 1:
                adds[slot] += 1
                {add}
        elif code == 1:
            {remove}
        elif code == 2:
            if slot < 0 or adds[slot] == 0:
                out[0, row] = 0
                out[1, row] = 1 if slot >= 0 and bad[slot] else 0
                {emit_none}
                continue
            failed = bad[slot] > 0
            {emit}
            out[0, row] = adds[slot]
            out[1, row] = 1 if failed else 0
            {emit_state}
        else:
            count[slot] = front[slot] = behind[slot] = adds[slot] = bad[slot] = dirty[slot] = 0
            {clear}
'''


def compiles(fold: Fold, name: str) -> bool:
    """True if the program ``name`` of ``fold`` needs no numbers of more than 64 bits."""
    try:
        step_source(fold, name)
    except NotCompiled:
        return False
    return True


@lru_cache(maxsize=256)
def user_kernel(fold: Fold, kind: str) -> ModuleType:
    """The compiled module whose ``run`` folds ``fold`` in the way ``kind``, of `UserWay` or ``"add"``, if nothing is
    removed but by emptying.
    """
    return jit.load(_source(fold, kind))


def _source(fold: Fold, kind: str) -> str:
    n, a = len(fold.slots), len(fold.arguments)
    init = [f"np.int64({slot.init})" for slot in fold.slots]
    values = [f"values{k}[place]" for k in range(a)]
    state = [f"a{k}" for k in range(n)]
    new = ", ".join([*state, "fits"])

    def block(lines: list[str], depth: int) -> str:
        return ("\n" + "    " * depth).join(lines or ["pass"])

    def stored(array: str, at: str, code: list[str], indent: str = "") -> list[str]:
        return [f"{indent}{array}[{k}, {at}] = {c}" for k, c in enumerate(code)]

    def loaded(array: str, at: str) -> list[str]:
        return [f"{array}[{k}, {at}]" for k in range(n)]

    clear = stored("states", "slot", init)
    add = ["if not dirty[slot]:", f"    {new} = add({', '.join([*loaded('states', 'slot'), *values])})", "    if fits:",
           *stored("states", "slot", state, "        "), "    else:", "        dirty[slot] = 1"]
    emit = ["failed |= dirty[slot] > 0", *(f"a{k} = states[{k}, slot]" for k in range(n))]
    remove = ["pass"]
    if kind in ("remove", "merge"):
        emit += ["failed |= adds[slot] > limit"]
    if kind == "remove":
        remove = ["count[slot] -= 1", "v = valid[place]", "if v == 2:", "    bad[slot] -= 1",
                  "elif v == 1:", "    adds[slot] -= 1", "    if adds[slot] == 0:", "        dirty[slot] = 0",
                  *stored("states", "slot", init, "        "), "    elif not dirty[slot]:",
                  f"        {new} = remove({', '.join([*loaded('states', 'slot'), *values])})", "        if fits:",
                  *stored("states", "slot", state, "            "), "        else:", "            dirty[slot] = 1"]
    elif kind == "merge":
        add = ["behind[slot] += 1", *add]
        one, rest = [f"b{k}" for k in range(n)], [f"c{k}" for k in range(n)]
        remove = [
            "if front[slot] == 0:", "    m = count[slot]", "    rows = np.empty(m, np.int64)", "    at = head[slot]",
            "    for j in range(m):", "        rows[j] = at", "        at = link[at & mask]",
            *(f"    {c} = {v}" for c, v in zip(rest, init, strict=True)), "    some, spoilt = np.int64(0), np.int64(0)",
            "    for j in range(m - 1, -1, -1):", "        place = rows[j] & mask", "        if valid[place] == 1:",
            f"            {', '.join([*one, 'fits'])} = add({', '.join([*init, *values])})",
            "            if some and fits:", f"                {', '.join([*one, 'fits'])} = "
            f"merge({', '.join([*one, *rest])})", "            some += 1", "            spoilt |= not fits",
            *(f"            {c} = {b}" for b, c in zip(one, rest, strict=True)),
            *stored("suffix", "place", rest, "        "), "        suffix_adds[place] = some",
            "        suffix_dirty[place] = spoilt", "    front[slot] = m", "    behind[slot] = dirty[slot] = 0",
            *stored("states", "slot", init, "    "), "    place = row & mask", "front[slot] -= 1", "count[slot] -= 1",
            "head[slot] = link[place]", "v = valid[place]", "if v == 2:", "    bad[slot] -= 1", "elif v == 1:",
            "    adds[slot] -= 1"]
        emit += ["if front[slot] > 0:", "    place = head[slot] & mask", "    failed |= suffix_dirty[place] > 0",
                 "    if suffix_adds[place] > 0:", *(f"        {b} = suffix[{k}, place]" for k, b in enumerate(one)),
                 "        if behind[slot] > 0:",
                 f"            {new} = merge({', '.join([*one, *state])})", "            failed |= not fits",
                 "        else:", *(f"            {s} = {b}" for s, b in zip(state, one, strict=True))]
    elif kind == "recompute":
        add, clear = ["pass"], ["pass"]
        remove = ["count[slot] -= 1", "head[slot] = link[place]", "v = valid[place]", "if v == 2:",
                  "    bad[slot] -= 1", "elif v == 1:", "    adds[slot] -= 1"]
        emit = [*(f"{s} = {v}" for s, v in zip(state, init, strict=True)), "at = head[slot]",
                "for j in range(count[slot]):", "    place = at & mask", "    if valid[place] == 1:",
                f"        {new} = add({', '.join([*state, *values])})", "        if not fits:",
                "            failed = True", "            break", "    at = link[place]"]
    programs = ["add", *([kind] if kind in ("remove", "merge") else [])]
    return (HEAD + "".join(step_source(fold, name) for name in programs) + _RUN.format(
        arrays="".join(f"values{k}, " for k in range(a)), add=block(add, 4), remove=block(remove, 3),
        emit=block(emit, 3), emit_state=block([f"out[{2 + k}, row] = a{k}" for k in range(n)], 3),
        emit_none=block([f"out[{2 + k}, row] = {v}" for k, v in enumerate(init)], 4), clear=block(clear, 3)))
