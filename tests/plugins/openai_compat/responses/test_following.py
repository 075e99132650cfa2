"""Responses of the background as streams, which are taken up again where they broke."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from agenthost import ProviderFault, TextDelta, ToolUse
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost.testing.scripted import Answer
from agenthost_openai_compat.responses.following import PIECE, Following
from agenthost_openai_compat.responses.rows import Responses
from hypothesis import given
from hypothesis import strategies as st

from .asking import PATH, WEATHER, ask, events_in, made, streamed
from .test_background import approve, asked_about, cautious

LATER: Any = {"background": True}
WORDS = ("It is ", "fine", " weather, and a", " longwordthatgoesonforever", " here.")
TEXT = "".join(WORDS)
OWN = ToolUse("call_1", "calculate", {"expression": "6*7"})
BEFORE = Answer(("Let me ", "see. "), calls=(OWN,))
"""Words, and a call of the agent's own behind them."""


async def told(
    daemon: RunningDaemon, response_id: str, **query: Any
) -> list[dict[str, Any]]:
    """Read the whole stream of a response, from some number on."""
    asked = {"stream": True, **query}
    answer = await daemon.http.get(f"{PATH}/{response_id}", params=asked)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    return events_in(answer.text, query.get("starting_after", -1) + 1)


def words_in(events: list[dict[str, Any]]) -> str:
    kind = "response.output_text.delta"
    return "".join(event["delta"] for event in events if event["type"] == kind)


@asynccontextmanager
async def reading(
    daemon: RunningDaemon, response_id: str = "", **query: Any
) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    """Read a stream event by event; who leaves the block leaves the stream."""
    body = {"model": "ada", "input": "hi", "background": True, "stream": True}
    asking = (
        daemon.http.stream(
            "GET", f"{PATH}/{response_id}", params={"stream": True, **query}
        )
        if response_id
        else daemon.http.stream("POST", PATH, json=body)
    )
    async with asking as answer:
        assert answer.status_code == 200
        yield _events(answer)


