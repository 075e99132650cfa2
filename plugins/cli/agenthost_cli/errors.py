"""What goes wrong on the command line."""

from __future__ import annotations

import click


class CommandError(click.ClickException):
    """Shown as ``Error: <message>``; the command ends with 1."""
