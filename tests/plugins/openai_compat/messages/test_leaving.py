"""Clients that leave, those that come again with a key, and several at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agenthost import ToolUse
from agenthost.testing import Pause
from agenthost.testing.daemons import RunningDaemon
from agenthost.testing.scripted import Answer
from agenthost_turns.engine import TurnEngine

from .asking import BOTH, PATH, WEATHER, answered, ask, asked

KEY = {"Idempotency-Key": "k"}


async def idle(daemon: RunningDaemon) -> None:
    engine = daemon.daemon.turns
    assert isinstance(engine, TurnEngine)
    running = engine._live.values()
    await asyncio.wait([turn.task for turn in running if turn.task], timeout=30)
    assert engine.running == 0


async def leave(daemon: RunningDaemon, *, stream: bool, **headers: str) -> Pause:
    """Ask, and leave once the model is at its second word."""
    pause = Pause()
    daemon.model.says("one ", pause, "two")

    async def read() -> None:
        body = asked(stream=stream)
        async with daemon.http.stream("POST", PATH, json=body, headers=headers) as got:
            await got.aread()

    asking = asyncio.create_task(read())
    await pause.reached.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    return pause


@pytest.mark.parametrize("stream", [False, True])
async def test_who_leaves_stops_the_turn(
    daemon: RunningDaemon, *, stream: bool
) -> None:
    await daemon.agent("ada")
    await leave(daemon, stream=stream)
    await idle(daemon)
    assert (await ask(daemon)).status_code == 200


@pytest.mark.conformance
@pytest.mark.parametrize("stream", [False, True])
async def test_with_a_key_the_turn_goes_on_and_is_told_again(
    daemon: RunningDaemon, *, stream: bool
) -> None:
    await daemon.agent("ada")
    pause = await leave(daemon, stream=stream, **KEY)
    assert daemon.daemon.turns.running == 1
    pause.go_on()
    body = asked(stream=stream)
    for _ in range(2):
        answer = await daemon.http.post(PATH, json=body, headers=KEY)
        assert answer.status_code == 200
        assert "two" in answer.text
    assert len(daemon.model.requests) == 1


async def test_with_a_key_the_same_message_comes_again(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    uses = [ToolUse(str(at), *each) for at, each in enumerate(BOTH)]
    daemon.model._answers.append(Answer(("Let me see.",), calls=tuple(uses)))
    body = asked(tools=[WEATHER])
    first, again = [
        (await daemon.http.post(PATH, json=body, headers=KEY)).json() for _ in range(2)
    ]
    assert first == again
    assert [block["type"] for block in first["content"]] == ["text", "tool_use"]
    streamed = await daemon.http.post(PATH, json={**body, "stream": True}, headers=KEY)
    assert streamed.status_code == 422
    assert streamed.json()["error"]["details"]["error_code"] == "idempotency_mismatch"


async def test_two_clients_of_an_agent_never_mix(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")

    async def one(number: int) -> str:
        messages = [{"role": "user", "content": f"number {number}"}]
        if number % 2:
            return str((await answered(daemon, messages=messages))["content"])
        return (await ask(daemon, messages=messages, stream=True)).text

    said = await asyncio.gather(*map(one, range(8)))
    for number, text in enumerate(said):
        assert text.count("You said: ") == 1
        ends = ("'", '"')
        assert any(f"You said: number {number}{end}" in text for end in ends)


@pytest.mark.conformance
async def test_keys_of_the_two_dialects_are_apart(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    body: dict[str, Any] = asked()
    for path in (PATH, "/v1/chat/completions"):
        answer = await daemon.http.post(path, json=body, headers=KEY)
        assert answer.status_code == 200, answer.text
    assert len(daemon.model.requests) == 2
