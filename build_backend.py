"""setuptools' build backend, with reproducible archives, and editable installs that type checkers can read.

The same sources make the same bytes, whoever builds them, where and when: in a wheel or sdist, files are in the order
of their names, have the modes 0644 or 0755, no owner, and the date that $SOURCE_DATE_EPOCH gives, or else `_EPOCH`.

The folders of the source have other names than the packages (`sw` is `splitjoin`), so by default setuptools installs an
import hook, which mypy and pyright do not run. Its strict mode lays a folder of links into `build/` instead.
`--config-settings editable_mode=lenient` asks for the hook.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  # all other hooks of PEP 517 and PEP 660

__all__ = ["build_editable", "build_sdist", "build_wheel", *build_meta.__all__]

#: 1980-01-01, the first date that a wheel can have.
_EPOCH = 315_532_800
#: The level of compression. Its bytes also depend on the release of zlib; what is compressed does not.
_LEVEL = 9


def build_editable(wheel_directory: str, config_settings: dict[str, Any] | None = None,
                   metadata_directory: str | None = None) -> str:
    """Build an editable wheel, in strict mode unless ``config_settings`` name a mode."""
    settings = {"editable_mode": "strict", **(config_settings or {})}
    return build_meta.build_editable(wheel_directory, settings, metadata_directory)


def build_wheel(wheel_directory: str, config_settings: dict[str, Any] | None = None,
                metadata_directory: str | None = None) -> str:
    """Build a wheel whose bytes depend on the sources alone."""
    name: str = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    reproducible_wheel(Path(wheel_directory, name))
    return name


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """Build an sdist whose bytes depend on the sources alone."""
    name: str = build_meta.build_sdist(sdist_directory, config_settings)
    reproducible_sdist(Path(sdist_directory, name))
    return name


def reproducible_wheel(path: Path) -> None:
    """Write the wheel ``path`` again, with its files in order, and dates and modes that do not depend on the build."""
    date = time.gmtime(_epoch())[:6]
    with zipfile.ZipFile(path) as wheel:
        files = {one.filename: (wheel.read(one), bool(one.external_attr >> 16 & 0o100)) for one in wheel.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as wheel:
        # The metadata comes last, as PEP 427 recommends.
        for name in sorted(files, key=lambda name: (".dist-info/" in name, name)):
            content, runs = files[name]
            info = zipfile.ZipInfo(name, date)
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            info.external_attr = (0o100755 if runs else 0o100644) << 16
            wheel.writestr(info, content)


def reproducible_sdist(path: Path) -> None:
    """Write the sdist ``path`` again, with its files in order, and dates, owners and modes that do not depend on the
    build.
    """
    with tarfile.open(path) as sdist:
        members = [(one, None if (file := sdist.extractfile(one)) is None else file.read()) for one in sdist]
    made = path.with_suffix(".part")
    with made.open("wb") as raw, gzip.GzipFile("", "wb", _LEVEL, raw, mtime=_epoch()) as packed, \
            tarfile.open(mode="w", fileobj=packed, format=tarfile.PAX_FORMAT) as sdist:
        for was, content in sorted(members, key=lambda member: member[0].name):
            one = tarfile.TarInfo(was.name)
            one.type, one.linkname, one.mtime = was.type, was.linkname, _epoch()
            one.mode = 0o755 if was.isdir() or was.mode & 0o100 else 0o644
            if content is None:
                sdist.addfile(one)
            else:
                one.size = len(content)
                sdist.addfile(one, io.BytesIO(content))
    made.replace(path)


def _epoch() -> int:
    """Seconds since 1970 that all files get as their date."""
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", _EPOCH)), _EPOCH)
