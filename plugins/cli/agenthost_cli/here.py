"""What ``click.pass_obj`` gives to commands: the home, its daemon, how to tell."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from .client import Client


class Here:
    """A home, and the daemon that runs on it."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def connect(self) -> Client:
        """Find the running daemon; a CommandError when there is none."""
        from .client import Client

        return Client(self.home)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print rows below a head; without rows the head alone."""
        from .tables import table

        click.echo(table(heads, rows))

    def json(self, answer: object) -> None:
        """Print what the API answered, for programs."""
        click.echo(dumps(answer, indent=2))

    def text(self, said: str) -> str:
        """Read what is said: ``-`` stands for standard input.

        Raises:
            UsageError: Standard input is empty.
        """
        if said != "-":
            return said
        read = sys.stdin.read()
        if not read.strip():
            raise click.UsageError("standard input is empty; nothing to send")
        return read
