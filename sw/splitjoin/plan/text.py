"""Text forms of keys, relations and trees, for `splitjoin.joins.explain` and the passes' text forms."""

from __future__ import annotations

from splitjoin.base.errors import plural
from splitjoin.lang.ir import text

from .keys import ExactKey, FloatKey, Key, PrefixKey, TextKey, WideKey
from .linear import ExactRelation, LinearTerm
from .relations import EqualText, FloatBand, FloatOrder, Product, Relation, TextOrder, Unit, WideRelation


def key_text(key: Key) -> str:
    """``key`` in words: its parts, and its least and greatest number."""
    match key:
        case ExactKey():
            return f"{terms_text(key.terms)}, {key.low} to {key.high}"
        case WideKey():
            return (f"{terms_text(key.exact.terms)}, {key.exact.low} to {key.exact.high}, without its last {key.shift} "
                    f"{plural(key.shift, 'bit')}")
        case FloatKey():
            return f"{text(key.expr)} as ordered integer{', NaN lowest' if key.nan_low else ''}"
        case TextKey():
            return f"{text(key.expr)} by its number in the session's dictionary"
        case PrefixKey():
            return (f"the first 7 bytes of {text(key.expr)}, and its length or the next byte" if key.length is None else
                    f"the first {key.bytes_} bytes of {text(key.expr)}")
    return "whether the tuple takes part"


def relation_text(relation: Relation, r: str, s: str) -> str:
    """``relation`` in words, between the keys called ``r`` and ``s``."""
    match relation:
        case WideRelation():
            return relation_text(relation.exact, r, s)
        case ExactRelation():
            return f"{_times(relation.g, r)} + {_times(relation.h, s)} + {relation.c} {relation.op} 0"
        case FloatOrder() | EqualText() | TextOrder():
            return f"{r} {relation.op} {s}"
        case FloatBand():
            return f"{text(relation.expr)} {relation.op} {relation.constant!r}"
        case Product():
            return f"{r}·{s} {relation.op} {relation.bound}"
        case Unit():
            return f"{r} and {s} take part"


def tree_text(tree: object) -> str:
    """A Boolean tree over tests T0, T1, … in words."""
    if isinstance(tree, int):
        return f"T{tree}"
    assert isinstance(tree, tuple)
    op, *args = tree
    return "(" + f" {str(op).upper()} ".join(map(tree_text, args)) + ")"


def terms_text(terms: tuple[LinearTerm, ...]) -> str:
    """The sum of ``terms`` in words."""
    return " + ".join((f"{t.factor * t.scale}·" if t.factor * t.scale != 1 else "") + text(t.expr) for t in terms)


def _times(factor: int, key: str) -> str:
    return key if factor == 1 else f"{factor}·{key}"
