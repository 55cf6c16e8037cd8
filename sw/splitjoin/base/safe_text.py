"""Texts from outside as messages show them: without secrets, and without characters that a terminal obeys."""

from __future__ import annotations

import re
import unicodedata

#: A URI up to its host; a `pathlib.Path` of it has one slash left. A key may have a slash in it, so user information
#: reaches up to the last @ before a space, a quote, a bracket or a query.
#: The bounds, and a scheme that begins where no scheme goes on, keep the time proportional to the text.
_SCHEME = r"(?<![A-Za-z0-9+.-])(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<slashes>//?)"
_USER = re.compile(_SCHEME + r"(?P<user>[^\s'\"<>()?#]{0,2000})@")
#: Query and fragment of a URI, such as the signature of an address that was signed.
_QUERY = re.compile(rf"(?P<before>{_SCHEME}[^\s'\"<>()?#]{{0,2000}})[?#](?!…)[^\s'\"<>()]+")
#: Schemes whose user information is the name of a container, unless it has a password.
_CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")
#: Control characters that messages have: ends of lines and tabs.
_LAYOUT = "\n\t"
_WITHOUT_LAYOUT = str.maketrans("", "", _LAYOUT)
#: Characters that change the direction of writing, so that a text looks like another one.
_DIRECTION = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def safe(text: str) -> str:
    """``text`` as a message shows it: `without_secrets` and `printable`."""
    return printable(without_secrets(text) if ":/" in text else text)


def without_secrets(text: str) -> str:
    """``text`` with … in place of user information (``s3a://KEY:SECRET@bucket``) and queries in its URIs."""
    return _QUERY.sub(r"\g<before>?…", _USER.sub(_without_user, text))


def printable(text: str) -> str:
    r"""``text`` with escapes such as ``\x1b`` in place of characters that a terminal obeys: control characters but line
    ends and tabs, marks of writing direction, and halves of characters.
    """
    if text.isascii() and text.translate(_WITHOUT_LAYOUT).isprintable():
        return text
    return "".join(c if c in _LAYOUT or not _obeyed(c) else c.encode("unicode_escape").decode("ascii") for c in text)


def _obeyed(c: str) -> bool:
    return not c.isprintable() and (c in _DIRECTION or unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp"))


def _without_user(found: re.Match[str]) -> str:
    scheme, user = found["scheme"], found["user"]
    return f"{scheme}:{found['slashes']}{user if scheme.lower() in _CONTAINERS and ':' not in user else '…'}@"
