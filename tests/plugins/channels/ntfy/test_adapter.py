"""What the contract does not ask: the cursor, refusals, changes, files elsewhere."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from agenthost import NotFound, Unauthenticated, Unavailable
from agenthost.testing.simulators.ntfy import TOKEN, NtfySimulator
from agenthost_channels.contract import Attachment, Fate, Outbound, Place
from agenthost_channels.ntfy.adapter import OVERLAP_SECONDS, Ntfy, Settings
from agenthost_channels.testing import FakeLine
from pydantic import ValidationError

ADA = Place("default", "ada")
HELLO = Outbound("key-1", ADA, "*hello*", "hello")


def line_to(
    server: NtfySimulator, secrets: Mapping[str, str] | None = None, **more: Any
) -> FakeLine:
    settings = Settings(server=server.url, **{"topics": ["ada"], **more})
    return FakeLine(settings, {"token": TOKEN} if secrets is None else secrets)


@asynccontextmanager
async def running(line: FakeLine) -> AsyncIterator[asyncio.Task[None]]:
    before = line.connections
    task = asyncio.create_task(Ntfy(line).run())
    waiting = asyncio.create_task(line.until(lambda: line.connections > before))
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        yield task
    finally:
        waiting.cancel()
        task.cancel()
        await asyncio.wait([task, waiting])


async def sent(server: NtfySimulator, message: Outbound, **more: Any) -> Any:
    line = line_to(server, **more)
    try:
        return await Ntfy(line).send(message)
    finally:
        await line.aclose()


async def test_what_was_said_before_we_came_is_not_heard() -> None:
    async with NtfySimulator() as server:
        await server.put("ada", message="long ago")
        line = line_to(server)
        async with running(line):
            await server.put("ada", message="now")
            (heard,) = await line.hear(1)
        await line.aclose()
    assert heard.text == "now"
    assert server.queries == [{}]


async def test_a_minute_before_the_cursor_is_asked_for_again() -> None:
    async with NtfySimulator() as server:
        line = line_to(server)
        async with running(line):
            await server.put("ada", message="one")
            await line.hear(1)
        reached = int(line.cursor)
        # Published at once with the other, and written down later: no id is newer.
        await server.put("ada", message="beside it", time=reached - 5)
        async with running(line):
            await line.hear(2)
        await line.aclose()
    assert server.queries[1] == {"since": str(reached - OVERLAP_SECONDS)}
    assert [each.text for each in line.heard] == ["one", "beside it"]


async def test_what_comes_again_is_not_kept_again() -> None:
    async with NtfySimulator() as server:
        line = line_to(server)
        adapter = Ntfy(line)
        for count in (1, 2):
            run = asyncio.create_task(adapter.run())
            await line.until(lambda n=count: line.connections == n)  # type: ignore[misc]
            await server.put("ada", message=f"number {count}")
            await line.hear(count)
            server.cut()
            await asyncio.wait([run])
            assert isinstance(run.exception(), Unavailable)
        await line.aclose()
    # The first commit is that of the cursor alone.
    assert line.batches == [0, 1, 1]


async def test_a_time_to_come_moves_nothing() -> None:
    async with NtfySimulator() as server:
        line = line_to(server)
        async with running(line):
            await server.put("ada", message="from afar", time=int(time.time()) + 10**8)
            await line.hear(1)
        await line.aclose()
    assert int(line.cursor) <= time.time()


async def test_ours_is_not_heard_after_a_start() -> None:
    async with NtfySimulator() as server:
        line = line_to(server)
        async with running(line):
            pass
        assert (await Ntfy(line).send(HELLO)).fate is Fate.DELIVERED
        async with running(line):
            await server.put("ada", message="and?")
            heard = await line.hear(1)
        await line.aclose()
    assert [each.text for each in heard] == ["and?"]


async def test_a_line_without_an_end_ends_it() -> None:
    async with NtfySimulator() as server:
        line = line_to(server)
        async with running(line) as task:
            sending = asyncio.create_task(server.raw(b"x" * (4 << 20)))
            await asyncio.wait([task], timeout=20)
            assert isinstance(task.exception(), Unavailable)
            assert "over 1 MB" in str(task.exception())
            await asyncio.wait([sending], timeout=20)
        await line.aclose()


@pytest.mark.parametrize(
    ("topic", "secrets", "kind", "words"),
    [
        ("ada", {}, Unauthenticated, "access list"),
        ("ada", {"token": "tk_other"}, Unauthenticated, "set NTFY_TOKEN"),
        ("closed", {"token": TOKEN}, Unauthenticated, "topics"),
    ],
)
async def test_who_may_not_read_is_told_why(
    topic: str, secrets: Mapping[str, str], kind: type[Exception], words: str
) -> None:
    async with NtfySimulator() as server:
        line = line_to(server, secrets, topics=[topic])
        async with running(line) as task:
            with pytest.raises(kind, match=words):
                await asyncio.wait_for(task, 20)
        await line.aclose()
    assert not line.connections


async def test_nobody_there_is_trouble_and_no_end() -> None:
    server = NtfySimulator()
    server.url = "http://127.0.0.1:1"
    line = line_to(server)
    with pytest.raises(Unavailable, match="the connection to ntfy broke"):
        await Ntfy(line).run()
    result = await Ntfy(line).send(HELLO)
    assert (result.fate, result.final) == (Fate.NOT_SENT, False)
    await line.aclose()


@pytest.mark.parametrize(
    ("status", "fate", "final"),
    [
        (400, Fate.NOT_SENT, True),
        (401, Fate.NOT_SENT, False),
        (413, Fate.NOT_SENT, True),
        (429, Fate.NOT_SENT, False),
        (500, Fate.UNKNOWN, False),
        (507, Fate.UNKNOWN, False),
    ],
)
async def test_a_refusal_is_told_as_it_is(status: int, fate: Fate, final: bool) -> None:
    async with NtfySimulator() as server:
        server.refusing = (status, {"code": status * 100 + 1, "error": "no\r\nway"})
        result = await sent(server, HELLO)
    assert (result.fate, result.final) == (fate, final)
    assert "\n" not in result.reason
    assert not server.kept


async def test_an_answer_that_is_none_is_an_unknown_fate() -> None:
    async with NtfySimulator() as server:
        server.refusing = (200, {})
        assert (await sent(server, HELLO)).fate is Fate.UNKNOWN


async def test_a_lost_answer_is_looked_for() -> None:
    async with NtfySimulator() as server:
        line = line_to(server)
        adapter = Ntfy(line)
        assert (await adapter.reconcile(HELLO)).fate is Fate.UNKNOWN
        server.losing = True
        assert (await adapter.send(HELLO)).fate is Fate.UNKNOWN
        found = await adapter.reconcile(HELLO)
        assert (found.fate, found.message_id) == (Fate.DELIVERED, "key-1")
        # Somebody else may use any name: only with our tag it is ours.
        await server.put("ada", sequence_id="key-2")
        other = replace(HELLO, key="key-2")
        assert (await adapter.reconcile(other)).fate is Fate.UNKNOWN
        server.keeps = False
        assert (await adapter.reconcile(HELLO)).fate is Fate.UNKNOWN
        server.closed.add("ada")
        assert "cannot be asked" in (await adapter.reconcile(HELLO)).reason
        await line.aclose()


async def test_an_old_server_cannot_change_a_message() -> None:
    async with NtfySimulator() as server:
        server.old = True
        line = line_to(server)
        adapter = Ntfy(line)
        first = await adapter.send(HELLO)
        edit = replace(HELLO, key="key-2", edit_of=first.message_id)
        result = await adapter.send(edit)
        await line.aclose()
    assert (result.fate, result.final) == (Fate.NOT_SENT, True)
    assert "2.16" in result.reason
    assert len(server.kept) == 1


async def test_markup_title_and_tag_are_said() -> None:
    async with NtfySimulator() as server:
        await sent(server, HELLO, title="Zoë: 50% & more", tag="robot")
        await sent(server, HELLO, markdown=False)
    first, second = server.kept
    assert first["message"] == "*hello*"
    assert first["content_type"] == "text/markdown"
    assert (first["title"], first["tags"]) == ("Zoë: 50% & more", ["robot"])
    assert second["message"] == "hello"
    assert "content_type" not in second


async def test_a_title_is_part_of_what_is_heard() -> None:
    async with NtfySimulator() as server:
        line = line_to(server)
        async with running(line):
            await server.put("ada", title="Disk full", message="on /var")
            await server.put("ada", message="AAAA", encoding="base64")
            await server.put("ada", message="50%", sequence_id="progress")
            heard = await line.hear(2)
        await line.aclose()
    assert [each.text for each in heard] == ["Disk full\non /var", "50%"]
    assert not heard[1].edited


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/file/a.bin",
        "{}/file/../v1/account",
        "{}/file/a.bin?x=1",
        "{}/ada/json",
        "{}.evil.example/file/a.bin",
        "",
    ],
)
async def test_a_file_elsewhere_is_not_asked_for(url: str) -> None:
    async with NtfySimulator() as server:
        line = line_to(server)
        reference = {"url": url.format(server.url)}
        with pytest.raises(NotFound):
            await Ntfy(line).download(Attachment("a", "b/c", reference))
        gone = {"url": f"{server.url}/file/gone.bin"}
        with pytest.raises(NotFound):
            await Ntfy(line).download(Attachment("a", "b/c", gone))
        await line.aclose()


async def test_topics_are_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with NtfySimulator() as server:
        line = line_to(server, topics=["canary-topic"])
        async with running(line):
            await Ntfy(line).send(
                replace(HELLO, place=Place("default", "canary-topic"))
            )
        await line.aclose()
    assert "canary-topic" not in caplog.text


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("server", "http://ntfy.example", "name an https address"),
        ("server", "ftp://ntfy.example", "name an https address"),
        ("topics", ["a/b"], "'a/b' is no topic"),
        ("topics", [], "at least 1 item"),
        ("tag", "a,b", "match pattern"),
    ],
)
def test_a_wrong_setting_is_named(key: str, value: object, words: str) -> None:
    given = {"topics": ["ada"], key: value}
    with pytest.raises(ValidationError, match=words):
        Settings.model_validate(given)


async def test_identity_says_who_we_are_or_that_we_are_nobody() -> None:
    async with NtfySimulator() as server:
        line = line_to(server)
        assert await Ntfy(line).identity() == "helper at 127.0.0.1"
        line.change_secrets({})
        assert "nobody" in await Ntfy(line).identity()
        await line.aclose()
