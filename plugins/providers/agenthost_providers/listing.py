"""``agenthost models list``: the models that the running daemon knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import click

HEADS = ("model", "provider", "tier", "window", "in $/M", "out $/M", "tools", "name")
SHOWN = ("id", "provider", "tier", "context_window", "input_cost_per_1m")
SHOWN_LAST = ("output_cost_per_1m", "supports_tools", "display_name")


class Api(Protocol):
    """Asks the running daemon."""

    def get(self, path: str) -> Any:
        """Ask for JSON."""


class Here(Protocol):
    """What the command line gives to commands."""

    def connect(self) -> Api:
        """Find the running daemon."""

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print rows below a head."""

    def json(self, answer: object) -> None:
        """Print what the API answered."""


@click.command("list")
@click.argument("words", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the models as JSON.")
@click.pass_obj
def list_models(here: Here, words: tuple[str, ...], *, as_json: bool) -> None:
    """List the models, or those whose id, name, provider or tier have all WORDS."""
    every = here.connect().get("/api/models")["models"]
    models = [model for model in every if _has(model, words)]
    if as_json:
        here.json(models)
        return
    shown = (*SHOWN, *SHOWN_LAST)
    here.table(HEADS, [[model[key] for key in shown] for model in models])


def _has(model: dict[str, Any], words: Sequence[str]) -> bool:
    said = " ".join(str(model[key]) for key in ("id", "display_name", "provider"))
    text = f"{said} {model['tier']}".lower()
    return all(word.lower() in text for word in words)
