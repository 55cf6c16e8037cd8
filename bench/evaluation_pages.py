"""The tables and the picture of SplitJoin's evaluation on docs/architectures.md, in circuits and on threads, and the
table of ScaleJoin's, from bench/results/evaluation.json, evaluation_threads.json and scalejoin.json.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from bench.charts import WIDTH, Files, pick, plain, plt, save

#: Architecture → its name in tables and charts.
NAMES = {"splitjoin": "SplitJoin", "chain": "SplitJoin's cores on a chain", "kang": "Kang", "celljoin": "CellJoin",
         "handshake": "handshake join", "low-latency-handshake": "low-latency handshake join", "cascade": "cascade"}

#: Architecture → cycles a level of its trees, or a hop, and those that Equations 6 and 2 leave out.
_WAYS = {"splitjoin": (2, 20), "low-latency-handshake": (3, 32)}


def threads(files: Files) -> str:
    """The text between the first markers of the page: throughput and latency on threads of the CPU."""
    rows = files["evaluation_threads"]["rows"]
    keys = "figure", "architecture", "cores", "window"
    found = {(row["metric"], *(row["config"][key] for key in keys)): row["value"] for row in rows}
    names = list(dict.fromkeys(row["config"]["architecture"] for row in rows))
    title_of = NAMES | {"scalejoin": "ScaleJoin"}

    def columns(metric: str, figure: str) -> list[tuple[int, int]]:
        return sorted({(window, cores) for of, number, _, cores, window in found if (of, number) == (metric, figure)})

    lines = []
    for metric, figure, title, factor, form in (
            ("thread_rate", "12", "Figure 12: thousands of tuples of both streams a second, windows by time", 1e-3,
             ",.0f"),
            ("thread_rate", "16", "Figure 16: the same, windows by rows", 1e-3, ",.0f"),
            ("thread_pair_latency_50", "13", "Figure 13: median latency of a pair in ms, at half the rate", 1, ",.3g")):
        cases = columns(metric, figure)
        lines += [f"{title}; tuples of each window, and cores:\n", "| architecture | " + " | ".join(
            f"{window:,}, k={cores}" for window, cores in cases) + " |", "|---" * (1 + len(cases)) + "|"]
        for name in names:
            cells = [found.get((metric, figure, name, cores, window)) for window, cores in cases]
            if any(cell is not None for cell in cells):
                shown = " | ".join("" if cell is None else f"{cell * factor:{form}}" for cell in cells)
                lines.append(f"| {title_of.get(name, name)} | {shown} |")
        lines.append("")

    lines += _by("Figure 17: thousands of tuples a second by the share of pairs that match; windows of {window:,} by "
                 "time, k=2", "architecture", pick(files, "evaluation_threads", "thread_rate_by_selectivity"),
                 lambda config: title_of.get(config["architecture"], config["architecture"]),
                 lambda config: f"{100 * config['share']:g} %")
    lines += _by("Figure 19: thousands of tuples a second by the comparisons between two stars; SplitJoin, windows by "
                 "rows, k=2", "sub-window", pick(files, "evaluation_threads", "thread_rate_by_precision"),
                 lambda config: f"{config['window'] // 2:,}",
                 lambda config: config["order"][6:-1])

    def over(metric: str, figure: str, above: str, below: str, other: str = "") -> str:
        """The least and the greatest ratio over all windows and numbers of cores from 2 on."""
        ratios = [found[metric, figure, above, cores, window] / found[metric, other or figure, below, cores, window]
                  for window, cores in columns(metric, figure) if cores > 1]
        return f"{min(ratios):.2g} to {max(ratios):.2g}"

    rival, latency = "low-latency-handshake", "thread_pair_latency"
    lines += [
        "| SplitJoin's section 7 | published, up to 28 cores | here |", "|---|---|---|",
        f"| Figure 12: throughput over low-latency handshake join | up to 1.6 | "
        f"{over('thread_rate', '12', 'splitjoin', rival)} |",
        f"| Figure 13: visiting latency of low-latency handshake join over SplitJoin's | 1 to 3.3 | "
        f"{over(latency, '13', rival, 'splitjoin')} |",
        f"| the same of handshake join |  | {over(latency, '13', 'handshake', 'splitjoin')} |",
        f"| Figure 16: throughput with windows by rows over those by time | 1.18 | "
        f"{over('thread_rate', '16', 'splitjoin', 'splitjoin', '12')} |",
        f"| Figure 18: visiting latency of low-latency handshake join over SplitJoin's by rows | 8.3 | "
        f"{over(latency, '18', rival, 'splitjoin')} |",
        f"| Figure 19: throughput with a star every 2 comparisons over that with one a sub-window | well below 1 | "
        f"{_least_of_precision(files)} |",
        f"| the product's own engine over SplitJoin's threads |  | "
        f"{over('thread_rate', '12', names[-1], 'splitjoin')} |", ""]
    return "\n".join(lines)


def _by(title: str, head: str, rows: list[dict[str, Any]], row_of: Callable[[dict[str, Any]], str],
        column_of: Callable[[dict[str, Any]], str]) -> list[str]:
    """A table of rates in thousands, of which each of ``rows`` is a cell."""
    cells = {(row_of(row["config"]), column_of(row["config"])): row["value"] for row in rows}
    names, columns = (list(dict.fromkeys(key[n] for key in cells)) for n in (0, 1))
    return [title.format(window=rows[0]["config"]["window"]) + ":\n", f"| {head} | " + " | ".join(columns) + " |",
            "|---" * (1 + len(columns)) + "|",
            *(f"| {name} | " + " | ".join(_thousands(cells.get((name, column))) for column in columns) + " |"
              for name in names), ""]


def _thousands(value: float | None) -> str:
    """A rate in thousands, with three digits or more; empty if there is none."""
    return "" if value is None else f"{value / 1e3:,.{0 if value >= 1e5 else 3}{'f' if value >= 1e5 else 'g'}}"


def _least_of_precision(files: Files) -> str:
    """The rate with a star every two comparisons over that with the fewest, of all windows of Figure 19 on threads."""
    of_window: dict[int, list[float]] = {}
    for row in pick(files, "evaluation_threads", "thread_rate_by_precision"):
        of_window.setdefault(row["config"]["window"], []).append(row["value"])
    ratios = [rates[0] / rates[-1] for rates in of_window.values()]
    return f"{min(ratios):.2g} to {max(ratios):.2g}"


def section(files: Files) -> str:
    """The text between the second markers of the page."""
    return "\n".join([*_systems(files), "", *_equations(files), "", *_routed(files), "", *_ratios(files), "",
                      *_selectivity(files), "", *_long(files), "", *_blocks(files), ""])


def scalejoin(files: Files) -> str:
    """The text between the third markers: ScaleJoin's Figures 7a and 8, in circuits and in threads of the CPU."""
    def value(metric: str, **config: Any) -> float | None:
        rows = pick(files, "scalejoin", metric, **config)
        return float(rows[0]["value"]) if rows else None

    sources = [row["config"]["sources"] for row in pick(files, "scalejoin", "gate_rate")]
    alone = " | ".join(f"{value('gate_rate', sources=n):.2f}" for n in sources)
    lines = ["Figure 7a: records in a cycle through the gate alone, by its sources, whose records alternate:\n",
             f"| {' | '.join(f'{n}' for n in sources)} |", "|---" * len(sources) + "|", f"| {alone} |", ""]
    behind = " and ".join(f"{value('short_window_rate', sources=2, cores=k):.2f} with k = {k}" for k in (1, 4))
    lines.append(f"With windows of one tuple, the cores behind it take fewer: {behind}.\n")
    of_threads = pick(files, "scalejoin", "gate_thread_cpu")
    counts, readers = (list(dict.fromkeys(row["config"][key] for row in of_threads)) for key in ("sources", "readers"))
    rates = [row["value"] / 1e6 for row in pick(files, "scalejoin", "gate_thread_rate")]
    lines += [f"Figure 7a on threads (`--only readers`), ScaleGate alone: nanoseconds of CPU a tuple, of all threads, "
              f"by its\nsources and the readers that each get all tuples; by the clock {min(rates):.1f} to "
              f"{max(rates):.1f} million tuples a second:\n",
              f"| readers | {' | '.join(f'{n} source{chr(115) * (n > 1)}' for n in counts)} |",
              "|---" * (1 + len(counts)) + "|"]
    lines += [f"| {r} | " + " | ".join(f"{value('gate_thread_cpu', sources=n, readers=r):.0f}" for n in counts) + " |"
              for r in readers]
    lines += ["",
              "Figure 8: standard deviation of the comparisons over their mean, among 4 cores of a circuit, and among "
              "threads\nof the CPU, which share a batch as they get to run:\n",
              "| input | cores, 4 | threads, 2 | threads, 4 |", "|---|---|---|---|"]
    for mix in dict.fromkeys(row["config"]["input"] for row in pick(files, "scalejoin", "thread_deviation")):
        cores = value("core_deviation", input=mix) if mix != "even" else value("core_deviation", cores=4, window=256,
                                                                               sources=2)
        found = (cores, *(value("thread_deviation", input=mix, threads=n) for n in (2, 4)))
        lines.append(f"| {mix} | " + " | ".join("" if one is None else f"{one:.2g} %" for one in found) + " |")
    return "\n".join([*lines, ""])


