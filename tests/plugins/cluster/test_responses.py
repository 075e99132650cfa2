"""Responses on one PostgreSQL: what one daemon keeps, the others go on from."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agenthost.testing import Daemons, Pause, RunningDaemon
from agenthost_openai_compat.responses.retention import Retention

from .test_daemons import becomes, both, knows

pytestmark = pytest.mark.conformance

PATH = "/v1/responses"


async def made(daemon: RunningDaemon, said: str, **body: Any) -> Any:
    asked = {"model": "ada", "input": said, **body}
    answer = await daemon.http.post(PATH, json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def ended(daemon: RunningDaemon, response: Any) -> Any:
    async with asyncio.timeout(20):
        while True:
            answer = (await daemon.http.get(f"{PATH}/{response['id']}")).json()
            if answer["status"] not in {"queued", "in_progress"}:
                return answer


async def test_a_conversation_goes_on_on_the_other(
    daemons: Daemons, database: str
) -> None:
    first, second = await both(daemons, database)
    await first.agent("ada")
    await becomes(second, knows(second, "ada"))
    one = await made(first, "one")
    two = await made(second, "two", previous_response_id=one["id"])
    await made(first, "three", previous_response_id=two["id"])
    said = [m.text for m in first.model.requests[-1].messages]
    assert said == ["one", "You said: one", "two", "You said: two", "three"]
    path = f"{PATH}/{two['id']}"
    listed = (await first.http.get(f"{path}/input_items")).json()
    assert [item["content"][0]["text"] for item in listed["data"]] == ["two"]
    assert (await first.http.delete(path)).status_code == 200
    assert (await second.http.get(path)).status_code == 404
    await Retention(first.daemon).forget()
    assert (await second.http.get(f"{PATH}/{one['id']}")).status_code == 200


async def test_either_makes_and_cancels_what_is_asked_of_the_other(
    daemons: Daemons, database: str
) -> None:
    first, second = await both(daemons, database)
    await first.agent("ada")
    await becomes(second, knows(second, "ada"))
    done = await ended(second, await made(first, "one", background=True))
    assert done["output"][0]["content"][0]["text"] == "You said: one"
    pauses = [Pause(), Pause()]
    for daemon, pause in zip((first, second), pauses, strict=True):
        daemon.model.says("late ", pause, "never")
    slow = await made(first, "slow", background=True)
    waits = [asyncio.create_task(pause.reached.wait()) for pause in pauses]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=20)
    for wait in waits:
        wait.cancel()
    cancelled = (await second.http.post(f"{PATH}/{slow['id']}/cancel")).json()
    assert cancelled["status"] == "cancelled"
    assert (await ended(first, slow))["status"] == "cancelled"
