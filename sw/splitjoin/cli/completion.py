"""Completion of commands, options and their values in shells: the command ``completion``, and what shells ask for."""

from __future__ import annotations

import argparse
import os

_SHELLS = ("bash", "zsh", "fish")


def completion_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("shell", metavar="SHELL", choices=_SHELLS,
                        help="bash, zsh or fish; put `eval \"$(splitjoin completion bash)\"` into ~/.bashrc, the same "
                             "with zsh into ~/.zshrc, or `splitjoin completion fish | source` into config.fish")


def print_completion(args: argparse.Namespace) -> None:
    """Print the code that a shell evaluates to complete ``splitjoin``."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["splitjoin"], shell=args.shell))


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that asks how a line may go on, and end the process; return at once if none asks."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser)
