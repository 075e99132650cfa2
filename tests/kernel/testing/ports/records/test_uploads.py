"""The contract of files holds for those in memory, and finds who breaks it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from agenthost import Keep, NotFound, Upload
from agenthost.testing import UploadsContract
from agenthost.testing.ports.memory_records.agents import MemoryAgents
from agenthost.testing.ports.memory_records.uploads import MemoryUploads
from agenthost.testing.ports.records.uploads import DATA

from ..finding import names_in, names_of
from .broken import InMemory, finds_broken


class TestUploadsInMemory(InMemory, UploadsContract):
    """They keep every promise."""


class LosesLabels(MemoryUploads):
    async def get(self, agent_id: str, upload_id: str) -> Upload:
        found = await super().get(agent_id, upload_id)
        return replace(found, labels=frozenset())


class CutsBytes(MemoryUploads):
    async def read(self, agent_id: str, upload_id: str) -> bytes:
        return (await super().read(agent_id, upload_id))[:100]


class InTheOrderTheyCame(MemoryUploads):
    async def list(self, agent_id: str) -> Sequence[Upload]:
        return [u for u, _ in self._rows.uploads.values() if u.agent_id == agent_id]


class ListsAll(MemoryUploads):
    async def list(self, agent_id: str) -> Sequence[Upload]:
        own = [u for u, _ in self._rows.uploads.values()]
        return sorted(own, key=lambda each: each.at)


class ReadsOfOthers(MemoryUploads):
    async def read(self, agent_id: str, upload_id: str) -> bytes:
        for _, name in self._rows.uploads:
            if name == upload_id:
                return DATA
        raise NotFound("file", upload_id)


class TakesForNobody(MemoryUploads):
    async def add(
        self, file: Upload, data: bytes, room: tuple[int, int], also: Keep | None = None
    ) -> None:
        self._rows.uploads[file.agent_id, file.id] = file, data


class Keeps(MemoryUploads):
    async def delete(self, file: Upload, also: Keep | None = None) -> None:
        await self.get(file.agent_id, file.id)


class DeletesAll(MemoryUploads):
    async def delete(self, file: Upload, also: Keep | None = None) -> None:
        await self.get(file.agent_id, file.id)
        self._rows.uploads.clear()


class WritesAlone(MemoryUploads):
    async def delete(self, file: Upload, also: Keep | None = None) -> None:
        await super().delete(file)
        self._rows.keep(also)


class LeavesFiles(MemoryAgents):
    async def delete(self, agent_id: str, also: Keep | None = None) -> None:
        before = dict(self._rows.uploads)
        await super().delete(agent_id, also)
        self._rows.uploads.update(before)


class LooksTooEarly(MemoryUploads):
    async def add(
        self, file: Upload, data: bytes, room: tuple[int, int], also: Keep | None = None
    ) -> None:
        left = room[0] - len(await self.list(file.agent_id))
        await asyncio.sleep(0)
        await super().add(file, data, (left + 100, room[1] * 100), also)


HERE = TestUploadsInMemory()
BREACHES: tuple[tuple[type[Any], Any], ...] = (
    (LosesLabels, HERE.test_a_file_is_there_for_the_next_process),
    (CutsBytes, HERE.test_a_file_is_there_for_the_next_process),
    (InTheOrderTheyCame, HERE.test_files_are_listed_by_age),
    (ListsAll, HERE.test_files_are_listed_by_age),
    (ReadsOfOthers, HERE.test_a_file_that_is_not_there_is_not_found),
    (TakesForNobody, HERE.test_a_file_that_is_not_there_is_not_found),
    (Keeps, HERE.test_a_deleted_file_is_gone),
    (DeletesAll, HERE.test_a_deleted_file_is_gone),
    (WritesAlone, HERE.test_what_is_written_beside_a_file_is_of_its_commit),
    (LeavesFiles, HERE.test_files_go_with_their_agent),
    (LooksTooEarly, HERE.test_an_agent_has_room_for_so_much),
)


@pytest.mark.breaches
@pytest.mark.parametrize(("broken", "test"), BREACHES)
async def test_broken_files_are_found(broken: type[Any], test: Any) -> None:
    await finds_broken(broken, test, room=(3, 100 * len(DATA)))


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(UploadsContract)
