"""A turn that goes round in a circle is warned, refused and ended; others are not."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random

import pytest
from agenthost import (
    ALLOW,
    Deny,
    Guard,
    HistoryCase,
    LoopDetected,
    Message,
    Role,
    ToolCallCase,
    ToolOutput,
    ToolResultCase,
    ToolUse,
)
from agenthost.testing.daemons import Daemons, RunningAgent, RunningDaemon
from agenthost_security.loop_guard import watch
from agenthost_security.loop_guard.canonical import call_key, result_key
from agenthost_security.loop_guard.trail import REMEMBERED

from tests.security.traces import Loop, Noise, Step, among_agents, round_of

from .looping import Follower, context_of

READ = Step("file_read", {"path": "a"}, "one")
NOBODY = Step("file_fly", {"path": "a"}, "file_fly failed: there is no tool 'file_fly'")


def refused(follower: Follower, step: Step, times: int) -> list[int]:
    """Make a call so often; give the numbers of those that were refused."""
    return [n for n in range(1, times + 1) if follower.refuses(step)]


def first_refused(follower: Follower, loop: Loop) -> int:
    """Go round until a call is refused; give its number."""
    steps = enumerate(islice(loop.steps(), 100))
    return next((n for n, step in steps if follower.refuses(step)), 100)


def test_the_third_equal_call_is_warned_of_and_the_fifth_refused() -> None:
    follower = Follower()
    assert refused(follower, READ, 5) == [5]
    warned = [watch.MARK in text for text in follower.said]
    assert warned == [False, False, True, True, False]
    assert "file_read was called 3 times alike" in follower.said[2]
    assert "loop_detected" in follower.said[4]
    assert isinstance(follower.errors[0], LoopDetected)


def test_another_call_goes_on_where_one_is_refused() -> None:
    follower = Follower()
    refused(follower, READ, 6)
    assert not follower.refuses(Step("file_read", {"path": "b"}, "two"))
    assert not follower.refuses(READ)


@pytest.mark.parametrize("period", [1, 2, 3, 7, 16])
def test_a_loop_of_any_period_is_stopped_however_new_its_calls_look(
    period: int,
) -> None:
    loop = round_of(Random(period), period, Noise(Random(period)), "said")
    follower = Follower()
    at = first_refused(follower, loop)
    assert at - loop.before - period <= 6


@pytest.mark.parametrize("period", [1, 2, 3])
def test_agents_that_ask_one_another_the_same_are_stopped(period: int) -> None:
    loop = among_agents(Random(period), period)
    follower = Follower()
    at = first_refused(follower, loop)
    assert at - loop.before - period <= 7


def test_what_a_call_names_tells_it_from_others_and_what_it_says_too() -> None:
    follower = Follower()
    pages = [Step("list", {"page": n}, "nothing here") for n in range(30)]
    grown = [Step("log", {"file": "a"}, f"{n} lines") for n in range(30)]
    assert not [step for step in (*pages, *grown) if follower.refuses(step)]


def test_polls_may_repeat_and_are_told_to_wait() -> None:
    follower = Follower()
    poll = Step("job_status", {"id": 7}, "pending")
    assert refused(follower, poll, 20)[0] == 15
    assert "wait 30 s" in follower.said[8]


def test_who_waits_as_long_as_told_may_poll_without_end() -> None:
    patient = Step("job_status", {"id": 7}, "pending", seconds=60.0)
    assert refused(Follower(), patient, 100) == []


@pytest.mark.setting(
    "loop_guard.warn_at",
    "loop_guard.stop_at",
    "loop_guard.max_agent_calls",
    "loop_guard.polling",
)
def test_the_limits_are_those_of_the_configuration() -> None:
    assert refused(Follower(warn_at=2, stop_at=3), READ, 3) == [3]
    assert refused(Follower(stop_at=9), READ, 9) == [9]
    assert refused(Follower(polling=("file_*",)), READ, 15) == [15]
    asks = [Step("agent_call", {"agent_id": "b", "n": n}, f"{n}") for n in range(4)]
    follower = Follower(max_agent_calls=3)
    assert [follower.refuses(step) for step in asks] == [False, False, False, True]
    assert "3 calls of other agents" in follower.said[3]


def test_equal_calls_of_one_answer_are_not_all_made() -> None:
    follower = Follower()
    case = ToolCallCase(context_of("a", "root"), "look", "read", {})
    told = [follower.system.guards["tool_call"](case) for _ in range(6)]
    assert [verdict == ALLOW for verdict in told] == [True] * 4 + [False] * 2


def test_calls_that_are_never_begun_end_the_turn_as_well() -> None:
    follower = Follower()
    answered = follower.system.guards["tool_result"]
    case = ToolResultCase(
        context_of("a", "root"), NOBODY.tool, NOBODY.result, arguments=NOBODY.arguments
    )
    denied = [n for n in range(1, 13) if isinstance(answered(case), Deny)]
    assert denied[0] == 5


def test_a_turn_that_goes_on_after_a_restart_is_in_its_loop_still() -> None:
    spoken = []
    for number in range(4):
        use = ToolUse(f"call_{number}", READ.tool, READ.arguments)
        warning = f"{watch.MARK}stop it" if number > 1 else ""
        output = ToolOutput(use.id, use.name, f"one{warning}")
        spoken += [Message(Role.ASSISTANT, (use,)), Message(Role.TOOL, (output,))]
    follower = Follower()
    case = HistoryCase(context_of("a", "root"), tuple(spoken), tuple(spoken))
    follower.guards.check(Guard.HISTORY, case)
    assert follower.refuses(READ)
    assert not Follower().refuses(READ)


def test_a_new_message_begins_anew_and_two_daemons_know_nothing_of_each_other() -> None:
    one, other = Follower(), Follower()
    assert refused(one, READ, 5) == [5]
    assert refused(other, READ, 4) == []
    assert not one.refuses(Step(READ.tool, READ.arguments, "one", turn="root2"))
    few = Follower(max_agent_calls=1)
    ask = [Step("agent_call", {"n": n}, "yes", turn=f"root{n}") for n in range(3)]
    assert [few.refuses(step) for step in ask] == [False] * 3


def test_what_is_remembered_is_bounded() -> None:
    follower = Follower()
    loops = follower.system.guards["tool_call"].__self__  # type: ignore[attr-defined]  # reason: it is a method
    for number in range(3 * REMEMBERED):
        follower.refuses(Step("list", {"page": number}, f"page {number}"))
    ((tree),) = loops._trees.values()
    (trail,) = tree.trails.values()
    sizes = [len(trail._seen), len(trail._keys), len(trail._pending)]
    assert max(sizes) <= REMEMBERED
    for number in range(watch.TURNS + 10):
        step = Step("look", {}, "seen", agent=f"a{number}", turn=f"t{number}")
        follower.refuses(step)
    assert len(tree.trails) == watch.TURNS


def test_times_and_nonces_are_not_told_apart_and_names_are() -> None:
    key = call_key("get", {"url": "https://a.example/?a=1&_=17", "nonce": "x"})
    assert key == call_key("get", {"nonce": "y", "url": "https://a.example/?a=1&_=18"})
    assert key != call_key("get", {"url": "https://a.example/?a=2&_=17"})
    assert call_key("get", {"id": "1"}) != call_key("get", {"id": "2"})
    assert result_key("at 10:00:01, 12 ms") == result_key("at 10:00:09, 7 ms")
    assert result_key("10 %") != result_key("40 %")
    assert result_key("x" * 5_000 + "a") != result_key("x" * 5_000 + "b")


def test_arguments_without_end_are_looked_at_no_longer_than_they_deserve() -> None:
    deep: dict[str, object] = {}
    for _ in range(5_000):
        deep = {"a": deep}
    assert call_key("t", deep) == call_key("t", deep)
    assert call_key("t", {"a": list(range(100_000))}) != call_key("t", {"a": [1]})


async def test_a_model_that_cannot_stop_is_warned_and_then_its_turn_ends(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    for _ in range(20):
        daemon.model.calls("calculate", expression="1+1")
    answer = await agent.send("go")
    assert answer.status_code == 500
    assert answer.json()["code"] == "loop_detected"
    assert "loop guard" in last_result(daemon, 3)
    assert "loop_detected" in last_result(daemon, 5)
    assert len(daemon.model.requests) == 7
    (*_, told) = (await agent.session())["messages"]
    assert told["tools"][-1]["is_error"]


async def test_a_model_that_mends_its_way_ends_well(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    for _ in range(6):
        daemon.model.calls("calculate", expression="1+1")
    daemon.model.says("It is 2.")
    assert await agent.ask("go") == "It is 2."


@pytest.mark.manifest(
    "loop_guard.warn_at",
    "loop_guard.stop_at",
    "loop_guard.max_agent_calls",
    "loop_guard.polling",
)
async def test_a_manifest_sets_other_limits_than_the_configuration(
    daemons: Daemons, tmp_path: Path
) -> None:
    config = "[loop_guard]\nstop_at = 4\nmax_agent_calls = 2\n"
    daemon = await daemons.start(home=tmp_path / "home", config=config)
    strict = await daemon.agent("strict", extra="[loop_guard]\nstop_at = 3\n")
    assert await refusals(daemon, strict) == [2]
    usual = await daemon.agent("usual")
    assert await refusals(daemon, usual) == [3]
    polling = 'warn_at = 2\nmax_agent_calls = 9\npolling = ["calc*"]\n'
    patient = await daemon.agent("patient", extra=f"[loop_guard]\n{polling}")
    assert await refusals(daemon, patient) == []


async def refusals(daemon: RunningDaemon, agent: RunningAgent) -> list[int]:
    """Have an agent make four equal calls; give which of them were refused."""
    begun = len(daemon.model.requests)
    for _ in range(4):
        daemon.model.calls("calculate", expression="1+1")
    daemon.model.says("done")
    await agent.ask("go")
    texts = [last_result(daemon, begun + number) for number in range(1, 5)]
    refused = [n for n, text in enumerate(texts) if "loop_detected" in text]
    return refused[:1]


def last_result(daemon: RunningDaemon, request: int) -> str:
    """Read what the last tool said in a request that a model was sent."""
    (part,) = daemon.model.requests[request].messages[-1].parts
    assert isinstance(part, ToolOutput)
    return part.text
