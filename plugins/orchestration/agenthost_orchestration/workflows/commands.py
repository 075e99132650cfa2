"""``agenthost workflow``: workflows over the API."""

from __future__ import annotations

import click

from .run_commands import RUN_COMMANDS


@click.group()
def workflow() -> None:
    """Chain agents in steps, and run them."""


for _command in RUN_COMMANDS:
    workflow.add_command(_command)
