"""What to do with a table that Arrow cannot read as CSV: told from its first lines."""

from __future__ import annotations

import codecs

from .csv_source import CsvSource

#: Bytes that are looked at, and the marks with which UTF-16 begins.
_HEAD = 1 << 14
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_RULE = "a table in CSV has a header and rows of equally many values, separated by commas, in UTF-8"


def csv_cure(source: CsvSource, name: str) -> str:
    """How to make a table of ``source``, which is not CSV as Arrow reads it; pandas calls it ``name``."""
    try:
        head = source.head(_HEAD)
    except OSError:
        return _RULE
    if not head.strip():
        return f"{_RULE}; a table without rows has its header"
    if head.startswith(_WIDE) or head.count(b"\0") > len(head) // 3:
        return f"it is in UTF-16, not in UTF-8; save it as UTF-8, or give pandas.read_csv({name}, encoding='utf-16')"
    lines = [line for line in head.splitlines() if line.strip()]
    found = max((";", "\t", "|"), key=lambda separator: lines[0].count(separator.encode()))
    if lines[0].count(found.encode()) > lines[0].count(b","):
        comma = ", with decimal=',' if its numbers have decimal commas" if found == ";" else ""
        return (f"its values are separated by {found!r}, not by commas; give pandas.read_csv({name}, sep={found!r})"
                f"{comma}")
    if any(line.lstrip().startswith(b"#") for line in lines):
        return (f"it has comments, which CSV does not have; drop the lines that begin with '#', or give "
                f"pandas.read_csv({name}, comment='#')")
    return _RULE
