"""Results that stay: the rows of sessions as Parquet files, an epoch each, together with the state they belong to."""

from .layout import drop_epochs, epoch_files
from .source import POLL_SECONDS, DeliveredCounts, EpochSource
from .writer import EpochsOfResults, EpochWriter

__all__ = ["POLL_SECONDS", "DeliveredCounts", "EpochSource", "EpochWriter", "EpochsOfResults", "drop_epochs",
           "epoch_files"]
