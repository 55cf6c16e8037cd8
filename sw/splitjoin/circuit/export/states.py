"""The description of a folding circuit's states as plain data: values of S that come in, numbers that leave."""

from __future__ import annotations

from typing import Any

from splitjoin.lang.ir import text
from splitjoin.lang.properties import denominator
from splitjoin.lang.query import Query

from ..query_circuit import QueryCircuit


def described_states(query: Query, circuit: QueryCircuit) -> dict[str, Any]:
    """The meaning of the fields of ``circuit``'s record ``state``, and of the values in its record ``body_s``; empty if
    it does not fold. ``circuit`` is that of ``query``.

    ``items``: items that carry a state. ``whole``: a state has all partners of its tuple of R, and leaves when that
    expires; else it has those that came before, and leaves in the tuple's turn as a probe. ``first_hits``: of the later
    partners, only the first one leaves as a pair. ``values``: a field of S's body, and what it holds. ``slots``: the
    numbers of a state, and what they are before the first partner. ``results``: the slots of each aggregate, or of the
    partner that decides; an average has its sum and its count, a variance the sum of the squares
    between them. Numbers of an aggregate are in units of 1/``denominator``, squares of its square.
    """
    config, folding = circuit.config, circuit.folding
    if folding is None:
        return {}
    values = [{"field": f"value{n}", "of": None if stored.expr is None else text(stored.expr),
               "signed": stored.value.signed, "denominator": 1 if stored.expr is None else denominator(stored.expr)}
              for n, stored in enumerate(folding.values) if stored.value.bits and not stored.value.row]
    flags = [{"field": f"{name}{n}", "of": None if stored.expr is None else text(stored.expr)}
             for n, stored in enumerate(folding.values)
             for name, there in (("present", stored.value.nullable), ("wrong", stored.value.ranged)) if there]
    slots = [{"field": f"slot{n}_{i}", "signed": slot.signed, "initial": slot.init}
             for n, part in enumerate(config.folds) for i, slot in enumerate(part.slots)]
    results: list[dict[str, Any]] = [
        {"name": a.name, "of": a.text, "slots": [f"slot{n}_{i}" for n in parts
                                                 for i in range(len(config.folds[n].slots))],
         "denominator": 1 if a.terms[0].kind in ("rows", "count", "fold") else denominator(a.args[0])}
        for a, parts in zip(query.aggregates, folding.outputs, strict=True)]
    if circuit.decides is not None and circuit.decides.partner:
        results.append({"name": "partner", "of": f"{circuit.decides.partner} of the row ids of S", "slots": ["slot0_0"],
                        "denominator": 1})
    return {"state": {"items": config.beats + 1, "whole": config.whole_states, "first_hits": config.first_hits,
                      "values": values + flags, "slots": slots, "results": results}}
