"""Tables from and to files: Parquet, CSV or Arrow IPC, by suffix."""

from .file_names import is_url
from .formats import format_of, has_format
from .reading import TableFiles, read_piped, read_schema, read_table
from .stored import stored_schema, to_stored
from .stored_table import StoredTable
from .writing import TableWriter, check_columns, check_output, target_of, write_table

__all__ = ["StoredTable", "TableFiles", "TableWriter", "check_columns", "check_output", "format_of", "has_format",
           "is_url", "read_piped", "read_schema", "read_table", "stored_schema", "target_of", "to_stored",
           "write_table"]