def _values(files: Files, metric: str, key: str, **config: Any) -> dict[Any, float]:
    """The value of ``key`` → that of the metric."""
    return {row["config"][key]: row["value"] for row in pick(files, "evaluation", metric, **config)}


def _common(files: Files) -> tuple[int, list[int]]:
    """The window of all architectures, and the numbers of cores with it; there may be more with longer ones."""
    found = [row["config"] for row in pick(files, "evaluation", "pair_latency", architecture="splitjoin")]
    window = min(config["window"] for config in found)
    return window, sorted({config["cores"] for config in found if config["window"] == window})


def _systems(files: Files) -> Iterator[str]:
    """All architectures on the same window: rates and latencies against the cores, and cells."""
    window, cores = _common(files)
    many = " | ".join(f"k={k}" for k in cores)
    yield (f"Windows of {window} tuples of each stream, by time: tuples of both streams in 1,000 cycles, and mean\n"
           f"latency in cycles at half that rate; LUT4 and kbits predicted for ECP5, {cores[0]} cores (Kang: one).\n")
    yield f"| architecture | rate, {many} | by rows, k={cores[-1]} | latency, {many} | LUT4 | kbits |"
    yield "|---" * (4 + 2 * len(cores)) + "|"
    for name, title in NAMES.items():
        cells = []
        for metric, kind, shown in (("sustained_rate", "RANGE", cores), ("sustained_rate", "ROWS", cores[-1:]),
                                    ("pair_latency", "RANGE", cores)):
            found = _values(files, metric, "cores", architecture=name, window=window, kind=kind, share=0.01,
                            order="none")
            form = f",.{1 if metric == 'sustained_rate' else 0}f"
            cells += [f"{found[k]:{form}}" if k in found else "" for k in shown]
            if name == "kang" and 1 in found:
                cells[-len(shown)] = f"{found[1]:{form}} (k=1)"
        of = 1 if name == "kang" else cores[0]
        lut, bits = (pick(files, "evaluation", metric, architecture=name, cores=of)[0]["value"]
                     for metric in ("lut4", "memory"))
        yield f"| {title} | {' | '.join(cells)} | {lut:,.0f} | {bits / 1024:,.0f} |"
    yield from _more_cores(files, window)


