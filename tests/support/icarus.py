"""The mark of tests that need Icarus Verilog, which PyPI does not have; Debian's package is called iverilog."""

from __future__ import annotations

import shutil

import pytest

needs_icarus = pytest.mark.skipif(shutil.which("iverilog") is None,
                                  reason="Icarus Verilog is not installed (Debian: apt-get install iverilog)")
