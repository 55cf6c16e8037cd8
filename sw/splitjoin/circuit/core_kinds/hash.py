"""Core kind ``hash``: tuples with equal keys share a bucket, which a probe looks up."""

from __future__ import annotations

from splitjoin.base.errors import UnsupportedError
from splitjoin.plan.plan import Plan

from .kind import IndexConfiguration, IndexKind, bands, points, with_other_keys

__all__ = ["POLYNOMIALS", "Hash"]

#: Degree → a primitive polynomial over GF(2), its coefficients as bits. The number of a bucket is the remainder of all
#: bits of all keys modulo the polynomial of so many bits.
POLYNOMIALS = {2: 0b111, 3: 0b1011, 4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10000011, 8: 0x11D, 9: 0x211, 10: 0x409,
               11: 0x805, 12: 0x1053, 13: 0x201B, 14: 0x4443, 15: 0x8003, 16: 0x1100B}


class Hash(IndexKind):
    """A core with an index on equalities: a bucket's number is a hash of all their keys."""

    name = "hash"
    index_must = "one or more of the tests"

    def index_sizes(self, tests: int) -> range:
        return range(min(1, tests), tests + 1)

    def suitable_index(self, plan: Plan) -> tuple[int, ...]:
        found = points(plan)
        if not found:
            other = "bucket" if bands(plan) else "scan"
            raise UnsupportedError(f"core hash needs an equality between the streams that holds for every result, such "
                                   f"as r.x = s.a, and this condition has none; use core='{other}'")
        best = None if plan.main is None else plan.main.test
        return self.index_with(plan, best if best in found else found[0])

    def index_with(self, plan: Plan, main: int) -> tuple[int, ...]:
        return with_other_keys(plan, main, points(plan))

    def ways(self, config: IndexConfiguration) -> int:
        return 1

    def index_widths(self, config: IndexConfiguration, side: str) -> tuple[int, ...]:
        widths = config.keys_r if side == "r" else config.keys_s
        return tuple(widths[config.tests[j]["rs".index(side)]] for j in config.index)
