"""The contract of memory holds for values in memory, and finds who breaks it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from agenthost import Context, InvalidInput, Json, Keep, NotFound, TooLarge
from agenthost.testing import MemoryContract
from agenthost.testing.ports.memory_records.values import MemoryValues

from ..finding import names_in, names_of
from .broken import InMemory, finds_broken


class TestValuesInMemory(InMemory, MemoryContract):
    """They keep every promise."""


class KeepsText(MemoryValues):
    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        await super().set(by, namespace, key, value and str(value), also)


class KeepsTheFirst(MemoryValues):
    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        if (namespace, key) not in self._rows.values:
            await super().set(by, namespace, key, value, also)


class LabelsOnlyGrow(MemoryValues):
    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        known = self._rows.values.get((namespace, key), ("", frozenset()))
        await super().set(by.labelled(known[1]), namespace, key, value, also)


class WashesLabels(MemoryValues):
    async def get(self, namespace: str, key: str) -> tuple[Json, frozenset[str]]:
        return (await super().get(namespace, key))[0], frozenset()


class OneNamespace(MemoryValues):
    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        await super().set(by, "a", key, value, also)


class GivesNullForNothing(MemoryValues):
    async def get(self, namespace: str, key: str) -> tuple[Json, frozenset[str]]:
        with suppress(NotFound):
            return await super().get(namespace, key)
        return None, frozenset()


class DeletesNothing(MemoryValues):
    async def delete(
        self, by: Context, namespace: str, key: str, also: Keep | None = None
    ) -> None:
        with suppress(NotFound):
            await super().delete(by, namespace, key, also)


class TakesNullForNothing(MemoryValues):
    async def get(self, namespace: str, key: str) -> tuple[Json, frozenset[str]]:
        value, labels = await super().get(namespace, key)
        if value is None:
            raise NotFound("key", key)
        return value, labels


class InTheOrderTheyCame(MemoryValues):
    async def items(self, namespace: str) -> list[tuple[str, Json]]:
        found = dict(await super().items(namespace))
        order = [key for space, key in self._rows.values if space == namespace]
        return [(key, found[key]) for key in order]


class WhateverTheCase(MemoryValues):
    async def items(self, namespace: str) -> list[tuple[str, Json]]:
        found = await super().items(namespace)
        return sorted(found, key=lambda each: each[0].casefold())


class TakesAnyKey(MemoryValues):
    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        self._rows.values[namespace, key] = json.dumps(value), by.labels


class CountsCharacters(MemoryValues):
    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        if not 1 <= len(key) <= 256:
            raise InvalidInput("key", "is too long")
        self._rows.values[namespace, key] = json.dumps(value), by.labels


class TakesAnyValue(MemoryValues):
    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        written = json.dumps(value, default=str)
        self._rows.values[namespace, key] = written, by.labels


class TakesAnySize(MemoryValues):
    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        try:
            await super().set(by, namespace, key, value, also)
        except TooLarge:
            self._rows.values[namespace, key] = json.dumps(value), by.labels


class ForgetsWhatItRefuses(MemoryValues):
    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        self._rows.values.pop((namespace, key), None)
        await super().set(by, namespace, key, value, also)


class HandsOutItsOwn(MemoryValues):
    async def get(self, namespace: str, key: str) -> tuple[Json, frozenset[str]]:
        self._given = getattr(self, "_given", await super().get(namespace, key))
        return self._given


class OverwritesOthers(MemoryValues):
    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        before = dict(self._rows.values)
        await asyncio.sleep(0)
        self._rows.values = before
        await super().set(by, namespace, key, value, also)


HERE = TestValuesInMemory()


class KeepsNothingBeside(MemoryValues):
    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        del also
        await super().set(by, namespace, key, value)


class SearchesForAnybody(MemoryValues):
    async def search(self, owner: str, agent_id: str, query: str) -> Sequence[Json]:
        del owner
        return await super().search("", agent_id, query)


class SearchesForAnyWord(MemoryValues):
    async def search(self, owner: str, agent_id: str, query: str) -> Sequence[Json]:
        found: list[Json] = []
        for word in query.split():
            found += await super().search(owner, agent_id, word)
        return found


BREACHES: tuple[tuple[type[MemoryValues], Any], ...] = (
    (KeepsText, HERE.test_a_value_comes_back_as_it_was_given),
    (KeepsTheFirst, HERE.test_a_newer_value_takes_the_place),
    (KeepsNothingBeside, HERE.test_what_goes_with_a_value_is_written_or_nothing_is),
    (LabelsOnlyGrow, HERE.test_a_newer_value_takes_the_place),
    (WashesLabels, HERE.test_labels_are_those_of_who_puts_it_there),
    (OneNamespace, HERE.test_a_namespace_is_apart),
    (GivesNullForNothing, HERE.test_what_is_not_there_is_not_found),
    (DeletesNothing, HERE.test_what_is_not_there_is_not_found),
    (TakesNullForNothing, HERE.test_what_is_not_there_is_not_found),
    (InTheOrderTheyCame, HERE.test_items_are_sorted_by_key),
    (WhateverTheCase, HERE.test_items_are_sorted_by_key),
    (TakesAnyKey, HERE.test_what_is_no_key_is_refused),
    (CountsCharacters, HERE.test_what_is_no_key_is_refused),
    (TakesAnyValue, HERE.test_what_is_no_value_is_refused),
    (TakesAnySize, HERE.test_what_is_no_value_is_refused),
    (ForgetsWhatItRefuses, HERE.test_what_is_no_value_is_refused),
    (HandsOutItsOwn, HERE.test_a_value_is_the_callers_own),
    (SearchesForAnybody, HERE.test_a_search_finds_by_all_words_what_its_owner_kept),
    (SearchesForAnyWord, HERE.test_a_search_finds_by_all_words_what_its_owner_kept),
    (OverwritesOthers, HERE.test_values_at_once_lose_nothing),
)


@pytest.mark.parametrize(("broken", "test"), BREACHES)
async def test_broken_memory_is_found(broken: type[MemoryValues], test: Any) -> None:
    await finds_broken(broken, test, key="é" * 129)


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(MemoryContract)
