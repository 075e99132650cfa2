"""The field's example workflows against aimock, a scripted model that is not ours.

What is expected is written from what a workflow is said to mean: what each step is
told, in which order, and what comes of the run. What was told is read from aimock's own
journal of the requests that it took.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from agenthost.testing import Daemons
from agenthost.testing.daemons import RunningDaemon

from tests.plugins.orchestration.workflows.stage import only_run, run, step, workflow

from .test_aimock import pytestmark, serving

__all__ = ["pytestmark"]

CONFIG = """
[providers.aimock]
dialect = "openai-chat"
base_url = "{url}/v1"
"""
MODEL = '[model]\nprovider = "aimock"\nmodel = "mock-1"\n'
BETWEEN = "\n\n---\n\n"


def says(told: str, answer: str, **match: Any) -> dict[str, Any]:
    """What is answered to who was told this."""
    return {
        "match": {"userMessage": told, **match},
        "response": {"content": answer},
    }


def refuses(told: str, **match: Any) -> dict[str, Any]:
    """A request that the service takes for wrong, which nobody sends again."""
    error = {"message": "no such thing", "type": "invalid_request_error"}
    return {
        "match": {"userMessage": told, **match},
        "response": {"error": error, "status": 400},
    }


FIXTURES = [
    says("Write about bees.", "a draft"),
    says("Review: a draft", "too long"),
    says("Mend a draft by too long", "the text"),
    says("Idea 1 for tea", "green"),
    says("Idea 2 for tea", "black"),
    says("Idea 3 for tea", "white"),
    says(f"Choose: green{BETWEEN}black{BETWEEN}white", "black it is"),
    says("Check rain", "it will RAIN all day"),
    says("Check sun", "dry and warm"),
    says("Pack for it will RAIN all day", "an umbrella"),
    says("Go on: x", "once"),
    says("Go on: once", "twice"),
    says("Go on: twice", "that is done now"),
    refuses("Try hard", sequenceIndex=0),
    refuses("Try hard", sequenceIndex=1),
    says("Try hard", "got it", sequenceIndex=2),
    refuses("Try in vain"),
    says("After x", "went on with x"),
    {**says("Be slow", "never heard"), "streamingProfile": {"ttft": 60_000}},
]


@pytest.fixture
async def mock(tmp_path: Path) -> AsyncIterator[str]:
    """The address of an aimock that knows the workflows' words."""
    async with serving(tmp_path, {"fixtures": FIXTURES}) as url:
        yield url


async def with_agents(daemons: Daemons, url: str) -> RunningDaemon:
    daemon = await daemons.start(config=CONFIG.format(url=url))
    for name in ("writer", "critic"):
        await daemon.agent(name, extra=MODEL)
    return daemon


async def journal(url: str) -> list[str]:
    """What the service was told, in order: the last message of each request."""
    async with httpx.AsyncClient() as http:
        taken = (await http.get(f"{url}/__aimock/journal")).json()
    entries = taken["entries"] if isinstance(taken, dict) else taken
    return [each["body"]["messages"][-1]["content"] for each in entries]


def by(agent: str, name: str, prompt: str, **facts: Any) -> Any:
    return step(name, prompt, agent_name=agent, **facts)


async def test_a_review_pipeline(daemons: Daemons, mock: str) -> None:
    daemon = await with_agents(daemons, mock)
    flow = workflow(
        by("writer", "draft", "Write about {{input}}.", output_var="v1"),
        by("critic", "review", "Review: {{input}}"),
        by("writer", "final", "Mend {{v1}} by {{input}}"),
    )
    told = (await run(daemon, flow, "bees")).json()
    assert (told["status"], told["output"]) == ("completed", "the text")
    assert await journal(mock) == [
        "Write about bees.",
        "Review: a draft",
        "Mend a draft by too long",
    ]
    steps = (await only_run(daemon, flow))["steps"]
    assert [each["output"] for each in steps] == ["a draft", "too long", "the text"]


