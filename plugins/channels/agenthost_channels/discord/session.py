"""What outlives a connection to the gateway: the session, and how far it was heard.

It is the line's cursor, as JSON: it is on disk with the messages that it counts.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

from ..contract import Room
from .mapping import MALFORMED, SNOWFLAKE, Whereabouts

CHANNELS = 50
LARGEST = 1 << 53


class Session:
    """A session of the gateway, and the last message of each channel.

    Attributes:
        id: Discord's name of it, "" for none.
        url: Where it is resumed, "" for wherever sessions begin.
        seq: The number of the last event that is on disk here.
        heard: The last message of the channels that were heard last, by channel.
    """

    def __init__(self, cursor: str) -> None:
        self.id = self.url = ""
        self.seq: int | None = None
        self.heard: OrderedDict[str, tuple[str, Whereabouts]] = OrderedDict()
        try:
            self._read(json.loads(cursor) if cursor else {})
        except MALFORMED:
            self.heard.clear()
            self.drop()

    def _read(self, kept: dict[str, Any]) -> None:
        for channel, (last, peer, thread, room) in kept.get("heard", {}).items():
            self.heard[channel] = (last, Whereabouts(peer, thread, Room(room)))
        self.id, self.url = str(kept.get("id", "")), str(kept.get("url", ""))
        self.seq = kept.get("seq")

    def written(self) -> str:
        """Write the cursor."""
        heard = {
            channel: [last, where.peer, where.thread, where.room.value]
            for channel, (last, where) in self.heard.items()
        }
        kept = {"id": self.id, "url": self.url, "seq": self.seq, "heard": heard}
        return json.dumps(kept, separators=(",", ":"))

    @property
    def known(self) -> bool:
        """Whether there is one to resume."""
        return bool(self.id) and self.seq is not None

    def drop(self) -> None:
        """Forget the session; what was heard is still known."""
        self.id = self.url = ""
        self.seq = None

    def begin(self, ready: dict[str, Any], seq: Any) -> None:
        """Take what READY says."""
        self.id = str(ready.get("session_id") or "")
        self.url = str(ready.get("resume_gateway_url") or "")
        self.passed(seq)

    def passed(self, seq: Any) -> None:
        """An event is done with; a number that is none changes nothing."""
        if isinstance(seq, int) and 0 <= seq < LARGEST:
            self.seq = seq

    def hear(self, channel: str, message: str, where: Whereabouts) -> None:
        """A message of a channel is the last one, unless a later one was."""
        last = self.heard.get(channel, ("0", where))[0]
        if SNOWFLAKE.fullmatch(message) and int(message) > int(last):
            last = message
        self.heard[channel] = (last, where)
        self.heard.move_to_end(channel)
        while len(self.heard) > CHANNELS:
            self.heard.popitem(last=False)
