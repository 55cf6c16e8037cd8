"""The site of the documentation: its navigation has every page; built (long), it is whole and needs no network."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import splitjoin
from splitjoin.cli import command_parser

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def hooks() -> Any:
    """The module of the site's hooks, which is in no package."""
    spec = importlib.util.spec_from_file_location("site_hooks", DOCS / "site_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_navigation_names_every_page_once() -> None:
    """Those that mkdocs.yml names, and the others behind them; records of decisions are in adr/README.md."""
    named = hooks().named_pages()
    assert len(named) > 30
    pages = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if not re.match(r"\d{4}-", path.name)]
    assert sorted(named + hooks().unnamed_pages()) == sorted(pages)


def test_the_api_pages_describe_the_public_names() -> None:
    described = [name for path in (DOCS / "api").glob("*.md")
                 for name in re.findall(r"(?m)^::: ([\w.]+)$", path.read_text(encoding="utf-8"))]
    assert len(described) == len(set(described)) > 30
    public = {f"splitjoin.{name}" for name in dir(splitjoin) if not name.startswith("_")}
    assert {name for name in described if re.fullmatch(r"splitjoin\.\w+", name)} == public


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def test_a_missing_page_or_anchor_is_an_error(site: Path) -> None:
    """mkdocs.yml is strict, which counts warnings: --quiet would silence them first."""
    assert (site / "index.html").exists()
    built = re.findall(r"-m mkdocs build(.*)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert built == [""]


def test_a_list_of_pages_for_programs_names_each_page(site: Path) -> None:
    listed = re.findall(r"(?m)^- \[.+\]\(([\w/-]+\.html)\)", (site / "llms.txt").read_text(encoding="utf-8"))
    assert listed == [page.removesuffix(".md").replace("README", "index") + ".html" for page in hooks().named_pages()]
    assert [page for page in listed if not (site / page).exists()] == []


#: What users type → the pages, one of which is to be among the first three that the search gives.
SEARCHES = {
    "watermark": "streaming", "late data": "streaming", "idle source": "streaming", "exactly once": "streaming",
    "snapshot": "streaming", "outer join": "kinds", "semi join": "kinds", "as-of join": "kinds", "tolerance": "kinds",
    "out of memory": "troubleshooting", "slow": "troubleshooting", "error": "troubleshooting",
    "overlapping intervals": "intervals", "interval join": "coming-from", "merge_asof": "coming-from",
    "asof join": "coming-from", "foverlaps": "coming-from", "kdb aj": "coming-from", "pandas": "coming-from",
    "polars": "coming-from", "duckdb": "coming-from", "kafka": "other-engines", "window": "language",
    "null": "language", "float": "language", "csv": "tables", "install": "install", "pip": "install",
    "uninstall": "install", "user defined aggregate": "user-aggregates", "subquery": "sql", "threads": "cpu",
    "verilog": "circuits", "bitstream": "bring-up", "ulx3s": "boards", "uart": "boards", "axi": "axi", "gpu": "gpu",
    "checkpoint": "spark-streams", "restart": "spark-streams", "stream_join": "spark", "time zone": "spark",
    "cluster": "cluster", "tune": "tuning", "server": "server", "block diagram": "circuits",
    "waveforms": "simulation", "gtkwave": "simulation", "status page": "server", "StreamJoin": "api/sessions",
    "macos": "install", "externally managed": "install", "timezone": "language", "databricks": "cluster",
    "lattice": "boards", "jupyter": "notebooks/analyst", "udf": "user-aggregates",
    "excel": "faq", "keep unmatched rows": "faq", "self join": "faq", "is the result sorted": "faq",
    "column name with spaces": "faq", "duplicate rows": "faq", "units of RANGE": "faq", "string similarity": "faq",
    "java version": "faq", "docker": "faq", "how to turn off": "faq", "skewed join": "faq", "kafka source": "faq",
    "vhdl": "faq", "lane": "faq", "how many luts": "faq", "floating point in circuit": "faq",
    "license": "faq", "telemetry": "faq", "proxy": "faq", "faq": "faq", "offline install": "faq",
    "known limits": "troubleshooting", "group by after join": "faq", "count matches": "faq",
    "executors install": "cluster", "ddr memory": "external-windows", "pack rows": "circuits",
}


@pytest.mark.skipif(shutil.which("node") is None, reason="Node, which runs the site's search, is not there")
def test_what_users_search_for_is_among_the_first_three(site: Path) -> None:
    """Records of decisions are not searched, as their long titles would come before the pages for users."""
    assert len(SEARCHES) >= 30
    done = subprocess.run(["node", str(ROOT / "tests" / "support" / "site_search.mjs"), str(site)],
                          input=json.dumps(list(SEARCHES)), capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert [page for pages in found.values() for page in pages if re.match(r"adr/\d", page)] == []
    assert {query: found[query][:3] for query, page in SEARCHES.items() if f"{page}.html" not in found[query][:3]} == {}


def test_the_search_works_from_a_folder_too(site: Path) -> None:
    """The index is a script too, and the page has a worker for file: of our own."""
    assert (site / "search" / "search_index.js").read_text(encoding="utf-8").startswith("var __index = {")
    assert '<script src="javascripts/iframe-worker.js">' in (site / "index.html").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href)=[\"'](?:https?:)?//[^>]*>")
    allowed = re.compile(r"rel=[\"']?canonical")
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    assert [found for page in pages for found in loads.findall(page.read_text(encoding="utf-8"))
            if not allowed.search(found)] == []


@pytest.mark.long
def test_the_site_describes_every_command(site: Path) -> None:
    page = (site / "command-line.html").read_text(encoding="utf-8")
    commands: Any = next(action for action in command_parser()._actions if hasattr(action, "_choices_actions"))
    assert [name for name in commands.choices if f'id="splitjoin-{name}"' not in page] == []
    assert "%(default)s" not in page
