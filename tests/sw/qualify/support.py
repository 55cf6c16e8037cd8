"""Event logs for tests."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LOGS = Path(__file__).parent / "logs"
LOG = LOGS / "eventlog_v2_local-1" / "events_1_local-1"


def node(name: str, text: str, *inputs: dict[str, Any], rows: int | None = None) -> dict[str, Any]:
    """A node of a plan, as logs hold it. ``rows``: the number of the accumulator that counts its rows."""
    metrics = [] if rows is None else [{"name": "number of output rows", "accumulatorId": rows}]
    return {"nodeName": name, "simpleString": text, "children": list(inputs), "metrics": metrics}


def log_of(folder: Path, *plans: dict[str, Any], descriptions: Sequence[str] = ()) -> Path:
    """A log of an application in ``folder`` that ran ``plans``, with such ``descriptions``."""
    events = [{"Event": "SparkListenerApplicationStart", "App Name": "app", "App ID": "local-1"},
              *({"Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart", "executionId": number,
                 "description": descriptions[number] if descriptions else "count", "sparkPlanInfo": plan}
                for number, plan in enumerate(plans))]
    path = folder / "log"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path
