"""What the command line gives to commands, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import click

F = TypeVar("F", bound=Callable[..., Any])


class Api(Protocol):
    """Asks the running daemon."""

    def get(self, path: str) -> Any:
        """Ask for JSON."""

    def post(self, path: str, body: object = None, *, timeout: float = 10) -> Any:
        """Send JSON and read the answer's."""

    def put(self, path: str, body: object = None) -> Any:
        """Have something be so and read the answer's JSON."""

    def delete(self, path: str) -> Any:
        """Have something deleted and read the answer's JSON."""

    def agent_id(self, name: str) -> str:
        """Find an agent by its name or id."""


class Here(Protocol):
    """A home, its daemon, and how to tell what it says."""

    def connect(self) -> Api:
        """Find the running daemon."""

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print rows below a head."""

    def json(self, answer: object) -> None:
        """Print what the API answered."""

    def text(self, said: str) -> str:
        """Read what is said: ``-`` stands for standard input."""


def as_json(command: F) -> F:
    """Let a command print what the API answers."""
    option = click.option(
        "--json", "as_json", is_flag=True, help="Print what the API answers."
    )
    return option(command)


def sure(command: F) -> F:
    """Have a command ask before it takes something away for good."""
    asks = click.confirmation_option("--yes", "-y", prompt="Is this what you want?")
    return asks(command)


def segment(text: str) -> str:
    """Write a text as a part of a path."""
    return quote(text, safe="")


def rows_of(items: Sequence[dict[str, Any]], keys: Sequence[str]) -> list[list[Any]]:
    """Give the values of the keys, item by item."""
    return [[item.get(key) for key in keys] for item in items]
