"""The dynamic schedule of Scale-OIJ (section V-B, Algorithm 3): which workers form the team of a range of keys."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Ints

#: Ranges of keys: a key belongs to its code modulo this number.
PARTITIONS = 256


class Schedule:
    """Teams of workers, which only grow: nothing migrates, so a member keeps what it has stored.

    Args:
        workers: The number of workers.
        delta: A partition is replicated if that lowers the unbalancedness by more than this.
        decay: What counts are multiplied by after each schedule (λ).

    Attributes:
        teams: The members of each partition's team: (PARTITIONS, workers), of which the first ``sizes`` count.
        sizes: (PARTITIONS,).
        member: True where a worker is in a partition's team: (PARTITIONS, workers).
        changes: How often a partition was replicated.
    """

    def __init__(self, workers: int, delta: float = 0.01, decay: float = 0.5):
        self._delta, self._decay = delta, decay
        self.teams = np.zeros((PARTITIONS, workers), np.int64)
        self.teams[:, 0] = np.arange(PARTITIONS) % workers
        self.sizes = np.ones(PARTITIONS, np.int64)
        self.member = np.arange(workers)[None, :] == self.teams[:, :1]
        self._counts = np.zeros(PARTITIONS)
        self.changes = 0

    def note(self, keys: Ints) -> None:
        """Count tuples by their codes of keys, −1 for those that no worker gets."""
        self._counts += np.bincount(keys[keys >= 0] % PARTITIONS, minlength=PARTITIONS)

    @property
    def is_shared(self) -> bool:
        """True if a team has several members."""
        return self.changes > 0

    @property
    def loads(self) -> npt.NDArray[np.float64]:
        """The workload of each worker: its share of the tuples of its partitions (equation 3)."""
        loads: npt.NDArray[np.float64] = (self._counts / self.sizes) @ self.member
        return loads

    def update(self) -> None:
        """Replicate the largest partitions of the most loaded worker to the least loaded one, as long as it helps."""
        while self._replicate():
            self.changes += 1
        self._counts *= self._decay

    def _replicate(self) -> bool:
        """Replicate one partition; False if none lowers the unbalancedness enough."""
        loads = self.loads
        busiest, idlest = int(loads.argmax()), int(loads.argmin())
        candidates = np.flatnonzero(self.member[:, busiest] & ~self.member[:, idlest] & (self._counts > 0))
        shares = self._counts[candidates] / self.sizes[candidates]
        now = unbalancedness(loads)
        for partition in candidates[np.argsort(-shares, kind="stable")].tolist():
            size = int(self.sizes[partition])
            changed = loads.copy()
            members = self.teams[partition, :size]
            changed[members] -= self._counts[partition] / size
            changed[[*members.tolist(), idlest]] += self._counts[partition] / (size + 1)
            if now - unbalancedness(changed) > self._delta:
                self.teams[partition, size] = idlest
                self.sizes[partition] += 1
                self.member[partition, idlest] = True
                return True
        return False


def unbalancedness(loads: npt.NDArray[np.float64] | Ints) -> float:
    """The standard deviation of the workers' loads over their mean; 0 without load (equation 2)."""
    mean = float(loads.mean())
    return float(loads.std()) / mean if mean else 0.0
