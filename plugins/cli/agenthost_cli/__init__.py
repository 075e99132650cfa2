"""The command line: ``agenthost`` starts the daemon and speaks to it over HTTP."""

from __future__ import annotations

import gc
import sys

INTERRUPTED = 130


def main() -> int:
    """Run the command line; 0 done, 1 failed, 2 wrongly used, 130 interrupted."""
    # A start makes objects that stay: looking for garbage among them is for nothing.
    gc.disable()
    try:
        from .spared import spare_imports

        spare_imports()
        return _run()
    except KeyboardInterrupt:
        # It came while modules were imported, before anybody else listens.
        print(file=sys.stderr)
        return INTERRUPTED


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
