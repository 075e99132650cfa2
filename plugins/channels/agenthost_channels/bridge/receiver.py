"""Takes the webhooks of a channel: verified, then kept, then answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenthost import Guard, InvalidInput, Reply, RequestCase

from ..contract import Knock, Opened
from .pace import Pace, network

if TYPE_CHECKING:
    from agenthost import Call, Host

    from .account import Account
    from .settings import ChannelSection

PER_ADDRESS = 600
REMEMBERED = 10_000
UNSIGNED = (
    "your address may call this path 600 times a minute without a signature that is"
    " right; wait {wait} s"
)
SIGNED = (
    "channel {channel} takes {most} webhooks a minute; wait {{wait}} s, or raise"
    " [channels.{channel}] webhooks_per_minute"
)


class Receiver:
    """The public path of one channel.

    Nothing of a request is read before its address is counted, and nothing of its body
    before the adapter has verified it. What comes again is known twice: by the replay
    key, of the last ten thousand in memory, and by the message's id on disk, for as
    long as the inbox keeps it.

    Args:
        host: The daemon.
        channel: The channel's id.
        account: Whose adapter reads, and whose line keeps.
        section: How many a minute.
    """

    def __init__(
        self, host: Host, channel: str, account: Account, section: ChannelSection
    ) -> None:
        self._host = host
        self._adapter = account.adapter
        self._line = account.line
        monotonic, most = host.clock.monotonic, section.webhooks_per_minute
        self._addresses = Pace(monotonic, PER_ADDRESS, UNSIGNED)
        self._all = Pace(monotonic, most, SIGNED.format(channel=channel, most=most))
        self._known: dict[str, None] = {}

    async def take(self, call: Call, method: str, path: str, body: bytes) -> Reply:
        """Take a request: what it says is on disk when this returns.

        Raises:
            RateLimited: Its address, or the channel, has had too many.
            InvalidInput: Its content type is none that the service sends, or it is
                signed and makes no sense.
            Unauthenticated: Its signature is missing, wrong or too old.
            Unavailable: It cannot be kept now: the service sends it again.
        """
        address = network(call.client)
        self._addresses.take(address)
        knock = Knock(method, path, call.query, call.headers, body)
        opened = await self._read(knock)
        self._addresses.give_back(address)
        self._refund(call, path)
        if not opened.replay_key or opened.replay_key not in self._known:
            self._all.take()
            if opened.messages:
                await self._line.received(*opened.messages)
            self._remember(opened.replay_key)
        return _reply(opened)

    async def _read(self, knock: Knock) -> Opened:
        if knock.method == "GET":
            return await self._adapter.greet(knock)
        kind = knock.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in self._adapter.takes:
            wanted = " or ".join(sorted(self._adapter.takes))
            raise InvalidInput("content-type", f"a webhook here is {wanted}")
        return await self._adapter.open(knock)

    def _refund(self, call: Call, path: str) -> None:
        """Give the address back what the request has cost: it was no stranger's."""
        guards = self._host.guards
        if guards.filled(Guard.REQUEST):
            case = RequestCase("SIGNED", path, call.client, -1)
            guards.check(Guard.REQUEST, case)

    def _remember(self, key: str) -> None:
        if not key:
            return
        if len(self._known) >= REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = None


def _reply(opened: Opened) -> Reply:
    headers = {"content-type": opened.media_type}
    return Reply(opened.body, opened.status, headers)