def visiting_latency(system: str, cores: int, window: int) -> float:
    """The mean visiting latency in cycles by SplitJoin's Equations 6 (its own) and 2 (low-latency handshake join), with
    half a sub-window at a cycle a comparison, and constants for what they leave out.
    """
    way = _WAYS[system][0] * (math.log2(cores) if system == "splitjoin" else (cores - 1) / 2)
    return way + window / cores / 2 + _WAYS[system][1]


def _equations(files: Files) -> Iterator[str]:
    """Measured visiting latencies beside Equations 6 and 2."""
    measured = {(c["architecture"], c["window"], c["cores"]): row["value"]
                for metric in ("pair_latency", "long_pair_latency") for row in pick(files, "evaluation", metric)
                if (c := row["config"])["kind"] == "RANGE" and c["architecture"] in _WAYS}
    cases = sorted({key[1:] for key in measured})
    (tree, core), (hop, chain) = _WAYS["splitjoin"], _WAYS["low-latency-handshake"]
    yield (f"Mean visiting latency in cycles, at half the rate, beside SplitJoin's Equations 6 and 2: w / 2 cycles "
           f"for\nhalf a sub-window, and {tree} for a level of both trees, or {hop} for a hop of low-latency handshake "
           f"join. What they leave\nout is {core} and {chain} cycles, fitted once:\n")
    yield "| tuples of the window | cores | SplitJoin | Equation 6 | low-latency handshake join | Equation 2 |"
    yield "|---" * 6 + "|"
    for window, cores in cases:
        cells = [f"{window:,}", f"{cores}"]
        for name in _WAYS:
            value = measured.get((name, window, cores))
            cells += ["", ""] if value is None else [f"{value:,.0f}", f"{visiting_latency(name, cores, window):,.0f}"]
        yield f"| {' | '.join(cells)} |"


