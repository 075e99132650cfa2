"""What is said and offered before a daemon starts on a home that is new."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

FILE = "config.toml"
OPEN = (
    "No api_key is set: whatever runs on this machine may read and change everything, "
    "and so may every page that a browser here has from any port of localhost."
)
HINT = f"{OPEN} agenthost start --make-key makes a key."
_OTHERS = 0o077


def is_new(home: Path, environ: Mapping[str, str] = os.environ) -> bool:
    """Tell a home on which no daemon ran, and for which nothing was said yet."""
    if environ.get("AGENTHOST_API_KEY", "").strip():
        return False
    return not (home / FILE).exists() and not (home / "data").exists()


def asks(home: Path) -> bool:
    """Tell whether there is a person to be asked about a new home."""
    return is_new(home) and sys.stdin.isatty() and sys.stderr.isatty()


def offer_key(home: Path) -> None:
    """Ask a person whether the new home should have a key.

    Raises:
        CommandError: ``config.toml`` cannot be written.
    """
    import click

    click.echo(OPEN, err=True)
    if click.confirm("Make a key now?", default=True, err=True):
        make_key(home)


def make_key(home: Path) -> None:
    """Put a key into ``config.toml``, unless there is one.

    Raises:
        CommandError: The file cannot be read or written.
    """
    from secrets import token_urlsafe

    from .config_file import alone, edited, read, replace
    from .running import api_key

    if api_key(home) is not None:
        sys.stderr.write("there is an api_key already; it stays as it is\n")
        return
    key = token_urlsafe(32)

    def put(document: TOMLDocument) -> None:
        document["api_key"] = key

    with alone(home):
        replace(home, edited(read(home), put))
    sys.stderr.write(
        f"api_key = {key}\nIt stands in {home / FILE}, where the commands of agenthost "
        "find it; the page asks for it.\n"
    )


def exposed(home: Path) -> list[str]:
    """Warn of a home that others on this machine may look into."""
    try:
        mode = home.stat().st_mode
    except OSError:
        return []
    if not mode & _OTHERS:
        return []
    return [f"other users of this machine may look into {home}; chmod 700 it"]
