"""The command line: ``agenthost`` starts the daemon and speaks to it over HTTP."""

from __future__ import annotations

import gc


def main() -> int:
    """Run the command line; 0 done, 1 failed, 2 wrongly used, 130 interrupted."""
    # A start makes objects that stay: looking for garbage among them is for nothing.
    gc.disable()
    from .commands import run

    return run()
