"""Every example of README and docs/ is run by `python -m tests.wheel`, or stands in the account with a reason."""

from __future__ import annotations

import argparse
import re
from typing import Any

import pytest

from splitjoin.cli import command_parser

from .__main__ import NOTEBOOKS
from .account import CHANGES, PAGES, PROGRAMS, accounted, run_of
from .pages import ROOT, Block, blocks, commands, pages, words

#: Languages of blocks that are not run: answers and drawings, and SQL, which the tests of its pages read.
OTHERS = {"", "text", "sql", "toml"}
#: What a page writes where the reader must put something.
LEFT_TO_THE_READER = re.compile(r"…|\.\.\.|<\w+>|(?<![\w.$-])[A-Z]{3,}(?![\w.=])")
SHELL = [block for page in pages() for block in blocks(page) if block.language == "sh"]


def problems(block: Block) -> list[str]:
    """The reasons why ``block`` cannot be run as the account says; empty if it can."""
    if block.language in OTHERS:
        first = re.search(r"(?m)^\$? *(splitjoin|pip|make|python3?|spark-submit) [a-z-]", block.code)
        return [f"{first[0]!r} is a command: mark the block as sh"] if block.language == "" and first else []
    if block.language not in ("sh", "python"):
        return [f"blocks of the language {block.language!r} are not run: use sh or python"]
    if run_of(block) is None:
        return [f"no run of tests/wheel/account.py takes the block: add one for {block.page}"]
    if block.language == "python":
        return []
    found = []
    for command in accounted(block):
        if command.text is None:
            continue
        program = next(word for word in words(command.text) if not re.match(r"\w+=", word))
        if program not in PROGRAMS:
            found.append(f"{program} must be installed where the wheel is tested (PROGRAMS)")
        text = re.sub(r"\"[^\"]*\"|'[^']*'|#.*", "", command.text)
        if left := LEFT_TO_THE_READER.search(text):
            found.append(f"{left[0]} must be replaced by a Change: {command.shown}")
    return found


def test_every_block_is_run_or_has_a_reason() -> None:
    assert [f"{block.place}: {problem}" for page in pages() for block in blocks(page)
            for problem in problems(block)] == []


def test_the_account_has_no_more_than_there_is() -> None:
    examples = {block.page for page in pages() for block in blocks(page) if block.language in ("sh", "python")}
    assert set(PAGES) == examples
    for page, runs in PAGES.items():
        taken = [run_of(block) for block in blocks(page)]
        assert [run for run in runs if run not in taken] == [], page
    shown = {page: [command for block in SHELL if block.page == page for command in accounted(block)] for page in PAGES}
    for page, changes in CHANGES.items():
        assert [change.old for change in changes if not any(change.why in one.why and change.old in one.shown
                                                            for one in shown[page])] == []


def test_every_notebook_is_run() -> None:
    assert {path.stem for path in (ROOT / "examples" / "notebooks").glob("*.ipynb")} == set(NOTEBOOKS)


def test_reasons_are_given() -> None:
    told = [command for block in SHELL for command in accounted(block) if command.text != command.shown]
    assert len(told) > 10
    assert [command.shown for command in told if len(command.why) < 15] == []


def test_targets_of_make_are_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [words(command.shown)[1] for block in SHELL for command in accounted(block)
               if words(command.shown)[0] == "make" and words(command.shown)[1] != "-C"]  # that is another Makefile
    assert targets
    assert [target for target in targets if not re.search(rf"(?m)^{target}:", makefile)] == []


@pytest.mark.parametrize(("info", "code", "problem"), [
    ("sh", "frobnicate --now\n", "frobnicate must be installed where the wheel is tested"),
    ("sh", "splitjoin join R.csv S.csv …\n", "… must be replaced by a Change"),
    ("sh", "splitjoin program FOLDER\n", "FOLDER must be replaced by a Change"),
    ("bash", "splitjoin doctor\n", "blocks of the language 'bash' are not run"),
    ("", "$ splitjoin doctor\n", "is a command: mark the block as sh"),
])
def test_what_could_not_be_run_is_found(info: str, code: str, problem: str) -> None:
    found, = problems(Block("docs/index.md", 1, info, code))
    assert problem in found


def test_a_page_without_a_run_is_found() -> None:
    for info in ("sh", "python", "python spark"):
        assert "no run of" in problems(Block("docs/glossary.md", 1, info, "splitjoin doctor\n"))[0]


def test_blocks_and_what_they_print() -> None:
    text = "a\n\n```python spark\nprint(1)\n```\n\n```text\n1\n```\n\n```sh\nls\n```\n\nb\n\n```text\nc\n```\n"
    first, second, third = blocks("a.md", text)
    assert (first.line, first.language, first.code, first.prints) == (3, "python", "print(1)\n", "1\n")
    assert (second.line, second.info, second.prints) == (11, "sh", None)
    assert third.info == "text"


def test_commands_have_all_their_lines() -> None:
    code = "pip install x  # it's first\n\n# a comment\nA=1 b \\\n    c\npython -c \"\nprint('d')\n\"\nlast\n"
    assert [words(command) for command in commands(code)] == [
        ["pip", "install", "x"], ["A=1", "b", "c"], ["python", "-c", "\nprint('d')\n"], ["last"]]
    assert "".join(commands(code)) == code
    with pytest.raises(ValueError, match="No closing quotation"):
        commands("a 'b\n")
    with pytest.raises(ValueError, match="does not end: a "):
        commands("a \\\n")


def subcommands() -> dict[str, argparse.ArgumentParser]:
    """The parsers of the command line, by name."""
    chosen: Any = next(action for action in command_parser()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(chosen.choices)


def test_commands_are_what_the_command_line_takes() -> None:
    for command in (one for block in SHELL for one in commands(block.code) if words(one)[0] == "splitjoin"):
        given = [word for word in words(command)[1:] if word != "&"]
        if given[-1] == "--help":
            assert given[0] in subcommands()
        else:
            command_parser().parse_args(given)  # which says what it does not take, and exits


def test_commands_within_sentences_exist() -> None:
    """Each `splitjoin NAME …` names a command, and each option behind it is one of that command's."""
    wrong = []
    for page in pages():
        text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
        for found in re.findall(r"`splitjoin ([a-z][^`]*)`", text):
            name, *others = found.split()
            parser = subcommands().get(name)
            options = [word for word in others if word.startswith("--")]
            if parser is None or not set(options) <= set(parser._option_string_actions):
                wrong.append((page, found))
    assert wrong == []
