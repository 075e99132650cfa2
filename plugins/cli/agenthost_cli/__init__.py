"""The command line: ``agenthost`` starts the daemon and speaks to it over HTTP."""

from __future__ import annotations

import gc
import os
import sys
from types import ModuleType

INTERRUPTED = 130


def main() -> int:
    """Run the command line; 0 done, 1 failed, 2 wrongly used, 130 interrupted."""
    _spare_imports()
    # A start makes objects that stay: looking for garbage among them is for nothing.
    gc.disable()
    try:
        return _run()
    except KeyboardInterrupt:
        # It came while modules were imported, before anybody else listens.
        print(file=sys.stderr)
        return INTERRUPTED


def _spare_imports() -> None:
    """Leave out what dependencies import for the sake of others."""
    # Otherwise pydantic would import whatever is installed as its plugin, enabled by
    # nobody, and read the metadata of every distribution to find it.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # To find none it would still import importlib.metadata, and all that brings.
    name = "pydantic.plugin._loader"
    vars(sys.modules.setdefault(name, ModuleType(name)))["get_plugins"] = tuple
    # The command line of httpx: where Rich is installed it costs four megabytes.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # reason: what stands as None is not importable


def _run() -> int:
    if sys.argv[1:] == ["start"]:
        from .first_start import asks
        from .home import home_folder

        if not asks(home_folder()):
            # There is nothing to parse: it does without Click and all other commands.
            from .foreground import run_daemon

            return run_daemon(home_folder())
    from .commands import run

    return run()
