"""A tool conversation whose stream is cut at every event boundary of every answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from agenthost.errors import ProviderError
from agenthost.testing import Daemons
from agenthost.testing.simulators import Reply, ScriptedCall, Turn, Wire

from tests.faults.stage import TOOL, Outcome, Spoken, Stage, everyone, staged

POSTED = ("Lisbon", "the sun shines")
CARD = ScriptedCall(TOOL, '{"city": "Lisbon", "words": "the sun shines"}')
ASKING = Turn(reasoning="a card it is", calls=(CARD,))
SAYING = "I post one now"
SPOKEN = Turn(SAYING, reasoning="a card it is", calls=(CARD,))
WORDS = "it is on its way"
ANSWER = Turn(WORDS, reasoning="done, I say so")


def cuts(wire: Wire, turn: Turn) -> Iterator[Reply]:
    """Yield the answer cut after each event but the last: dropped, and ended."""
    events = wire.events(turn)
    kind = {"Content-Type": wire.content_type}
    for count in range(1, len(events)):
        for drop in (True, False):
            yield Reply(tuple(events[:count]), headers=kind, drop=drop)


def dropped_when_whole(wire: Wire, turn: Turn) -> Reply:
    """Write the whole answer, then cut the connection."""
    kind = {"Content-Type": wire.content_type}
    return Reply(tuple(wire.events(turn)), headers=kind, drop=True)


def check_posted_once(stage: Stage, seen: Outcome) -> None:
    """The card was posted once and whole, and the journal says the same."""
    assert stage.office.posted == [POSTED]
    assert [row["state"] for row in seen.calls] == ["committed"]
    (asked,) = (message for message in seen.whole if message.tool_uses)
    (use,) = asked.tool_uses
    assert (use.arguments["city"], use.arguments["words"]) == POSTED


@pytest.mark.parametrize("spoken", everyone(tools=True, thorough=True))
async def test_a_tool_request_cut_before_it_says_a_word_is_asked_again_and_run_once(
    daemons: Daemons, spoken: Spoken
) -> None:
    async with staged(daemons, spoken) as stage:
        for cut in cuts(stage.wire, ASKING):
            stage.office.posted.clear()
            seen = await stage.turn(await stage.agent(), cut, ASKING, ANSWER)
            assert len(seen.heard) == 3
            seen.check_done(WORDS)
            check_posted_once(stage, seen)


@pytest.mark.parametrize("spoken", everyone(tools=True, thorough=True))
async def test_a_tool_request_cut_after_its_words_runs_nothing(
    daemons: Daemons, spoken: Spoken
) -> None:
    said = 0
    async with staged(daemons, spoken) as stage:
        for cut in cuts(stage.wire, SPOKEN):
            stage.office.posted.clear()
            agent = await stage.agent()
            seen = await stage.turn(agent, cut, SPOKEN, ANSWER)
            if seen.error is None:
                assert len(seen.heard) == 3
                seen.check_done(WORDS)
                check_posted_once(stage, seen)
                continue
            said += 1
            check_cut(stage, seen, SAYING)
            assert not stage.office.posted
            assert not seen.calls
            again = await stage.turn(agent, SPOKEN, ANSWER, turn_id=str(seen.row["id"]))
            check_posted_once(stage, again)
            assert again.text == WORDS
    assert said >= len(SAYING) // 5


@pytest.mark.parametrize("spoken", everyone(thorough=True))
async def test_a_last_answer_that_is_cut_is_never_whole_and_repeats_no_tool(
    daemons: Daemons, spoken: Spoken
) -> None:
    said = 0
    before = () if spoken.provider == "replicate" else (ASKING,)
    async with staged(daemons, spoken) as stage:
        for cut in cuts(stage.wire, ANSWER):
            stage.office.posted.clear()
            agent = await stage.agent()
            seen = await stage.turn(agent, *before, cut, ANSWER)
            if seen.error is None:
                assert len(seen.heard) == len(before) + 2
                seen.check_done(WORDS)
            else:
                said += 1
                check_cut(stage, seen, WORDS)
                turn_id = str(seen.row["id"])
                seen = await stage.turn(agent, ANSWER, turn_id=turn_id)
                assert seen.text == WORDS
                assert seen.state == "done"
            if before:
                check_posted_once(stage, seen)
    assert said >= len(WORDS) // 5


def check_cut(stage: Stage, seen: Outcome, words: str) -> None:
    """The turn failed by the provider's fault; what was said is marked as partial."""
    assert isinstance(seen.error, ProviderError)
    assert seen.error.provider == stage.spoken.provider
    seen.check_failed(words)
    assert len(seen.partial) == 1


@pytest.mark.faults
@pytest.mark.parametrize("spoken", everyone())
async def test_an_answer_whole_when_the_line_falls_counts_once_or_is_asked_again(
    daemons: Daemons, spoken: Spoken
) -> None:
    async with staged(daemons, spoken) as stage:
        scenes = (dropped_when_whole(stage.wire, ASKING), ANSWER)
        seen = await stage.turn(await stage.agent(), *scenes)
        seen.check_done(WORDS)
        assert stage.office.posted == [POSTED] * len(seen.calls)
        assert len(seen.calls) <= 1
        scenes = (dropped_when_whole(stage.wire, ANSWER), ANSWER)
        seen = await stage.turn(await stage.agent(), *scenes)
        if seen.error is None:
            seen.check_done(WORDS)
        else:
            check_cut(stage, seen, WORDS)
