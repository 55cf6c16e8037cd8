"""Kill a streaming join again and again, and compare what it gave with the right rows.

Run: python -m tests.chaos [--kills N] [--seed N] [--daemon] [--sql] [--how KIND] [--idle TIME]
    [--watermark RULE] [--early] [--endless] [--one-sided] [--named] [--streams N] [--aggregate]
    [--regroup] [--sink delta|iceberg] [--folder FOLDER]
"""

import argparse
import shutil
import tempfile
from functools import partial
from pathlib import Path

from .kills import run


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Kills a streaming join at random.")
    parser.add_argument("--kills", type=int, default=20, help="how often something is killed (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments and of what is killed (default: 0)")
    parser.add_argument("--daemon", action="store_true", help="join on devices of a daemon, and kill that too")
    parser.add_argument("--sql", action="store_true", help="join in plain SQL, by the extension; of no other option")
    parser.add_argument("--how", default="inner", help="the kind of join (default: inner)")
    parser.add_argument("--idle", metavar="TIME", help="let one stream be silent for longer than this at times, and do "
                        "not wait for it, as in '300 MILLISECONDS'; the rows that are late then are counted")
    parser.add_argument("--watermark", help="the rule of lateness: source, min, max or spark")
    parser.add_argument("--early", action="store_true", help="rows come early, and are taken back")
    parser.add_argument("--endless", action="store_true", help="an as-of join by a key, without a window")
    parser.add_argument("--one-sided", action="store_true", help="the second stream has no say in the watermark; with "
                        "--idle, some of its rows are late")
    parser.add_argument("--named", action="store_true", help="several inner joins by name, which have one state")
    parser.add_argument("--streams", type=int, default=2, choices=(2, 3), help="3: a join of three streams in two "
                        "steps, with --daemon of no other option (default: 2)")
    parser.add_argument("--aggregate", action="store_true", help="rows of the first stream with aggregates of partners")
    parser.add_argument("--regroup", action="store_true", help="each start has another number of groups")
    parser.add_argument("--sink", choices=("delta", "iceberg"), help="write rows into a table of this kind, by the "
                        "package deltalake or pyiceberg[sql-sqlite]")
    parser.add_argument("--folder", type=Path, help="a new folder for inputs, results, checkpoint and logs, which "
                        "stays (default: a temporary one, which stays if the run fails)")
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"in {folder}", flush=True)
    done = run(folder, kills=args.kills, seed=args.seed, daemon=args.daemon, sql=args.sql, how=args.how,
               idle=args.idle, watermark=args.watermark, early=args.early, endless=args.endless,
               one_sided=args.one_sided, named=args.named, streams=args.streams,
               aggregate=args.aggregate, regroup=args.regroup, sink=args.sink,
               say=partial(print, flush=True))
    if args.folder is None:
        shutil.rmtree(folder)
    print(f"{done.pairs} rows, all of them right, in {done.batches} micro-batches and {done.starts} starts of the "
          f"job, after {done.jvms} kills of the JVM, {done.workers} of Python workers and {done.daemons} of the "
          f"daemon; {done.late} rows were late")


if __name__ == "__main__":
    main()
