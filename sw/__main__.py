"""``python -m splitjoin``."""

import sys

from .cli import main

sys.exit(main())
