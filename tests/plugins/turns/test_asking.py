"""What is asked of answers: told to the model, kept with the turn, checked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agenthost import (
    OPERATOR,
    Context,
    Interrupted,
    InvalidInput,
    ModelSettings,
    ProviderFault,
    Turn,
    TurnOptions,
    UnfitAnswer,
    Usage,
    user_message,
)
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningAgent, RunningDaemon
from agenthost.turns.events import Failed, TextDelta
from agenthost.turns.turn import Watcher

KEY = "5d5c2f6e-9f0e-4f0e-8a58-0d9c3a1f7b33"
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "warm": {"type": "boolean"}},
    "required": ["city", "warm"],
    "additionalProperties": False,
}
GOOD = '{"city": "Évora", "warm": true}'
BAD = '{"city": "Évora", "warm": "yes"}'
FORM = ModelSettings(response_format=CITY)
MANNERS = """
[model]
top_p = 0.5
stop = ["END", "\\n\\n"]
seed = 7
parallel_tool_calls = false
"""


def begin(agent: RunningAgent, settings: ModelSettings, **options: Any) -> Turn:
    """Start a turn that nobody watches."""
    daemon = agent.host.daemon
    known, asked = (
        daemon.agents.get(agent.id),
        TurnOptions(settings=settings, **options),
    )
    return daemon.turns.start(Context(OPERATOR), known, user_message("where?"), asked)


def watched(agent: RunningAgent, settings: ModelSettings) -> Watcher:
    """Start a turn and watch it."""
    daemon = agent.host.daemon
    known, asked = daemon.agents.get(agent.id), TurnOptions(settings=settings)
    return daemon.turns.watch(Context(OPERATOR), known, user_message("where?"), asked)


async def said_in(agent: RunningAgent) -> list[str]:
    """What the session shows."""
    return [m["content"] for m in (await agent.session())["messages"]]


async def test_nothing_is_asked_where_nobody_does(daemon: RunningDaemon) -> None:
    await (await daemon.agent()).ask("hello")
    assert daemon.model.requests[0].asked == {}


@pytest.mark.manifest("model.top_p")
@pytest.mark.manifest("model.stop")
@pytest.mark.manifest("model.seed")
@pytest.mark.manifest("model.parallel_tool_calls")
async def test_a_manifest_says_how_its_agent_answers(daemon: RunningDaemon) -> None:
    await (await daemon.agent(extra=MANNERS)).ask("hello")
    assert daemon.model.requests[0].asked == {
        "top_p": 0.5,
        "stop": ("END", "\n\n"),
        "seed": 7,
        "parallel_tool_calls": False,
    }


async def test_a_turn_is_asked_before_its_manifest(daemon: RunningDaemon) -> None:
    agent = await daemon.agent(extra=MANNERS)
    await begin(agent, ModelSettings(seed=0, stop=("X",))).result()
    asked = daemon.model.requests[0].asked
    assert (asked["seed"], asked["stop"], asked["top_p"]) == (0, ("X",), 0.5)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("top_p = 2", "model.top_p"),
        ("seed = -1", "model.seed"),
        ("seed = 1.5", "model.seed"),
        ('stop = ["a", "b", "c", "d", "e"]', "model.stop"),
        ('stop = [""]', "model.stop"),
        ("tool_choice = 1", "model.tool_choice"),
    ],
)
async def test_a_manifest_that_asks_for_what_is_none_is_refused_by_key(
    daemon: RunningDaemon, line: str, key: str
) -> None:
    manifest = f'name = "a"\n[model]\n{line}\n'
    answer = await daemon.http.post("/api/agents", json={"manifest_toml": manifest})
    assert answer.status_code == 400
    assert key in answer.json()["error"]


async def test_an_answer_with_the_form_is_given_at_once(daemon: RunningDaemon) -> None:
    daemon.model.says(GOOD)
    agent = await daemon.agent()
    assert (await begin(agent, FORM).result()).text == GOOD
    (request,) = daemon.model.requests
    assert request.response_format == CITY
    assert await said_in(agent) == ["where?", GOOD]


async def test_an_answer_without_it_is_asked_for_again_with_what_was_wrong(
    daemon: RunningDaemon,
) -> None:
    daemon.model.says(BAD)
    daemon.model.says(GOOD)
    agent = await daemon.agent()
    result = await begin(agent, FORM).result()
    assert (result.text, result.usage, result.iterations) == (GOOD, Usage(20, 10), 2)
    first, second = daemon.model.requests
    question, refused, again = second.messages
    assert (question,) == first.messages
    assert refused.text == BAD
    assert "warm: 'yes' is not of type 'boolean'" in again.text
    assert json.dumps(CITY) in again.text
    assert await said_in(agent) == ["where?", GOOD]
    booked = await daemon.daemon.usage.of_agent(agent.id)
    assert (booked.requests, booked.input_tokens) == (2, 20)


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{GOOD}\n```",
        f"Here it is: {GOOD}",
        "",
        "[" * 100_000,
        '{"city": "Évora", "warm": true, "more": 1}',
    ],
    ids=["fence", "words", "nothing", "depths", "more"],
)
async def test_what_is_not_json_alone_is_not_taken(
    daemon: RunningDaemon, text: str
) -> None:
    daemon.model.says(text)
    daemon.model.says(GOOD)
    assert (await begin(await daemon.agent(), FORM).result()).text == GOOD


async def test_what_json_has_no_number_for_is_none(daemon: RunningDaemon) -> None:
    daemon.model.says("NaN")
    daemon.model.says("1.5")
    number = ModelSettings(response_format={"type": "number"})
    assert (await begin(await daemon.agent(), number).result()).text == "1.5"


async def test_a_second_one_without_it_is_an_error_that_names_the_place(
    daemon: RunningDaemon,
) -> None:
    daemon.model.says(BAD)
    daemon.model.says('{"city": "Évora", "warm": 1}')
    agent = await daemon.agent()
    body = {"message": "where?", "response_format": CITY}
    answer = await daemon.http.post(f"/api/agents/{agent.id}/message", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "unfit_answer")
    assert "warm: 1 is not of type 'boolean'" in answer.json()["error"]
    assert len(daemon.model.requests) == 2
    booked = await daemon.daemon.usage.of_agent(agent.id)
    assert (booked.requests, booked.input_tokens) == (2, 20)
    assert await agent.ask("again") == "You said: again"
    assert await said_in(agent) == ["where?", "again", "You said: again"]


async def test_that_it_was_cut_off_is_told(daemon: RunningDaemon) -> None:
    daemon.model.is_cut('{"city": "Év')
    daemon.model.is_cut('{"city": "Év')
    with pytest.raises(UnfitAnswer, match="cut off at its length limit"):
        await begin(await daemon.agent(), FORM).result()


async def test_watchers_hear_nothing_that_is_taken_back(daemon: RunningDaemon) -> None:
    pause = Pause()
    daemon.model.says(BAD)
    daemon.model.says(GOOD[:9], pause, GOOD[9:])
    watcher = watched(await daemon.agent(), FORM)
    await pause.reached.wait()
    assert (watcher.turn.saying, watcher.turn.offset) == ("", 0)
    pause.go_on()
    told = [event async for event in watcher.events()]
    assert [e.text for e in told if isinstance(e, TextDelta)] == [GOOD]


async def test_another_model_may_answer_while_nothing_was_told(
    daemons: Daemons,
) -> None:
    config = '[[fallback_providers]]\nprovider = "offline"\n'
    daemon = await daemons.start(config=config)
    daemon.model.fails(ProviderFault.SERVER, GOOD[:9])
    daemon.model.says(GOOD)
    turn = watched(await daemon.agent(tools=()), FORM).turn
    # What stands in has no form, and so it is asked for once more.
    assert (await turn.result()).text == GOOD
    assert turn.offset == len(GOOD)


async def test_words_before_a_call_are_told_and_not_held_to_the_form(
    daemon: RunningDaemon,
) -> None:
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says(GOOD)
    agent = await daemon.agent()
    assert (await begin(agent, FORM).result()).text == GOOD
    assert len(daemon.model.requests) == 2


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "nothing"}, "response_format"),
        ({"$ref": "https://elsewhere.example/schema"}, "nothing is fetched"),
        ({"type": "string", "pattern": "(a)\\1"}, "is not taken"),
        ({"enum": list(range(20_000))}, "more than 10000 values"),
        ({"description": "x" * 300_000}, "characters long"),
    ],
    ids=["type", "remote", "backwards", "many", "long"],
)
async def test_a_form_that_is_none_is_refused_before_anything_is_said(
    daemon: RunningDaemon, schema: dict[str, Any], told: str
) -> None:
    agent = await daemon.agent()
    turn = watched(agent, ModelSettings(response_format=schema)).turn
    with pytest.raises(InvalidInput, match="response_format") as refused:
        await turn.result()
    assert told in refused.value.message
    assert daemon.model.requests == []
    await agent.ask("next")
    assert await said_in(agent) == ["next", "You said: next"]


async def test_a_form_that_takes_for_ever_to_check_is_an_unfit_answer(
    daemon: RunningDaemon,
) -> None:
    steps = {f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(40)}
    schema = {"$defs": {**steps, "s40": {}}, "$ref": "#/$defs/s0"}
    daemon.model.says("1")
    daemon.model.says("1")
    with pytest.raises(UnfitAnswer, match="takes too long"):
        await begin(
            await daemon.agent(), ModelSettings(response_format=schema)
        ).result()


async def test_a_tool_is_forced_until_it_is_called(daemon: RunningDaemon) -> None:
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.calls("calculate", expression="42")
    daemon.model.says("42")
    agent = await daemon.agent()
    assert (await begin(agent, ModelSettings(tool_choice="calculate")).result()).text
    choices = [request.tool_choice for request in daemon.model.requests]
    assert choices == ["calculate", "", ""]


@pytest.mark.manifest("model.tool_choice")
async def test_tools_that_are_kept_away_stay_so(daemon: RunningDaemon) -> None:
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says("42")
    agent = await daemon.agent(extra='[model]\ntool_choice = "none"\n')
    await agent.ask("6*7?")
    choices = [request.tool_choice for request in daemon.model.requests]
    assert choices == ["none", "none"]


@pytest.mark.parametrize(
    ("choice", "tools", "told"),
    [
        ("calculat", ("calculate",), "did you mean 'calculate'"),
        ("required", (), "no tools"),
        ("calculate", (), "no tools"),
    ],
)
async def test_a_tool_that_the_agent_has_not_is_refused_by_name(
    daemon: RunningDaemon, choice: str, tools: tuple[str, ...], told: str
) -> None:
    agent = await daemon.agent(tools=tools)
    body = {"message": "go", "tool_choice": choice}
    answer = await daemon.http.post(f"/api/agents/{agent.id}/message", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("tool_choice: ")
    assert told in answer.json()["error"]
    assert daemon.model.requests == []


async def test_a_turn_that_goes_on_asks_what_it_asked(
    daemons: Daemons, tmp_path: Any
) -> None:
    home = tmp_path / "home"
    first = await daemons.start(home=home)
    agent = await first.agent()
    pause = Pause()
    asked = ModelSettings(response_format=CITY, seed=7, stop=("END",), user="u-1")
    first.model.says("half", pause)
    turn = begin(agent, asked, turn_id=KEY)
    await pause.reached.wait()
    await first.daemon.turns.drain(0)
    with pytest.raises(Interrupted):
        await turn.result()
    await first.daemon.stop()
    second = await daemons.start(home=home)
    agent = second.known_agent("tester")
    second.model.says("no form")
    second.model.says(GOOD)
    path = f"/api/agents/{agent.id}/turns/{KEY}/resume"
    assert (await second.http.post(path)).json()["response"] == GOOD
    assert second.model.requests[0].asked == asked.asked
    assert await said_in(agent) == ["where?", GOOD]


async def test_a_call_that_was_made_is_not_forced_again_by_a_turn_that_goes_on(
    daemons: Daemons, tmp_path: Any
) -> None:
    home = tmp_path / "home"
    first = await daemons.start(home=home)
    agent = await first.agent()
    pause = Pause()
    first.model.calls("calculate", expression="6*7")
    first.model.says("half", pause)
    turn = begin(agent, ModelSettings(tool_choice="required"), turn_id=KEY)
    await pause.reached.wait()
    await first.daemon.turns.drain(0)
    with pytest.raises(Interrupted):
        await turn.result()
    await first.daemon.stop()
    second = await daemons.start(home=home)
    agent = second.known_agent("tester")
    second.model.says("42")
    await second.http.post(f"/api/agents/{agent.id}/turns/{KEY}/resume")
    assert [r.tool_choice for r in second.model.requests] == [""]


async def test_a_failed_turn_that_is_asked_for_again_keeps_its_form(
    daemon: RunningDaemon,
) -> None:
    for _ in range(2):
        daemon.model.says(BAD)
    agent = await daemon.agent()
    events = [e async for e in watched(agent, FORM).events()]
    last = events[-1]
    assert isinstance(last, Failed)
    assert isinstance(last.error, UnfitAnswer)
    assert last.so_far.text == ""
