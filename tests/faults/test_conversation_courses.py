"""Courses of events that once broke a law of conversations, each by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from .asking import Way
from .conversations import Hall
from .oracle import Manner
from .parties import Ask, Party
from .worlds import Inside, Outside

SAYS, WAITS, PAUSES = Manner.SAYS, Manner.WAITS, Manner.PAUSES
FAULTS = (Manner.REFUSES, Manner.BREAKS)
FAILING = pytest.mark.parametrize("fault", FAULTS, ids=("refuses", "breaks"))
WAYS = pytest.mark.parametrize("way", list(Way))
KEYED = pytest.mark.parametrize("way", [Way.BLOCKING, Way.SSE])


@pytest_asyncio.fixture
async def hall() -> AsyncIterator[Hall]:
    """Two agents of a daemon in this process."""
    async for opened in opened_hall(Inside):
        yield opened


@pytest_asyncio.fixture
async def killed() -> AsyncIterator[Hall]:
    """Two agents of a daemon that ends by kill -9."""
    async for opened in opened_hall(Outside):
        yield opened


async def opened_hall(world: type[Inside | Outside]) -> AsyncIterator[Hall]:
    hall = Hall(world)
    try:
        yield await hall.open()
    finally:
        await hall.close()


def party_of(hall: Hall) -> Party:
    return hall.parties[0]


def check_answered(party: Party, count: int) -> list[Ask]:
    """So many questions stand in the conversation, each with its answer."""
    assert len(party.history) == count
    assert all(ask.answered for ask in party.history)
    return party.history


@WAYS
async def test_a_message_that_waits_behind_a_stopped_one_runs_next(
    hall: Hall, way: Way
) -> None:
    party = party_of(hall)
    await hall.ask(party, Way.BLOCKING, PAUSES)
    await hall.ask(party, way, SAYS)
    await hall.stop(party)
    assert [ask.answered for ask in party.asks] == [False, True]


@FAILING
@WAYS
async def test_a_message_that_waits_behind_a_failing_one_is_answered(
    hall: Hall, way: Way, fault: Manner
) -> None:
    party = party_of(hall)
    await hall.ask(party, Way.BLOCKING, WAITS)
    await hall.ask(party, Way.BLOCKING, fault)
    await hall.ask(party, way, SAYS)
    await hall.release(party)
    assert [ask.answered for ask in party.asks] == [True, False, True]


@FAILING
@KEYED
async def test_a_failed_turn_asked_again_answers_its_own_question_in_its_place(
    hall: Hall, way: Way, fault: Manner
) -> None:
    party = party_of(hall)
    await hall.ask(party, Way.BLOCKING, fault, keyed=True)
    await hall.ask(party, Way.BLOCKING, SAYS)
    await hall.again(party.asks[0], way, SAYS)
    check_answered(party, 2)
    await hall.end_and_start()
    await hall.ask(party, Way.BLOCKING, SAYS)
    check_answered(party, 3)


@KEYED
async def test_a_turn_cut_by_a_shutdown_is_interrupted_and_its_key_resumes_it(
    hall: Hall, way: Way
) -> None:
    party = party_of(hall)
    await hall.ask(party, way, PAUSES, keyed=True)
    await hall.end_and_start()
    assert party.asks[0].attempts[0].outcome.code == "interrupted"
    await hall.ask(party, Way.BLOCKING, SAYS)
    await hall.again(party.asks[0], way, SAYS)
    check_answered(party, 2)


@pytest.mark.conformance
@KEYED
async def test_a_turn_cut_by_a_kill_answers_its_own_question_when_asked_again(
    killed: Hall, way: Way
) -> None:
    party = party_of(killed)
    await killed.ask(party, way, PAUSES, keyed=True)
    await killed.end_and_start()
    await killed.ask(party, Way.BLOCKING, SAYS)
    await killed.again(party.asks[0], Way.BLOCKING, SAYS)
    check_answered(party, 2)


async def test_a_stopped_turn_stays_stopped_when_asked_again(hall: Hall) -> None:
    party = party_of(hall)
    await hall.ask(party, Way.BLOCKING, PAUSES, keyed=True)
    await hall.stop(party)
    await hall.again(party.asks[0], Way.BLOCKING, SAYS)
    assert party.asks[0].attempts[1].outcome.code == "cancelled"


@KEYED
async def test_an_answer_asked_for_again_is_told_again_with_its_words(
    hall: Hall, way: Way
) -> None:
    party = party_of(hall)
    await hall.ask(party, Way.BLOCKING, SAYS, keyed=True)
    await hall.again(party.asks[0], way, SAYS)
    check_answered(party, 1)


async def test_a_key_of_another_body_is_refused(hall: Hall) -> None:
    party = party_of(hall)
    await hall.ask(party, Way.BLOCKING, SAYS, keyed=True)
    await hall.mismatch(party.asks[0])


@pytest.mark.parametrize(
    ("way", "keyed"), [(Way.BLOCKING, False), (Way.SSE, True), (Way.SOCKET, False)]
)
async def test_a_turn_whose_client_left_goes_on(
    hall: Hall, way: Way, *, keyed: bool
) -> None:
    party = party_of(hall)
    await hall.ask(party, way, PAUSES, keyed=keyed)
    await hall.leave(party.asks[0])
    await hall.release(party)
    await hall.ask(party, Way.BLOCKING, SAYS)
    assert party.history == party.asks


async def test_a_stream_without_a_key_ends_with_its_client(hall: Hall) -> None:
    party = party_of(hall)
    await hall.ask(party, Way.SSE, PAUSES)
    await hall.ask(party, Way.BLOCKING, SAYS)
    await hall.leave(party.asks[0])
    assert party.asks[1].answered


@WAYS
async def test_a_reset_cancels_who_speaks_and_who_waits(hall: Hall, way: Way) -> None:
    party = party_of(hall)
    await hall.ask(party, Way.BLOCKING, PAUSES)
    await hall.ask(party, way, SAYS)
    await hall.reset(party)
    codes = [ask.attempts[0].outcome.code for ask in party.asks]
    assert codes == ["cancelled", "cancelled"]
    await hall.ask(party, way, SAYS)
    check_answered(party, 1)


async def test_resets_at_once_leave_one_session_and_no_one_without_an_answer(
    hall: Hall,
) -> None:
    party = party_of(hall)
    for _ in range(5):
        await hall.storm(party)
    await hall.ask(party, Way.BLOCKING, WAITS)
    await hall.storm(party)


async def test_a_compaction_waits_for_the_turn_and_loses_nothing(hall: Hall) -> None:
    party = party_of(hall)
    for _ in range(5):
        await hall.ask(party, Way.BLOCKING, SAYS)
    await hall.ask(party, Way.SSE, PAUSES)
    await hall.compact(party)
    await hall.ask(party, Way.SOCKET, SAYS)
    await hall.release(party)
    check_answered(party, 7)


async def test_a_deleted_agent_takes_its_turns_with_it(hall: Hall) -> None:
    party = party_of(hall)
    await hall.ask(party, Way.SSE, PAUSES)
    await hall.ask(party, Way.BLOCKING, SAYS)
    await hall.compact(party)
    await hall.delete(party)
    assert not party.history
