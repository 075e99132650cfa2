"""Who may speak: the list, people that are linked, and codes for strangers."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from agenthost import Host

from ..contract import Inbound, Room
from .settings import ChannelSection

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_LENGTH = 8
CODE_SECONDS = 3600.0
MOST_PENDING = 50
"""Codes of a channel at once: strangers cannot fill a disk."""
KIND = "channel_user"
"""The kind of principal, by which ``/api/persons`` links people."""


class Verdict(Enum):
    """What becomes of a message."""

    ANSWER = auto()
    IGNORE = auto()
    ASK_FOR_CODE = auto()


def external(channel: str, sender: str) -> str:
    """Name somebody as links of persons do."""
    return f"{channel}:{sender}"


def judged(section: ChannelSection, message: Inbound, *, known: bool) -> Verdict:
    """Tell what becomes of a message.

    Args:
        section: What the channel's settings say.
        message: It.
        known: Whether its sender may speak at all.
    """
    if message.edited or message.sender.bot:
        return Verdict.IGNORE
    if message.place.room is not Room.DIRECT:
        speaks = known and _speaks_to_us(section, message)
        return Verdict.ANSWER if speaks else Verdict.IGNORE
    if section.dm_policy == "ignore":
        return Verdict.IGNORE
    if known:
        return Verdict.ANSWER
    return Verdict.ASK_FOR_CODE if section.dm_policy == "pairing" else Verdict.IGNORE


def _speaks_to_us(section: ChannelSection, message: Inbound) -> bool:
    """Tell whether what was said in a group is for the agent."""
    policy = section.group_policy
    if policy == "mention_only":
        return message.mentions_us
    return policy == "all" or (
        policy == "commands_only" and message.text.startswith("/")
    )


async def may_speak(
    host: Host, channel: str, section: ChannelSection, sender: str
) -> bool:
    """Tell whether somebody may speak, by the list or by being linked to a person."""
    if sender in section.allow_from or sender in section.operators:
        return True
    if section.dm_policy != "pairing":
        return False
    return await host.persons.find(KIND, external(channel, sender)) is not None


def code() -> str:
    """Make a code that a stranger shows to the operator."""
    return "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))


def pairing_row(channel: str, message: Inbound, now: float) -> dict[str, Any]:
    """Make the row of a stranger's code."""
    return {
        "channel": channel,
        "code": code(),
        "sender": message.sender.id,
        "name": message.sender.name[:100],
        "account": message.place.account,
        "peer": message.place.peer,
        "thread": message.place.thread,
        "asked_at": now,
        "expires_at": now + CODE_SECONDS,
        "owner": f"{KIND}:{external(channel, message.sender.id)}",
        "labels": "untrusted",
    }


def greeting(pairing: Mapping[str, Any]) -> str:
    """Tell a stranger what to do."""
    return (
        f"I do not know you yet. Show this code to whoever runs me: {pairing['code']}. "
        "It holds for an hour."
    )
