"""`qualify`: reads Spark's event logs, and says which of their joins splitjoin could run.

It needs neither Spark nor Java: an event log is a text of JSON lines. `log_files.py` reads
the lines of logs, `events.py` their events, `attributes.py` and `counts.py` what the plans say of columns and rows,
`printed.py` and `conditions.py` the conditions, `joins.py` finds the joins, and `report.py` shows them.
"""

from .joins import FIXED, PAIRS, RATE, Candidate, qualify
from .report import as_html, as_json, as_text

__all__ = ["FIXED", "PAIRS", "RATE", "Candidate", "as_html", "as_json", "as_text", "qualify"]
