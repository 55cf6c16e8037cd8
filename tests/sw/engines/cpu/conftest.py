"""With ``--dist loadgroup`` one worker runs all tests here that share kernels, as two would compile most of them twice,
at the same time; and another the rest, which would keep the first busy when all others have ended.
"""

from pathlib import Path

import pytest

#: Files whose tests compile whole expressions, codes, sorted runs and loops of whole tables.
OTHERS = {"test_codes.py", "test_expression.py", "test_nested_choices.py", "test_as_of_join.py",
          "test_condition.py", "test_key_ranges.py", "test_range_folds.py", "test_sorted.py", "test_table_choice.py"}

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.xdist_group("loops" if item.path.name in OTHERS else "kernels"))
