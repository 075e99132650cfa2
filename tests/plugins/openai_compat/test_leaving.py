"""Clients that leave, and those that come again with a key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial

import pytest
from agenthost import HeldFrames, TurnOptions, user_message
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_openai_compat.leaving import leave as let_go
from agenthost_turns.engine import TurnEngine

from .test_chat import HELLO, PATH, ask

BODY = {"model": "ada", "messages": HELLO}


async def idle(daemon: RunningDaemon) -> None:
    engine = daemon.daemon.turns
    assert isinstance(engine, TurnEngine)
    running = engine._live.values()
    await asyncio.wait([turn.task for turn in running if turn.task], timeout=30)
    assert engine.running == 0


async def leave(
    daemon: RunningDaemon, *, stream: bool, model: str = "ada", **headers: str
) -> Pause:
    """Ask, and leave once the model is at its second word."""
    pause = Pause()
    daemon.model.says("one ", pause, "two")

    async def read() -> None:
        body = {**BODY, "model": model, "stream": stream}
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


@pytest.mark.parametrize("stream", [False, True])
async def test_with_a_key_the_turn_goes_on_and_is_told_again(
    daemon: RunningDaemon, *, stream: bool
) -> None:
    await daemon.agent("ada")
    pause = await leave(daemon, stream=stream, **{"Idempotency-Key": "k"})
    assert daemon.daemon.turns.running == 1
    pause.go_on()
    body = {**BODY, "stream": stream}
    answers = [
        await daemon.http.post(PATH, json=body, headers={"Idempotency-Key": "k"})
        for _ in range(2)
    ]
    for answer in answers:
        assert answer.status_code == 200
        assert "two" in answer.text
    assert len(daemon.model.requests) == 1


async def test_a_key_is_bound_to_its_request(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    key = {"Idempotency-Key": "k"}
    first = await daemon.http.post(PATH, json=BODY, headers=key)
    other = await daemon.http.post(PATH, json={**BODY, "seed": 1}, headers=key)
    empty = await daemon.http.post(PATH, json=BODY, headers={"Idempotency-Key": ""})
    assert (first.status_code, other.status_code, empty.status_code) == (200, 422, 400)
    assert other.json()["code"] == "idempotency_mismatch"


async def test_two_clients_of_an_agent_never_mix(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    words = [f"number {n}" for n in range(20)]
    answers = await asyncio.gather(
        *(
            ask(daemon, messages=[{"role": "user", "content": each}], stream=n % 2 == 0)
            for n, each in enumerate(words)
        )
    )
    for each, answer in zip(words, answers, strict=True):
        assert f'You said: {each}"' in answer.text


async def test_keys_are_apart_for_each_principal(daemons: Daemons) -> None:
    secret = "a-key-of-this-test-0123456"
    daemon = await daemons.start(config=f'api_key = "{secret}"\n')
    daemon.http.headers["authorization"] = f"Bearer {secret}"
    await daemon.agent("ada")
    made = await daemon.http.post("/api/keys", json={"name": "x", "scopes": ["chat"]})
    shown = {"authorization": f"Bearer {made.json()['key']}"}
    key = {"Idempotency-Key": "k"}
    first = await daemon.http.post(PATH, json=BODY, headers=key)
    again = await daemon.http.post(PATH, json=BODY, headers={**key, **shown})
    assert first.json()["id"] != again.json()["id"]
    assert len(daemon.model.requests) == 2


async def test_who_leaves_before_the_first_frame_stops_the_turn(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent("ada")
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    turns, options = daemon.daemon.turns, TurnOptions(history=())
    known = daemon.daemon.agents.get(agent.id)
    watcher = turns.watch(agent.context(), known, user_message("hello"), options)

    async def unread() -> AsyncGenerator[bytes, None]:
        yield b""

    await pause.reached.wait()
    await HeldFrames(unread(), partial(let_go, watcher)).aclose()
    await idle(daemon)
