"""The aggregates (semantics, section 8): one definition each, which every engine, circuit and host reads."""

from sqlglot import exp

from .bits import BIT_FUNCTIONS
from .distinct import DISTINCT_FUNCTIONS, SAME_OF_DISTINCT
from .function import AggregateFunction, PairFold, Term, TermKind, place_of
from .picks import PICK_FUNCTIONS, Pick
from .ranked import RANKED_FUNCTIONS
from .spread import SPREAD_FUNCTIONS
from .sums import SUM_FUNCTIONS, rounded_sum
from .user import FoldFailure, FoldTerm, UserFunction, last_state

__all__ = ["DISTINCT_FUNCTIONS", "FUNCTIONS", "SAME_OF_DISTINCT", "USAGES", "AggregateFunction", "FoldFailure",
           "FoldTerm", "PairFold", "Pick", "Term", "TermKind", "UserFunction", "definition_of", "last_state",
           "place_of", "rounded_sum"]

#: The built-in definitions by name.
FUNCTIONS: dict[str, AggregateFunction] = {
    f.name: f for f in (*SUM_FUNCTIONS, *PICK_FUNCTIONS, *SPREAD_FUNCTIONS, *BIT_FUNCTIONS,
                       *RANKED_FUNCTIONS)}
_BY_NODE = {node: f for f in FUNCTIONS.values() for node in f.nodes}
_BY_WORD = {word: f for f in FUNCTIONS.values() for word in f.words}
_USAGES = [usage for f in FUNCTIONS.values() for usage in f.usages]
#: What errors say an aggregate may be.
USAGES = f"{', '.join(_USAGES[:-1])} and {_USAGES[-1]}"


def definition_of(tree: exp.Expr) -> AggregateFunction | None:
    """The aggregate that sqlglot's ``tree`` calls, without its DISTINCT; None if it calls none."""
    if isinstance(tree, exp.Anonymous):
        return _BY_WORD.get(str(tree.this).lower())
    return _BY_NODE.get(type(tree))
