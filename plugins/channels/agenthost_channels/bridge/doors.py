"""``/channels/<id>/...``: what services call, only where a channel is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenthost import Answer, Call, Host, NotFound, RouteGroup, ServiceSpec

doors = RouteGroup("channel_webhooks")
ANYTHING: Mapping[str, Any] = {"*/*": {}}
PATH = "/channels/<channel>/<path:rest>"


def opened(host: Host, path: str) -> bool:
    """Tell whether a channel is enabled that its service calls by this path."""
    return _receiver(host, path.split("/")[2]) is not None


FACTS: Mapping[str, Any] = {
    "scope": "channels:call",
    "cost": 1,
    "public": opened,
    "media": "text/plain",
}


@doors.post(PATH, body=bytes, takes=ANYTHING, **FACTS)
async def webhook(call: Call, channel: str, rest: str, body: bytes) -> Answer:
    """Take a webhook of a channel's service; its signature decides."""
    return await _taken(call, channel, "POST", rest, body)


@doors.get(PATH, **FACTS)
async def challenge(call: Call, channel: str, rest: str) -> Answer:
    """Show a channel's service that this path is its channel's."""
    return await _taken(call, channel, "GET", rest, b"")


async def _taken(
    call: Call, channel: str, method: str, rest: str, body: bytes
) -> Answer:
    receiver = _receiver(call.host, channel)
    if receiver is None:
        raise NotFound("channel", channel)
    answer: Answer = await receiver.take(call, method, f"/{rest}", body)
    return answer


def _receiver(host: Host, channel: str) -> Any:
    for _, service in host.registry.offered(ServiceSpec):
        bridge = getattr(service, "bridge", None)
        if bridge is not None:
            return bridge.receivers.get(channel)
    return None
