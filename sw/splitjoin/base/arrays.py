"""Names of NumPy's array types, for annotations."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
#: Row numbers or row ids.
Rows = Ints
#: Event times.
Ticks = Ints
