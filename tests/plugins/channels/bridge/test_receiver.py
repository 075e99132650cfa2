"""What a channel's adapter makes of a request is answered as it says."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import ClassVar

import pytest
from agenthost import (
    ChannelSpec,
    InvalidInput,
    Unauthenticated,
    Unavailable,
    hookimpl,
)
from agenthost.testing import Daemons, RunningDaemon
from agenthost_channels.bridge import pace, receiver
from agenthost_channels.contract import (
    Adapter,
    Fate,
    Inbound,
    Knock,
    Opened,
    Outbound,
    Place,
    Sender,
    Sent,
)
from agenthost_channels.transports.challenge import answered
from pydantic import BaseModel

CONFIG = """api_key = "%s"
[channels.bell]
agent = "helper"
allow_from = ["ada"]
"""
PATH = "/channels/bell/a/b"
FORM = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
ROWS = "SELECT message_id FROM channel_inbox ORDER BY seq"
ENVIRON = {"BELL_TOKEN": "meatyhamhock"}
LONG = 1e9
"""Seconds in which nothing is given back, however slow the machine is."""


class Settings(BaseModel):
    """None."""


class Bell:
    """A plugin whose channel is only called, with forms; a body says what comes."""

    __name__ = "bell"

    def __init__(self) -> None:
        self.knocks: list[Knock] = []
        self.up = asyncio.Event()

    @hookimpl
    def register_channel(self) -> Iterable[ChannelSpec]:
        """Offer the bell."""
        service = self

        class Rung(Adapter):
            settings = Settings
            secrets: ClassVar[Mapping[str, str]] = {"token": "BELL_TOKEN"}
            takes = frozenset(
                {"application/x-www-form-urlencoded", "multipart/form-data"}
            )
            called = True

            async def run(self) -> None:
                self.line.connected()
                service.up.set()
                await asyncio.Event().wait()

            async def greet(self, knock: Knock) -> Opened:
                return answered(knock, self.line.secret("token"))

            async def open(self, knock: Knock) -> Opened:
                service.knocks.append(knock)
                name = knock.body.decode()
                if name in FAULTS:
                    raise FAULTS[name]
                now = datetime(2026, 1, 1, tzinfo=UTC)
                place, ada = Place("default", "ada"), Sender("ada")
                heard = Inbound(place, name, ada, "ring", now)
                if name == "silent":
                    return Opened(204, replay_key=name)
                return Opened(200, b"<ok/>", "text/xml", (heard,), "r" + name)

            async def send(self, message: Outbound) -> Sent:
                return Sent(Fate.DELIVERED, message.key)

        yield ChannelSpec("bell", lambda: Rung)


FAULTS: dict[str, Exception] = {
    "forged": Unauthenticated("the ring is not signed"),
    "senseless": InvalidInput("ring", "must be a bell's"),
    "early": Unavailable("the bell is not connected yet"),
    "broken": ZeroDivisionError(),
}


async def rung(
    daemons: Daemons, bell: Bell, more: str = "", key: str = ""
) -> RunningDaemon:
    config = CONFIG % key + more
    running = await daemons.start(config=config, environ=ENVIRON, plugins=[bell])
    await asyncio.wait_for(bell.up.wait(), 60)
    return running


async def kept(running: RunningDaemon) -> list[str]:
    return [row[0] for row in await running.daemon.store.read(ROWS)]


async def test_an_answer_is_the_adapters_and_the_knock_is_whole(
    daemons: Daemons,
) -> None:
    bell = Bell()
    running = await rung(daemons, bell)
    answer = await running.http.post(f"{PATH}?x=1&x=2", content=b"m1", headers=FORM)
    assert (answer.status_code, answer.content) == (200, b"<ok/>")
    assert answer.headers["content-type"] == "text/xml"
    [knock] = bell.knocks
    assert (knock.method, knock.path, knock.body) == ("POST", "/a/b", b"m1")
    assert knock.query == {"x": "2"}
    assert knock.headers["content-type"] == FORM["content-type"]
    again = await running.http.post(PATH, content=b"m1", headers=FORM)
    assert again.content == answer.content
    silent = await running.http.post(PATH, content=b"silent", headers=FORM)
    assert (silent.status_code, silent.content) == (204, b"")
    assert await kept(running) == ["m1"]


async def test_each_refusal_has_its_status_and_keeps_nothing(daemons: Daemons) -> None:
    bell = Bell()
    running = await rung(daemons, bell)
    statuses = {}
    for name in FAULTS:
        answer = await running.http.post(PATH, content=name.encode(), headers=FORM)
        statuses[name] = answer.status_code
        assert answer.json()["error"]
    expected = {"forged": 401, "senseless": 400, "early": 503, "broken": 500}
    assert statuses == expected
    known = len(bell.knocks)
    for kind in ("application/json", "text/plain", "", "application/x-www"):
        given = {"content-type": kind}
        answer = await running.http.post(PATH, content=b"m1", headers=given)
        assert answer.status_code == 400
        assert "multipart/form-data" in answer.json()["error"]
    assert len(bell.knocks) == known
    assert await kept(running) == []
    assert (await running.http.post(PATH, content=b"m1", headers=FORM)).is_success


async def test_a_challenge_is_answered_to_who_knows_the_token(
    daemons: Daemons,
) -> None:
    running = await rung(daemons, Bell(), key="k")
    query = {"hub.mode": "subscribe", "hub.challenge": "1158201444"}
    right = {**query, "hub.verify_token": ENVIRON["BELL_TOKEN"]}
    shown = await running.http.get(PATH, params=right)
    assert (shown.status_code, shown.text) == (200, "1158201444")
    assert (await running.http.head(PATH, params=right)).text == ""
    refused = await running.http.get(PATH, params=query)
    assert refused.status_code == 401
    assert "1158201444" not in refused.text


async def test_an_address_may_try_so_often(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "PER_ADDRESS", 3)
    monkeypatch.setattr(pace, "MINUTE", LONG)
    bell = Bell()
    running = await rung(daemons, bell, "\n[rate_limit]\nenabled = false\n")

    async def ring(name: bytes) -> int:
        answer = await running.http.post(PATH, content=name, headers=FORM)
        return answer.status_code

    assert [await ring(b"forged") for _ in range(2)] == [401, 401]
    # Who signs gets back what it was counted.
    assert [await ring(b"m%d" % n) for n in range(10)] == [200] * 10
    assert [await ring(b"forged") for _ in range(2)] == [401, 429]
    read = len(bell.knocks)
    assert await ring(b"m11") == 429
    assert len(bell.knocks) == read


async def test_what_was_answered_is_forgotten_oldest_first(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "REMEMBERED", 2)
    monkeypatch.setattr(pace, "MINUTE", LONG)
    bell = Bell()
    running = await rung(daemons, bell, "webhooks_per_minute = 4\n")

    async def ring(name: bytes) -> int:
        answer = await running.http.post(PATH, content=name, headers=FORM)
        return answer.status_code

    assert [await ring(name) for name in (b"a", b"b", b"c", b"b", b"c")] == [200] * 5
    # The first is not remembered: the disk knows it, and it costs one of the channel.
    assert [await ring(name) for name in (b"a", b"d")] == [200, 429]
    assert await kept(running) == ["a", "b", "c"]
