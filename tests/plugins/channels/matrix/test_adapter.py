"""What a homeserver says of a message is its fate, whatever else it says."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from agenthost import Unauthenticated
from agenthost_channels.contract import Fate, Outbound, OutFile, Place, Sent
from agenthost_channels.matrix.adapter import Matrix, Settings
from agenthost_channels.matrix.events import said
from agenthost_channels.testing import FakeLine
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

ROOM = Place("default", "!room:x.example")
HELLO = Outbound("key", ROOM, "<b>hi</b>", plain="hi")


class Played(FakeLine):
    """A line whose homeserver is a function."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        super().__init__(Settings(homeserver="https://x.example"), {"token": "canary"})
        self._client = httpx.AsyncClient(transport=httpx.MockTransport(answer))


async def fate_of(
    answer: httpx.Response | Exception, message: Outbound = HELLO
) -> Sent:
    def reply(_request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    line = Played(reply)
    sent = await Matrix(line).send(message)
    await line.aclose()
    return sent


@pytest.mark.parametrize(
    ("answer", "fate", "final"),
    [
        (httpx.Response(200, json={"event_id": "$1"}), Fate.DELIVERED, False),
        (httpx.Response(403, json={"errcode": "M_FORBIDDEN"}), Fate.NOT_SENT, True),
        (httpx.Response(401, json={}), Fate.NOT_SENT, False),
        (httpx.Response(502, text="<html>"), Fate.UNKNOWN, False),
        (httpx.ConnectError("no"), Fate.NOT_SENT, False),
        (httpx.ReadTimeout("late"), Fate.UNKNOWN, False),
        (httpx.RemoteProtocolError("cut"), Fate.UNKNOWN, False),
    ],
    ids=["taken", "forbidden", "token", "gateway", "unreached", "late", "cut"],
)
async def test_an_answer_is_a_fate(
    answer: httpx.Response | Exception, fate: Fate, final: bool
) -> None:
    sent = await fate_of(answer)
    assert (sent.fate, sent.final) == (fate, final)
    assert "canary" not in repr(sent)


async def test_a_limit_says_when() -> None:
    body = {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 2500}
    assert (await fate_of(httpx.Response(429, json=body))).retry_after == 2.5


async def test_a_file_that_was_not_taken_was_not_sent() -> None:
    file = OutFile("a.bin", "application/octet-stream", b"x")
    message = Outbound("key", ROOM, files=(file,))
    sent = await fate_of(httpx.Response(502), message)
    assert sent.fate is Fate.NOT_SENT


async def test_what_a_long_sync_leaves_out_is_read_back_in_order() -> None:
    def event(number: int) -> dict[str, Any]:
        content = {"msgtype": "m.text", "body": f"text {number}"}
        return {
            "type": "m.room.message",
            "event_id": f"${number}",
            "sender": "@ada:x.example",
            "origin_server_ts": 1,
            "content": content,
        }

    timeline = {"limited": True, "prev_batch": "p", "events": [event(3)]}
    sync = {"next_batch": "s2", "rooms": {"join": {ROOM.peer: {"timeline": timeline}}}}

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.endswith("/whoami"):
            return httpx.Response(200, json={"user_id": "@us:x.example"})
        if path.endswith("/sync"):
            since = request.url.params.get("since")
            if since == "s2":
                return httpx.Response(401, json={})
            return httpx.Response(200, json=sync if since else {"next_batch": "s1"})
        if path.endswith("/messages"):
            chunk = [event(2), event(1)]
            return httpx.Response(200, json={"chunk": chunk})
        return httpx.Response(200, json={"joined": {"@a:x": {}, "@b:x": {}}})

    line = Played(answer)
    with pytest.raises(Unauthenticated) as told:
        await Matrix(line).run()
    await line.aclose()
    assert [each.text for each in line.heard] == ["text 1", "text 2", "text 3"]
    assert line.cursor == "s2"
    assert "canary" not in str(told.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "content",
                    "body",
                    "msgtype",
                    "m.relates_to",
                    "rel_type",
                    "event_id",
                ]
            ),
            inner
            | st.sampled_from(["m.room.message", "m.text", "m.file", "m.replace"]),
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=40)
@given(JSON)
def test_any_event_is_read_or_passed_over(event: Any) -> None:
    said(event)


def test_a_token_goes_nowhere_in_the_clear() -> None:
    Settings(homeserver="http://127.0.0.1:8008")
    with pytest.raises(ValidationError, match="in the clear"):
        Settings(homeserver="http://matrix.example")
