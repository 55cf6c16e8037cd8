"""Reading of JSON that somebody else may have written."""

from __future__ import annotations

import json
import sys
from typing import Any


def parsed_json(text: str) -> Any:
    """The value of JSON ``text``. Raises `ValueError`, with a reason in words, for everything else, also for lists and
    objects nested too deep and for numbers with too many digits.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise ValueError("lists and objects are nested too deep") from None
    except ValueError:  # Python reads no whole numbers that would take it long
        raise ValueError(f"a number has more than {sys.get_int_max_str_digits()} digits") from None
