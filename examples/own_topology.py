"""An architecture of your own in one file: SplitJoin's cores with records handed on along a chain, and results merged
by a tree. It is checked against the reference model, and its latencies are compared with SplitJoin's and the chain's.

python own_topology.py --cores 8 --device sim
"""

import argparse

import numpy as np
import pyarrow as pa

import splitjoin
from splitjoin.circuit.architectures import ARCHITECTURES, Architecture
from splitjoin_hw.baseline.chain import DistributionChain
from splitjoin_hw.splitjoin import SplitJoin


class HalfChain(SplitJoin):
    """The circuit: a network with a port ``i`` and, for each core, one of ``o``, in place of the distribution tree."""

    def _distribution(self) -> DistributionChain:
        return DistributionChain(self.config)


class HalfChainArchitecture(Architecture):
    """What the options know of it. ``baseline``: simulations alone take it."""

    name, title = "half-chain", "a chain to the cores and a tree behind them"
    component = __name__, "HalfChain"
    cores, sequential, folds = 4, False, False
    baseline = True


def main() -> None:
    """Run all three on the same random tuples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, default=4)
    parser.add_argument("--rows", type=int, default=200, help="random tuples of each stream (%(default)s)")
    parser.add_argument("--device", default="sim", help="sim (compiled by Verilator) or pysim (%(default)s)")
    args = parser.parse_args()
    ARCHITECTURES[HalfChainArchitecture.name] = HalfChainArchitecture()
    random = np.random.default_rng(1)
    r, s = (pa.table({name: random.integers(0, 100, args.rows).astype(np.int32)}) for name in "xa")
    query = {"on": "abs(r.x - s.a) <= 3", "window": "ROWS 32"}
    expected = splitjoin.join(r, s, **query, device="golden").to_arrow()
    for architecture in ("splitjoin", "chain", HalfChainArchitecture.name):
        found = splitjoin.join(r, s, **query, device=args.device, architecture=architecture, cores=args.cores)
        if found.to_arrow() != expected:
            raise SystemExit(f"{architecture} and the reference model differ")
        assert found.latencies is not None
        print(f"{architecture}: {len(found)} pairs as the reference model has them; a probe has its results after "
              f"{np.median(found.latencies):.0f} cycles in the median")


if __name__ == "__main__":
    main()
