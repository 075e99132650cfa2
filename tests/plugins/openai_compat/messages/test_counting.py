"""The count of a request's tokens: an estimate, of all that the model would see."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost.testing.daemons import RunningDaemon

from .asking import HELLO, PATH, WEATHER, user


async def count(daemon: RunningDaemon, **body: Any) -> int:
    given = {"model": "ada", "messages": HELLO, **body}
    answer = await daemon.http.post(f"{PATH}/count_tokens", json=given)
    assert answer.status_code == 200, answer.text
    (tokens,) = answer.json().values()
    return int(tokens)


async def test_all_that_the_model_would_see_is_counted(daemon: RunningDaemon) -> None:
    await daemon.agent("bare", tools=[])
    await daemon.agent("ada")
    bare = await count(daemon, model="bare")
    own = await count(daemon)
    assert 0 < bare < own < 5_000
    words = "word " * 4_000
    for more in (
        {"system": words},
        {"messages": [{"role": "user", "content": words}]},
        {"tools": [{**WEATHER, "description": words}]},
    ):
        assert 4_990 <= await count(daemon, **more) - own < 5_100
    assert daemon.model.requests == []


@pytest.mark.conformance
async def test_a_longer_prompt_of_the_agents_own_counts(daemon: RunningDaemon) -> None:
    await daemon.agent("bare", tools=[])
    words = "word " * 4_000
    await daemon.agent("long", tools=[], extra=f'[model]\nsystem_prompt = "{words}"\n')
    one, other = [await count(daemon, model=name) for name in ("bare", "long")]
    assert 4_990 <= other - one < 5_100


@pytest.mark.conformance
async def test_nothing_is_fetched_to_be_counted(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    source = {"type": "url", "url": "http://127.0.0.1:9/a.png"}
    look = user({"type": "image", "source": source})
    assert await count(daemon, **look) - await count(daemon) >= 900


@pytest.mark.conformance
async def test_what_could_not_be_answered_is_not_counted(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    for body, status in (
        ({"messages": []}, 400),
        ({"tools": [{**WEATHER, "name": "calculate"}]}, 400),
        ({"thinking": {"type": "some"}}, 400),
        ({"model": "service:nobody"}, 404),
    ):
        given = {"model": "ada", "messages": HELLO, **body}
        answer = await daemon.http.post(f"{PATH}/count_tokens", json=given)
        assert answer.status_code == status, answer.text
        assert answer.json()["type"] == "error"
