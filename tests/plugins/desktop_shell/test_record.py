"""What the bridge decided is kept: once each, bounded, and for its owner alone."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agenthost import OPERATOR, Call, Grants, Principal, Unavailable
from agenthost.testing import Daemons, ManualClock, MemoryStore
from agenthost.testing.processes import DaemonProcess
from agenthost_desktop_shell import record_rows
from agenthost_desktop_shell.bodies import DecisionsQuery
from agenthost_desktop_shell.config import DesktopSection
from agenthost_desktop_shell.least import Ask
from agenthost_desktop_shell.plugin import register_schema
from agenthost_desktop_shell.record import AT_ONCE, LONGEST, REMEMBERED, Record
from agenthost_desktop_shell.record_rows import Decided
from agenthost_desktop_shell.suggesting import read_asks
from agenthost_desktop_shell.terms import Caller
from websockets.asyncio.client import connect

from ...faults.waiting import soon
from .test_bridge import TITLE, Talk, _issue, _say, invocation, serving

OWNER = "operator:operator"


def decided(command: str = TITLE, **words: Any) -> Decided:
    usual: dict[str, Any] = {
        "owner": OWNER,
        "window": "main",
        "webview": None,
        "origin": "local",
        "platform": "linux",
        "program": "",
        "allowed": True,
        "permission": "core:window:allow-set-title",
        "capability": "a",
    }
    return Decided(**{**usual, **words, "command": command})


class CountedStore(MemoryStore):
    """A store that counts its writes, and that may be out of order."""

    def __init__(self) -> None:
        super().__init__([register_schema()])
        self.writes = 0
        self.broken: Exception | None = None
        self.late = False

    def write(self, fn: Callable[..., Any], *also: Any) -> asyncio.Future[Any]:
        self.writes += 1
        if self.broken:
            raise self.broken
        if self.late:
            return asyncio.ensure_future(self._later(fn))
        return super().write(fn, *also)

    async def _later(self, fn: Callable[..., Any]) -> Any:
        await asyncio.sleep(0)
        return await super().write(fn)


@pytest.fixture
def store() -> CountedStore:
    return CountedStore()


@pytest.fixture
def record(store: CountedStore) -> Record:
    host: Any = SimpleNamespace(store=store, clock=ManualClock())
    return Record(host)


async def listed(record: Record, owner: str = "", most: int = 10_000) -> list[Any]:
    return await record.listed(owner, 0.0, most)


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path / "home")


async def test_a_call_is_recorded_with_what_decided_it(talk: Talk) -> None:
    token = (await talk.issue(webview="view", resource="/r"))["token"]
    await talk.say(
        {"token": token},
        *[invocation("plugin:window|set_title")] * 3,
        invocation("plugin:shell|execute", program="git", args=[]),
        invocation("shell:execute", name="rm", args=["secret"]),
        invocation("core:window:close"),
        invocation("shell:execute", nonsense=1),
    )
    answer: Any = await talk.bridge.decisions(talk.call(), DecisionsQuery())
    rows = {(row["command"], row["program"]): row for row in answer["decisions"]}
    assert len(rows) == answer["total"] == 4
    title = rows[TITLE, ""]
    assert (title["allowed"], title["count"], title["owner"]) == (True, 3, OWNER)
    assert title["permission"] == "core:window:allow-set-title"
    assert (title["capability"], title["webview"]) == ("a", "view")
    ran, not_run = rows["shell:execute", "git"], rows["shell:execute", "rm"]
    assert (ran["permission"], ran["allowed"]) == ("shell:allow-execute", True)
    assert not not_run["allowed"]
    assert "secret" not in str(answer)
    assert not rows["core:window:close", ""]["allowed"]


@pytest.mark.setting("desktop_shell.record")
async def test_nothing_is_recorded_when_the_operator_says_so(talk: Talk) -> None:
    talk.sections[DesktopSection] = DesktopSection(record=False)
    token = (await talk.issue(webview="view"))["token"]
    wire = await talk.say({"token": token}, invocation(TITLE))
    assert wire.said[1]["allowed"]
    answer: Any = await talk.bridge.decisions(talk.call(), DecisionsQuery())
    assert answer == {"decisions": [], "total": 0}


async def test_others_see_what_their_own_webviews_asked_for(talk: Talk) -> None:
    rights = Grants({"route": ("desktop:*",)})
    for name in ("one", "two"):
        who = Principal("api_key", name, rights)
        call = Call(talk.call().host, who, "127.0.0.1", "1", {}, {})
        talk.call = lambda call=call, **_: call  # type: ignore[method-assign]
        token = (await talk.issue(webview="view"))["token"]
        await talk.say({"token": token}, invocation(TITLE))
        seen: Any = await talk.bridge.decisions(call, DecisionsQuery())
        assert [row["owner"] for row in seen["decisions"]] == [f"api_key:{name}"]
    whole = Call(call.host, OPERATOR, "127.0.0.1", "1", {}, {})
    both: Any = await talk.bridge.decisions(whole, DecisionsQuery())
    assert both["total"] == 2


async def test_what_is_known_is_counted_without_a_write(
    record: Record, store: CountedStore
) -> None:
    for _ in range(100):
        record.note(decided())
        await asyncio.sleep(0)
    assert store.writes == 1
    record.flush()
    assert store.writes == 2
    (row,) = await listed(record)
    assert row["count"] == 100


async def test_what_is_new_while_a_write_is_on_its_way_goes_together(
    record: Record, store: CountedStore
) -> None:
    for number in range(50):
        record.note(decided(f"c{number}"))
    assert store.writes == 1
    await asyncio.sleep(0)
    assert store.writes == 2
    assert len(await listed(record)) == 50


async def test_who_reads_sees_what_is_still_on_its_way(
    record: Record, store: CountedStore
) -> None:
    store.late = True
    record.note(decided())
    assert len(await listed(record)) == 1
    for number in range(AT_ONCE * 2 + 1):
        record.note(decided(f"c{number}"))
    record.flush()
    assert len(await listed(record)) == AT_ONCE * 2 + 2
    record.note(decided("last"))
    record.note(decided("c1"))
    rows = {row["command"]: row["count"] for row in await listed(record)}
    assert (rows["last"], rows["c1"], rows["c2"]) == (1, 2, 1)


async def test_a_write_takes_some_alone_and_the_next_the_rest(
    record: Record, store: CountedStore
) -> None:
    for number in range(AT_ONCE * 3):
        record.note(decided(f"c{number}"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert store.writes == 4
    assert not record._counts


async def test_a_page_that_makes_up_commands_pushes_out_its_own_alone(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_rows, "MOST", 10)
    record.note(decided())
    record.note(decided(owner="api_key:other"))
    for number in range(40):
        made_up = decided(f"no{number}", allowed=number % 2 == 0, permission=None)
        record.note(made_up)
        await asyncio.sleep(0)
    rows = await listed(record, OWNER)
    assert 9 <= len(rows) <= 10
    assert TITLE in {row["command"] for row in rows}
    assert len(await listed(record, "api_key:other")) == 1
    assert len(await listed(record, most=3)) == 3


async def test_what_no_database_takes_is_recorded_all_the_same(record: Record) -> None:
    record.note(decided("a\0b"))
    record.note(decided("\ud800"))
    record.note(decided("x" * 10_000))
    commands = {row["command"] for row in await listed(record)}
    assert commands == {"a\ufffdb", "?", "x" * LONGEST + "…"}


async def test_what_is_remembered_of_it_is_bounded(record: Record) -> None:
    for number in range(REMEMBERED + 5):
        record.note(decided(f"c{number}"))
    assert len(record._known) == 5
    assert len(record._counts) <= REMEMBERED + 5


async def test_a_storage_that_is_out_of_order_refuses_no_webview(
    record: Record, store: CountedStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.broken = Unavailable("the disk is full")
    record.note(decided())
    assert "were not recorded" in caplog.text
    store.broken = None
    record.note(decided())
    assert [row["count"] for row in await listed(record)] == [1]


async def test_a_record_is_read_as_it_is_listed(record: Record) -> None:
    record.note(decided(webview="view", origin="https://a.dev"))
    (ask,) = read_asks({"decisions": await listed(record)})
    assert ask == Ask(Caller("main", "view", "https://a.dev"), TITLE, "linux")


@pytest.mark.conformance
async def test_decisions_outlive_the_daemon(daemons: Daemons, tmp_path: Path) -> None:
    home = serving(tmp_path / "home")
    daemon = await daemons.start(home=home)
    token = (await _issue(daemon, webview="view"))["token"]
    url = daemon.url.replace("http", "ws") + "/api/desktop/ipc"
    async with connect(url, proxy=None) as socket:
        await _say(socket, {"token": token})
        for _ in range(3):
            await _say(socket, invocation(TITLE))
    await daemon.daemon.stop()
    again = await daemons.start(home=home)
    since = {"since": "2000-01-01T00:00:00Z", "limit": "5"}
    answer = await again.http.get("/api/desktop/decisions", params=since)
    (row,) = answer.json()["decisions"]
    assert (row["command"], row["count"]) == (TITLE, 3)
    for wrong in ({"limit": "0"}, {"limit": "10001"}, {"since": "x"}):
        refused = await again.http.get("/api/desktop/decisions", params=wrong)
        assert refused.status_code == 400


@pytest.mark.faults
async def test_a_recorded_decision_outlives_a_kill(tmp_path: Path) -> None:
    home = serving(tmp_path / "home")
    with await asyncio.to_thread(DaemonProcess, home) as first:
        body = {"window": "main", "webview": "view"}
        issued = await asyncio.to_thread(
            first.http.post, "/api/desktop/tokens", json=body
        )
        url = str(first.http.base_url).replace("http", "ws") + "/api/desktop/ipc"
        async with connect(url, proxy=None) as socket:
            await _say(socket, {"token": issued.json()["token"]})
            await _say(socket, invocation(TITLE))
            await soon(lambda: TITLE in written(home), "nothing was written")
            first.kill()
    with await asyncio.to_thread(DaemonProcess, home) as second:
        answer = await asyncio.to_thread(second.http.get, "/api/desktop/decisions")
        (row,) = answer.json()["decisions"]
        assert (row["command"], row["count"]) == (TITLE, 1)


def written(home: Path) -> list[str]:
    """The commands that are on disk, as another process sees them."""
    database = sqlite3.connect(home / "data" / "agenthost.db")
    with closing(database):
        found = database.execute("SELECT command FROM desktop_shell_decisions")
        return [command for (command,) in found]
