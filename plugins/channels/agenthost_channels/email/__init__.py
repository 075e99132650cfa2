"""Email: a mailbox read by IMAP, and answers sent by SMTP."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ChannelSpec, hookimpl


def _load() -> type:
    from .adapter import Email

    return Email


@hookimpl
def register_channel() -> Iterable[ChannelSpec]:
    """Offer email."""
    yield ChannelSpec("email", _load)
