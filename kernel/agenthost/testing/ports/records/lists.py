"""What every backend of RECORDS promises of lists of sessions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....errors import Cancelled
from ....ports.records import Records, TurnState
from ...clock import START, ManualClock
from .scenes import (
    ADA,
    BOB,
    DONE,
    HERE,
    OpenRecords,
    RecordsFixtures,
    answer,
    ended,
    listed,
    say,
    step,
    summarise,
    user,
)


class ListedSessions(RecordsFixtures):
    """A list has the sessions that were asked for."""

    async def test_a_list_is_filtered_ordered_and_paged(
        self, records: Records, clock: ManualClock
    ) -> None:
        """Behind a session that is not there comes none."""
        made = []
        for number in range(5):
            await clock.advance(10)
            made.append((await records.sessions.open(ADA.id, f"k{number}")).id)
        await records.sessions.archive(made[2])
        spoken = replace(step(0, user("go"), made[0], opened=ADA.id), at=START + 99)
        await records.journal.keep(spoken)

        async def hers(**wanted: Any) -> list[str]:
            return await listed(records, agent_id=ADA.id, **wanted)

        newest = [made[0], made[4], made[3], made[2], made[1], HERE]
        assert await listed(records) == [HERE, BOB.session_id, *made]
        assert await hers() == [HERE, *made]
        assert await hers(archived=True) == [made[2]]
        assert await hers(archived=False) == [HERE, *made[:2], *made[3:]]
        assert await hers(newest=True) == newest
        assert await hers(limit=2) == [HERE, made[0]]
        assert await hers(limit=2, after=made[0]) == made[1:3]
        assert await hers(newest=True, limit=2, after=made[0]) == newest[1:3]
        assert await hers(after=made[4]) == []
        assert await hers(after="nothing") == []
        assert await listed(records, agent_id="nobody") == []

    async def test_an_ephemeral_session_is_in_no_list(self, records: Records) -> None:
        """Whatever the list is of."""
        made = await records.sessions.open(ADA.id, "run:1", ephemeral=True)
        await say(records, made.id, "hidden words")
        for wanted in ({}, {"text": "hidden"}, {"newest": True}):
            assert made.id not in await listed(records, **wanted)

    async def test_a_list_has_rows_without_their_summary(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """All else in them is as it is read."""
        await say(records, HERE, "one", "two")
        await summarise(records, 2)
        found = opened().sessions
        rows = {each.id: each for each in await found.list()}
        assert rows[HERE] == replace(await found.get(HERE), summary=None)

    async def test_words_are_found_in_a_title_or_in_one_message(
        self, records: Records
    ) -> None:
        """All of them, in any case, in one place."""
        beside = await records.sessions.open(ADA.id)
        await say(records, HERE, "the quick brown fox", "a dog of 100%")
        await say(records, beside.id, "a lazy cat")
        await records.sessions.rename(beside.id, "Animals of May")
        for text, wanted in (
            ("QUICK fox", [HERE]),
            ("quick dog", []),
            ("re lazy", [beside.id]),
            ("may animals", [beside.id]),
            ("animals lazy", []),
            ("100%", [HERE]),
            ("l%y", []),
            ("_azy", []),
            ("nowhere", []),
        ):
            assert await listed(records, text=text) == wanted
        await records.sessions.archive(beside.id)
        assert await listed(records, text="lazy", archived=False) == []
        assert await listed(records, text="lazy", archived=True) == [beside.id]
        assert await listed(records, text="lazy", agent_id=BOB.id) == []
        await records.sessions.erase(beside.id)
        assert await listed(records, text="lazy") == []
        await say(records, HERE, "comes later")
        assert await listed(records, text="comes later") == [HERE]

    async def test_what_broke_off_and_was_said_anew_is_not_found(
        self, records: Records
    ) -> None:
        """It is no longer part of the session."""
        failed = ended(TurnState.FAILED, Cancelled("later"))
        await records.journal.keep(step(0, user("go"), opened=ADA.id))
        await records.journal.keep(step(1, answer("broken"), closed=failed))
        assert await listed(records, text="broken") == [HERE]
        await records.journal.keep(step(reopened=True))
        await records.journal.keep(step(2, answer("whole"), closed=DONE))
        assert await listed(records, text="broken") == []
        assert await listed(records, text="whole") == [HERE]
