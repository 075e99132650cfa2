"""Answers of models themselves under a key: each is made once and told again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from agenthost import ProviderFault
from agenthost.testing import Pause
from agenthost.testing.clock import ManualClock
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost.testing.scripted import MODEL, Answer

from .test_chat import HELLO
from .test_passthrough import DIRECT, KEY, ON, usage_rows
from .test_tools import CITY, WEATHER

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"model": DIRECT, "messages": HELLO},
    RESPONSES: {"model": DIRECT, "input": "hello"},
    MESSAGES: {"model": DIRECT, "messages": HELLO, "max_tokens": 9},
}
FACES = pytest.mark.parametrize("path", BODIES)
STREAMS = pytest.mark.parametrize("stream", [False, True])


async def ask(
    daemon: RunningDaemon, path: str, key: str = "k", **body: Any
) -> httpx.Response:
    shown = {"Idempotency-Key": key}
    return await daemon.http.post(path, json={**BODIES[path], **body}, headers=shown)


def same(text: str) -> str:
    """What a test compares: a second may have passed between two answers."""
    import re

    return re.sub(r'"(created|created_at|completed_at)": ?\d+', r'"\1": 0', text)


@STREAMS
@FACES
async def test_the_same_key_and_body_are_the_same_answer(
    daemons: Daemons, path: str, *, stream: bool
) -> None:
    daemon = await daemons.start(config=ON)
    daemon.model.says("once")
    first = await ask(daemon, path, stream=stream)
    again = await ask(daemon, path, stream=stream)
    assert (first.status_code, again.status_code) == (200, 200)
    assert "once" in first.text
    assert same(again.text) == same(first.text)
    assert again.headers["content-type"] == first.headers["content-type"]
    assert len(daemon.model.requests) == 1
    assert len(await usage_rows(daemon)) == 1


@FACES
async def test_another_body_is_refused(daemons: Daemons, path: str) -> None:
    daemon = await daemons.start(config=ON)
    await ask(daemon, path)
    for body in ({"stream": True}, {"temperature": 0.5}):
        answer = await ask(daemon, path, **body)
        assert answer.status_code == 422, answer.text
    assert "idempotency_mismatch" in answer.text
    assert len(daemon.model.requests) == 1


async def test_other_keys_models_faces_and_askers_are_others(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n{ON}')
    daemon.http.headers["authorization"] = f"Bearer {KEY}"
    for path in BODIES:
        await ask(daemon, path)
    await ask(daemon, CHAT, key="another")
    await ask(daemon, CHAT, model="scripted/unlisted")
    made = await daemon.http.post(
        "/api/keys", json={"name": "other", "scopes": ["operate"]}
    )
    shown = {"authorization": f"Bearer {made.json()['key']}", "idempotency-key": "k"}
    other = await daemon.http.post(CHAT, json=BODIES[CHAT], headers=shown)
    assert other.status_code == 200
    assert len(daemon.model.requests) == 6


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_a_key_has_a_length(daemons: Daemons, key: str) -> None:
    daemon = await daemons.start(config=ON)
    answer = await ask(daemon, CHAT, key=key)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert "Idempotency-Key" in answer.text
    assert not daemon.model.requests


@STREAMS
async def test_who_asks_while_it_is_made_is_told_the_same(
    daemons: Daemons, *, stream: bool
) -> None:
    daemon = await daemons.start(config=ON)
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    first = asyncio.create_task(ask(daemon, CHAT, stream=stream))
    await pause.reached.wait()
    second = asyncio.create_task(ask(daemon, CHAT, stream=stream))
    refused = await ask(daemon, CHAT, stream=not stream)
    assert refused.status_code == 422
    pause.go_on()
    texts = [(await each).text for each in (first, second)]
    assert all("two" in text for text in texts)
    assert len(daemon.model.requests) == 1


async def test_many_at_the_same_time_are_one(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    answers = await asyncio.gather(*(ask(daemon, CHAT) for _ in range(8)))
    assert {answer.json()["id"] for answer in answers} == {answers[0].json()["id"]}
    assert len(daemon.model.requests) == 1


async def test_what_is_made_ends_with_the_daemon(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    left = asyncio.create_task(ask(daemon, CHAT))
    await pause.reached.wait()
    left.cancel()
    await asyncio.gather(left, return_exceptions=True)
    await daemon.daemon.stop()
    named = [task for task in asyncio.all_tasks() if "-" in task.get_name()]
    kept = [t for t in named if getattr(t.get_coro(), "__name__", "") == "_make"]
    assert kept == []


@STREAMS
async def test_who_leaves_does_not_end_it(daemons: Daemons, *, stream: bool) -> None:
    daemon = await daemons.start(config=ON)
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    left = asyncio.create_task(ask(daemon, CHAT, stream=stream))
    await pause.reached.wait()
    left.cancel()
    await asyncio.gather(left, return_exceptions=True)
    pause.go_on()
    again = await ask(daemon, CHAT, stream=stream)
    assert "two" in again.text
    assert len(daemon.model.requests) == 1
    assert [row[3] for row in await usage_rows(daemon)] == ["scripted"]


@STREAMS
async def test_one_that_failed_is_tried_again(
    daemons: Daemons, *, stream: bool
) -> None:
    daemon = await daemons.start(config=ON)
    daemon.model.fails(ProviderFault.AUTH)
    failed = await ask(daemon, CHAT, stream=stream)
    assert (failed.status_code, failed.json()["code"]) == (500, "auth")
    daemon.model.says("now")
    again = await ask(daemon, CHAT, stream=stream)
    assert (again.status_code, "now" in again.text) == (200, True)


async def test_a_stream_that_breaks_off_is_tried_again(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    daemon.model.fails(ProviderFault.SERVER, "one ")
    broken = await ask(daemon, CHAT, stream=True)
    assert "[DONE]" not in broken.text
    daemon.model.says("whole")
    assert "whole" in (await ask(daemon, CHAT, stream=True)).text


async def test_it_is_there_after_a_restart_with_all_that_it_had(
    daemons: Daemons, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    daemon = await daemons.start(home=home, config=ON)
    daemon.model.calls("weather", **CITY)
    daemon.model.scores(one=-0.5)
    daemon.model.thinks("hm", then="so")
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 2_000}}
    asked: list[tuple[str, dict[str, Any]]] = [
        (CHAT, {"key": "a", "tools": [WEATHER]}),
        (CHAT, {"key": "b", "logprobs": True}),
        (MESSAGES, thinking),
    ]
    first = [await ask(daemon, path, **body) for path, body in asked]
    assert [each.status_code for each in first] == [200, 200, 200]
    await daemon.daemon.stop()
    daemon = await daemons.start(home=home, config=ON)
    again = [await ask(daemon, path, **body) for path, body in asked]
    assert [same(each.text) for each in again] == [same(each.text) for each in first]
    assert '"weather"' in again[0].text
    assert '"logprob": -0.5' in again[1].text.replace('":-', '": -')
    assert '"hm"' in again[2].text
    assert not daemon.model.requests


async def test_it_is_kept_for_a_day(daemons: Daemons) -> None:
    clock = ManualClock()
    daemon = await daemons.start(config=ON, clock=clock)
    await ask(daemon, CHAT)
    keeping = _keeping(daemon)
    await clock.advance(86_000)
    await keeping.forget()
    await ask(daemon, CHAT)
    assert len(daemon.model.requests) == 1
    await clock.advance(500)
    await keeping.forget()
    await ask(daemon, CHAT)
    assert len(daemon.model.requests) == 2


def _keeping(daemon: RunningDaemon) -> Any:
    from agenthost_openai_compat.responses.service import keeping_of

    return keeping_of(daemon.daemon)._retention


async def test_a_whole_answer_that_breaks_off_is_made_anew_by_a_spare(
    daemons: Daemons,
) -> None:
    spare = f'[[fallback_providers]]\nprovider = "scripted"\nmodel = "{MODEL}"\n'
    daemon = await daemons.start(config=spare + ON)
    broken = Answer(("half ",), fault=ProviderFault.SERVER)
    daemon.model._answers.append(broken)
    daemon.model.says("whole")
    answer = await ask(daemon, CHAT)
    assert answer.json()["choices"][0]["message"]["content"] == "whole"


async def test_the_word_that_stopped_a_model_is_told(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    daemon.model.stops_before("END", "words")
    for _ in range(2):
        answer = (await ask(daemon, MESSAGES, stop_sequences=["END"])).json()
        assert (answer["stop_reason"], answer["stop_sequence"]) == (
            "stop_sequence",
            "END",
        )
