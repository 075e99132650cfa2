"""Who and what there is on our Discord: people, channels and messages."""

from __future__ import annotations

import itertools
import re
import time
from datetime import UTC, datetime
from typing import Any

EPOCH_MS = 1_420_070_400_000
TOKEN = "MTAwMDA.of-the-test.canary"  # noqa: S105 # nosec B105 # nobody's
GUILD = "300000000000000001"
DIRECT, TEXT, THREAD, HIDDEN = (f"20000000000000000{n}" for n in (1, 2, 3, 4))
US: dict[str, Any] = {
    "id": "100000000000000001",
    "username": "our_bot",
    "global_name": None,
    "discriminator": "0",
    "avatar": None,
    "bot": True,
}
ADA: dict[str, Any] = {
    "id": "100000000000000007",
    "username": "ada",
    "global_name": "Ada",
    "discriminator": "0",
    "avatar": None,
}
BOT = {**ADA, "id": "100000000000000008", "username": "other", "bot": True}
CHANNELS: dict[str, dict[str, Any]] = {
    DIRECT: {"id": DIRECT, "type": 1, "recipients": [ADA], "last_message_id": None},
    TEXT: {"id": TEXT, "type": 0, "guild_id": GUILD, "name": "general"},
    THREAD: {
        "id": THREAD,
        "type": 11,
        "guild_id": GUILD,
        "parent_id": TEXT,
        "owner_id": ADA["id"],
        "name": "a thread",
        "message_count": 0,
        "member_count": 1,
        "thread_metadata": {
            "archived": False,
            "auto_archive_duration": 60,
            "archive_timestamp": "2026-11-01T00:00:00+00:00",
            "locked": False,
        },
    },
}
CHANNELS[TEXT] |= {"position": 0, "permission_overwrites": [], "parent_id": None}
EVERYONE = {
    "id": GUILD,
    "name": "@everyone",
    "permissions": str((1 << 53) - 1),
    "color": 0,
    "colors": {
        "primary_color": 0,
        "secondary_color": None,
        "tertiary_color": None,
    },
    "hoist": False,
    "managed": False,
    "mentionable": False,
    "position": 0,
}
MEMBER = {"roles": [], "joined_at": "2026-01-01T00:00:00+00:00", "flags": 0}
MEMBER |= {"deaf": False, "mute": False, "nick": None}
_ids = itertools.count()


def snowflake() -> str:
    """Give the next id: the time, and a number within it."""
    passed = int(time.time() * 1000) - EPOCH_MS
    return str((passed << 22) + next(_ids))


def now() -> str:
    """Give the time as Discord writes it."""
    return datetime.now(UTC).isoformat()


def message(channel: str, author: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Make a message as Discord sends it; ``fields`` are put over it."""
    content = str(fields.get("content", ""))
    named = {each["id"]: each for each in (US, ADA, BOT)}
    found = re.findall(r"<@!?(\d+)>", content)
    whole: dict[str, Any] = {
        "id": snowflake(),
        "type": 0,
        "channel_id": channel,
        "author": author,
        "content": content,
        "timestamp": now(),
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": False,
        "mentions": [named[each] for each in found if each in named],
        "mention_roles": [],
        "attachments": [],
        "embeds": [],
        "components": [],
        "pinned": False,
        "flags": 0,
    }
    return {**whole, **fields}


def guild() -> dict[str, Any]:
    """Make what GUILD_CREATE says."""
    return {
        "id": GUILD,
        "name": "The guild",
        "owner_id": ADA["id"],
        "unavailable": False,
        "large": False,
        "member_count": 2,
        "joined_at": "2026-01-01T00:00:00+00:00",
        "channels": [CHANNELS[TEXT]],
        "threads": [CHANNELS[THREAD]],
        "members": [{**MEMBER, "user": US}, {**MEMBER, "user": ADA}],
        "roles": [EVERYONE],
        "emojis": [],
        "stickers": [],
        "voice_states": [],
        "presences": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
        "features": [],
        "premium_tier": 0,
        "preferred_locale": "en-US",
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "mfa_level": 0,
        "nsfw_level": 0,
        "system_channel_flags": 0,
        "afk_timeout": 300,
    }