def _routed(files: Files) -> Iterator[str]:
    """Cells, clock and rate on an FPGA; without the last two where placing and routing has not ended."""
    rows = {(row["config"]["architecture"], row["metric"]): row["value"] for row in files["routed"]["rows"]}
    yield from _energy(rows)
    yield ("Two cores (Kang: one) and windows of 128 rows, mapped, placed and routed by Yosys and nextpnr on an ECP5\n"
           "(LFE5U-25F, slowest grade, one seed); the clock times sustained tuples a cycle:\n")
    yield "| architecture | LUT4 | FF | block RAM | MHz | tuples/s |\n|---|---|---|---|---|---|"
    for name, title in NAMES.items():
        if (name, "mapped_lut4") not in rows:
            continue
        cells, clock, rate = (f"{rows[name, f'mapped_{what}']:,}" for what in ("lut4", "ff", "block_ram")), "", ""
        if (name, "routed_rate") in rows:
            clock, rate = f"{rows[name, 'routed_mhz']:.0f}", f"{rows[name, 'routed_rate'] / 1000:,.0f},000"
        yield f"| {title} | {' | '.join(cells)} | {clock} | {rate} |"


def _energy(rows: dict[tuple[str, str], float]) -> Iterator[str]:
    """Proxies of energy of the circuits that are routed; nothing before they are measured."""
    names = [name for name in NAMES if (name, "energy_transitions") in rows]
    if not names:
        return
    yield ("Energy a tuple by proxies (`python -m bench.energy`), of the circuits of the next table: the share of nets "
           "that change in\na cycle, cells × that share × cycles as if cells changed as nets do, and LUT4 × cycles; "
           "both over SplitJoin's:\n")
    yield "| architecture | cycles a tuple | nets that change | transitions a tuple | | LUT4 · cycles | |"
    yield "|---" * 7 + "|"
    for name in names:
        cycles, share, changes, plain_ = (rows[name, f"energy_{what}"] for what in (
            "cycles", "activity", "transitions", "lut_cycles"))
        yield (f"| {NAMES[name]} | {cycles:.0f} | {share:.1%} | {changes:,.0f} | "
               f"{changes / rows[names[0], 'energy_transitions']:.2f} | {plain_:,.0f} | "
               f"{plain_ / rows[names[0], 'energy_lut_cycles']:.2f} |")
    yield ""


