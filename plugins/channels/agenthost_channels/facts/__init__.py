"""What is known of each vendor, as data: ``<id>.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path

from ..contract import Facts

_FOLDER = Path(__file__).parent


def facts(channel: str) -> Facts:
    """Read the facts of a channel."""
    source = (_FOLDER / f"{channel}.toml").read_text(encoding="utf-8")
    return Facts(**tomllib.loads(source))


def known(channel: str) -> Facts:
    """Give the facts of a channel, cautious ones where none are written down."""
    try:
        return facts(channel)
    except FileNotFoundError:
        return Facts(channel, channel, "other", "")


def names() -> dict[str, dict[str, str]]:
    """Read what each channel is called, those included that nobody offers yet."""
    # Not beside the facts: a channel may have any name, that of the file too.
    source = _FOLDER.with_name("names.toml")
    return tomllib.loads(source.read_text(encoding="utf-8"))
