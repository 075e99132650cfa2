"""The command line: ``agenthost`` starts the daemon and speaks to it over HTTP."""

from __future__ import annotations

import gc
import os


def main() -> int:
    """Run the command line; 0 done, 1 failed, 2 wrongly used, 130 interrupted."""
    # Otherwise pydantic would import whatever is installed as its plugin, enabled by
    # nobody, and read the metadata of every distribution to find it.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # A start makes objects that stay: looking for garbage among them is for nothing.
    gc.disable()
    from .commands import run

    return run()
