"""`qualify`: reads Spark's event logs, and says which of their joins splitjoin could run.

It needs neither Spark nor Java: an event log is a text of JSON lines. `events.py` reads logs, `joins.py` finds the
joins in the physical plans, and `report.py` shows them.
"""

from .joins import RATE, Candidate, qualify
from .report import as_html, as_json, as_text

__all__ = ["RATE", "Candidate", "as_html", "as_json", "as_text", "qualify"]
