"""setuptools' build backend, whose editable installs are those that type checkers can read.

The folders of the source have other names than the packages (`sw` is `splitjoin`), so by default setuptools installs an
import hook, which mypy and pyright do not run. Its strict mode lays a folder of links into `build/` instead.
`--config-settings editable_mode=lenient` asks for the hook.
"""

from __future__ import annotations

from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  # all other hooks of PEP 517 and PEP 660

__all__ = ["build_editable", *build_meta.__all__]


def build_editable(wheel_directory: str, config_settings: dict[str, Any] | None = None,
                   metadata_directory: str | None = None) -> str:
    """Build an editable wheel, in strict mode unless ``config_settings`` name a mode."""
    settings = {"editable_mode": "strict", **(config_settings or {})}
    return build_meta.build_editable(wheel_directory, settings, metadata_directory)