def _long(files: Files) -> Iterator[str]:
    """Circuits with long windows."""
    rows = pick(files, "evaluation", "long_rate")
    if not rows:
        return
    found = {(c["architecture"], c["cores"], c["window"]): row["value"] for row in rows if (c := row["config"])}
    windows = sorted({key[2] for key in found})
    yield ("Figure 12 with long windows (`python -m bench.long_windows`; latencies are in the table of equations): "
           "tuples of both\nstreams in 1,000 cycles, one window full, and what comparisons allow, 2,000 · k / W:\n")
    yield "| architecture, cores | " + " | ".join(f"{window:,}" for window in windows) + " |"
    yield "|---" * (1 + len(windows)) + "|"
    for name, cores in dict.fromkeys(key[:2] for key in found):
        cells = (found.get((name, cores, window)) for window in windows)
        yield f"| {NAMES[name]}, {cores} | " + " | ".join("" if v is None else f"{v:.3g}" for v in cells) + " |"
    for cores in sorted({key[1] for key in found}):
        yield f"| comparisons, {cores} | " + " | ".join(f"{2000 * cores / window:.3g}" for window in windows) + " |"
    for metric, title, key in (("long_rate_by_selectivity", "Figure 17, {cores} cores, windows of {window:,}", "share"),
                               ("long_rate_by_precision", "Figure 19, {cores} cores, windows of {window:,}", "order")):
        points = pick(files, "evaluation", metric)
        if points:
            shown = [(f"{c['share']:.1%}" if key == "share" else f"`{c['order']}`") for c in (
                row["config"] for row in points)]
            yield f"\n| {title.format(**points[0]['config'])} | {' | '.join(shown)} |"
            yield "|---" * (1 + len(points)) + "|"
            yield "| tuples in 1,000 cycles | " + " | ".join(f"{row['value']:.3g}" for row in points) + " |"


def _more_cores(files: Files, window: int) -> Iterator[str]:
    """The paper's numbers of cores, where a longer window leaves each core enough to do; more with windows by rows."""
    longer = [row["config"]["window"] for row in pick(files, "evaluation", "pair_latency", architecture="splitjoin")
              if row["config"]["window"] > window]
    if not longer:
        return
    where = {"window": longer[0], "share": 0.01, "order": "none"}
    rates = sorted(_values(files, "sustained_rate", "cores", architecture="splitjoin", kind="RANGE", **where).items())
    (least, slow), (most, fast) = rates[0], rates[-1]
    yield (f"\nWindows of {longer[0]:,}, and the paper's highest numbers of cores; SplitJoin has {fast / slow:.2f} "
           f"times the rate with\n{most // least} times the cores ({least} to {most}):\n")
    columns = [(metric, kind, k) for metric, kind in (
        ("sustained_rate", "RANGE"), ("sustained_rate", "ROWS"), ("pair_latency", "RANGE")) for k in (28, 32)
        if any(k in _values(files, metric, "cores", architecture=name, kind=kind, **where) for name in NAMES)]
    heads = {"sustained_rate": "rate", "pair_latency": "latency"}
    yield "| architecture | " + " | ".join(f"{heads[metric]}{' by rows' if kind == 'ROWS' else ''}, k={k}"
                                           for metric, kind, k in columns) + " |"
    yield "|---" * (1 + len(columns)) + "|"
    for name, title in NAMES.items():
        found = [_values(files, metric, "cores", architecture=name, kind=kind, **where).get(k)
                 for metric, kind, k in columns]
        if any(value is not None for value in found):
            cells = ("" if value is None else f"{value:,.{1 if metric == 'sustained_rate' else 0}f}"
                     for value, (metric, *_) in zip(found, columns, strict=True))
            yield f"| {title} | {' | '.join(cells)} |"


