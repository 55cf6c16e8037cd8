"""Explanations: text, plain data, JSON and HTML of the same facts."""

from __future__ import annotations

import json
import math
import pickle

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import Explanation
from splitjoin.base.explanation import Fact
from tests.support.html_page import Page

HOSTILE = '</td><script>alert("x")</script>&\x1b[31m'


def joined(*, analyze: bool) -> Explanation:
    """A join of tables with 300 candidates."""
    table = pa.table({"x": [n % 3 for n in range(30)]})
    return splitjoin.explain(table, table, on="r.x = s.x", analyze=analyze)


def circuit() -> Explanation:
    """A query with a hostile name in its condition."""
    table = pa.schema([(HOSTILE, pa.int32())])
    return splitjoin.explain(splitjoin.query(table, table, on=f'r."{HOSTILE}" = s."{HOSTILE}"'.replace('"x"', '""x""'),
                                             window="ROWS 8"), passes=True)


def test_it_is_used_as_a_text() -> None:
    told = joined(analyze=False)
    text = str(told)
    assert type(text) is str
    assert (told, f"{told}", repr(told), told.splitlines()) == (text, text, text, text.splitlines())
    assert "pairs expected" in told
    assert told.startswith("way  ")
    assert told.upper() == text.upper()
    assert str(told + "\nend") == text + "\nend"
    assert pickle.loads(pickle.dumps(told)).facts == told.facts


@pytest.mark.parametrize("lines", [
    ["condition   TRUE", "pass        one: what", "    (r.x = s.a)", "cpu         yes", "            up to 2"],
    ["kind             left"], ["an index by"], ["golden      yes"], [""], ["            first"],
    ["verified\t   x y z"]])
def test_every_line_comes_back(lines: list[str]) -> None:
    told = Explanation(lines)
    assert str(told) == "\n".join(lines)
    assert Explanation(str(told)).facts == told.facts
    assert len(told.facts) == sum(not line.startswith(" ") or n == 0 for n, line in enumerate(lines))


def test_json_has_the_facts() -> None:
    for told in (joined(analyze=True), circuit()):
        for indent in (None, 2):
            assert json.loads(told.to_json(indent=indent)) == told.to_dict()
        facts = told.to_dict()["facts"]
        lines = [line for fact in facts for line in (f"{fact['name']:<12}{fact['text']}", *fact["more"])]
        assert lines == [line.strip() for line in str(told).split("\n")]
    assert "key" in {fact["name"] for fact in facts}
    assert Explanation([Fact("way", "x", figures={"expected": math.inf})]).to_dict()["facts"][0]["figures"] == {
        "expected": None}


def test_the_page_has_the_figures_of_the_text() -> None:
    told = joined(analyze=True)
    by_name = {fact.name: fact for fact in told.facts}
    figures = by_name["candidates"].figures
    assert (figures["counted"], figures["of"], by_name["rows"].figures["counted"]) == (300, 900, 300)
    assert by_name["candidates"].text == f"about {figures['expected']:,.0f} pairs expected; 300 looked at"
    page = Page(told.html())
    at = page.texts.index("candidates, expected")
    assert page.texts[at:at + 6] == ["candidates, expected", f"{figures['expected']:,.0f}",
                                     "candidates, counted", "300", "rows, counted", "300"]
    widths = [float(attributes["width"]) for tag, attributes in page.elements if tag == "rect"]
    longest = max(figures["expected"], 300)
    assert widths == pytest.approx([358 * value / longest for value in (figures["expected"], 300, 300)], abs=0.06)
    assert "All pairs, within windows where there are some: 900" in page.texts
    cells = {fact.text for fact in told.facts}
    assert cells <= set(page.texts)
    assert told._repr_html_() in told.html()


def test_names_are_escaped() -> None:
    told = circuit()
    assert '<script>alert("x")' in told
    page = Page(told.html())
    assert "script" not in {tag for tag, _ in page.elements}
    assert any('<script>alert("x")</script>&\\x1b[31m' in text for text in page.texts)
    assert "\x1b" not in told.html()


def test_a_page_needs_nothing_else() -> None:
    page = Page(joined(analyze=True).html())
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.elements}
    assert not {"src", "href", "onload"} & {name for _, attributes in page.elements for name in attributes}
    style = " ".join(page.texts)
    assert "url(" not in style
    assert "@import" not in style
    assert "color-scheme:light dark" in style


def test_a_page_without_figures_has_no_bars() -> None:
    assert "svg" not in {tag for tag, _ in Page(Explanation("way         x").html()).elements}
    nothing = Explanation([Fact("rows", "0 rows", figures={"counted": 0})])
    assert [a["width"] for tag, a in Page(nothing.html()).elements if tag == "rect"] == ["0.0"]


def test_the_plan_of_a_session_is_one() -> None:
    schema = pa.schema([("x", pa.int64())])
    with splitjoin.open(splitjoin.query(schema, schema, on="r.x = s.x", window="ROWS 8")) as session:
        told = session.plan()
    assert isinstance(told, Explanation)
    assert told.to_dict() == {"facts": [{"name": "", "text": str(told), "more": [], "figures": {}}]}
    assert str(told) in Page(told.html()).texts
