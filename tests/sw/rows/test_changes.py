"""Changes of sessions are kept for as long as probes that are not settled need them."""

from __future__ import annotations

import numpy as np

from splitjoin.engines.device import ITEM, PAIR
from splitjoin.rows.changes import Changes


def test_a_mask_holds_until_all_its_probes_are_settled() -> None:
    changes = Changes()
    changes.mask((0, 0), [0], 2)
    changes.mask((4, 4), [1], 2)
    items = np.array([(PAIR, 0, probe, stored) for probe in (2, 5) for stored in (0, 1)], ITEM)
    for settled, hidden in (((2, 2), [True, False, False, True]), ((4, 3), [True, False, False, True]),
                            ((4, 4), [False, True, False, True])):
        changes.forget(settled)
        found = changes.hidden(items)
        assert found[2:].tolist() == hidden[2:]
        assert settled == (4, 4) or found[:2].tolist() == hidden[:2]
