"""Tasks are left, taken by one agent and completed by it alone."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from agenthost import (
    UNTRUSTED,
    Conflict,
    Denied,
    Grants,
    NotFound,
    Reports,
    ToolContext,
)
from agenthost.testing import Daemons, ManualClock, ToolContract
from agenthost_orchestration.tasks.tools import (
    TaskClaim,
    TaskComplete,
    TaskList,
    TaskPost,
    task_claim,
    task_complete,
    task_list,
    task_post,
)
from agenthost_orchestration.tasks.writes import CLAIM_SECONDS, MOST_OPEN


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def contexts(daemons: Daemons, clock: ManualClock) -> list[ToolContext]:
    """Three agents of one daemon."""
    daemon = await daemons.start(clock=clock)
    agents = [await daemon.agent(name) for name in ("ada", "bob", "cleo")]
    made = (agent.context() for agent in agents)
    return [ToolContext.of(each, daemon.daemon, Reports()) for each in made]


async def post(context: ToolContext, title: str = "dig", to: str = "") -> str:
    call = TaskPost(title=title, description="a hole", assigned_to=to)
    return (await task_post(context, call)).text.removeprefix("posted task ")


async def claim(context: ToolContext) -> dict[str, Any]:
    said = (await task_claim(context, TaskClaim())).text
    found: dict[str, Any] = json.loads(said) if said.startswith("{") else {}
    return found


async def complete(context: ToolContext, task_id: str) -> None:
    await task_complete(context, TaskComplete(task_id=task_id, result="dug"))


async def titles(context: ToolContext, status: Any = "") -> set[str]:
    found = await task_list(context, TaskList(status=status))
    return {each["title"] for each in json.loads(found.text)}


async def test_a_task_is_done_once_by_whom_it_is_for(
    contexts: list[ToolContext], clock: ManualClock
) -> None:
    ada, bob, cleo = contexts
    task = await post(ada, to="bob")
    assert await claim(cleo) == {}
    taken = await claim(bob)
    assert (taken["id"], taken["status"], taken["description"]) == (
        task,
        "in_progress",
        "a hole",
    )
    assert await claim(bob) == {}
    with pytest.raises(Denied, match="claim"):
        await complete(cleo, task)
    await complete(bob, task)
    with pytest.raises(Conflict):
        await complete(bob, task)
    with pytest.raises(NotFound):
        await complete(bob, "none")
    assert await titles(ada, "completed") == {"dig"}
    assert await titles(cleo) == set()
    # Of several that reach for one at once a single agent gets it.
    await post(ada, "paint")
    got = await asyncio.gather(*(claim(each) for each in contexts * 3))
    assert [each["title"] for each in got if each] == ["paint"]
    # What nobody completes is anybody's again, and no longer its first taker's.
    await clock.advance(CLAIM_SECONDS + 1)
    (first,) = (c for c, each in zip(contexts * 3, got, strict=True) if each)
    (other, *_) = (each for each in contexts if each is not first)
    again = await claim(other)
    assert again["title"] == "paint"
    with pytest.raises(Denied):
        await complete(first, again["id"])


async def test_what_was_known_goes_with_a_task_and_rights_hold(
    contexts: list[ToolContext],
) -> None:
    ada, bob, _ = contexts
    await post(replace(ada, labels=UNTRUSTED))
    assert (await task_list(bob, TaskList())).labels == UNTRUSTED
    assert (await task_claim(bob, TaskClaim())).labels == UNTRUSTED
    mute = replace(ada.principal, grants=Grants({"tool": ("*",)}))
    with pytest.raises(Denied):
        await post(replace(ada, principal=mute), to="bob")
    with pytest.raises(NotFound):
        await post(ada, to="nobody")
    writing = [post(ada, f"t{number}") for number in range(MOST_OPEN + 1)]
    done = await asyncio.gather(*writing, return_exceptions=True)
    assert sum(isinstance(each, Conflict) for each in done) >= 1
    assert sum(isinstance(each, str) for each in done) <= MOST_OPEN


class Tasks(ToolContract):
    """Every tool of tasks."""

    @pytest.fixture
    async def context(self, contexts: list[ToolContext]) -> ToolContext:
        ada, *_ = contexts
        await post(ada)
        taken = await claim(ada)
        change = "UPDATE tasks SET id = 'own' WHERE id = :id"
        await ada.host.store.change(change, {"id": taken["id"]})
        return ada


@pytest.mark.conformance
class TestTaskPost(Tasks):
    """Leaves a task."""

    tool = "task_post"
    accepted = ({"title": "x", "description": "y", "assigned_to": "bob"},)
    refused = (
        {},
        {"title": " ", "description": "y"},
        {"title": "x" * 201, "description": "y"},
        {"title": "x", "description": "\ud800"},
    )
    failing = ({"title": "x", "description": "y", "assigned_to": "none"},)


@pytest.mark.conformance
class TestTaskClaim(Tasks):
    """Takes a task."""

    tool = "task_claim"
    accepted = ({},)
    refused = ({"task_id": "x"},)


@pytest.mark.conformance
class TestTaskComplete(Tasks):
    """Completes a task."""

    tool = "task_complete"
    refused = ({}, {"task_id": "own"}, {"task_id": "x" * 65, "result": "y"})
    failing = ({"task_id": "none", "result": "x"}, {"task_id": "", "result": "x"})
    accepted = ()

    async def test_it_gives_a_result(self, spec: Any, context: ToolContext) -> None:
        await complete(context, "own")

    async def test_it_can_be_cancelled(self, spec: Any, context: ToolContext) -> None:
        task = asyncio.ensure_future(complete(context, "own"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=5)
        assert task.done()


@pytest.mark.conformance
class TestTaskList(Tasks):
    """Lists tasks."""

    tool = "task_list"
    accepted = ({}, {"status": "pending"})
    refused = ({"status": "lost"}, {"id": 1})
