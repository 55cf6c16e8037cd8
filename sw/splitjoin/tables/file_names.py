"""The names of files: which formats there are, and what is no file of this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path

from splitjoin.base.errors import InputError

from .formats import FORMATS, has_format

#: What to do with files of other formats.
_INSTEAD = {
    **{suffix: f"; unpack it, or on the command line pipe it: {tool} FILE | splitjoin … -" for suffix, tool in (
        (".gz", "gunzip -c"), (".bz2", "bunzip2 -c"), (".xz", "xz -dc"), (".zst", "zstd -dc"), (".zip", "unzip -p"))},
    **dict.fromkeys((".parq", ".pq", ".snappy"), "; name it .parquet if it is Parquet"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "; give pandas.read_excel(FILE)"),
    ".orc": "; give pyarrow.orc.read_table(FILE)",
    ".avro": "; give polars.read_avro(FILE)",
    **dict.fromkeys((".sqlite", ".sqlite3"), "; give pandas.read_sql('SELECT * FROM NAME', sqlite3.connect(FILE))"),
    **dict.fromkeys((".duckdb", ".ddb"), "; give duckdb.connect(FILE, read_only=True).table('NAME')"),
    ".db": "; give a table of it: of SQLite pandas.read_sql('SELECT * FROM NAME', sqlite3.connect(FILE)), of DuckDB "
           "duckdb.connect(FILE, read_only=True).table('NAME')",
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), "; give pandas.read_hdf(FILE, 'KEY')"),
    **dict.fromkeys((".pkl", ".pickle"), "; give pandas.read_pickle(FILE), if you trust the file: it may run code"),
    ".arrows": "; name it .arrow, which may be a stream of Arrow IPC too",
    **dict.fromkeys((".tsv", ".txt"), "; write it with commas, as .csv, or give pandas.read_csv(FILE, sep='\\t')"),
    **dict.fromkeys((".json", ".ndjson", ".jsonl"), "; pyarrow.json.read_json makes a table of a file with an object "
                                                    "in each line, which pyarrow.parquet.write_table writes"),
}
#: The marks of folders of tables with a log: a pattern, the kind of table, and how to read one.
_LOGS = (
    ("_delta_log", "Delta", "give deltalake.DeltaTable(FOLDER), of the package deltalake, or what its "
                            "to_pyarrow_dataset() gives"),
    ("metadata/*.metadata.json", "Iceberg", "give the table that a catalog of the package pyiceberg loads, or "
                                            "pyiceberg.table.StaticTable.from_metadata(FILE)"),
    (".hoodie", "Hudi", "read it with the package hudi or with Spark, and give the rows"),
    ("_versions/*.manifest", "Lance", "give lance.dataset(FOLDER), of the package pylance"),
)
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


def is_url(path: str | os.PathLike[str]) -> bool:
    """True if ``path`` is the address of something on another machine."""
    return isinstance(path, str) and _URL.match(path) is not None


def known(path: Path, *, read: bool = False) -> Path:
    """``path``, if its suffix tells a format. Raises `InputError`, which says what to do with a file to ``read``."""
    if not has_format(path):
        *suffixes, last = (suffix for one in FORMATS for suffix in one.suffixes)
        raise InputError(f"the format of a file follows from its suffix, which must be {', '.join(suffixes)} or "
                         f"{last}, but {path} has {path.suffix or 'none'}"
                         + _INSTEAD.get(path.suffix.lower() if read else "", ""))
    return path


def check_no_log(path: Path) -> None:
    """Raise `InputError` if the folder ``path`` is one of a table whose log tells which of its files count, or is in
    one: others were replaced or deleted.
    """
    for folder in (path, *path.parents):
        kind, instead = next((found for mark, *found in _LOGS if any(folder.glob(mark))), (None, ""))
        if kind is not None:
            raise InputError(f"the files of {short(folder)} must be chosen by the log of its {kind} table, as some may "
                             f"have been replaced; {instead}")


def short(path: Path) -> str:
    """``path`` as messages show it."""
    text = str(path)
    return text if len(text) <= 300 else f"{text[:100]} … {text[-100:]}"
