"""The commands of ``agenthost`` for what this surface serves, over its own routes."""

from __future__ import annotations

from collections.abc import Iterable

import click


def commands() -> Iterable[click.Command]:
    """The commands, each in a file of its subject."""
    from .agents import agent
    from .catalogue import providers, usage
    from .memory import memory
    from .sessions import session

    return agent, session, memory, providers, usage
