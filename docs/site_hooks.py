"""Hooks of MkDocs for `make docs`: what the site's pages need that their files on disk do not have.

- The API's pages name objects as users do (``::: splitjoin.join``); mkdocstrings gets the place of the definition.
- Pages that mkdocs.yml does not name are put behind the last ones of its navigation.
- docs/api/index.md lists the public names that no other page describes.
- docs/command-line.md gets the commands and options from the parser of the command line.
- Code blocks with a note for tests behind the language (``sql refused``) lose the note.
- Each notebook of examples/ that has outputs becomes a page in notebooks/.
- The playground gets splitjoin, and the files that `make playground` has fetched, if it has (docs/playground/files.py).
- llms.txt, beside the pages, lists them with their first sentences, for programs that read (https://llmstxt.org).
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
#: The line of docs/api/index.md that the remaining names replace.
OTHERS = "<!-- other names -->"
#: The names of decision records, which are not searched: their long titles would come before the pages for users.
RECORD = re.compile(r"\d{4}-")
#: Pages whose name begins so come later in searches (earlier, above 1): users look for how something is done first.
BOOSTS = {"api/": 0.2, "adr/": 0.02, "CONTRIBUTING": 0.002, "architecture.md": 0.05, "benchmarks": 0.3, "formal": 0.3,
          "joinbench": 0.1, "notebooks/": 0.1, "qualify": 0.5, "command-line": 0.5, "faq": 0.4, "recipes/": 0.3,
          "kinds": 1.5}
#: The line of docs/command-line.md that the commands replace.
COMMANDS = "<!-- commands -->"


def on_config(config: Any) -> Any:
    """Complete the navigation."""
    config.nav[-1]["Project"] += unnamed_pages()
    recipes = next(section["Recipes"] for section in config.nav if "Recipes" in section)
    recipes.append({"Notebooks": [f"notebooks/{path.stem}.md" for path in notebooks()]})
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages of the notebooks."""
    from mkdocs.structure.files import File

    for path in notebooks():
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=notebook_page(path)))
    return files


def notebooks() -> list[Path]:
    """The notebooks of examples/ that are committed with outputs."""
    found = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
    return [path for path in found if any(cell.get("outputs") for cell in json.loads(path.read_bytes())["cells"])]


def notebook_page(path: Path) -> str:
    """A notebook as Markdown: its texts, its code, and what each cell gave, pictures too."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {"text/plain": output.get("text")})
            if "image/png" in data:
                picture = "data:image/png;base64," + "".join(data["image/png"].split())
                parts.append(f'<img alt="what the cell draws" src="{picture}">')
            else:
                parts.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    parts.insert(1, f"*In Jupyter: `examples/notebooks/{path.name}`.*")
    return "\n\n".join(parts) + "\n"


def named_pages() -> list[str]:
    """The pages that the navigation of mkdocs.yml names, by their paths in docs/."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    return re.findall(r"(?m)^ +- (?:[^:\n]+: )?([\w/-]+\.md)$", text)


def unnamed_pages() -> list[str]:
    """The pages that it does not name, but for records of decisions, which docs/adr/README.md lists."""
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    return sorted(str(page) for page in pages if not RECORD.match(page.name) and str(page) not in named_pages())


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The page's text with everything filled in."""
    where = page.file.src_uri
    page.meta["search"] = {"exclude": bool(RECORD.match(page.file.name)),
                           "boost": next((boost for start, boost in BOOSTS.items() if where.startswith(start)), 1.0)}
    if where == "command-line.md":
        markdown = markdown.replace(COMMANDS, "\n".join(command_reference()))
    if where == "api/index.md":
        markdown = markdown.replace(OTHERS, "\n\n".join(f"::: {name}" for name in other_names()))
    if where.startswith("api/"):
        markdown = re.sub(r"(?m)^::: (splitjoin[\w.]*)$", lambda found: directive(found[1]), markdown)
    return re.sub(r"(?m)^(```\w+) [a-z ]+$", r"\1", markdown)


def on_post_build(config: Any) -> None:
    """Write llms.txt, and the playground's files."""
    spec = importlib.util.spec_from_file_location("playground_files", ROOT / "docs" / "playground" / "files.py")
    assert spec is not None
    assert spec.loader is not None
    playground = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(playground)
    playground.write_into(Path(config.site_dir) / "playground")
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", "", "## Pages", ""]
    for page in named_pages():
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        found = re.search(r"(?m)^# (.+)\n+((?:(?!```)[^\s#|<!-].*\n?)*)", text)
        assert found is not None, f"{page} must have a title"
        title, first = found.groups()
        sentence = re.split(r"(?<=[.:?]) ", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(first.split())))[0]
        address = page.removesuffix(".md").replace("README", "index")
        lines.append(f"- [{title}]({address}.html)" + (f": {sentence}" if sentence else ""))
    (Path(config.site_dir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def public_names() -> list[str]:
    """The names of the API: those of `splitjoin` and of `splitjoin.spark`."""
    import splitjoin
    from splitjoin import spark

    return [*(f"splitjoin.{name}" for name in dir(splitjoin) if not name.startswith("_")),
            *(f"splitjoin.spark.{name}" for name in spark.__all__)]


def other_names() -> list[str]:
    """The public names that no page of docs/api/ describes."""
    described = {name for path in (ROOT / "docs" / "api").glob("*.md")
                 for name in re.findall(r"(?m)^::: ([\w.]+)", path.read_text(encoding="utf-8"))}
    return [name for name in public_names() if name not in described]


def directive(name: str) -> str:
    """The directive of mkdocstrings for ``name``, by the module that defines it, under the name that users know."""
    module, _, attribute = name.rpartition(".")
    value = getattr(__import__(module, fromlist=[attribute]), attribute)
    if inspect.ismodule(value):
        return f"::: {name}"
    return f"::: {value.__module__}.{value.__qualname__}\n    options:\n      heading: {name}\n"


def command_reference() -> Iterator[str]:
    """Lines of Markdown: each command with its usage and a table of its arguments and options."""
    from splitjoin.cli import command_parser

    parser = command_parser()
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    yield "| command | does |\n|---|---|"
    for shown in commands._choices_actions:
        yield f"| [`splitjoin {shown.dest}`](#splitjoin-{shown.dest}) | {cell(shown.help or '')} |"
    yield f"\n```text\n{(parser.epilog or '').strip()}\n```\n"
    for name, command in commands.choices.items():
        yield f"## splitjoin {name}\n\n{command.description or ''}\n"
        yield f"```text\n{command.format_usage().removeprefix('usage: ').rstrip()}\n```\n"
        for group in command._action_groups:
            actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
            if [action for action in actions if "--help" not in action.option_strings]:
                yield from arguments(command, group, actions)


def arguments(command: argparse.ArgumentParser, group: Any, actions: list[argparse.Action]) -> Iterator[str]:
    """The table of a group of arguments."""
    formatter = command._get_formatter()
    yield f"| {group.title or 'options'} | |\n|---|---|"
    for action in actions:
        name = formatter._format_action_invocation(action).replace("|", "\\|")
        yield f"| `{name}` | {cell(formatter._expand_help(action) if action.help else '')} |"
    yield ""


def cell(text: str) -> str:
    """``text`` for a cell of a table, where nothing of it is markup."""
    return re.sub(r"([|<>*_\[\]])", r"\\\1", " ".join(text.split()))
