"""Results that stay: the rows of sessions as Parquet files, an epoch each, together with the state they belong to."""

from .folder import drop_epochs, epoch_files
from .writer import POLL_SECONDS, DeliveredCounts, EpochsOfResults, EpochSource, EpochWriter

__all__ = ["POLL_SECONDS", "DeliveredCounts", "EpochSource", "EpochWriter", "EpochsOfResults", "drop_epochs",
           "epoch_files"]
