"""What the command line is to the daemon: a plugin with a section of its own.

It stands apart from the package, which ``agenthost --help`` imports without the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ConfigSection, hookimpl

from .settings import ProcessSection


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read what the process may do."""
    yield ConfigSection("process", ProcessSection)
