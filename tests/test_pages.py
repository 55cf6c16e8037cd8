"""The pages of docs/: links lead somewhere, the glossary is in order, the list of decisions is whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
GLOSSARY = (DOCS / "glossary.md").read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"(?m)^#+ (.*)$", text)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    broken = []
    for target in re.findall(r"\]\(([^()\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(target)
    assert broken == []


def test_the_glossary_is_in_alphabetical_order() -> None:
    terms = re.findall(r"(?m)^- \*\*(.+?)\*\*((?: \([^:]*\))?)", GLOSSARY)
    keys = [(term.casefold(), note) for term, note in terms]
    assert len(keys) > 90
    assert keys == sorted(keys)
    assert len(keys) == len(set(keys))


def test_the_glossary_refers_to_terms_that_it_has() -> None:
    terms = {term.casefold() for term in re.findall(r"(?m)^- \*\*(.+?)\*\*", GLOSSARY)}
    referred = re.findall(r"\bsee \*(.+?)\*", GLOSSARY)
    assert referred
    assert [term for term in referred if term not in terms] == []


def test_the_list_of_decisions_has_each_record_once() -> None:
    records = sorted(path.name for path in (DOCS / "adr").glob("[0-9]*.md"))
    listed = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (DOCS / "adr" / "README.md").read_text(encoding="utf-8"))
    assert listed == records