def _ratios(files: Files) -> Iterator[str]:
    """Ratios beside the published ones."""
    common = {"kind": "RANGE", "share": 0.01, "order": "none"}
    window, cores = _common(files)
    most = cores[-1]

    def value(metric: str, **config: Any) -> float:
        return float(pick(files, "evaluation", metric, **{"window": window, "cores": most} | config)[0]["value"])

    def over(metric: str, above: str, below: str, **config: Any) -> float:
        return (value(metric, architecture=above, **common | config)
                / value(metric, architecture=below, **common | config))

    latency = value("pair_latency", architecture="low-latency-handshake", **common)
    by_rows = {"architecture": "splitjoin", "kind": "ROWS", "share": 0.01, "order": "none"}
    largest = max(row["config"]["window"] for row in pick(files, "evaluation", "sustained_rate", probes=1)
                  if row["config"]["order"].startswith("inner"))
    fine = _values(files, "sustained_rate", "order", window=largest, probes=1, kind="ROWS", share=1e-4)
    coarse = max(fine.values())
    slowest = fine["inner(2)"]
    # The paper's numbers of cores, with longer windows: low-latency handshake join has a power of two.
    further = sorted((c["cores"], c["window"]) for row in pick(files, "evaluation", "pair_latency", **common,
                     architecture="low-latency-handshake") if (c := row["config"])["window"] > window)
    shown = [f"{over(metric, above, below):.2f}" + "".join(
        f" ({more} cores: {over(metric, above, below, cores=more, window=longer):.2f})" for more, longer in further)
        for metric, above, below in (("sustained_rate", "splitjoin", "low-latency-handshake"),
                                     ("pair_latency", "low-latency-handshake", "splitjoin"))]
    yield f"| SplitJoin's section 7 | published, 28 cores | here, {most} cores |\n|---|---|---|"
    yield f"| Figure 12: throughput over low-latency handshake join | up to 1.6 | {shown[0]} |"
    yield (f"| Figure 13: visiting latency of low-latency handshake join over SplitJoin's | 3.3 (8.1 ms) | "
           f"{shown[1]} |")
    yield (f"| Figure 16: throughput with windows by rows over those by time | 1.18 (5,200 / 4,400) | "
           f"{value('sustained_rate', **by_rows) / value('sustained_rate', architecture='splitjoin', **common):.2f} |")
    if pick(files, "evaluation", "loaded_pair_latency", kind="RANGE", cores=most):
        visiting = {kind: value("loaded_pair_latency", kind=kind, load=0.5) for kind in ("ROWS", "RANGE")}
        yield (f"| Figure 18: visiting latency by time over that by rows | 2.5 | "
               f"{visiting['RANGE'] / visiting['ROWS']:.2f} |")
        yield (f"| Figure 18: visiting latency of low-latency handshake join over SplitJoin's by rows | 8.3 | "
               f"{latency / visiting['ROWS']:.2f} |")
    yield (f"| Figure 19: throughput with a star every 2 comparisons over that with one a sub-window | well below 1 | "
           f"{slowest / coarse:.2f} (4 cores) |")


def _selectivity(files: Files) -> Iterator[str]:
    """Rates against the share of pairs that match, by cores and results that can leave in a cycle."""
    rows = pick(files, "evaluation", "rate_by_selectivity")
    shares = sorted({row["config"]["share"] for row in rows})
    window = rows[0]["config"]["window"]
    yield (f"Figure 17, windows of {window} by time: tuples of both streams in 1,000 cycles, by the share of pairs "
           f"that match, and\nthe most that results allow where so many leave in a cycle (`root_width`):\n")
    yield "| k | results a cycle | " + " | ".join(f"{share:.1%}" for share in shares) + " |"
    yield "|---" * (2 + len(shares)) + "|"
    widths = sorted({row["config"]["root_width"] for row in rows})
    for cores in sorted({row["config"]["cores"] for row in rows}):
        for width in widths:
            found = _values(files, "rate_by_selectivity", "share", cores=cores, root_width=width)
            if found:
                cells = (f"{found[share]:.1f}" if share in found else "" for share in shares)
                yield f"| {cores} | {width} | {' | '.join(cells)} |"
    for width in widths:
        limits = (f"{1000 * width / (window * share):,.1f}" for share in shares)
        yield f"| most | {width} | {' | '.join(limits)} |"


