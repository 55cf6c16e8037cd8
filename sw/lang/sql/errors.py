"""What sqlglot says of SQL text that it cannot read, in words for the one who wrote it."""

from __future__ import annotations

import re

from sqlglot.errors import ParseError, TokenError

__all__ = ["short", "unreadable", "untokenizable"]


def short(text: str) -> str:
    """``text`` on one line, its middle left out if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:50]} … {line[-25:]}"


def unreadable(text: str, error: ParseError, kind: str = "condition") -> str:
    """What is wrong with a text that cannot be parsed, and where; ``kind``: what it should have been."""
    found = error.errors[0]
    what, token = str(found["description"]), str(found["highlight"])
    before = str(found["start_context"]).split("\n")[-1].rstrip()
    if what.startswith("Required keyword"):
        problem = f"something must follow {token!r}" if token else "something is missing"
    elif what.startswith("Invalid expression"):
        problem = f"{token!r} is not expected here"
    elif what.startswith("Expected table name"):
        problem = f"a table's name is expected, not {token!r}"
    elif what.startswith("Expecting"):
        problem = f"{what.split()[-1]!r} is expected after {token!r}"
    else:
        what = re.sub(r"<Token .*?text: (.*?), line: .*?comments: \[.*?\]>", r"\1", what.split("\n")[0])
        problem = re.sub(r"\x1b\[\d*m|<class '[\w.]*?(\w+)'>", r"\1", what.split("\n")[0])
    # sqlglot counts to the end of the token.
    column = max(1, int(found["col"] or 1) - max(0, len(token) - 1))
    place = f"line {found['line']}, column {column}" + (f", after {before[-40:]!r}" if before else "")
    statement = re.match(r"\s*(SELECT|WITH|ON|WHERE|FROM|INSERT|UPDATE|DELETE|CREATE|DROP)\b", text, re.IGNORECASE)
    advice = ""
    if statement and kind == "condition":
        advice = f"; write the condition alone, without {statement[1].upper()}"
    return f"the {kind} {short(text)!r} cannot be read at {place}: {problem}{advice}"


def untokenizable(text: str, error: TokenError, kind: str = "condition") -> str:
    """What is wrong with a text that cannot be split into words, and where; ``kind`` as in `unreadable`."""
    missing = re.match(r"Missing (.+) from \d+:(\d+)", str(error.__cause__ or error))
    if missing is None:
        return f"the {kind} {short(text)!r} cannot be read: a comment or a quoted text in it is not closed"
    offset = int(missing[2])  # from the start of the text, whatever the line
    return (f"the {kind} {short(text)!r} cannot be read: the {missing[1]} opened at line "
            f"{text.count(chr(10), 0, offset) + 1}, column {offset - text.rfind(chr(10), 0, offset)} is not closed")
