"""Questions of an agent's own go to people and come back, and agents are found."""

from __future__ import annotations

import json

import pytest
from agenthost import UNTRUSTED, Asked, ToolContext, TurnState
from agenthost.testing import Daemons
from agenthost_tools.agent_find import AgentFind, agent_find
from agenthost_tools.ask_user import AskUser, ask_user
from agenthost_tools.memory_search import MemorySearch, memory_search

from ..approvals.stage import answer, ends, listed, results, waits
from .conftest import limited


async def test_agents_are_found_by_all_words_in_any_case(context: ToolContext) -> None:
    async def named(query: str) -> list[str]:
        found = await agent_find(context, AgentFind(query=query))
        return [each["name"] for each in json.loads(found.text)]

    assert await named("choir") == ["ada", "bob"]
    assert await named("BOB sings") == ["bob"]
    assert await named("bob dances") == []
    assert await named("  ") == ["ada", "bob"]


@pytest.mark.parametrize("choices", [[], ["red", "red", "blue"]])
async def test_a_question_is_put_with_its_words(
    context: ToolContext, choices: list[str]
) -> None:
    call = AskUser(question="Which?", choices=choices, timeout_seconds=60)
    with pytest.raises(Asked) as caught:
        await ask_user(context, call)
    (ask,) = caught.value.asks
    assert (ask.question.text, ask.deadline_seconds) == ("Which?", 60.0)
    assert ask.question.choices == (("red", "blue") if choices else ())
    assert (ask.question.schema is None) == bool(choices)


async def test_a_turn_waits_for_the_answer_and_its_model_reads_it(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent(tools=["ask_user", "calculate"])
    question = {"question": "Which one?", "choices": ["red", "blue"]}
    daemon.model.calls_all(
        ("ask_user", question), ("calculate", {"expression": "1 + 1"})
    )
    told = await waits(agent, "choose")
    (shown,) = await listed(daemon, state="pending")
    assert shown["question"] == "Which one?"
    wrong = await answer(daemon, told["approval_id"], values={"choice": "green"})
    assert wrong.status_code == 400
    await answer(daemon, told["approval_id"], values={"choice": "blue"})
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert results(daemon) == ["blue", "2"]
    daemon.model.calls("ask_user", question="And why?")
    told = await waits(agent, "again")
    await answer(daemon, told["approval_id"], "deny", reason="busy")
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert results(daemon)[-1] == "ask_user failed: a person said no: busy"


async def test_a_search_shows_only_keys_that_may_be_read(context: ToolContext) -> None:
    async def seen(*patterns: str) -> str:
        call = MemorySearch(query="blue")
        found = await memory_search(limited(context, memory_read=patterns), call)
        assert found.labels == (UNTRUSTED if patterns else frozenset())
        return found.text

    assert await seen() == "nothing found"
    own, shared = '"key": "color"', '"key": "shared.color"'
    mine, common = await seen("self.*"), await seen("shared.*")
    assert (own in mine, shared in mine) == (True, False)
    assert (own in common, shared in common) == (False, True)