def _blocks(files: Files) -> Iterator[str]:
    """Messages and imbalance of a cascade against its blocks."""
    rows = pick(files, "evaluation", "hop_messages")
    cores = rows[0]["config"]["cores"]
    yield f"Blocks of a cascade, {cores} cores, a tuple in 20 cycles: messages a tuple and hop, and ESJ's imbalance:\n"
    yield "| ς | messages | mean | highest | ς / ω_avg |\n|---|---|---|---|---|"
    for row in rows:
        c = row["config"]
        mean, peak = (pick(files, "evaluation", metric, cores=cores, block=c["block"])[0]["value"]
                      for metric in ("imbalance", "imbalance_peak"))
        yield (f"| {c['block']} | {row['value']:.2f} | {mean:.2f} | {peak:.2f} | "
               f"{c['block'] * cores / c['window']:.2f} |")
    slower = [row for row in pick(files, "evaluation", "imbalance") if "cycles" in row["config"]]
    if slower:
        peaks = [pick(files, "evaluation", "imbalance_peak", cycles=row["config"]["cycles"])[0]["value"]
                 for row in slower]
        listed = [", ".join(f"{value:{form}}" for value in values) for values, form in (
            ([row["config"]["cycles"] for row in slower], ""), ([row["value"] for row in slower], ".2f"),
            (peaks, ".2f"))]
        yield (f"\nς = {slower[0]['config']['block']}, a tuple in {listed[0]} cycles: mean {listed[1]}; highest "
               f"{listed[2]}.")


def draw(files: Files) -> None:
    """Figures 12, 13, 15 and 18, and 19, a panel each."""
    if "evaluation" not in files:
        return
    figure, grid = plt.subplots(4, 1, figsize=(WIDTH, 14), layout="constrained")
    window, _ = _common(files)
    common = {"window": window, "kind": "RANGE", "share": 0.01, "order": "none"}
    for axes, metric, title in ((grid[0], "sustained_rate", "Figure 12: tuples in 1,000 cycles"),
                                (grid[1], "pair_latency", "Figure 13: visiting latency, cycles")):
        for n, (name, label) in enumerate(NAMES.items()):
            points = _values(files, metric, "cores", architecture=name, **common)
            # Hollow, the later the smaller: of equal points, each is seen.
            axes.plot(sorted(points), [points[k] for k in sorted(points)], label=label, mfc="none",
                      ms=12 - 1.3 * n, lw=1)
        axes.set(title=title, xlabel="join cores", yscale="log", xscale="log")
        axes.set_xticks([1, 4, 8, 16], ["1", "4", "8", "16"])
        axes.minorticks_off()
    plain(grid[0].yaxis)
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    axes = grid[2]
    bottoms: dict[str, float] = {}
    rows = pick(files, "evaluation", "loaded_stage_cycles")
    for stage in dict.fromkeys(row["config"]["stage"] for row in rows):
        bars = {f"{c['kind']}, k = {c['cores']}, {c['load']:.0%} load": row["value"] for row in rows
                if (c := row["config"])["stage"] == stage}
        axes.barh(list(bars), list(bars.values()), left=[bottoms.get(key, 0) for key in bars], label=stage)
        bottoms = {key: bottoms.get(key, 0) + height for key, height in bars.items()}
    axes.invert_yaxis()
    axes.set(title="Figures 15 and 18: a probe's cycles by stage")
    axes.legend(loc="upper center", bbox_to_anchor=(0.3, -0.1), ncols=2)
    axes = grid[3]
    rows = [row for row in pick(files, "evaluation", "sustained_rate") if row["config"]["order"].startswith("inner")]
    for n, key in enumerate(dict.fromkeys((c["window"] // c["cores"], c["probes"]) for c in (
            row["config"] for row in rows))):
        points = {int(c["order"][6:-1]): row["value"] for row in rows
                  if ((c := row["config"])["window"] // c["cores"], c["probes"]) == key}
        axes.plot(sorted(points), [points[n] for n in sorted(points)],
                  label=f"sub-window {key[0]}, {key[1]} probe{'s' if key[1] > 1 else ''}", mfc="none",
                  ms=12 - 1.3 * n, lw=1)
    axes.set(title="Figure 19: tuples in 1,000 cycles", xlabel="comparisons of a core between two stars", xscale="log",
             ylim=(0, None))
    plain(axes.xaxis)
    axes.legend()
    save(figure, "evaluation")
