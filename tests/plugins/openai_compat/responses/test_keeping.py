"""How responses are kept: with their turn's end, for their owner, for so long."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from agenthost import (
    Audio,
    Citation,
    File,
    Image,
    Message,
    Reasoning,
    Role,
    Text,
    ToolOutput,
    ToolUse,
)
from agenthost.testing import ManualClock, Pause
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_openai_compat.responses import rows, tables
from agenthost_openai_compat.responses.draft import Ending
from agenthost_openai_compat.responses.retention import KEPT, Retention
from agenthost_openai_compat.responses.rows import columns_of
from agenthost_openai_compat.responses.words import rows_of, said_of
from agenthost_openai_compat.responses.writes import end
from sqlalchemy import Select

from .asking import PATH, ask, made, read, streamed, texts_of

ONCE = {"Idempotency-Key": "once"}


def test_what_was_said_comes_back_from_a_row() -> None:
    picture = Image("image/png", "QQ==")
    said = (
        Message(
            Role.ASSISTANT,
            (
                Reasoning("hm", {"vendor": {"signature": "s"}}),
                Text("It is", (Citation("https://a.example", "A"),)),
                ToolUse("1", "look", {"at": [1]}, {"vendor": "x"}, "bad"),
            ),
        ),
        Message(
            Role.TOOL,
            (
                ToolOutput(
                    "1",
                    "look",
                    "seen",
                    is_error=True,
                    media=(picture, Audio("audio/wav", "QQ=="), File("f", "a/b", "Q")),
                    structured={"a": None},
                ),
            ),
        ),
    )
    assert said_of(rows_of(said)) == said


def test_what_a_client_can_name_is_read_with_its_owner_alone() -> None:
    """Those without are for the work to be done, and name nobody's."""
    free = {"ANY", "RUNNING", "BEGUN", "DUE", "OLD"}
    statements = {
        name: str(value)
        for name, value in vars(tables).items()
        if isinstance(value, Select) and not name.startswith("_")
    }
    assert free < statements.keys()
    for name, text in statements.items():
        assert (":owner" in text) is (name not in free), name
    assert statements["CHAIN"].count(":owner") == 2


async def test_the_turns_end_and_the_response_are_one_commit(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    await daemon.agent("ada")
    store = daemon.daemon.store
    real, wrote = store.write, []

    def write(fn: Any, *also: Any) -> Any:
        wrote.append(fn)
        return real(fn, *also)

    monkeypatch.setattr(store, "write", write)
    await made(daemon, store=False)
    without = len(wrote)
    wrote.clear()
    await made(daemon)
    assert len(wrote) == without


@pytest.mark.conformance
async def test_what_has_ended_does_not_end_again(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    answer = await made(daemon)
    late = columns_of(Ending("cancelled", 1.0), frozenset())
    ended = partial(end, known=answer["id"], ending=late)
    assert await daemon.daemon.store.write(ended) is False
    assert (await read(daemon, answer)).json() == answer


@pytest.mark.parametrize("stream", [False, True])
async def test_it_is_told_as_it_is_kept_also_of_when_it_ended(
    daemons: Daemons, *, stream: bool
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    await daemon.agent("ada")
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    asking = asyncio.create_task(streamed(daemon) if stream else made(daemon))
    await pause.reached.wait()
    await clock.advance(40)
    pause.go_on()
    told = await asking
    answer = told[-1]["response"] if stream else told
    assert answer["completed_at"] - answer["created_at"] == 40
    assert (await read(daemon, answer)).json() == answer


async def test_nothing_listens_while_no_response_is_made(daemons: Daemons) -> None:
    from agenthost import TurnEnded

    # The audit trail listens always.
    config = '[plugins]\ndisable = ["security:merkle_audit_trail"]\n'
    daemon = await daemons.start(config=config)
    await daemon.agent("ada")
    assert not daemon.daemon.events.wants(TurnEnded)
    pause = Pause()
    daemon.model.says(pause, "one")
    asking = asyncio.create_task(made(daemon))
    await pause.reached.wait()
    assert daemon.daemon.events.wants(TurnEnded)
    pause.go_on()
    await asking
    assert not daemon.daemon.events.wants(TurnEnded)


@pytest.mark.conformance
@pytest.mark.parametrize("stream", [False, True])
async def test_who_leaves_cancels_and_that_is_kept(
    daemon: RunningDaemon, *, stream: bool
) -> None:
    await daemon.agent("ada")
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    body = {"model": "ada", "input": "hello", "stream": stream}

    async def asked() -> None:
        async with daemon.http.stream("POST", PATH, json=body) as got:
            await got.aread()

    asking = asyncio.create_task(asked())
    await pause.reached.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    async with asyncio.timeout(30):
        while not (found := await _all(daemon)):  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)
    assert [row["status"] for row in found] == ["cancelled"]


async def _all(daemon: RunningDaemon) -> list[Any]:
    return await daemon.daemon.store.read("SELECT * FROM openai_responses")


@pytest.mark.conformance
@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("stream", [False, True])
async def test_the_same_key_and_body_are_the_same_response(
    daemon: RunningDaemon, *, store: bool, stream: bool
) -> None:
    await daemon.agent("ada")
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says("It is 42.")
    daemon.http.headers.update(ONCE)

    async def once() -> Any:
        if stream:
            return (await streamed(daemon, store=store))[-1]["response"]
        return await made(daemon, store=store)

    one, two = await once(), await once()
    same = ("id", "output", "usage", "status")
    assert [two[name] for name in same] == [one[name] for name in same]
    assert texts_of(two) == ["It is 42."]
    assert len(daemon.model.requests) == 2
    other = await ask(daemon, "other", store=store)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


@pytest.mark.conformance
async def test_old_conversations_go_and_young_ones_stay_whole(
    daemons: Daemons,
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    await daemon.agent("ada")
    old = await made(daemon, "old")
    older = await made(daemon, "older", previous_response_id=old["id"])
    kept = await made(daemon, "kept")
    await clock.advance(KEPT - 100)
    young = await made(daemon, "young", previous_response_id=kept["id"])
    await clock.advance(200)
    await _forget(daemon, clock)
    states = [
        (await read(daemon, each)).status_code for each in (old, older, kept, young)
    ]
    assert states == [404, 404, 200, 200]
    again = await made(daemon, "again", previous_response_id=young["id"])
    assert texts_of(again) == ["You said: again"]
    assert daemon.model.requests[-1].messages[0].text == "kept"


async def _forget(daemon: RunningDaemon, clock: ManualClock) -> None:
    forgetting = asyncio.create_task(Retention(daemon.daemon).forget())
    async with asyncio.timeout(30):
        while not forgetting.done():
            await clock.advance(1)
            await asyncio.sleep(0)
    await forgetting


@pytest.mark.conformance
@pytest.mark.parametrize(("limit", "most"), [("HOPS", 1), ("MOST_BYTES", 200)])
async def test_a_conversation_has_a_limit(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    await daemon.agent("ada")
    one = await made(daemon, "one")
    two = await made(daemon, "two", previous_response_id=one["id"])
    three = await made(daemon, "three", previous_response_id=two["id"])
    monkeypatch.setattr(rows, limit, most)
    answer = await ask(daemon, "four", previous_response_id=three["id"])
    assert (answer.status_code, answer.json()["param"]) == (400, "previous_response_id")
    assert "too long" in answer.json()["error"]
