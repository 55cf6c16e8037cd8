"""A progress bar for a Spark action, counted in finished tasks; silent when standard error is not a terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from tqdm import tqdm

_EVERY = 0.2  # seconds between two requests of Spark's status


@contextmanager
def progress(spark: SparkSession, title: str) -> Iterator[None]:
    """Show the tasks of the Spark jobs that the body starts as a bar called ``title``."""
    context = spark.sparkContext
    tracker = context.statusTracker()
    done = threading.Event()
    context.setJobGroup(title, title)
    bar = tqdm(desc=title, unit=" tasks", disable=None, total=0, leave=True)

    def update() -> None:
        total = finished = 0
        for job in tracker.getJobIdsForGroup(title):
            info = tracker.getJobInfo(job)
            for stage in [] if info is None else info.stageIds:
                counts = tracker.getStageInfo(stage)
                # Stages that have not begun do not count: some never will, since Spark has their results already.
                if counts is not None and counts.numActiveTasks + counts.numCompletedTasks:
                    total, finished = total + counts.numTasks, finished + counts.numCompletedTasks
        bar.total = max(total, finished)
        bar.update(finished - bar.n)

    def watch() -> None:
        while not done.wait(_EVERY):
            update()

    watcher = threading.Thread(target=watch, daemon=True)
    if not bar.disable:
        watcher.start()
    try:
        yield
    finally:
        done.set()
        if not bar.disable:
            watcher.join()
            update()
        bar.close()
