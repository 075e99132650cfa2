"""``/api/channels/{id}/...``: try a channel, connect it again, give it its secrets."""

from __future__ import annotations

import asyncio
from functools import partial

from agenthost import (
    AgentHostError,
    Answer,
    Call,
    ChannelSpec,
    Conflict,
    Host,
    InvalidInput,
    NotFound,
    RouteGroup,
    telling,
)
from agenthost_toml.types import Table
from pydantic import Field
from typing_extensions import TypedDict

from ..contract import Adapter
from . import writes
from .bridge import bridge_of
from .events import ChannelSwitched
from .settings import Channels
from .speaking import Words, account_of, say

WRITE = "channels:write"
IDENTITY_SECONDS = 30.0
GREETING = "This is a test of agenthost."

routes = RouteGroup("channels.care")


class TryChannel(Table):
    """``POST /api/channels/{id}/test``."""

    to: str = Field("", max_length=512, description="Whom to say something to as well.")
    text: str = Field(
        GREETING, min_length=1, max_length=20_000, description="What to say."
    )
    thread: str = Field("", max_length=512, description="The thread to say it in.")


class SaidItem(TypedDict):
    """What became of it: ``state`` is delivered, failed, unknown or waiting."""

    state: str
    message_id: str
    reason: str


class Tried(TypedDict):
    """How a channel stands; ``identity`` is who we are there, "" when it did not say.

    ``said`` is None where nothing was to be said.
    """

    connected: bool
    identity: str
    trouble: str
    said: SaidItem | None


class Standing(TypedDict):
    """Whether a channel is connected, and what is wrong with it."""

    connected: bool
    trouble: str


class Switched(Standing):
    """A channel that was switched; it connects in its own time."""

    enabled: bool


class GiveSecrets(Table):
    """``PUT /api/channels/{id}/secrets``."""

    secrets: dict[str, str | None] = Field(
        min_length=1, description="Secrets by name; null forgets one."
    )


class SecretsKept(TypedDict):
    """The names of the secrets that the vault has of a channel now."""

    kept: list[str]


@routes.post(
    "/api/channels/<channel>/test", scope=WRITE, cost=10, body=TryChannel, answer=Tried
)
async def try_channel(call: Call, channel: str, body: TryChannel) -> Answer:
    """Ask the service who we are, and say something to somebody where one is named."""
    account = account_of(call.host, channel)
    identity, trouble = "", account.line.trouble
    try:
        async with asyncio.timeout(IDENTITY_SECONDS):
            identity = await account.adapter.identity()
    except TimeoutError:
        trouble = "the service did not answer in time"
    except AgentHostError as error:
        trouble = error.message
    said: SaidItem | None = None
    if body.to:
        words = Words(body.to, body.text, body.thread)
        state, message_id, reason = await say(call.host, account, words)
        said = {"state": state, "message_id": message_id, "reason": reason}
    up = account.line.up.is_set()
    return {"connected": up, "identity": identity, "trouble": trouble, "said": said}


@routes.post("/api/channels/<channel>/reconnect", scope=WRITE, answer=Standing)
async def reconnect_channel(call: Call, channel: str) -> Answer:
    """Connect a channel anew; nobody waits for it."""
    account_of(call.host, channel).reconnect()
    return _standing(call.host, channel)


@routes.post("/api/channels/<channel>/disable", scope=WRITE, answer=Switched)
async def disable_channel(call: Call, channel: str) -> Answer:
    """Switch a channel off, also for later starts; what it has is kept."""
    return await _switch(call, channel, on=False)


@routes.post("/api/channels/<channel>/enable", scope=WRITE, answer=Switched)
async def enable_channel(call: Call, channel: str) -> Answer:
    """Switch on again what was switched off; the configuration has to have it on."""
    return await _switch(call, channel, on=True)


@routes.put(
    "/api/channels/<channel>/secrets",
    scope=WRITE,
    body=GiveSecrets,
    answer=SecretsKept,
)
async def give_secrets(call: Call, channel: str, body: GiveSecrets) -> Answer:
    """Keep secrets of a channel in the vault, and connect it anew."""
    host = call.host
    kind = await _kind(host, channel)
    for name, value in body.secrets.items():
        if name not in kind.secrets:
            known = ", ".join(sorted(kind.secrets)) or "none"
            raise InvalidInput(
                f"secrets.{name}", f"is no secret of it (it has {known})"
            )
        if value is not None and not value.strip():
            raise InvalidInput(f"secrets.{name}", "is empty; null forgets it")
    named = {f"channel.{channel}.{name}": each for name, each in body.secrets.items()}
    await host.vault.change(named)
    bridge_of(host).secrets_changed(channel)
    kept = [
        name for name in kind.secrets if host.vault.get(f"channel.{channel}.{name}")
    ]
    return {"kept": sorted(kept)}


async def _switch(call: Call, channel: str, *, on: bool) -> Switched:
    host, bridge = call.host, bridge_of(call.host)
    section = host.settings(Channels).root.get(channel)
    if section is None or not section.enabled:
        raise Conflict(
            f"channel {channel} is not on in the configuration: write "
            f"[channels.{channel}] into config.toml, and agenthost reload"
        )
    now = host.clock.time()
    row = {"channel": channel, "at": now, "owner": call.context.owner, "labels": ""}
    facts = (channel, now, on)
    with telling(host.events, ChannelSwitched, *facts, **call.context.caused) as keep:
        also = () if keep is None else (keep,)
        await host.store.write(partial(writes.switch, row=row, on=on), *also)
    await bridge.apply(host)
    return {"enabled": channel in bridge.on, **_standing(host, channel)}


async def _kind(host: Host, channel: str) -> type[Adapter]:
    for _, spec in host.registry.offered(ChannelSpec):
        if spec.name == channel:
            kind: type[Adapter] = await asyncio.to_thread(spec.load)
            return kind
    raise NotFound("channel", channel)


def _standing(host: Host, channel: str) -> Standing:
    connected, trouble = bridge_of(host).standing(channel)
    return {"connected": connected, "trouble": trouble}
