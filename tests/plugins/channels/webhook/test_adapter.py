"""A program that signs speaks to agents, and hears them."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from agenthost import InvalidInput, Unauthenticated
from agenthost_channels.contract import Fate, Knock, Outbound, Place, Room
from agenthost_channels.testing import FakeLine
from agenthost_channels.webhook.adapter import Settings, Webhook
from agenthost_channels.webhook.signing import signed, verified
from aiohttp import web

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()
NOW = 1_800_000_000
CALL = {"conversation": "desk", "sender": "ada", "text": "hello"}
THERE = Place("default", "desk")


class Now:
    """A clock that stands."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(NOW, UTC)


def webhook(url: str = "http://127.0.0.1:1/", **secrets: str) -> Webhook:
    given = secrets or {"secret": SECRET}
    return Webhook(FakeLine(Settings(url=url), given, Now()))  # type: ignore[arg-type]


def knock(body: object, at: int = NOW, secret: str = SECRET) -> Knock:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Knock("POST", "/", {}, signed(secret, "msg_1", at, raw), raw)


async def test_a_signed_call_is_a_message() -> None:
    opened = await webhook().open(knock({**CALL, "thread": "t", "room": "group"}))
    (heard,) = opened.messages
    assert heard.place == Place("default", "desk", "t", Room.GROUP)
    assert (heard.text, heard.sender.id, heard.message_id) == ("hello", "ada", "msg_1")
    assert opened.replay_key == "msg_1"
    assert not heard.mentions_us


@pytest.mark.parametrize("at", [NOW - 301, NOW + 301, 0])
async def test_a_call_of_another_time_is_refused(at: int) -> None:
    with pytest.raises(Unauthenticated, match="five minutes"):
        await webhook().open(knock(CALL, at=at))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,AAAA v1,BBBB"},
        {"webhook-signature": "v1," + "\udc80" * 9},
        {"webhook-signature": " ".join(["v1,x"] * 50_000)},
        {"webhook-timestamp": "9" * 5000},
        {"webhook-timestamp": "-1"},
        {"webhook-id": "msg_2"},
        {"webhook-id": ""},
    ],
    ids=range(9),
)
async def test_a_forged_call_is_refused(headers: dict[str, str]) -> None:
    true = knock(CALL)
    given = {**true.headers, **headers} if headers else {}
    with pytest.raises(Unauthenticated):
        await webhook().open(Knock("POST", "/", {}, given, true.body))


async def test_a_changed_body_and_another_secret_are_refused() -> None:
    true = knock(CALL)
    with pytest.raises(Unauthenticated):
        await webhook().open(Knock("POST", "/", {}, true.headers, true.body + b" "))
    other = "whsec_" + base64.b64encode(b"another secret of 24 byt").decode()
    with pytest.raises(Unauthenticated):
        await webhook().open(knock(CALL, secret=other))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{", "body"),
        (b"[" * 50_000, "body"),
        ({**CALL, "text": ""}, "text"),
        ({**CALL, "sender": 3}, "sender"),
        ({**CALL, "room": "moon"}, "room"),
    ],
)
async def test_a_signed_call_without_sense_names_the_field(
    body: object, field: str
) -> None:
    with pytest.raises(InvalidInput) as told:
        await webhook().open(knock(body))
    assert told.value.field == field


@pytest.mark.parametrize("secret", [None, "whsec_short", "no base64 at all!"])
async def test_a_secret_that_cannot_be_used_ends_it(secret: str | None) -> None:
    given = webhook(**({"secret": secret} if secret else {"other": "x"}))
    with pytest.raises(Unauthenticated, match="WEBHOOK_SECRET"):
        await given.run()


@asynccontextmanager
async def receiving(*answers: web.Response) -> AsyncIterator[tuple[str, list[Knock]]]:
    got: list[Knock] = []
    left = list(answers)

    async def take(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = await request.read()
        got.append(Knock(request.method, request.path, {}, headers, body))
        return left.pop(0)

    app = web.Application()
    app.router.add_post("/hook", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook", got
    finally:
        await runner.cleanup()


async def test_what_we_say_is_signed_with_its_key_as_id() -> None:
    answers = web.json_response({"id": "theirs"}), web.Response(status=204)
    async with receiving(*answers) as (url, got):
        adapter = webhook(url)
        message = Outbound("key-1", THERE, "**hi** ü", "hi ü", reply_to="msg_1")
        first, second = [await adapter.send(message) for _ in range(2)]
        await adapter.line.http().aclose()
    assert (first.message_id, second.message_id) == ("theirs", "key-1")
    assert [verified(SECRET, each.headers, each.body, NOW) for each in got] == [
        "key-1",
        "key-1",
    ]
    said = json.loads(got[0].body)
    assert (said["text"], said["conversation"]) == ("**hi** ü", "desk")
    assert got[0].body == got[1].body


async def test_each_refusal_has_its_fate() -> None:
    answers = [web.Response(status=each) for each in (400, 410, 500, 302)]
    answers.append(web.Response(status=429, headers={"retry-after": "7"}))
    async with receiving(*answers) as (url, _):
        adapter = webhook(url)
        found = [await adapter.send(Outbound("k", THERE, "x")) for _ in answers]
        await adapter.line.http().aclose()
    assert [(each.fate, each.final, each.retry_after) for each in found] == [
        (Fate.NOT_SENT, True, None),
        (Fate.NOT_SENT, True, None),
        (Fate.UNKNOWN, False, None),
        (Fate.NOT_SENT, True, None),
        (Fate.NOT_SENT, False, 7.0),
    ]


async def test_nobody_there_is_not_sent() -> None:
    adapter = webhook()
    sent = await adapter.send(Outbound("k", THERE, "x"))
    await adapter.line.http().aclose()
    assert (sent.fate, sent.final) == (Fate.NOT_SENT, False)


@pytest.mark.conformance
async def test_the_reference_library_signs_and_verifies_alike() -> None:
    judge = pytest.importorskip("standardwebhooks.webhooks").Webhook(SECRET)
    now = datetime.now(UTC)
    headers = signed(SECRET, "msg_9", int(now.timestamp()), b'{"a": 1}')
    assert judge.verify(b'{"a": 1}', headers) == {"a": 1}
    theirs = {
        "webhook-id": "msg_9",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": judge.sign("msg_9", now, '{"a": 1}'),
    }
    assert verified(SECRET, theirs, b'{"a": 1}', now.timestamp()) == "msg_9"
