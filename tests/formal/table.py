"""All proofs, and the table of proved properties in docs/formal.md."""

from __future__ import annotations

from itertools import groupby

from . import (
    block_fifo,
    core,
    express,
    folds,
    gate,
    gather,
    index,
    link,
    matcher,
    network,
    probe,
    results,
    sorting,
    states,
    tree,
    ways,
    whole,
    wide,
)
from .proofs import Proof

__all__ = ["ALL", "table"]

ALL: tuple[Proof, ...] = (*network.PROOFS, *block_fifo.PROOFS, *tree.PROOFS, *core.PROOFS, *index.PROOFS,
                          *matcher.PROOFS, *probe.PROOFS, *results.PROOFS, *sorting.PROOFS, *express.PROOFS,
                          *gather.PROOFS, *wide.PROOFS, *ways.PROOFS, *folds.PROOFS, *states.PROOFS, *whole.PROOFS,
                          *gate.PROOFS, *link.PROOFS)


def table() -> str:
    """A table in Markdown: circuits with the same properties, these properties, and for how long they are proved."""

    def essence(proof: Proof) -> tuple[tuple[str, ...], str]:
        how = f"for ever (induction over {proof.depth})" if proof.inductive else f"{proof.depth} cycles from power-up"
        return proof.properties, how

    rows = ["| circuit | property | holds |", "|---|---|---|"]
    for (properties, how), proofs in groupby(ALL, essence):
        names = "; ".join(proof.name for proof in proofs)
        rows += [f"| {names if n == 0 else ''} | {name} | {how if n == 0 else ''} |"
                 for n, name in enumerate(properties)]
    return "\n".join(rows) + "\n"