async def test_a_brainstorm_is_collected_in_the_order_of_its_steps(
    daemons: Daemons, mock: str
) -> None:
    daemon = await with_agents(daemons, mock)
    ideas = [
        by("writer", f"idea {n}", f"Idea {n} for {{{{input}}}}", mode="fan_out")
        for n in (1, 2, 3)
    ]
    flow = workflow(
        *ideas,
        step("all", mode="collect"),
        by("critic", "choose", "Choose: {{input}}"),
    )
    told = (await run(daemon, flow, "tea")).json()
    assert told["output"] == "black it is"
    asked = await journal(mock)
    assert sorted(asked[:3]) == [f"Idea {n} for tea" for n in (1, 2, 3)]
    assert asked[3:] == [f"Choose: green{BETWEEN}black{BETWEEN}white"]


@pytest.mark.parametrize(
    ("weather", "output", "calls"), [("rain", "an umbrella", 2), ("sun", "dry and", 1)]
)
async def test_a_condition_is_looked_for_in_whatever_case(
    daemons: Daemons, mock: str, weather: str, output: str, calls: int
) -> None:
    daemon = await with_agents(daemons, mock)
    flow = workflow(
        by("writer", "check", "Check {{input}}"),
        by(
            "critic",
            "pack",
            "Pack for {{input}}",
            mode="conditional",
            condition="rain",
        ),
    )
    told = (await run(daemon, flow, weather)).json()
    assert told["output"].startswith(output)
    assert len(await journal(mock)) == calls


async def test_a_loop_hands_each_output_on_until_the_word(
    daemons: Daemons, mock: str
) -> None:
    daemon = await with_agents(daemons, mock)
    loop = by(
        "writer",
        "loop",
        "Go on: {{input}}",
        mode="loop",
        until="DONE",
        max_iterations=9,
    )
    told = (await run(daemon, workflow(loop), "x")).json()
    assert told["output"] == "that is done now"
    assert await journal(mock) == ["Go on: x", "Go on: once", "Go on: twice"]


async def test_a_loop_that_never_hears_the_word_ends_with_its_last_output(
    daemons: Daemons, mock: str
) -> None:
    daemon = await with_agents(daemons, mock)
    loop = by(
        "writer", "loop", "Go on: {{input}}", mode="loop", until="no", max_iterations=2
    )
    told = (await run(daemon, workflow(loop), "x")).json()
    assert (told["status"], told["output"]) == ("completed", "twice")


async def test_a_step_is_tried_again_as_often_as_it_says(
    daemons: Daemons, mock: str
) -> None:
    daemon = await with_agents(daemons, mock)
    hard = by("writer", "hard", "Try hard", error_mode="retry", max_retries=2)
    flow = workflow(hard)
    told = (await run(daemon, flow, "x")).json()
    assert told["output"] == "got it"
    assert await journal(mock) == ["Try hard"] * 3
    steps = (await only_run(daemon, flow))["steps"]
    assert [bool(each["error"]) for each in steps] == [True, True, False]


async def test_retries_that_are_used_up_fail_the_run(
    daemons: Daemons, mock: str
) -> None:
    daemon = await with_agents(daemons, mock)
    vain = by("writer", "vain", "Try in vain", error_mode="retry", max_retries=2)
    answer = await run(daemon, workflow(vain, by("critic", "b", "After {{input}}")))
    assert answer.status_code == 500
    assert answer.json()["error"].startswith("Step 'vain' failed after 2 retries:")
    assert await journal(mock) == ["Try in vain"] * 3


async def test_a_step_that_is_skipped_leaves_the_input_as_it_was(
    daemons: Daemons, mock: str
) -> None:
    daemon = await with_agents(daemons, mock)
    vain = by("writer", "vain", "Try in vain", error_mode="skip")
    flow = workflow(vain, by("critic", "after", "After {{input}}"))
    told = (await run(daemon, flow, "x")).json()
    assert told["output"] == "went on with x"
    assert await journal(mock) == ["Try in vain", "After x"]


async def test_a_step_that_takes_too_long_fails_the_run(
    daemons: Daemons, mock: str
) -> None:
    daemon = await with_agents(daemons, mock)
    slow = by("writer", "slow", "Be slow", timeout_secs=1)
    answer = await run(daemon, workflow(slow, by("critic", "b", "After {{input}}")))
    assert answer.status_code == 500
    assert json.loads(answer.text)["error"] == "Step 'slow' timed out after 1s"
    assert await journal(mock) == ["Be slow"]