async def _events(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    import json

    async for line in answer.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


async def test_it_is_streamed_as_it_is_made(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.says(*WORDS)
    events = await streamed(daemon, **LATER)
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds[:4] == ["created", "queued", "in_progress", "output_item.added"]
    assert kinds[-4:] == [
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    statuses = [e["response"]["status"] for e in events if "response" in e]
    assert statuses == ["queued", "queued", "in_progress", "completed"]
    assert words_in(events) == TEXT
    last = events[-1]["response"]
    assert last["background"]
    assert (await daemon.http.get(f"{PATH}/{last['id']}")).json() == last


async def test_it_is_the_same_whenever_it_is_told(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says(*WORDS)
    live = await streamed(daemon, **LATER)
    known = live[0]["response"]["id"]
    assert await told(daemon, known) == live
    for after in (0, 2, 5, 7, len(live) - 2):
        assert await told(daemon, known, starting_after=after) == live[after + 1 :]


async def test_words_before_a_tool_are_an_item_of_their_own(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    daemon.model._answers.append(BEFORE)
    use = ToolUse("call_2", "weather", {"city": "Rome"})
    daemon.model._answers.append(Answer(("And now ", "there."), calls=(use,)))
    live = await streamed(daemon, **LATER, tools=[WEATHER])
    again = await told(daemon, live[0]["response"]["id"])
    assert again == live
    kinds = [item["type"] for item in live[-1]["response"]["output"]]
    assert kinds == ["message", "message", "function_call"]
    done = [e["text"] for e in live if e["type"].endswith("output_text.done")]
    assert done == ["Let me see. ", "And now there."]
    added = [e["item"]["type"] for e in live if e["type"].endswith("item.added")]
    assert added == kinds


async def test_who_comes_back_reads_on_where_they_broke_off(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    pause = Pause()
    daemon.model.says("one two ", pause, "three")
    seen: list[dict[str, Any]] = []
    async with reading(daemon) as events:
        async for event in events:
            seen.append(event)
            if event["type"].endswith("text.delta"):
                break
    known, at = seen[0]["response"]["id"], seen[-1]["sequence_number"]
    async with reading(daemon, known, starting_after=at) as events:
        async for event in events:
            seen.append(event)
            pause.go_on()
    assert [event["sequence_number"] for event in seen] == [*range(len(seen))]
    assert words_in(seen) == "one two three"
    assert seen[-1]["type"] == "response.completed"
    assert len(daemon.model.requests) == 1
    assert await told(daemon, known) == seen


async def test_two_may_read_it_at_once(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    queued = await made(daemon, **LATER)
    readers = [asyncio.create_task(told(daemon, queued["id"])) for _ in range(2)]
    await pause.reached.wait()
    readers.append(asyncio.create_task(told(daemon, queued["id"])))
    pause.go_on()
    first, second, third = await asyncio.gather(*readers)
    assert first == second == third
    assert words_in(first) == "one two"


async def test_one_that_waits_for_its_place_is_told_later(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agenthost_openai_compat.responses import background

    monkeypatch.setattr(background, "MOST", 1)
    await daemon.agent("ada")
    pause = Pause()
    daemon.model.says(pause, "first")
    daemon.model.says("second")
    await made(daemon, **LATER)
    await pause.reached.wait()
    async with reading(daemon) as events:
        first, second = await anext(events), await anext(events)
        pause.go_on()
        rest = [event async for event in events]
    assert [first["type"], second["type"]] == ["response.created", "response.queued"]
    assert words_in(rest) == "second"


async def test_it_is_told_after_a_restart_too(daemons: Daemons, tmp_path: Path) -> None:
    home = tmp_path / "home"
    daemon = await daemons.start(home=home)
    await daemon.agent("ada")
    daemon.model.says(*WORDS)
    live = await streamed(daemon, **LATER)
    pause = Pause()
    daemon.model.says("lost ", pause)
    cut = await made(daemon, **LATER)
    await pause.reached.wait()
    await daemon.daemon.turns.drain(0)
    await daemon.daemon.stop()
    daemon = await daemons.start(home=home)
    assert await told(daemon, live[0]["response"]["id"]) == live
    events = await told(daemon, cut["id"])
    assert events[-1]["type"] == "response.completed"


@pytest.mark.parametrize("pieces", [(), ("half ",)])
async def test_what_it_fails_with_is_told(
    daemon: RunningDaemon, pieces: tuple[str, ...]
) -> None:
    await daemon.agent("ada")
    daemon.model.fails(ProviderFault.AUTH, *pieces)
    events = await streamed(daemon, **LATER)
    assert events[-1]["type"] == "response.failed"
    assert "scripted to fail" in events[-1]["response"]["error"]["message"]
    # How much of it was heard depends on how fast it failed.
    assert words_in(events) in {"", *pieces}


async def test_one_that_waits_for_a_person_is_told_no_word_twice(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(plugins=[cautious()])
    await daemon.agent("ada")
    daemon.model._answers.append(BEFORE)
    daemon.model.says("It is 42.")
    streaming = asyncio.create_task(streamed(daemon, **LATER))
    await approve(daemon, await asked_about(daemon))
    events = await streaming
    assert words_in(events) == "Let me see. It is 42."
    assert events == await told(daemon, events[0]["response"]["id"])


async def test_cancelling_it_ends_its_stream(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    pause = Pause()
    daemon.model.says("one two ", pause, "three")
    async with reading(daemon) as events:
        first = await anext(events)
        await pause.reached.wait()
        known = first["response"]["id"]
        await daemon.http.post(f"{PATH}/{known}/cancel")
        rest = [event async for event in events]
    assert rest[-1]["response"]["status"] == "cancelled"
    # Whatever number its reader had, its end is told.
    (last,) = await told(daemon, known, starting_after=500)
    assert last["response"]["status"] == "cancelled"


async def test_deleting_it_ends_its_stream(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    async with reading(daemon) as events:
        known = (await anext(events))["response"]["id"]
        await pause.reached.wait()
        await daemon.http.delete(f"{PATH}/{known}")
        assert [event async for event in events][-1]["type"] != "response.completed"


async def test_an_answer_with_a_form_comes_as_a_whole(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model._answers.append(BEFORE)
    daemon.model.says('{"a": ', "1}")
    form = {"format": {"type": "json_object"}}
    events = await streamed(daemon, **LATER, text=form)
    assert words_in(events) == '{"a": 1}'
    assert await told(daemon, events[0]["response"]["id"]) == events


async def test_the_same_key_is_the_same_stream(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    body = {"model": "ada", "input": "hi", "background": True, "stream": True}
    key = {"Idempotency-Key": "k"}
    first = await daemon.http.post(PATH, json=body, headers=key)
    again = await daemon.http.post(PATH, json=body, headers=key)
    assert events_in(first.text) == events_in(again.text)
    assert len(daemon.model.requests) == 1


async def test_any_stored_response_can_be_told_as_a_stream(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    response = await made(daemon)
    events = await told(daemon, response["id"])
    assert events[-1]["response"] == response
    path = f"{PATH}/{response['id']}"
    for query in (
        {"stream": "true", "starting_after": "1"},
        {"starting_after": "1"},
        {"stream": "true", "starting_after": "-1"},
        {"stream": "true", "starting_after": "x"},
    ):
        refused = await daemon.http.get(path, params=query)
        assert (refused.status_code, refused.json()["param"]) == (400, "starting_after")
    assert (await daemon.http.get(path, params={"stream": "maybe"})).status_code == 400
    plain = await daemon.http.get(path, params={"stream": "false"})
    assert plain.json() == response


async def test_nobody_elses_is_told(daemons: Daemons) -> None:
    key = "a-key-0123456789abcdef"
    daemon = await daemons.start(config=f'api_key = "{key}"\n')
    daemon.http.headers["authorization"] = f"Bearer {key}"
    await daemon.agent("ada")
    live = await streamed(daemon, **LATER)
    other = await daemon.http.post("/api/keys", json={"name": "o", "scopes": ["chat"]})
    daemon.http.headers["authorization"] = f"Bearer {other.json()['key']}"
    path = f"{PATH}/{live[0]['response']['id']}"
    assert (await daemon.http.get(path, params={"stream": "true"})).status_code == 404


async def test_what_cannot_be_kept_is_refused(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    answer = await ask(daemon, **LATER, stream=True, store=False)
    assert (answer.status_code, answer.json()["param"]) == (400, "store")


async def test_words_that_a_turn_tells_again_are_left_out(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    response = await made(daemon)
    own = Responses(daemon.daemon.store, "loopback:loopback")
    following = Following(daemon.daemon, own, await own.get(response["id"]), -1)
    told = [("one", 3), ("one two", 7), (" two", 7), ("", 7), (" three", 13)]
    new = [following._new(TextDelta(text, offset)).text for text, offset in told]
    assert new == ["one", " two", "", "", " three"]


@given(st.lists(st.text(max_size=20), max_size=8))
def test_pieces_depend_on_the_words_alone(said: list[str]) -> None:
    pieces: list[str] = []
    rest = ""
    for text in said:
        found = PIECE.findall(rest + text)
        rest = found.pop() if found else ""
        pieces += found
    whole = "".join(said)
    assert [*pieces, *([rest] if rest else [])] == PIECE.findall(whole)
    assert "".join(PIECE.findall(whole)) == whole
