"""Model providers: one module each, over shared wire dialects."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from agenthost import CommandSpec, DialectSpec, hookimpl

from .dialects.spoken import DIALECTS, make


@hookimpl
def register_dialect() -> Iterable[DialectSpec]:
    """Offer the dialects to providers that are declared in the configuration."""
    for name in DIALECTS:
        yield DialectSpec(name, partial(make, name))


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost models``."""
    from .refresh import models

    yield CommandSpec(models)
