"""People with an account at a homeserver, by its client-server API."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx

PASSWORD = "canary-of-synapse"  # noqa: S105 # nosec B105 # opens nothing


class User:
    """One person."""

    _keys = itertools.count()

    def __init__(self, port: int, user: str, token: str) -> None:
        self.id = user
        self.token = token
        self._base = f"http://127.0.0.1:{port}"
        self._client = httpx.AsyncClient(trust_env=False, timeout=40)

    async def aclose(self) -> None:
        """Hang up."""
        await self._client.aclose()

    async def call(self, method: str, path: str, **given: Any) -> Any:
        """Ask the homeserver, and give what it answers."""
        headers = {"Authorization": f"Bearer {self.token}", **given.pop("headers", {})}
        url = f"{self._base}{path}"
        answered = await self._client.request(method, url, headers=headers, **given)
        assert answered.status_code == 200, answered.text
        kind = answered.headers["content-type"]
        return answered.json() if "json" in kind else answered.content

    async def room(self, *invited: User) -> str:
        """Make a room with others, who come in."""
        names = [each.id for each in invited]
        body = {"invite": names, "preset": "trusted_private_chat"}
        made = await self.call("POST", "/_matrix/client/v3/createRoom", json=body)
        room: str = made["room_id"]
        for each in invited:
            path = f"/_matrix/client/v3/rooms/{quote(room)}/join"
            await each.call("POST", path, json={})
        return room

    async def send(self, room: str, content: Any, kind: str = "m.room.message") -> str:
        """Send an event to a room, and give its id."""
        key = f"k{next(self._keys)}"
        path = f"/_matrix/client/v3/rooms/{quote(room)}/send/{kind}/{key}"
        event: str = (await self.call("PUT", path, json=content))["event_id"]
        return event

    async def until(
        self, room: str, wanted: Callable[[list[Any]], Any], sender: str
    ) -> Any:
        """Look at what somebody sent to a room until it is what is waited for."""
        since = None
        ends = time.monotonic() + 20
        while time.monotonic() < ends:
            query = {"dir": "b", "limit": "1000"}
            path = f"/_matrix/client/v3/rooms/{quote(room)}/messages"
            page = await self.call("GET", path, params=query)
            sent = [each for each in page["chunk"][::-1] if each["sender"] == sender]
            if found := wanted(sent):
                return found
            query = {"timeout": "1000", **({"since": since} if since else {})}
            news = await self.call("GET", "/_matrix/client/v3/sync", params=query)
            since = news["next_batch"]
        raise AssertionError("it never came")


def registered(port: int, name: str) -> tuple[str, str]:
    """Give somebody an account: their id and their token."""
    url = f"http://127.0.0.1:{port}/_synapse/admin/v1/register"
    nonce = httpx.get(url, trust_env=False).json()["nonce"]
    words = "\0".join([nonce, name, PASSWORD, "notadmin"]).encode()
    proof = hmac.new(b"shared", words, hashlib.sha1).hexdigest()
    body = {"nonce": nonce, "username": name, "password": PASSWORD, "mac": proof}
    made = httpx.post(url, json={**body, "admin": False}, trust_env=False).json()
    return made["user_id"], made["access_token"]
