"""Tables from and to files: Parquet, CSV or Arrow IPC, by suffix."""

from .names import has_format, is_url
from .reading import TableFiles, read_batches, read_schema, read_table
from .writing import TableWriter, check_columns, check_output, replacing, write_table

__all__ = ["TableFiles", "TableWriter", "check_columns", "check_output", "has_format", "is_url", "read_batches",
           "read_schema", "read_table", "replacing", "write_table"]
