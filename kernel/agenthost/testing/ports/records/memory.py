"""What every backend of RECORDS promises of memory, as tests to inherit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import cast

import pytest
from agenthost_chat.chat import Json

from ....context import OPERATOR, UNTRUSTED, Context, Principal
from ....errors import InvalidInput, NotFound, TooLarge, Unavailable
from ....ports.records import Records
from ...clock import ManualClock
from .scenes import Beside, OpenRecords, RecordsFixtures

BY = Context(OPERATOR)
VALUES: Sequence[Json] = (
    *(None, True, False, 0, 1.5, 2**60, "", "ключ \U0001f511\0\n", [], {}),
    {"a": [1, {"b": None}], "": "é"},
    "x" * 1_000_000,
)
NO_KEYS = ("", "k" * 257, "é" * 129, "\ud800")
NO_JSON = (float("nan"), float("inf"), {1, 2}, b"bytes", "\ud800", {"a": object()})


def nested(levels: int) -> Json:
    """Put a list into a list, and so on."""
    value: Json = []
    for _ in range(levels):
        value = [value]
    return value


class MemoryContract(RecordsFixtures):
    """Values by key keep every promise of the port.

    Example:
        ::

            class TestMemory(MemoryContract):
                @pytest.fixture
                def opened(self, store: Store, clock: ManualClock) -> OpenRecords:
                    return partial(open_records, store, clock)
    """

    async def test_a_value_comes_back_as_it_was_given(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """Any JSON, also for the next process."""
        for number, value in enumerate(VALUES):
            await records.memory.set(BY, "a", f"key {number}", value)
        found = opened().memory
        for number, value in enumerate(VALUES):
            given, _ = await found.get("a", f"key {number}")
            assert json.dumps(given) == json.dumps(value)

    async def test_a_newer_value_takes_the_place(self, records: Records) -> None:
        """With its labels: those of an earlier value are no longer its own."""
        await records.memory.set(BY.labelled(UNTRUSTED), "a", "k", {"old": 1})
        await records.memory.set(BY, "a", "k", None)
        assert await records.memory.get("a", "k") == (None, frozenset())
        assert await records.memory.items("a") == [("k", None)]

    async def test_what_goes_with_a_value_is_written_or_nothing_is(
        self, records: Records
    ) -> None:
        """When it is refused, the value stays as it was."""
        also, memory = Beside(), records.memory
        await memory.set(BY, "a", "k", "old", also)
        assert also.times >= 1
        also.refuses = True
        with pytest.raises(Unavailable, match="the book is closed"):
            await memory.set(BY, "a", "k", "new", also)
        with pytest.raises(Unavailable, match="the book is closed"):
            await memory.delete(BY, "a", "k", also)
        assert await memory.items("a") == [("k", "old")]
        also.refuses, also.times = False, 0
        await memory.delete(BY, "a", "k", also)
        assert also.times >= 1
        assert await memory.items("a") == []

    async def test_labels_are_those_of_who_puts_it_there(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """All of them, also for the next process."""
        labels = UNTRUSTED | {"from:web"}
        await records.memory.set(BY.labelled(labels), "a", "k", 1)
        assert await opened().memory.get("a", "k") == (1, labels)

    async def test_a_namespace_is_apart(self, records: Records) -> None:
        """The same key in two of them is two."""
        for number, namespace in enumerate(("a", "b", "shared")):
            await records.memory.set(BY, namespace, "k", number)
        await records.memory.delete(BY, "b", "k")
        assert await records.memory.get("a", "k") == (0, frozenset())
        assert await records.memory.items("b") == []
        assert await records.memory.items("shared") == [("k", 2)]

    async def test_what_is_not_there_is_not_found(self, records: Records) -> None:
        """NotFound, also of what was deleted; a null is a value."""
        await records.memory.set(BY, "a", "null", None)
        await records.memory.set(BY, "a", "gone", 1)
        await records.memory.delete(BY, "a", "gone")
        for key in ("gone", "never"):
            with pytest.raises(NotFound):
                await records.memory.get("a", key)
            with pytest.raises(NotFound):
                await records.memory.delete(BY, "a", key)
        assert await records.memory.get("a", "null") == (None, frozenset())

    async def test_items_are_sorted_by_key(
        self, records: Records, clock: ManualClock
    ) -> None:
        """In the order of their code points."""
        keys = ["b", "a/1", "B", "é", "%", "a"]
        for key in keys:
            await clock.advance(1)
            await records.memory.set(BY, "a", key, key.upper())
        assert await records.memory.items("a") == [(k, k.upper()) for k in sorted(keys)]

    @pytest.mark.parametrize("key", NO_KEYS)
    async def test_what_is_no_key_is_refused(self, records: Records, key: str) -> None:
        """A key has from 1 to 256 bytes of UTF-8."""
        with pytest.raises(InvalidInput):
            await records.memory.set(BY, "a", key, 1)
        assert await records.memory.items("a") == []
        await records.memory.set(BY, "a", "é" * 128, 1)

    async def test_what_is_no_value_is_refused(self, records: Records) -> None:
        """InvalidInput or, over 1 MiB of JSON, TooLarge; the earlier value stays."""
        await records.memory.set(BY, "a", "k", "earlier")
        for value in (*NO_JSON, nested(100_000)):
            with pytest.raises(InvalidInput):
                await records.memory.set(BY, "a", "k", cast("Json", value))
        with pytest.raises(TooLarge):
            await records.memory.set(BY, "a", "k", "x" * (1 << 20))
        assert await records.memory.items("a") == [("k", "earlier")]

    async def test_a_value_is_the_callers_own(self, records: Records) -> None:
        """What is done to it before or after changes nothing that is kept."""
        value = {"list": [1]}
        await records.memory.set(BY, "a", "k", value)
        value["list"].append(2)
        for _ in range(2):
            given, _labels = await records.memory.get("a", "k")
            assert given == {"list": [1]}
            given["list"].append(3)

    async def test_values_at_once_lose_nothing(self, records: Records) -> None:
        """Of one key it is the value of one of them, whole."""
        values = [{"n": number, "same": [number] * 100} for number in range(50)]
        async with asyncio.timeout(self.patience):
            await asyncio.gather(
                *(records.memory.set(BY, "one", "k", value) for value in values),
                *(records.memory.set(BY, "all", str(v["n"]), v) for v in values),
            )
        assert (await records.memory.get("one", "k"))[0] in values
        found = dict(await records.memory.items("all"))
        assert [found[str(number)] for number in range(50)] == values

    async def test_a_search_finds_by_all_words_what_its_owner_kept(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """Of one agent, or shared; a query has no syntax, and what is gone is gone."""
        other = Context(Principal("api_key", "other"))
        await records.memory.set(BY.labelled(UNTRUSTED), "a", "color", "Deep BLUE")
        await records.memory.set(BY, "shared", "shared.sea", {"is": "blue%"})
        await records.memory.set(BY, "b", "elsewhere", "blue")
        await records.memory.set(other, "a", "eyes", "blue")

        async def found(query: str, owner: str = BY.owner) -> set[str]:
            rows = await opened().memory.search(owner, "a", query)
            assert all(row["kind"] == "memory" for row in rows)
            return {row["key"] for row in rows}

        assert await found("blue") == {"color", "shared.sea"}
        assert await found("BLUE deep") == {"color"}
        assert await found("blue%") == {"shared.sea"}
        assert await found("blue", other.owner) == {"eyes"}
        assert await found("blue", "") == {"color", "shared.sea", "eyes"}
        for query in ("", " ", "bl_e", "blue AND deep", 'blue"', "NEAR(blue)"):
            assert await found(query) == set(), query
        (row,) = await opened().memory.search(BY.owner, "a", "deep")
        assert row["labels"] == sorted(UNTRUSTED)
        await records.memory.delete(BY, "a", "color")
        assert await found("deep") == set()
