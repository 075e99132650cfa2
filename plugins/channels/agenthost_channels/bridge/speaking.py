"""What is said first, to whom the configuration allows: by tools, schedules, tests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from agenthost import Conflict, Host, InvalidInput, OutcomeUnknown, Unavailable, new_id

from ..contract import OutFile, Room
from . import tables, writes
from .answering import Said
from .binding import fits
from .bridge import bridge_of

if TYPE_CHECKING:
    from .account import Account

PATIENCE = 30.0
LOOK = 0.05
FINAL = frozenset({"delivered", "failed", "unknown"})


class Words(NamedTuple):
    """What is said first: Markdown, to the service's id of a person, group or room.

    Said again with the same ``key`` it goes out once; it has one of its own by default.
    """

    to: str
    text: str
    thread: str = ""
    key: str = ""
    files: tuple[OutFile, ...] = ()


class Outcome(NamedTuple):
    """What became of something said: ``state`` is the outbox's.

    ``waiting`` says that it is on disk, and goes out when the channel can.
    """

    state: str
    message_id: str
    reason: str


def account_of(host: Host, channel: str) -> Account:
    """Find the account of a channel that is on.

    Raises:
        Conflict: It is not, or cannot be.
    """
    bridge = bridge_of(host)
    account = bridge.accounts.get(channel)
    if account is None:
        why = bridge.troubles.get(channel) or "it is not switched on"
        on = ", ".join(sorted(bridge.accounts)) or "none"
        raise Conflict(f"channel {channel} is not there: {why} (there are: {on})")
    return account


def check_allowed(account: Account, to: str) -> None:
    """Refuse a place that the configuration does not name.

    Raises:
        InvalidInput: It is not in ``send_to``.
    """
    if not any(fits(pattern, to) for pattern in account.section.send_to):
        key = f"channels.{account.channel}.send_to"
        raise InvalidInput("to", f"{to} is not in {key}; the operator adds it there")


async def say(host: Host, account: Account, words: Words) -> Outcome:
    """Say something, and wait a while for what becomes of it.

    Raises:
        InvalidInput: There is nothing in it.
    """
    row = {
        "channel": account.channel,
        "account": account.line.account,
        "peer": words.to,
        "thread": words.thread,
        "room": Room.DIRECT.value,
        "message_id": "",
        "key": (words.key or new_id()).replace("-", ""),
        "owner": f"channel:{account.channel}",
        "labels": "",
    }
    says = account.written(row, Said(words.text, words.files))
    if not says:
        raise InvalidInput("text", "there is nothing in it that can be said")
    await host.store.write(partial(writes.say_once, says=says))
    account.more()
    return await _settled(host, [each["id"] for each in says])


async def said_or_refused(host: Host, channel: str, words: Words) -> None:
    """Say something where it is allowed; return once it has arrived.

    Raises:
        AgentHostError: It has not, or nobody knows.
    """
    account = account_of(host, channel)
    check_allowed(account, words.to)
    outcome = await say(host, account, words)
    if outcome.state == "unknown":
        raise OutcomeUnknown(outcome.reason)
    if outcome.state != "delivered":
        why = outcome.reason or account.line.trouble
        raise Unavailable(f"channel {channel}: {outcome.state}: {why}")


async def _settled(host: Host, ids: Sequence[str]) -> Outcome:
    """Wait until all are settled: the worst counts, else the first's id."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    while True:
        found = [await host.store.first(tables.SAID, {"id": each}) for each in ids]
        rows: list[Any] = [row for row in found if row is not None]
        open_ = [row for row in rows if row["state"] not in FINAL]
        if not open_ or loop.time() >= end:
            bad = [row for row in rows if row["state"] in {"failed", "unknown"}]
            worst = (bad or open_ or rows)[0]
            state = "waiting" if worst["state"] == "sending" else worst["state"]
            return Outcome(state, rows[0]["message_id"], worst["reason"])
        await asyncio.sleep(LOOK)
