"""Slack calls us by its Events API; its own library signs what the daemon takes."""

import json
import time

import httpx
import pytest
from agenthost.testing import Daemons, RunningDaemon
from agenthost.testing.simulators.slack import BOT, SlackSimulator

from ..webhook.program import JSON, KEY, opened

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"  # of Slack's page
ENVIRON = {"SLACK_BOT_TOKEN": BOT, "SLACK_SIGNING_SECRET": SECRET}
PATH = "/channels/slack/events"
ROWS = "SELECT sender FROM channel_inbox"

signature = pytest.importorskip("slack_sdk.signature")


async def started(daemons: Daemons, api: SlackSimulator) -> RunningDaemon:
    config = (
        f'api_key = "{KEY}"\n[channels.slack]\nagent = "helper"\nmode = "events"\n'
        f'allow_from = ["UADA"]\nallowed_hosts = ["127.0.0.1"]\n'
        f'api_url = "{api.url}/api"\n'
    )
    running = await daemons.start(config=config, environ=ENVIRON)
    running.http.headers["authorization"] = f"Bearer {KEY}"
    await running.agent("helper")
    await opened(running, "slack")
    del running.http.headers["authorization"]
    return running


def event(api: SlackSimulator, text: str, user: str = "UADA") -> dict[str, object]:
    said = {"type": "message", "channel_type": "im", "channel": "D1", "user": user}
    return {
        "type": "event_callback",
        "event_id": f"Ev{api.stamp()}",
        "event": {**said, "text": text, "ts": api.stamp()},
    }


async def call(
    running: RunningDaemon,
    body: object,
    secret: str = SECRET,
    late: int = 0,
    **headers: str,
) -> httpx.Response:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    stamp = str(int(time.time()) - late)
    signer = signature.SignatureVerifier(secret)
    given = {
        **JSON,
        "x-slack-request-timestamp": stamp,
        "x-slack-signature": signer.generate_signature(timestamp=stamp, body=raw),
    }
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    return await running.http.post(PATH, content=raw, headers=given)


async def test_slack_calls_and_is_answered(daemons: Daemons) -> None:
    async with SlackSimulator() as api:
        running = await started(daemons, api)
        asked = {
            "type": "url_verification",
            "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY",
        }
        shaken = await call(running, asked)
        assert (shaken.status_code, shaken.text) == (200, asked["challenge"])
        assert shaken.headers["content-type"].startswith("text/plain")
        assert (await call(running, asked, "another secret")).status_code == 401
        running.model.says("hello Ada")
        told = event(api, "hi")
        first = await call(running, told)
        assert (first.status_code, first.content) == (200, b"")
        for retry in ("1", "2", "3"):
            again = await call(
                running,
                told,
                x_slack_retry_num=retry,
                x_slack_retry_reason="http_timeout",
            )
            assert again.status_code == 200
        await api.until(lambda: bool(api.said))
        rows = await running.daemon.store.read(ROWS)
        assert [tuple(row) for row in rows] == [("UADA",)]
        assert [each["text"] for each in api.said] == ["hello Ada"]
        assert len(running.model.requests) == 1


async def test_what_slack_has_not_signed_now_changes_nothing(daemons: Daemons) -> None:
    async with SlackSimulator() as api:
        running = await started(daemons, api)
        told = event(api, "hi")
        deep = b"[" * 200_000
        statuses = [
            (await call(running, told, "another secret")).status_code,
            (await call(running, told, late=301)).status_code,
            (await call(running, told, late=-400)).status_code,
            (await call(running, told, x_slack_signature="v0=")).status_code,
            (await call(running, told, x_slack_request_timestamp="1")).status_code,
            # What is not signed is not read: it would be 400 otherwise.
            (await call(running, deep, "another secret")).status_code,
            (await call(running, deep)).status_code,
            (await call(running, told, content_type="text/xml")).status_code,
            (await call(running, b" " * 10_000_000)).status_code,
        ]
        assert statuses == [401] * 6 + [400, 400, 413]
        # And who is no friend is acknowledged, and nothing else.
        stranger = await call(running, event(api, "hi", "UEVE"))
        assert stranger.status_code == 200
        assert not await running.daemon.store.read(ROWS)
        assert running.model.requests == []
