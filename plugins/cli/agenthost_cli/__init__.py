"""The command line: ``agenthost`` starts the daemon and speaks to it over HTTP."""

from __future__ import annotations


def main() -> int:
    """Run the command line; 0 done, 1 refused or failed, 130 interrupted."""
    from .commands import run

    return run()
