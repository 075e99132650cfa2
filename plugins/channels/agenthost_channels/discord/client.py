"""Discord's HTTP API. Source: https://docs.discord.com/developers/reference."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx
from agenthost import (
    AgentHostError,
    NotFound,
    Unauthenticated,
    Unavailable,
    __version__,
)

from ..contract import Fate, Line, OutFile, Sent
from ..transports.calls import as_sent, called, object_of
from .limits import Limits

OK, DONE, UNAUTHORIZED, FORBIDDEN = 200, 204, 401, 403
MISSING, TOO_MANY, SERVER_ERROR = 404, 429, 500
SECONDS = 30.0
LONGEST_WAIT = 30.0
PAGE = 100
FILES = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
NEEDED = "Discord needs bot_token: set DISCORD_BOT_TOKEN"
REFUSED = "Discord refuses bot_token: set DISCORD_BOT_TOKEN anew"


class Client:
    """The API with our token, never called more often than it lets itself be."""

    def __init__(self, line: Line, api_url: str) -> None:
        self._line = line
        self._api = api_url.rstrip("/")
        self._limits = Limits(line.clock.monotonic)

    def token(self) -> str:
        """Give the token.

        Raises:
            Unauthenticated: There is none.
        """
        if (token := self._line.secret("bot_token")) is None:
            raise Unauthenticated(NEEDED)
        return token.reveal()

    async def _call(
        self, method: str, path: str, channel: str = "", **given: Any
    ) -> tuple[httpx.Response, float | None]:
        """Call a path, ``{}`` in it being the channel; give the pause it asks for."""
        headers = {
            "authorization": f"Bot {self.token()}",
            "user-agent": f"DiscordBot (agenthost, {__version__})",
        }
        url = f"{self._api}{path.replace('{}', channel)}"
        answered = await called(
            self._line.http(), method, url, headers=headers, timeout=SECONDS, **given
        )
        return answered, self._limits.learn(_route(method, path), channel, answered)

    # What needs an answer.

    async def ask(self, path: str, channel: str = "", **query: str) -> Any:
        """Ask for something, after the pause that Discord wants.

        Raises:
            NotFound: It is not there, or not for us.
            Unauthenticated: Discord refuses the token.
            Unavailable: Discord does not answer as it should.
        """
        pause = self._limits.pause(_route("GET", path), channel)
        if pause > LONGEST_WAIT:
            raise Unavailable(f"Discord asks for a pause of {pause:.0f} seconds")
        if pause:
            await self._line.clock.sleep(pause)
        answered, _ = await self._call("GET", path, channel, params=query)
        if answered.status_code == OK:
            try:
                return answered.json()
            except (ValueError, RecursionError):
                raise Unavailable("Discord's answer is no JSON") from None
        if answered.status_code == UNAUTHORIZED:
            raise Unauthenticated(REFUSED)
        if answered.status_code in {FORBIDDEN, MISSING}:
            raise NotFound("channel", channel or "on Discord")
        raise Unavailable(f"Discord: {_reason(answered)}")

    async def us(self) -> dict[str, Any]:
        """Ask who we are; raises as :meth:`ask` does."""
        found = await self.ask("/users/@me")
        if not isinstance(found, dict) or not isinstance(found.get("id"), str):
            raise Unavailable("Discord does not say who we are")
        return found

    async def gateway(self) -> str:
        """Ask where the gateway is; raises as :meth:`ask` does."""
        found = await self.ask("/gateway/bot")
        url = found.get("url") if isinstance(found, dict) else None
        if not isinstance(url, str):
            raise Unavailable("Discord does not say where its gateway is")
        limit = found.get("session_start_limit")
        if isinstance(limit, dict) and limit.get("remaining") == 0:
            # The thousandth of a day would have Discord take the token away.
            raise Unavailable("Discord lets no more sessions begin today")
        return url

    async def messages(self, channel: str, **query: str) -> list[dict[str, Any]]:
        """Read messages of a channel, oldest first; raises as :meth:`ask` does."""
        path = "/channels/{}/messages"
        found = await self.ask(path, channel, limit=str(PAGE), **query)
        entries = found if isinstance(found, list) else []
        known = [each for each in entries if _number(each) is not None]
        return sorted(known, key=lambda each: int(each["id"]))

    # What says something.

    async def say(self, method: str, path: str, body: Any, *, channel: str) -> Sent:
        """Make a call that says or changes something; tell what became of it."""
        given = {} if body is None else {"json": body}
        return await self._said(method, path, channel, given)

    async def upload(
        self, channel: str, body: dict[str, Any], files: tuple[OutFile, ...]
    ) -> Sent:
        """Say something with files."""
        listed = [
            {"id": number, "filename": file.name} for number, file in enumerate(files)
        ]
        payload = json.dumps({**body, "attachments": listed})
        parts: list[tuple[str, tuple[str | None, Any, str]]] = [
            ("payload_json", (None, payload, "application/json")),
            *(
                (f"files[{number}]", (file.name, file.data, file.media_type))
                for number, file in enumerate(files)
            ),
        ]
        path = "/channels/{}/messages"
        return await self._said("POST", path, channel, {"files": parts})

    async def _said(
        self, method: str, path: str, channel: str, given: dict[str, Any]
    ) -> Sent:
        route = _route(method, path)
        if pause := self._limits.pause(route, channel):
            reason = "Discord's limit is reached"
            return Sent(Fate.NOT_SENT, reason=reason, retry_after=pause)
        try:
            answered, after = await self._call(method, path, channel, **given)
        except AgentHostError as error:
            return as_sent(error)
        return _fate(answered, after)

    async def file(self, url: str) -> bytes:
        """Fetch a file of Discord's; our token goes nowhere with it.

        Raises:
            NotFound: It is not there, or not Discord's.
        """
        try:
            parts, ours = httpx.URL(url), httpx.URL(self._api)
        except httpx.InvalidURL:
            raise NotFound("file", "on Discord") from None
        theirs = parts.scheme == "https" and parts.host in FILES
        if not theirs and parts.copy_with(path="/", query=None) != ours.copy_with(
            path="/", query=None
        ):
            raise NotFound("file", "on Discord")
        answered = await called(self._line.http(), "GET", url, timeout=SECONDS)
        if answered.status_code != OK:
            raise NotFound("file", "on Discord")
        return answered.content


def reaction_path(message: str, emoji: str) -> str:
    """Name the path of our reaction to a message."""
    return f"/channels/{{}}/messages/{message}/reactions/{quote(emoji, safe='')}/@me"


def _route(method: str, path: str) -> str:
    """Name a route as Discord counts it: of ids the channel's alone."""
    parts = ["{id}" if part.isdecimal() else part for part in path.split("/")]
    return f"{method} {'/'.join(parts)}"


def _fate(answered: httpx.Response, after: float | None) -> Sent:
    status = answered.status_code
    if status == DONE:
        return Sent(Fate.DELIVERED)
    name = object_of(answered).get("id")
    if status == OK and isinstance(name, str):
        return Sent(Fate.DELIVERED, name)
    reason = f"Discord: {_reason(answered)}"
    if status < 300 or status >= SERVER_ERROR:
        return Sent(Fate.UNKNOWN, reason=reason)
    if status == TOO_MANY:
        return Sent(Fate.NOT_SENT, reason=reason, retry_after=after)
    if status == UNAUTHORIZED:
        return Sent(Fate.NOT_SENT, reason=REFUSED)
    return Sent(Fate.NOT_SENT, reason=reason, final=True)


def _reason(answered: httpx.Response) -> str:
    body = object_of(answered)
    words = f"{answered.status_code} {body.get('code', '')} {body.get('message', '')}"
    return "".join(sign for sign in words if sign.isprintable())[:200].strip()


def _number(entry: Any) -> int | None:
    name = entry.get("id") if isinstance(entry, dict) else None
    return int(name) if isinstance(name, str) and name.isdecimal() else None
