"""Results that stay: the rows of sessions as Parquet files, an epoch each, together with the state they belong to."""

from .delivered import DeliveredCounts
from .layout import drop_epochs, epoch_files
from .writer import Cut, EpochWriter, epoch_length

__all__ = ["Cut", "DeliveredCounts", "EpochWriter", "drop_epochs", "epoch_files", "epoch_length"]
