"""All proofs, the table of bounded proofs in docs/formal.md, and the list of all properties in docs/proofs.csv."""

from __future__ import annotations

import csv
import io

from . import (
    block_fifo,
    chains,
    core,
    express,
    folds,
    gate,
    gather,
    index,
    link,
    matcher,
    network,
    ordered,
    probe,
    ranges,
    results,
    routed,
    sdram,
    sorting,
    states,
    tree,
    ways,
    whole,
    wide,
)
from .proofs import Proof

ALL: tuple[Proof, ...] = (*network.PROOFS, *block_fifo.PROOFS, *tree.PROOFS, *core.PROOFS, *index.PROOFS,
                          *matcher.PROOFS, *probe.PROOFS, *ranges.PROOFS, *results.PROOFS, *sorting.PROOFS,
                          *express.PROOFS, *gather.PROOFS, *wide.PROOFS, *ways.PROOFS, *folds.PROOFS, *states.PROOFS,
                          *ordered.PROOFS, *whole.PROOFS, *gate.PROOFS, *link.PROOFS, *chains.PROOFS, *sdram.PROOFS,
                          *routed.PROOFS)


def _duration(proof: Proof) -> str:
    return f"for ever (induction over {proof.depth})" if proof.inductive else f"{proof.depth} cycles from power-up"


def table() -> str:
    """A table in Markdown: the circuits that are not proved for ever, and for how many cycles they are."""
    rows = ["| circuit | properties | cycles from power-up |", "|---|---|---|"]
    rows += [f"| {proof.name} | {len(proof.properties)} | {proof.depth} |" for proof in ALL if not proof.inductive]
    return "\n".join(rows) + "\n"


def listed() -> str:
    """A CSV file: each circuit with each of its properties, and for how long it is proved."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [("circuit", "property", "holds"),
         *((proof.name, name, _duration(proof)) for proof in ALL for name in proof.properties)])
    return text.getvalue()
