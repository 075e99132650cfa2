"""Discord on a loopback port: who is there, the API, and the gateway."""

from __future__ import annotations

from . import world
from .simulator import DiscordSimulator

__all__ = ["DiscordSimulator", "world"]
