"""Memory is searched by plain words, and only ever by whoever it belongs to."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from agenthost import OPERATOR, UNTRUSTED, Context, Principal, SystemClock
from agenthost.testing import Daemons
from agenthost_records.memory import KeyValues
from agenthost_records.schemas import KERNEL, MEMORY, SEARCH
from agenthost_storage.sqlite import SqliteStore

BY = Context(OPERATOR)
ME = BY.owner
HOSTILE = (
    'words"',
    "words' OR 1=1 --",
    "NEAR(words, 1)",
    "words*",
    "words AND kept",
    "NOT words",
    "key:words",
    "{key}:words",
    "^words",
    "words; DROP TABLE kv",
    "%",
    "_",
    "/",
    "/%",
    "\0",
    "\ud800",
    "(",
    '""',
    "-words",
    "words\\",
)


def by(owner: str) -> Context:
    return Context(Principal("api_key", owner))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "a.db", [KERNEL, MEMORY, SEARCH])
    yield store
    await store.close()


@pytest.fixture
def kv(store: SqliteStore) -> KeyValues:
    return KeyValues(store, SystemClock())


async def keys(
    kv: KeyValues, query: str, owner: str = ME, agent: str = "a"
) -> list[str]:
    return [each["key"] for each in await kv.search(owner, agent, query)]


async def test_a_value_is_found_by_all_words_of_key_and_value(kv: KeyValues) -> None:
    await kv.set(BY, "a", "color", "Deep BLUE é")
    await kv.set(BY, "a", "shape", {"name": "blue circle"})
    assert sorted(await keys(kv, "blue")) == ["color", "shape"]
    assert await keys(kv, "color Blue") == ["color"]
    assert await keys(kv, "CIRCLE name") == ["shape"]
    assert await keys(kv, "e\u0301") == ["color"]
    assert await keys(kv, "blue green") == []
    assert await keys(kv, "  ") == []


async def test_what_is_changed_or_forgotten_is_found_no_more(kv: KeyValues) -> None:
    await kv.set(BY, "a", "k", "first words")
    await kv.set(BY, "a", "k", "second thoughts")
    assert await keys(kv, "first") == []
    assert await keys(kv, "second") == ["k"]
    await kv.delete(BY, "a", "k")
    assert await keys(kv, "second") == []


async def test_labels_come_along(kv: KeyValues) -> None:
    await kv.set(BY.labelled(UNTRUSTED), "a", "k", "from a page")
    (found,) = await kv.search(ME, "a", "page")
    assert found["labels"] == ["untrusted"]


async def test_a_hostile_query_is_plain_words(kv: KeyValues) -> None:
    await kv.set(by("other"), "a", "secret", "words of another, kept")
    for query in HOSTILE:
        await kv.set(BY, "a", "key", "words that are kept")
        await kv.set(BY, "a", "exact", "nothing")
        assert await keys(kv, query) == [], query
        plain = query.replace("\0", "").replace("\ud800", "?")
        await kv.set(BY, "a", "exact", f"so {plain} it is")
        assert await keys(kv, query) == (["exact"] if plain else []), query


async def test_the_shared_memory_is_found_by_its_owner_alone(kv: KeyValues) -> None:
    await kv.set(BY, "shared", "shared.k", "common words")
    await kv.set(BY, "b", "k", "common words")
    assert await keys(kv, "common") == ["shared.k"]
    assert await keys(kv, "common", by("other").owner) == []


async def test_a_long_value_is_shown_around_the_word(kv: KeyValues) -> None:
    await kv.set(BY, "a", "k", "x " * 3_000 + "needle" + " y" * 3_000)
    (found,) = await kv.search(ME, "a", "needle")
    assert "needle" in found["text"]
    assert len(found["text"]) < 700


async def test_what_was_said_is_found_and_goes_with_its_session(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    agent, other = await daemon.agent(), await daemon.agent("other")
    await agent.ask("the heron stands in the reeds")
    await other.ask("the heron flies")

    async def found(**query: str) -> list[dict[str, Any]]:
        answer = await daemon.http.get("/api/memory/search", params=query)
        assert answer.status_code == 200, answer.text
        rows: list[dict[str, Any]] = answer.json()["results"]
        return rows

    said = await found(agent=agent.name, q="Heron")
    assert sorted(each["role"] for each in said) == ["assistant", "user"]
    assert all("reeds" in each["text"] for each in said)
    assert await found(agent=agent.id, q="flies") == []
    for wrong in ({"agent": agent.id}, {"q": "x"}, {"agent": agent.id, "q": " "}):
        answer = await daemon.http.get("/api/memory/search", params=wrong)
        assert answer.status_code == 400
    # The tool sees neither the turn that asks nor what somebody else has said.
    searcher = await daemon.agent("searcher", tools=["memory_search", "kv_set"])
    daemon.model.calls_all(
        ("kv_set", {"key": "bird", "value": "grey heron"}),
        ("memory_search", {"query": "heron"}),
    )
    await searcher.ask("where was the heron?")
    told = str(daemon.model.requests[-1].messages[-1].parts[-1])
    assert "grey heron" in told
    assert "where was" not in told
    assert "reeds" not in told
    await daemon.http.post(f"/api/agents/{agent.id}/session/reset")
    assert await found(agent=agent.id, q="heron") == []


@pytest.mark.faults
async def test_of_10000_memories_of_200_owners_none_finds_its_neighbours(
    kv: KeyValues, record_property: Callable[[str, object], None]
) -> None:
    dice, words = random.Random(3), [f"w{n}" for n in range(100)]
    kept: dict[tuple[str, str, str], str] = {}
    crowd = []
    for number in range(10_000):
        owner, agent = f"o{number % 200}", f"agent{number % 7}"
        text = " ".join(dice.choices(words, k=8))
        kept[owner, agent, f"k{number}"] = text
        crowd.append(kv.set(by(owner), agent, f"k{number}", text))
    for begin in range(0, len(crowd), 500):
        await asyncio.gather(*crowd[begin : begin + 500])
    took: list[float] = []

    async def check(owner: str, agent: str, query: Sequence[str]) -> None:
        began = time.perf_counter()
        found = await keys(kv, " ".join(query), by(owner).owner, agent)
        took.append(time.perf_counter() - began)
        wanted = {
            k
            for (o, a, k), text in kept.items()
            if (o, a) == (owner, agent) and all(w in f"{k} {text}" for w in query)
        }
        assert set(found) <= wanted
        assert len(found) == min(len(wanted), 20)

    for _ in range(300):
        asked = f"o{dice.randrange(200)}", f"agent{dice.randrange(7)}"
        await check(*asked, dice.choices([*words, "w", "k", "%", "_"], k=2))
    p95 = sorted(took)[int(len(took) * 0.95)]
    record_property("search_p95_ms", p95 * 1000)
    assert p95 < 0.05, p95
