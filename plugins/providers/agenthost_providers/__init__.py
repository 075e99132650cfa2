"""Model providers: one module each, which names its wire dialect."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import CommandSpec, hookimpl


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost models``."""
    from .listing import list_models
    from .refresh import models

    models.add_command(list_models)
    yield CommandSpec(models)
