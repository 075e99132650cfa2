"""Whether the file is damaged, and what is said then."""

from __future__ import annotations

from pathlib import Path

from agenthost import ConfigError

from .backup import backups
from .faults import DAMAGED, primary_code

CLEAN = "closed_cleanly"
"""The mark of a database that was closed in order."""
CHECK = "PRAGMA quick_check(1)"


def damaged(path: Path) -> ConfigError:
    """Say that the file is damaged and which copy can take its place."""
    copies = backups(path)
    remedy = (
        f"copy {copies[0].name} over it" if copies else "copy your own backup over it"
    )
    return ConfigError(
        f"the database {path.name} is damaged; with agenthost stopped, delete "
        f"{path.name}-wal and {path.name}-shm and {remedy}"
    )


def is_damage(error: BaseException) -> bool:
    """Tell whether an error means that the file is damaged."""
    return primary_code(error) in DAMAGED
