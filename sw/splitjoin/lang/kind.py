"""Kinds of join, and the checks of their options (semantics, section 7)."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any, Literal, get_args

from splitjoin.base.errors import OptionError, OrderError

from .order import Order
from .schema import SIDES, Side, suggest

How = Literal["inner", "left", "right", "full", "semi", "anti", "asof", "asof_left"]
Direction = Literal["backward", "forward", "nearest"]
Ties = Literal["backward", "last"]
#: Names of kinds in pandas, Polars and Spark, without spaces and underscores, and ours.
_OTHER_NAMES = {"outer": "full", "fullouter": "full", "leftouter": "left", "rightouter": "right", "leftsemi": "semi",
                "leftanti": "anti"}


@dataclass(frozen=True)
class Kind:
    """A kind of join. ``asof_left`` also gives the R tuples without a partner.

    ``direction`` and ``allow_exact`` belong to ``asof`` and ``asof_left``: whether the partner is the last S tuple not
    after the R tuple, the first one not before it, or the nearer of both; and whether it may have the same event time.
    ``k``: the most partners of an R tuple. ``ties``: of equally near
    partners those before the R tuple come first, or with "last" those that arrived last.
    """

    how: How = "inner"
    direction: Direction = "backward"
    allow_exact: bool = True
    k: int = 1
    ties: Ties = "backward"

    @classmethod
    def make(cls, how: Any = "inner", direction: Any = None, allow_exact: Any = None, k: Any = None,
             ties: Any = None, *, order: Order, timed: bool) -> Kind:
        """Check a user's options; None is one that was not given.

        ``timed``: whether the query has a time column. Raises `OptionError`, and `OrderError` for an order in which the
        rows of this kind have no place.
        """
        if how not in get_args(How):
            hint = _hint(how) if isinstance(how, str) else ""
            known = ", ".join(map(repr, get_args(How)[:-1]))
            raise OptionError(f"how must be {known} or 'asof_left', not {how!r}{hint}")
        asof = how in ("asof", "asof_left")
        for name, value in (("direction", direction), ("allow_exact", allow_exact), ("k", k), ("ties", ties)):
            if value is not None and not asof:
                raise OptionError(f"{name} belongs to how='asof' and 'asof_left', but how is {how!r}; leave {name} out")
        if direction is not None and direction not in get_args(Direction):
            raise OptionError(f"direction must be 'backward', 'forward' or 'nearest', not {direction!r}"
                              f"{suggest(str(direction), get_args(Direction))}")
        if allow_exact is not None and not isinstance(allow_exact, bool):
            raise OptionError(f"allow_exact must be True or False, not {allow_exact!r}")
        if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
            raise OptionError(f"k must be a whole number from 1 on, the most partners of a row, not {k!r}")
        if ties is not None and ties not in get_args(Ties):
            raise OptionError(f"ties must be 'backward' (of equally near partners the one before the row) or 'last' "
                              f"(the one that came last), not {ties!r}{suggest(str(ties), get_args(Ties))}")
        if ties is not None and direction != "nearest":
            raise OptionError(f"ties chooses among equally near partners, which direction='nearest' alone has, but the "
                              f"direction is {direction or 'backward'!r}; leave ties out")
        if allow_exact is False and not timed:
            raise OptionError("allow_exact=False excludes equal times, so it needs a time column; name it with time=…")
        if how != "inner" and order.kind not in ("total", "none", "left"):
            raise OrderError(f"a join of kind {how!r} needs order 'total' or 'none', not '{order}': its rows that wait "
                             f"for a decision belong to no probe")
        return cls(how, direction or "backward", allow_exact is not False, k or 1, ties or "backward")

    def __str__(self) -> str:
        if not self.is_asof:
            return self.how
        exact = "" if self.allow_exact else ", equal times excluded"
        ties = ", the last of equally near ones" if self.ties == "last" else ""
        return f"{self.how} {self.direction}{f', {self.k} partners' if self.k > 1 else ''}{ties}{exact}"

    @property
    def is_inner(self) -> bool:
        """True if the rows are the pairs themselves."""
        return self.how == "inner"

    @property
    def is_asof(self) -> bool:
        """True if each R tuple has at most one partner, chosen by time."""
        return self.how in ("asof", "asof_left")

    @property
    def has_pairs(self) -> bool:
        """True if all pairs are rows."""
        return self.how in ("inner", "left", "right", "full")

    @property
    def needs_few_pairs(self) -> bool:
        """True if the rows depend on few pairs: at most one of each R tuple, or k."""
        return self.is_asof or self.how in ("semi", "anti")

    @property
    def sides(self) -> tuple[Side, ...]:
        """The streams whose columns the rows have."""
        return ("r",) if self.how in ("semi", "anti") else SIDES

    def gives_unmatched(self, side: Side) -> bool:
        """True if unmatched tuples of stream ``side`` are rows."""
        return self.how in (("left", "full", "anti", "asof_left") if side == "r" else ("right", "full"))

    def may_lack(self, side: Side) -> bool:
        """True if a row may have NULL in place of a tuple of stream ``side``."""
        return side in self.sides and self.gives_unmatched("s" if side == "r" else "r")


def _hint(how: str) -> str:
    """The end of a message that refuses ``how``: the kind that other libraries call so, or one spelled alike."""
    plain = how.lower().replace("_", "").replace(" ", "")
    if plain == "cross":
        return "; for all pairs write how='inner' with on='TRUE'"
    direction = plain.removeprefix("asof")
    if direction in get_args(Direction):
        return f"; write how='asof', direction={direction!r}"
    known = _OTHER_NAMES | {kind.replace("_", ""): kind for kind in get_args(How)}
    near = difflib.get_close_matches(plain, known, n=1)
    if plain in known or (near and near[0] in _OTHER_NAMES):
        return f"; write {known[plain if plain in known else near[0]]!r}"
    return suggest(how, get_args(How))


#: The kind whose rows are the pairs.
INNER = Kind()
