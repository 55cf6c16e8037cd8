"""Bitwuzla as the program that yosys-smtbmc runs: SMT-LIB from standard input, answers to standard output.

Its package on PyPI has the library without the program. Usage: ``python solver.py [--help | OPTION…]``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import bitwuzla

#: By this option yosys-smtbmc knows a current Bitwuzla.
_HELP = "--lang <M>  input language {smt2}"


def commands(lines: Iterable[str]) -> Iterator[str]:
    """SMT-LIB commands, one after the other; a command ends with a line."""
    text, depth = "", 0
    for line in lines:
        if line.startswith(";"):
            continue
        text += line
        depth += line.count("(") - line.count(")")
        if depth == 0 and text.strip():
            yield text
            text = ""


def main(arguments: list[str]) -> int:
    """Returns 0."""
    if "--help" in arguments:
        print(_HELP)
        return 0
    parser = bitwuzla.Parser(bitwuzla.TermManager(), bitwuzla.Options())
    for command in commands(sys.stdin):
        if command.strip() == "(exit)":
            break
        parser.parse(command, parse_only=False, parse_file=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
