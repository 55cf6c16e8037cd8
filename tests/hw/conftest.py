"""With ``--dist loadgroup`` one worker runs all tests of a file: they share simulations and texts of circuits, which
take longer to make than most of these tests.
"""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group(f"hw/{item.path.relative_to(HERE).with_suffix('')}"))
