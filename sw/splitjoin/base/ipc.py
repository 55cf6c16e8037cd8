"""Arrow IPC from outside this process, read so that damaged bytes raise and cannot end it.

Arrow's reader takes offsets, indices of dictionaries and texts as they are. Whatever uses them later reads beyond its
buffers, and the process ends with SIGSEGV. So all that is read here is checked in full, and no file is mapped into
memory, as a mapped file that another process cuts off ends this one with SIGBUS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from .errors import first_line

#: The first bytes of an Arrow IPC file; a stream begins otherwise.
_FILE = b"ARROW1"
#: All that PyArrow raises for damaged bytes, besides `pyarrow.ArrowException` and OSError.
_RAISED = (ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError, NotImplementedError)


def read_ipc_stream(data: pa.Buffer | bytes | memoryview) -> pa.Table:
    """The table in ``data``, an Arrow IPC stream. Raises `pyarrow.ArrowInvalid` unless all of it is valid."""
    with translated(), pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return validated(reader.read_all())


def read_ipc_file(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The table, or some ``columns``, of the Arrow IPC file or stream ``path``.

    Raises `pyarrow.ArrowInvalid` unless all of it is valid and it has these columns, and OSError.
    """
    schema = ipc_schema(path)
    with translated(), _opened(path, schema, columns) as reader:
        table = validated(reader.read_all())
        return table if columns is None else table.select(columns)


def ipc_batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The batches of the Arrow IPC file or stream ``path``, one after the other; of a file with ``columns`` alone.
    Raises as `read_ipc_file`.
    """
    schema = ipc_schema(path)
    with translated(), _opened(path, schema, columns) as reader:
        found = reader if isinstance(reader, pa.RecordBatchReader) else map(reader.get_batch,
                                                                            range(reader.num_record_batches))
        for batch in found:
            yield validated(batch)


def ipc_schema(path: Path) -> pa.Schema:
    """The schema of the Arrow IPC file or stream ``path``. Raises as `read_ipc_file`."""
    with translated(), _opened(path, None, None) as reader:
        schema = reader.schema
        _ = schema.names, [str(field.type) for field in schema]  # raises for names that are not in UTF-8
        return schema


def validated(rows: Any) -> Any:
    """``rows``, a table or batch of Arrow from a file or another process, after a check of all its offsets, indices
    and texts. Raises `pyarrow.ArrowInvalid` and UnicodeDecodeError.
    """
    rows.validate(full=True)
    _ = rows.schema.names  # raises for names that are not in UTF-8
    return with_copied_unions(rows)


def with_copied_unions(rows: Any) -> Any:
    """``rows``, a table or batch, with copies of its columns that have unions: Arrow cannot count the bytes of all that
    it reads from IPC, but those of copies.
    """
    for at, field in enumerate(rows.schema):
        if _has_union(field.type):
            column = rows.column(at)
            rows = rows.set_column(at, field, _copied(column) if isinstance(column, pa.Array) else pa.chunked_array(
                list(map(_copied, column.chunks)), field.type))
    return rows


def _copied(array: pa.Array) -> pa.Array:
    return pa.concat_arrays([array, array.slice(0, 0)])


def _has_union(type_: pa.DataType) -> bool:
    """True for a union, and for a type within which there is one."""
    return bool(pa.types.is_union(type_)) or any(_has_union(type_.field(n).type) for n in range(type_.num_fields))


@contextmanager
def translated() -> Iterator[None]:
    """Within the block, `pyarrow.ArrowInvalid` is raised in place of all that PyArrow raises for damaged bytes, except
    OSError.
    """
    try:
        yield
    except pa.ArrowInvalid:
        raise
    except UnicodeDecodeError:
        raise pa.ArrowInvalid("names and texts must be in UTF-8, but some hold other bytes") from None
    except (pa.ArrowException, *_RAISED) as error:
        raise pa.ArrowInvalid(f"it is damaged: {first_line(error)}") from error


@contextmanager
def _opened(path: Path, schema: pa.Schema | None, columns: Sequence[str] | None) -> Iterator[Any]:
    """The reader of an Arrow IPC file, or of a stream in one; of a file, with ``columns`` of ``schema`` alone."""
    with pa.OSFile(str(path)) as source:
        head = source.read(len(_FILE))
        source.seek(0)
        if head != _FILE:
            with pa.ipc.open_stream(source) as reader:
                yield reader
            return
        options = None
        if columns is not None and schema is not None:
            wanted = [at for at, name in enumerate(schema.names) if name in columns]
            options = pa.ipc.IpcReadOptions(included_fields=wanted)
        with pa.ipc.open_file(source, options=options) as reader:
            yield reader
