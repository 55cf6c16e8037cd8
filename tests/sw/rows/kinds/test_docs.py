"""docs/kinds.md, docs/aggregates.md and docs/user-aggregates.md: their examples print what they say.

After a change that is meant: python -m tests.sw.kinds.test_docs
"""

from __future__ import annotations

import pytest

from ....support.page_examples import check_examples, write_examples

PAGES = ("aggregates.md", "kinds.md", "user-aggregates.md")


@pytest.mark.parametrize("page", PAGES)
def test_examples(page: str) -> None:
    check_examples(page, least=3)


if __name__ == "__main__":
    for page in PAGES:
        write_examples(page)
