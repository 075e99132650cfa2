"""Who speaks, where messages say so by name."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from agenthost import Role
from agenthost.testing.daemons import Daemons, RunningDaemon

from .test_chat import HELLO, ask
from .test_passthrough import DIRECT, ON

BOB = {"role": "user", "content": "hello", "name": "bob"}
TALK = [
    {"role": "system", "content": "2+2?", "name": "example_user"},
    BOB,
    {"role": "assistant", "content": "hi", "name": "ada"},
    {"role": "system", "content": "Now.", "name": "example_user"},
    {"role": "user", "content": [{"type": "text", "text": "and me?"}], "name": "éve"},
]


@pytest.mark.parametrize("model", ["ada", DIRECT])
async def test_names_have_words_where_they_have_no_place(
    daemons: Daemons, model: str
) -> None:
    daemon = await daemons.start(config=ON)
    await daemon.agent("ada")
    assert (await ask(daemon, model=model, messages=TALK)).status_code == 200
    (request,) = daemon.model.requests
    assert request.system.endswith("[example_user says:]\n2+2?")
    bob, ada, now, eve = request.messages
    assert bob.text == "[bob says:]\nhello"
    assert (ada.role, ada.text) == (Role.ASSISTANT, "hi")
    assert now.text.endswith("\n[example_user says:]\nNow.")
    assert eve.text == "[éve says:]\nand me?"
    assert not any(each.name for each in request.messages)


async def test_a_name_of_a_tools_result_is_passed_over(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    function = {"name": "look", "arguments": "{}"}
    use = {"id": "c", "type": "function", "function": function}
    called = {"role": "assistant", "content": None, "tool_calls": [use], "name": "ada"}
    result = {"role": "tool", "tool_call_id": "c", "content": "x", "name": "look"}
    answer = await ask(daemon, messages=[*HELLO, called, result])
    assert answer.status_code == 200
    assert daemon.model.requests[0].messages[0].text == "hello"


@pytest.mark.parametrize(
    "name", ["", "two words", "a" * 65, "<b>", "a|b", "a/b", "a\\b", 7, ["bob"], {}]
)
@pytest.mark.parametrize("role", ["user", "system", "assistant"])
async def test_what_is_no_name_is_refused(
    daemon: RunningDaemon, name: Any, role: str
) -> None:
    await daemon.agent("ada")
    said = {"role": role, "content": "x", "name": name}
    answer: httpx.Response = await ask(daemon, messages=[*HELLO, said, *HELLO])
    assert (answer.status_code, answer.json()["param"]) == (400, "messages.1.name")


async def test_no_name_is_none(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    assert (await ask(daemon, messages=[{**BOB, "name": None}])).status_code == 200
    assert daemon.model.requests[0].messages[0].text == "hello"
