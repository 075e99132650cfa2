"""The contract of vaults holds for one in memory, and finds who breaks it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agenthost import Secret, Vault
from agenthost.testing import MemoryVault, OpenVault, VaultContract

from .finding import finds, names_in, names_of

Changes = Mapping[str, str | None]


class TestAVaultInMemory(VaultContract):
    """It keeps every promise."""

    @pytest.fixture
    def opened(self) -> OpenVault:
        return partial(MemoryVault, {})


class Strips(MemoryVault):
    async def change(self, secrets: Changes) -> None:
        await super().change({n: v and v.strip() for n, v in secrets.items()})


class HandsOutText(MemoryVault):
    def get(self, name: str) -> Any:
        secret = super().get(name)
        return secret and secret.reveal()


class ShowsItself(MemoryVault):
    def __repr__(self) -> str:
        return str({name: value.reveal() for name, value in self._kept.items()})


class MakesUp(MemoryVault):
    def get(self, name: str) -> Secret | None:
        return super().get(name) or Secret("")


class InTheOrderTheyCame(MemoryVault):
    def names(self) -> list[str]:
        return list(self._kept)


class HandsOutItsOwnList(MemoryVault):
    def __init__(self, kept: dict[str, Secret]) -> None:
        super().__init__(kept)
        self._names: list[str] = []

    async def change(self, secrets: Changes) -> None:
        await super().change(secrets)
        self._names = super().names()

    def names(self) -> list[str]:
        return self._names


class KeepsOnlyTheNewest(MemoryVault):
    async def change(self, secrets: Changes) -> None:
        self._kept.clear()
        await super().change(secrets)


class NeverForgets(MemoryVault):
    async def change(self, secrets: Changes) -> None:
        await super().change({n: v for n, v in secrets.items() if v is not None})


class MissesWhatIsForgotten(MemoryVault):
    async def change(self, secrets: Changes) -> None:
        for name, value in secrets.items():
            if value is None:
                del self._kept[name]
        await super().change({n: v for n, v in secrets.items() if v is not None})


class ForgetsAtTheEnd(MemoryVault):
    def __init__(self, kept: dict[str, Secret]) -> None:
        super().__init__(dict(kept))


class OneByOne(MemoryVault):
    async def change(self, secrets: Changes) -> None:
        for name, value in secrets.items():
            await super().change({name: value})


class TakesAnything(MemoryVault):
    async def change(self, secrets: Changes) -> None:
        await super().change({n: v for n, v in secrets.items() if n and v != ""})


class CountsTheKeptAlone(MemoryVault):
    async def change(self, secrets: Changes) -> None:
        before = self.revision
        await super().change(secrets)
        self.revision = before + any(secrets.values())


class CountsReads(MemoryVault):
    def names(self) -> list[str]:
        self.revision += 1
        return super().names()


class OverwritesOthers(MemoryVault):
    async def change(self, secrets: Changes) -> None:
        before = dict(self._kept)
        await asyncio.sleep(0)
        self._kept.clear()
        self._kept.update(before)
        await super().change(secrets)


class LeavesHalf(MemoryVault):
    async def change(self, secrets: Changes) -> None:
        for name, value in secrets.items():
            await super().change({name: value})
            await asyncio.sleep(0)


class WritesOnTheLoop(MemoryVault):
    async def change(self, secrets: Changes) -> None:
        self._write()
        await super().change(secrets)

    def _write(self) -> None:
        with Path("/dev/null").open("w") as file:
            file.write("x")


class ReadsTheFileAgain(MemoryVault):
    def get(self, name: str) -> Secret | None:
        with Path("/dev/null").open() as file:
            file.read()
        return super().get(name)


HERE = TestAVaultInMemory()
EMPTY = ({"": "x"},)
BREACHES: tuple[tuple[type[MemoryVault], Any, tuple[object, ...]], ...] = (
    (Strips, HERE.test_a_secret_comes_back_as_it_was_given, ()),
    (HandsOutText, HERE.test_a_secret_is_handed_out_hidden, ()),
    (ShowsItself, HERE.test_a_secret_is_handed_out_hidden, ()),
    (MakesUp, HERE.test_a_new_vault_is_empty, ()),
    (InTheOrderTheyCame, HERE.test_the_names_are_sorted, ()),
    (HandsOutItsOwnList, HERE.test_a_list_of_names_is_the_callers_own, ()),
    (KeepsOnlyTheNewest, HERE.test_a_newer_value_takes_the_place, ()),
    (NeverForgets, HERE.test_none_forgets_a_secret, ()),
    (MissesWhatIsForgotten, HERE.test_none_forgets_a_secret, ()),
    (ForgetsAtTheEnd, HERE.test_what_was_kept_is_there_for_the_next_process, ()),
    (OneByOne, HERE.test_a_change_with_something_empty_changes_nothing, EMPTY),
    (TakesAnything, HERE.test_a_change_with_something_empty_changes_nothing, EMPTY),
    (CountsTheKeptAlone, HERE.test_every_change_raises_the_revision, ()),
    (CountsReads, HERE.test_every_change_raises_the_revision, ()),
    (OverwritesOthers, HERE.test_changes_at_once_lose_nothing, ()),
    (LeavesHalf, HERE.test_a_cancelled_change_happens_wholly_or_not_at_all, ()),
    (WritesOnTheLoop, HERE.test_it_leaves_the_loop_free, ()),
    (ReadsTheFileAgain, HERE.test_it_leaves_the_loop_free, ()),
)


@pytest.mark.parametrize(("broken", "test", "more"), BREACHES)
async def test_a_broken_vault_is_found(
    broken: type[MemoryVault], test: Any, more: tuple[object, ...]
) -> None:
    kept: dict[str, Secret] = {}

    def opened() -> Vault:
        return broken(kept)

    await finds(test, opened, *more)


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(VaultContract)
