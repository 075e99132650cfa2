"""What every backend of RECORDS promises of files, as tests to inherit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import pytest

from ....context import UNTRUSTED
from ....errors import Conflict, NotFound, Unavailable
from ....ports.records import Records
from ....ports.uploads import Upload
from ...clock import START
from .scenes import ADA, BOB, Beside, OpenRecords, RecordsFixtures

DATA = bytes(range(256))
FILE = Upload(
    id="file-id",
    agent_id=ADA.id,
    name="ключ\n.png",
    media_type="image/png",
    size=len(DATA),
    at=START,
    owner="key:ci",
    person="ada",
    labels=UNTRUSTED,
)
ROOM = (10, 10 * len(DATA))


class UploadsContract(RecordsFixtures):
    """The files of agents keep every promise of the port.

    Example:
        ::

            class TestUploads(UploadsContract):
                @pytest.fixture
                def opened(self, store: Store, clock: ManualClock) -> OpenRecords:
                    return partial(open_records, store, clock)
    """

    async def test_a_file_is_there_for_the_next_process(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """With all that is known of it, and every byte."""
        await records.uploads.add(FILE, DATA, ROOM)
        found = opened().uploads
        assert await found.get(ADA.id, FILE.id) == FILE
        assert await found.read(ADA.id, FILE.id) == DATA

    async def test_files_are_listed_by_age(self, records: Records) -> None:
        """Those of one agent."""
        for name, at in (("new", 2.0), ("old", 1.0), ("newest", 3.0)):
            file = replace(FILE, id=name, at=START + at)
            await records.uploads.add(file, DATA, ROOM)
        other = replace(FILE, id="other", agent_id=BOB.id)
        await records.uploads.add(other, DATA, ROOM)
        found = [each.id for each in await records.uploads.list(ADA.id)]
        assert found == ["old", "new", "newest"]

    async def test_a_file_that_is_not_there_is_not_found(
        self, records: Records
    ) -> None:
        """Nor one of another agent, nor can an agent that is not there get one."""
        await records.uploads.add(FILE, DATA, ROOM)
        uploads = records.uploads
        for ask in (uploads.get, uploads.read):
            for agent, file in ((ADA.id, "nothing"), (BOB.id, FILE.id)):
                with pytest.raises(NotFound):
                    await ask(agent, file)
                with pytest.raises(NotFound):
                    await uploads.delete(replace(FILE, agent_id=agent, id=file))
        lost = replace(FILE, id="lost", agent_id="nobody")
        with pytest.raises(NotFound):
            await uploads.add(lost, DATA, ROOM)
        assert [*await uploads.list("nobody")] == []
        assert await uploads.read(ADA.id, FILE.id) == DATA

    async def test_a_deleted_file_is_gone(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """It, and no other; what it took is free again."""
        for name in ("one", "two"):
            await records.uploads.add(replace(FILE, id=name), DATA, (2, 2 * len(DATA)))
        await records.uploads.delete(replace(FILE, id="one"))
        found = opened().uploads
        assert [each.id for each in await found.list(ADA.id)] == ["two"]
        await found.add(replace(FILE, id="three"), DATA, (2, 2 * len(DATA)))

    async def test_what_is_written_beside_a_file_is_of_its_commit(
        self, records: Records
    ) -> None:
        """What cannot be written leaves no file, and a file that is to go."""
        uploads, also = records.uploads, Beside()
        changes: list[Callable[[], Awaitable[None]]] = [
            lambda: uploads.add(FILE, DATA, ROOM, also),
            lambda: uploads.delete(FILE, also),
        ]
        for change in changes:
            before, also.refuses, also.times = await uploads.list(ADA.id), True, 0
            with pytest.raises(Unavailable):
                await change()
            assert await uploads.list(ADA.id) == before
            also.refuses = False
            await change()
            assert also.times >= 1

    async def test_files_go_with_their_agent(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """Those of others stay."""
        await records.uploads.add(FILE, DATA, ROOM)
        other = replace(FILE, id="other", agent_id=BOB.id)
        await records.uploads.add(other, DATA, ROOM)
        await records.agents.delete(ADA.id)
        found = opened().uploads
        assert [*await found.list(ADA.id)] == []
        assert await found.read(BOB.id, "other") == DATA

    @pytest.mark.parametrize("room", [(3, 100 * len(DATA)), (100, 3 * len(DATA))])
    async def test_an_agent_has_room_for_so_much(
        self, records: Records, room: tuple[int, int]
    ) -> None:
        """Also when all come at once; other agents have room of their own."""
        added = await asyncio.gather(
            *(
                records.uploads.add(replace(FILE, id=f"{n}"), DATA, room)
                for n in range(6)
            ),
            return_exceptions=True,
        )
        assert [type(each) for each in added if each is not None] == [Conflict] * 3
        assert len(await records.uploads.list(ADA.id)) == 3
        other = partial(replace, FILE, agent_id=BOB.id)
        await records.uploads.add(other(id="other"), DATA, room)
