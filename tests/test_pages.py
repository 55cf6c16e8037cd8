"""The pages of docs/: links and names lead somewhere, the glossary is in order, the list of decisions is whole."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from .wheel.pages import blocks

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
GLOSSARY = (DOCS / "glossary.md").read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"(?m)^#+ (.*)$", text)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = []
    for target in re.findall(r"\]\(([^()\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            found.append(f"{page}: {target}")
    return found


def test_links_lead_somewhere() -> None:
    assert [link for page in PAGES for link in broken(page)] == []


def test_the_glossary_is_in_alphabetical_order() -> None:
    terms = re.findall(r"(?m)^- \*\*(.+?)\*\*((?: \([^:]*\))?)", GLOSSARY)
    keys = [(term.casefold(), note) for term, note in terms]
    assert len(keys) > 70
    assert keys == sorted(keys)
    assert len(keys) == len(set(keys))


def test_the_glossary_refers_to_terms_that_it_has() -> None:
    terms = {term.casefold() for term in re.findall(r"(?m)^- \*\*(.+?)\*\*", GLOSSARY)}
    referred = re.findall(r"\bsee \*(.+?)\*", GLOSSARY)
    assert referred
    assert [term for term in referred if term not in terms] == []


def test_the_list_of_decisions_has_each_record_once() -> None:
    records = sorted(path.name for path in (DOCS / "adr").glob("[0-9]*.md"))
    by_topic, not_taken = (DOCS / "adr" / "README.md").read_text(encoding="utf-8").split("## Not taken")
    listed, cited = (re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", text) for text in (by_topic, not_taken))
    assert sorted(listed) == records
    assert set(cited) < set(records)


FOLDERS = ("sw", "hw", "sim", "boards")
SOURCES = [path for folder in (*FOLDERS, "bench", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]


@cache
def modules() -> dict[str, Path]:
    """Module → file."""
    found = {}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def defined(module: str) -> set[str]:
    """The names that ``module`` defines or imports."""
    names = set()
    for node in ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8"))):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                names.add(node.name)
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case ast.ImportFrom() | ast.Import():
                names |= {alias.asname or alias.name for alias in node.names}
    return names


def unknown(dotted: str) -> bool:
    """True if ``dotted`` names nothing of the project: neither a module, nor a name in one."""
    parts = dotted.split(".")
    if (ROOT / "sw/splitjoin/catalyst/java" / Path(*parts)).with_suffix(".java").exists():
        return False
    for n in range(len(parts), 0, -1):
        module = ".".join(parts[:n])
        if module in modules():
            return n < len(parts) and parts[n] not in defined(module)
    return True


def test_lines_of_code_fit_a_narrow_window() -> None:
    """Of 1,280 pixels: the site would cut off what is longer. Text that a program prints is as wide as it prints it."""
    wide = [f"{block.place}: {line}" for page in PAGES for block in blocks(str(page.relative_to(ROOT)))
            if block.language in ("python", "sh", "sql") for line in block.code.splitlines() if len(line) > 84]
    assert wide == []


def test_pages_name_files_that_exist() -> None:
    named = [(str(page), path) for page in PAGES for path in re.findall(
        r"`((?:sw|hw|sim|boards|tests|bench|docs)/[\w/.-]*[\w/])`", page.read_text(encoding="utf-8"))]
    assert [(page, path) for page, path in named if "NAME" not in path and not (ROOT / path).exists()] == []


def test_references_to_the_project_s_names_resolve() -> None:
    stale = [(str(path.relative_to(ROOT)), name) for path in (*PAGES, *SOURCES)
             for name in re.findall(r"`(splitjoin(?:\.\w+)+)`", path.read_text(encoding="utf-8"))
             if unknown(name) and not name.endswith((".json", ".v", ".vlt"))]
    assert stale == []
