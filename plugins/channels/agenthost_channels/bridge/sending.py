"""What agents and schedules say first: ``channel_send``, the delivery ``channel``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenthost import (
    DeliverySpec,
    Effect,
    Host,
    InvalidInput,
    Parcel,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from .speaking import Outcome

SECONDS = 60.0


class ChannelSend(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``channel_send``."""

    channel: str = Field(description="The channel, such as telegram", min_length=1)
    to: str = Field(
        description="The service's id of a person, group or room", min_length=1
    )
    text: str = Field(
        description="What to say, in Markdown", min_length=1, max_length=20_000
    )
    thread: str = Field("", description="The service's id of a thread there")
    files: list[str] = Field(
        default_factory=list,
        description="Paths of files of your workspace to send with it",
        max_length=10,
    )


async def channel_send(context: ToolContext, call: ChannelSend) -> ToolResult:
    """Say something to somebody on a chat channel, where the operator allows it.

    Raises:
        Conflict: The channel is not on.
        InvalidInput: The operator does not allow this recipient, or the service takes
            no files.
        NotFound: There is no such file.
        TooLarge: The service takes none so large.
    """
    from .speaking import Words, account_of, check_allowed, say

    account = account_of(context.host, call.channel)
    check_allowed(account, call.to)
    if call.files and context.agent is None:
        raise InvalidInput("files", "only an agent has files; none is calling")
    files = [
        await account.files.read(path, context.agent.id, context)
        for path in call.files
        if context.agent is not None
    ]
    words = Words(call.to, call.text, call.thread, files=tuple(files))
    outcome = await say(context.host, account, words)
    return ToolResult(_told(outcome), is_error=outcome.state in {"failed", "unknown"})


def _told(outcome: Outcome) -> str:
    if outcome.state == "delivered":
        return f"delivered as {outcome.message_id}"
    if outcome.state == "failed":
        return f"not sent: {outcome.reason}"
    if outcome.state == "unknown":
        return f"nobody knows whether it arrived: {outcome.reason}; do not repeat it"
    return "it is kept, and goes out when the channel is connected; do not repeat it"


async def deliver(host: Host, parcel: Parcel) -> None:
    """Deliver to ``<channel>:<recipient>``.

    Raises:
        AgentHostError: It has not arrived, or nobody knows.
    """
    from .speaking import Words, said_or_refused

    channel, colon, to = parcel.target.partition(":")
    if not colon or not to:
        raise InvalidInput("delivery.target", "write it as telegram:123456789")
    words = Words(to, parcel.text, key=parcel.id)
    await said_or_refused(host, channel, words)


def tool() -> ToolSpec:
    """Give ``channel_send``."""
    return ToolSpec(
        "channel_send",
        "Say something to a person, group or room on a chat channel. Only recipients "
        "that the operator allows.",
        ChannelSend,
        Effect.EXTERNAL,
        channel_send,
        timeout=SECONDS,
        critical=("channel", "to"),
    )


def delivery() -> DeliverySpec:
    """Give the delivery ``channel``: the outbox knows by its id what it has."""
    return DeliverySpec("channel", deliver, repeatable=True, timeout=SECONDS)
