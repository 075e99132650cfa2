"""What the contract does not ask: the Events API, acknowledgement, markup."""

import asyncio
import hashlib
import hmac
import json
from datetime import UTC, datetime

import pytest
from agenthost import InvalidInput, Unauthenticated, Unavailable
from agenthost.testing.simulators.slack import APP, BOT, US, SlackSimulator
from agenthost_channels.contract import Knock, Outbound, Place
from agenthost_channels.slack.adapter import Settings, Slack
from agenthost_channels.slack.mapping import inbound, plain
from agenthost_channels.testing import FakeLine

# The sample of https://docs.slack.dev/authentication/verifying-requests-from-slack.
SAMPLE_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
SAMPLE_TIME = 1531420618
SAMPLE_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
    b"&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
    b"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fco"
    b"mmands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663"
    b"015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
SAMPLE = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"


class Now:
    """A clock that stands."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)


def slack(api: str = "http://127.0.0.1:1", at: int = SAMPLE_TIME) -> Slack:
    secrets = {"bot_token": BOT, "app_token": APP, "signing_secret": SAMPLE_SECRET}
    settings = Settings(api_url=api, mode="events")
    return Slack(FakeLine(settings, secrets, Now(at)))  # type: ignore[arg-type]


def knock(body: bytes, signature: str, at: object = SAMPLE_TIME) -> Knock:
    headers = {"x-slack-request-timestamp": str(at), "x-slack-signature": signature}
    return Knock("POST", "/events", {}, headers, body)


def signed(body: bytes) -> Knock:
    content = f"v0:{SAMPLE_TIME}:".encode() + body
    digest = hmac.new(SAMPLE_SECRET.encode(), content, hashlib.sha256).hexdigest()
    return knock(body, f"v0={digest}")


async def test_slacks_own_sample_is_right() -> None:
    # It is signed, and no JSON: the signature stands before the reading.
    with pytest.raises(InvalidInput):
        await slack().open(knock(SAMPLE_BODY, SAMPLE))


@pytest.mark.parametrize(
    ("signature", "at", "now"),
    [
        (SAMPLE[:-1] + "4", SAMPLE_TIME, SAMPLE_TIME),
        ("", SAMPLE_TIME, SAMPLE_TIME),
        ("v0=\udc80", SAMPLE_TIME, SAMPLE_TIME),
        (SAMPLE, "", SAMPLE_TIME),
        (SAMPLE, "9" * 5000, SAMPLE_TIME),
        (SAMPLE, SAMPLE_TIME + 1, SAMPLE_TIME),
        (SAMPLE, SAMPLE_TIME, SAMPLE_TIME + 301),
        (SAMPLE, SAMPLE_TIME, SAMPLE_TIME - 301),
    ],
)
async def test_what_is_not_signed_now_is_refused(
    signature: str, at: object, now: int
) -> None:
    with pytest.raises(Unauthenticated):
        await slack(at=now).open(knock(SAMPLE_BODY, signature, at))


async def test_a_challenge_is_answered_and_an_event_is_a_message() -> None:
    async with SlackSimulator() as server:
        adapter = slack(f"{server.url}/api")
        asked = json.dumps({"type": "url_verification", "challenge": "abc"})
        assert (await adapter.open(signed(asked.encode()))).body == b"abc"
        await adapter.identity()
        event = {"type": "message", "channel": "D1", "user": "UADA", "ts": "17.01"}
        body = {"event_id": "Ev1", "event": {**event, "text": "a &lt; b"}}
        opened = await adapter.open(signed(json.dumps(body).encode()))
        await adapter.line.http().aclose()
    assert [each.text for each in opened.messages] == ["a < b"]
    assert opened.replay_key == "Ev1"


async def test_without_a_signing_secret_the_operator_is_told() -> None:
    async with SlackSimulator() as server:
        settings = Settings(api_url=f"{server.url}/api", mode="events")
        line = FakeLine(settings, {"bot_token": BOT})
        with pytest.raises(Unauthenticated, match="set SLACK_SIGNING_SECRET"):
            await Slack(line).run()
        await line.aclose()
    assert not line.connections


async def test_an_envelope_is_acknowledged_when_it_is_on_disk() -> None:
    async with SlackSimulator() as server:
        secrets = {"bot_token": BOT, "app_token": APP}
        line = FakeLine(Settings(api_url=f"{server.url}/api"), secrets)
        run = asyncio.create_task(Slack(line).run())
        await line.until(lambda: bool(line.connections))
        line.hold()
        event = {"type": "message", "channel": "D1", "user": "UADA", "ts": "17.01"}
        await server.event({**event, "text": "hello"})
        await line.until(lambda: bool(line.batches))
        assert not server.acknowledged
        line.release()
        await server.until(lambda: bool(server.acknowledged))
        await server.send_raw('{"type": "disconnect", "reason": "refresh_requested"}')
        await asyncio.wait_for(run, 30)
        await line.aclose()
    assert [each.text for each in line.heard] == ["hello"]


async def test_what_is_not_on_disk_is_never_acknowledged() -> None:
    async with SlackSimulator() as server:
        secrets = {"bot_token": BOT, "app_token": APP}
        line = FakeLine(Settings(api_url=f"{server.url}/api"), secrets)
        line.failing = True
        event = {"type": "message", "channel": "D1", "user": "UADA", "ts": "17.01"}
        await server.event({**event, "text": "hello"})
        with pytest.raises(Unavailable, match="disk"):
            await asyncio.wait_for(Slack(line).run(), 30)
        await line.aclose()
    assert len(server.pending) == 1
    assert not server.acknowledged


async def test_no_preview_of_a_link_is_fetched() -> None:
    async with SlackSimulator() as server:
        line = FakeLine(Settings(api_url=f"{server.url}/api"), {"bot_token": BOT})
        link = "https://evil.example/?told=secret"
        await Slack(line).send(Outbound("k", Place("default", "D1"), link, link))
        await line.aclose()
    (said,) = server.said
    assert (said["unfurl_links"], said["unfurl_media"]) == ("false", "false")


def test_markup_of_slack_is_read() -> None:
    said = "<https://a.b|see> <https://c.d> <#C1|general> <@U2> <!here> &amp;lt; *b*"
    expected = "see (https://a.b) https://c.d #general @U2 @here &lt; *b*"
    assert plain(said) == expected


def test_a_link_shown_by_slack_is_no_edit() -> None:
    message = {"user": "UADA", "ts": "17.01", "text": "x"}
    event = {"type": "message", "subtype": "message_changed", "channel": "C1"}
    assert inbound({"event": {**event, "message": message}}, "default", US) is None


@pytest.mark.parametrize("body", [b"{}", SAMPLE_BODY, b"", "\u00e9".encode()])
@pytest.mark.parametrize("late", [0, 300, -300, 301, -301])
@pytest.mark.parametrize("spoilt", ["", "body", "stamp", "signature", "missing"])
async def test_slacks_own_verifier_agrees(body: bytes, late: int, spoilt: str) -> None:
    module = pytest.importorskip("slack_sdk.signature")
    now = SAMPLE_TIME + late
    judge = module.SignatureVerifier(SAMPLE_SECRET, Now(now))
    judge.clock.now = lambda: now
    given = dict(signed(body).headers)
    match spoilt:
        case "body":
            body += b" "
        case "stamp":
            given["x-slack-request-timestamp"] = str(SAMPLE_TIME - 1)
        case "signature":
            given["x-slack-signature"] = given["x-slack-signature"].upper()
        case "missing":
            del given["x-slack-signature"]
    right = judge.is_valid_request(body, given)
    assert right is (abs(late) <= 300 and not spoilt)
    try:
        await slack(at=now).open(Knock("POST", "/events", {}, given, body))
        ours = True
    except Unauthenticated:
        ours = False
    except (InvalidInput, Unavailable):
        # It is signed, and no event, or nobody is connected.
        ours = True
    assert ours is right
