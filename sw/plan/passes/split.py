"""Pass ``split``: a conjunction falls into terms of R alone, of S alone, and of both streams.

The one-sided ones become selections at ingress: the host evaluates them once a tuple. A tuple that fails one keeps its
place in its window; its keys are stored as code 0 and its intervals are empty.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..forms import Form, Junction, OneSided, form_text, junction

__all__ = ["Split", "split"]


@dataclass(frozen=True)
class Split:
    """What must hold: the selections ``r`` and ``s``, each one condition, and the form ``mixed``."""

    r: tuple[OneSided, ...]
    s: tuple[OneSided, ...]
    mixed: Form

    def __str__(self) -> str:
        lines = [f"{name}: {form_text(x)}" for name, terms in (("R alone", self.r), ("S alone", self.s))
                 for x in terms]
        return "\n".join([*lines, f"both: {form_text(self.mixed)}"])


def split(form: Form) -> Split:
    """The terms of ``form`` by the streams that they read."""
    terms = form.args if isinstance(form, Junction) and form.op == "and" else (form,)
    alone = [t for t in terms if isinstance(t, OneSided)]
    return Split(tuple(t for t in alone if t.side == "r"), tuple(t for t in alone if t.side == "s"),
                 junction("and", (t for t in terms if not isinstance(t, OneSided))))
