"""Windows, ``"ROWS n"``, ``"RANGE l"`` or both, and how they are parsed (semantics, section 2)."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal as PythonDecimal
from fractions import Fraction
from typing import Any, Union

import numpy as np

from splitjoin.base.errors import PredicateError, WindowError, plural

from .build import literal, whole
from .schema import suggest
from .types import TIME_UNITS, UNIT_NS, Binary, Date, Decimal, Duration, Float, Int, String, TimeUnit, Type

#: A span of time of Python, pandas or NumPy.
Span = Union[dt.timedelta, np.timedelta64]
#: A window argument of the API: one text for both streams, or one for R and one for S. A span of time stands for the
#: RANGE of this length.
WindowSpec = Union[str, Span, Sequence[Union[str, Span]], Mapping[str, Union[str, Span]]]

#: How far an as-of join looks: a number in the unit of the time column, a span of time, or a text such as "15 MINUTES".
Tolerance = Union[int, float, PythonDecimal, Span, str]

_DAY = UNIT_NS["DAY"]
#: Longer numbers are refused; Python's int() does not read numbers of more than 4300 digits.
_MAX_DIGITS = 100
_TOKEN = re.compile(r"\s*(ROWS|RANGE)\s+(\S+)((?:\s+(?!ROWS\b|RANGE\b|OPEN\b)[A-Za-z]+)?)((?:\s+OPEN\b)?)",
                    re.IGNORECASE)
#: Which ends of the interval of a tuple of r belong to it, as pandas and Polars name them → open windows of R and S.
_CLOSED = {"both": (False, False), "left": (True, False), "right": (False, True), "neither": (True, True)}
#: Windows of other engines that depend on the clock, or on all tuples of a key.
_BY_THE_CLOCK = re.compile(r"\s*(?:TUMBLING|TUMBLE|SESSION|HOPPING|HOP)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Window:
    """A window as the user wrote it: the last ``rows`` tuples, no older than ``length``. Neither is set where there is
    no window; a ``length`` without a unit may have a fraction, for times that have one.

    ``unit``: the unit of ``length`` ("MINUTE"), or None for the time column's own unit. ``open``: True if tuples that
    are exactly ``length`` old are not in it.
    """

    rows: int | None
    length: int | Fraction | None = None
    unit: str | None = None
    open: bool = False

    def __str__(self) -> str:
        parts = [] if self.rows is None else [f"ROWS {self.rows}"]
        if self.length is not None:
            plural = "" if self.unit is None else f" {self.unit}{'' if self.length == 1 else 'S'}"
            parts.append(f"RANGE {number_text(self.length)}{plural}{' OPEN' * self.open}")
        return " ".join(parts)

    def resolve(self, time: Type | None, tick: TimeUnit | None) -> Extent:
        """The window as an `Extent`, with its length in ticks.

        ``time`` is the type of the time column (None: there is none), ``tick`` the unit in which event times are
        counted when it is a timestamp or a duration. Floats count nothing, so the extent has no length. Raises
        `WindowError` when the length does not fit the time column.
        """
        if self.length is None:
            return Extent(self.rows, None)
        if time is None:
            raise WindowError(f"the window '{self}' has a RANGE, which needs a time column; name it with time=…")
        if isinstance(time, (String, Binary)):
            raise WindowError(f"the window '{self}' has a RANGE, but the time column is text, which has an order and "
                              f"no distances; cast it to a timestamp or a number before the join")
        if isinstance(time, (Int, Decimal, Float)):
            if self.unit is not None:
                which = "an integer" if isinstance(time, Int) else "a number"
                raise WindowError(f"the window '{self}' is given in {self.unit}S, but the time column is {which} "
                                  f"({time}); give the RANGE as a plain number in the column's own unit")
            if isinstance(time, Float):
                return Extent(self.rows, None)
            if isinstance(time, Decimal):
                return Extent(self.rows, self._ticks(Fraction(self.length * 10**time.scale)))
        if not isinstance(self.length, int):
            raise WindowError(f"the window '{self}' needs a whole number after RANGE, not "
                              f"{number_text(self.length)!r}, as the time column is {time}")
        if isinstance(time, Int):
            return Extent(self.rows, self._ticks(Fraction(self.length)))
        if self.unit is None:
            unit = plural(self.length, "day" if isinstance(time, Date) else "second").upper()
            raise WindowError(f"the window '{self}' has no unit, but the time column is a {time}; write for example "
                              f"'RANGE {self.length} {unit}'")
        per_tick = _DAY if isinstance(time, Date) else TIME_UNITS[tick or "ns"]
        # Whole ticks suffice: two times a whole number of ticks apart are within l exactly if they are within ⌊l⌋.
        return Extent(self.rows, self._ticks(Fraction(self.length * UNIT_NS[self.unit], per_tick)))

    @property
    def is_empty(self) -> bool:
        """True if not even tuples of the same time are in it."""
        return self.open and self.length == 0

    def _ticks(self, length: Fraction) -> int:
        """The most whole ticks that are within ``length``. Raises `WindowError` without any."""
        if self.is_empty:
            raise WindowError(f"the window '{self}' is open and of length 0, so no tuple is in it; for partners before "
                              f"r's time write RANGE 0, and AND s.ts < r.ts in the condition")
        return math.ceil(length) - 1 if self.open else math.floor(length)


@dataclass(frozen=True)
class Extent:
    """A window in rows and ticks: the last ``rows`` tuples, of an age up to ``length`` ticks. None means no limit."""

    rows: int | None
    length: int | None

    def within(self, other: Extent) -> Extent:
        """The tuples that lie in this window and in ``other``."""
        rows, lengths = ([v for v in pair if v is not None] for pair in (
            (self.rows, other.rows), (self.length, other.length)))
        return Extent(min(rows, default=None), min(lengths, default=None))


def length_text(length: Span) -> str:
    """``length`` as a RANGE says it, in the largest unit of which it is a whole number, such as ``"5 MINUTES"``.

    Raises `WindowError` for what is no span of time, such as NaT.
    """
    try:
        found = literal(length, "a timedelta")
    except PredicateError as error:
        raise WindowError(str(error)) from None
    if not isinstance(found.type, Duration) or not isinstance(found.value, int):
        raise WindowError(f"a timedelta must be a span of time, not {length!r}")
    ns = found.value * TIME_UNITS[found.type.unit]
    unit, per = next((name, per) for name, per in reversed(UNIT_NS.items()) if ns % per == 0)
    return f"{ns // per} {unit}S"


def parse_window(text: str | Span) -> Window:
    """Parse ``"ROWS n"``, ``"RANGE l [UNIT] [OPEN]"`` or both, in either order and any case; a timedelta is a RANGE.

    n from 1, l from 0, and above 0 of one that is OPEN; units are NANOSECONDS to WEEKS. Raises `WindowError` that
    quotes what is wrong.
    """
    if isinstance(text, (dt.timedelta, np.timedelta64)):
        return parse_window(f"RANGE {length_text(text)}")
    if not isinstance(text, str):
        number = isinstance(text, (int, float, np.number)) and not isinstance(text, bool)
        raise WindowError(f"a window must say what its number counts: 'ROWS {text}' for the last {text} tuples, "
                          f"'RANGE {text}' for times at most {text} apart; not {text!r} alone" if number else
                          f"a window must be a text such as 'ROWS 4096' or 'RANGE 15 MINUTES', or a timedelta, not "
                          f"{text!r}")
    if _BY_THE_CLOCK.match(text):
        raise WindowError(f"a window is ROWS or RANGE, which slide with each tuple, not {text!r}; tuples of one "
                          f"tumbling window are a condition on their times, and sessions of tuples are numbered before "
                          f"the join (docs/other-engines.md shows both)")
    rows: int | None = None
    length: int | Fraction | None = None
    unit: str | None = None
    is_open, rest = False, text
    while rest.strip():
        match = _TOKEN.match(rest)
        if match is None:
            raise WindowError(f"the window {text!r} cannot be read at {rest.strip()!r}; write 'ROWS 4096', "
                              f"'RANGE 15 MINUTES', 'RANGE 900' or 'ROWS 100 RANGE 900'")
        kind, number, word = match[1].upper(), match[2], match[3].strip().upper()
        fraction = kind == "RANGE" and not word and re.fullmatch(r"[+-]?\d*\.\d+", number)
        if not fraction and not re.fullmatch(r"[+-]?\d+", number):
            raise WindowError(f"the window {text!r} needs a whole number after {kind}, not {number!r}"
                              f"{_with_unit(kind, number, word)}")
        if len(number) > _MAX_DIGITS:
            raise WindowError(f"a window's numbers must have at most {_MAX_DIGITS} digits, but the one after {kind} "
                              f"has {len(number)}; give a smaller window")
        if kind == "ROWS":
            if rows is not None:
                raise WindowError(f"the window {text!r} has ROWS twice")
            if word not in ("", "ROW", "TUPLES") or match[4]:
                word = match[4].strip().upper() or word
                raise WindowError(f"the window {text!r} has {word!r} after ROWS {number}; ROWS takes a number only")
            rows = int(number)
            if rows < 1:
                raise WindowError(f"ROWS must be at least 1, not {rows}")
        else:
            if length is not None:
                raise WindowError(f"the window {text!r} has RANGE twice")
            length = whole(Fraction(number)) if fraction else int(number)
            if length < 0:
                raise WindowError(f"RANGE must be at least 0, not {number_text(length)}")
            is_open = bool(match[4])
            if word:
                unit = word.removesuffix("S")
                if unit not in UNIT_NS:
                    raise WindowError(f"the window {text!r} has the unknown unit {word!r}"
                                      f"{suggest(word, [u + 'S' for u in UNIT_NS])}; known are "
                                      f"{', '.join(u + 'S' for u in UNIT_NS)}")
        rest = rest[match.end():]
    if rows is None and length is None:
        raise WindowError("the window is empty; write 'ROWS 4096', 'RANGE 15 MINUTES' or both")
    return Window(rows, length, unit, is_open)


#: Units as others abbreviate them. "m" is a minute in pandas and a month in Polars' "mo": it is not guessed.
_SHORT = {"ns": "NANOSECONDS", "us": "MICROSECONDS", "ms": "MILLISECONDS", "s": "SECONDS", "sec": "SECONDS",
          "min": "MINUTES", "h": "HOURS", "d": "DAYS", "w": "WEEKS"}


def _with_unit(kind: str, number: str, word: str) -> str:
    """The way to write a RANGE whose ``number`` has a unit in short, or is the word INTERVAL; else nothing."""
    if kind != "RANGE":
        return ""
    short = re.fullmatch(r"(\d+)(\w+)", number)
    if short and short[2].lower() in _SHORT:
        return f"; write 'RANGE {short[1]} {_SHORT[short[2].lower()]}'"
    return "; write number and unit alone, such as 'RANGE 2 SECONDS'" if number.upper() == "INTERVAL" else ""


def parse_tolerance(tolerance: Any) -> Window:
    """The RANGE within which an as-of join with this ``tolerance`` looks. Raises `WindowError`."""
    if isinstance(tolerance, str):
        text = tolerance if re.match(r"\s*(?:ROWS|RANGE)\b", tolerance, re.IGNORECASE) else f"RANGE {tolerance}"
        try:
            found = parse_window(text)
        except WindowError as error:
            raise of_tolerance(error, text, tolerance) from None
    elif isinstance(tolerance, (dt.timedelta, np.timedelta64)):
        return parse_window(tolerance)
    else:
        try:
            value = literal(tolerance, "tolerance").value
        except PredicateError:
            value = None
        if isinstance(value, bool) or not isinstance(value, (int, Fraction)) or value < 0:
            raise WindowError(f"tolerance must be a number from 0 on in the unit of the time column, a timedelta, or a "
                              f"text such as '15 MINUTES', not {tolerance!r}")
        return Window(None, value)
    if found.rows is not None:
        raise WindowError(f"tolerance is a span of time, such as '15 MINUTES', not {tolerance!r}; window= takes ROWS")
    return found


def of_tolerance(error: WindowError, window: str, tolerance: Any) -> WindowError:
    """The ``error`` about ``window``, which the user wrote as ``tolerance``."""
    said = str(error)
    for old, new in ((f"the window {window!r}", f"tolerance {tolerance!r}"), (" after RANGE", ""), ("'RANGE ", "'"),
                     ("has a RANGE, which needs", "needs"), ("give the RANGE as", "give")):
        said = said.replace(old, new)
    return WindowError(said)


def number_text(number: int | Fraction) -> str:
    """``number`` in digits: a fraction as the float nearest to it."""
    return str(number) if isinstance(number, int) else repr(float(number))


def closed_windows(spec: WindowSpec | None, closed: str | None) -> WindowSpec | None:
    """The windows ``spec``, of which those are open that ``closed`` says: ``"both"`` ends of the interval of a tuple of
    r belong to it, ``"left"`` or ``"right"`` alone, or ``"neither"``. Its left end is S's RANGE before the tuple, its
    right one R's RANGE behind it. None for ``spec`` as it is. Raises `WindowError`.
    """
    if closed is None:
        return spec
    if closed not in _CLOSED:
        raise WindowError(f"closed must be {', '.join(map(repr, list(_CLOSED)[:-1]))} or 'neither', not {closed!r}"
                          f"{suggest(str(closed), list(_CLOSED))}")
    windows = (Window(None), Window(None)) if spec is None else parse_windows(spec)
    if any(w.length is None or w.open for w in windows):
        raise WindowError(f"closed={closed!r} says which ends of a RANGE belong to it, so both windows must be RANGE, "
                          f"without OPEN, not {spec!r}")
    r, s = (f"{w}{' OPEN' * is_open}" for w, is_open in zip(windows, _CLOSED[closed], strict=True))
    return r, s


def session_windows(spec: WindowSpec | None, closed: str | None, how: str, tolerance: Tolerance | None
                    ) -> WindowSpec | None:
    """The windows of a query over streams, as `closed_windows`; an as-of join without any has its tolerance."""
    if spec is None and tolerance is not None and how in ("asof", "asof_left"):
        spec = str(parse_tolerance(tolerance))
    return closed_windows(spec, closed)


def parse_windows(spec: WindowSpec) -> tuple[Window, Window]:
    """Parse the windows of R and S: one text for both, a pair ``(r, s)``, or a mapping ``{"r": …, "s": …}``."""
    if isinstance(spec, (str, dt.timedelta, np.timedelta64, int, float, np.number)):
        window = parse_window(spec)
        return window, window
    if isinstance(spec, Mapping):
        if set(spec) != {"r", "s"}:
            raise WindowError(f"a mapping of windows must have the keys 'r' and 's', not {sorted(map(str, spec))}")
        return parse_window(spec["r"]), parse_window(spec["s"])
    if isinstance(spec, Sequence) and len(spec) == 2:
        return parse_window(spec[0]), parse_window(spec[1])
    raise WindowError(f"window must be a text, a timedelta, a pair (R's, S's) or a mapping with 'r' and 's', not "
                      f"{spec!r}")
