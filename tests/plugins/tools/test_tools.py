"""What each built-in tool does beyond the contract."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    Denied,
    InvalidInput,
    SystemClock,
    TooLarge,
    ToolContext,
    UpstreamUnreachable,
)
from agenthost_tools import agents, files, kv, system_time, web_fetch
from agenthost_tools.web_fetch import WebFetchSection

from ..egress.wire import Wire, always, answer, then_hang
from .conftest import AGENT_ID, OTHER_ID, FakeDaemon, limited


async def test_a_file_is_written_read_and_listed(context: ToolContext) -> None:
    await files.file_write(context, files.FileWrite(path="a/ü.txt", content="grüß\n"))
    read = await files.file_read(context, files.FileRead(path="a/ü.txt"))
    assert read.text == "grüß\n"
    assert (await files.file_list(context, files.FileList())).text == "a/"
    assert (await files.file_list(context, files.FileList(path="a"))).text == "ü.txt"


async def test_a_binary_or_large_file_is_named_as_such(context: ToolContext) -> None:
    workspace = context.host.files.workspace(AGENT_ID)
    workspace.write("binary", b"\xff\xfe\x00")
    workspace.write("large", b"x" * (files.READ_LIMIT + 1))
    with pytest.raises(InvalidInput, match="binary"):
        await files.file_read(context, files.FileRead(path="binary"))
    with pytest.raises(TooLarge, match=str(files.READ_LIMIT)):
        await files.file_read(context, files.FileRead(path="large"))


async def test_a_list_stays_one_name_a_line_and_encodable(context: ToolContext) -> None:
    workspace = context.host.files.workspace(AGENT_ID)
    assert (await files.file_list(context, files.FileList())).text == "(empty)"
    workspace.write("a\nb", b"")
    workspace.write("x\udc80", b"")
    listed = (await files.file_list(context, files.FileList())).text
    assert listed == "a\\nb\nx\\udc80"


async def test_a_long_list_says_how_much_is_missing(
    context: ToolContext, tmp_path: Path
) -> None:
    workspace = context.host.files.workspace(AGENT_ID)
    workspace.write("f", b"")
    root = tmp_path / AGENT_ID
    for number in range(files.NAMES_SHOWN + 2):
        (root / f"g{number}").touch()
    listed = (await files.file_list(context, files.FileList())).text
    assert listed.splitlines()[-1] == "[3 more]"


async def test_files_need_an_agent(context: ToolContext) -> None:
    with pytest.raises(InvalidInput, match="agent"):
        await files.file_list(replace(context, agent=None), files.FileList())


async def test_memory_needs_an_agent(context: ToolContext) -> None:
    with pytest.raises(InvalidInput, match="agent"):
        await kv.kv_get(replace(context, agent=None), kv.KvGet(key="k"))


async def test_keys_live_in_the_agents_own_namespace_or_the_shared_one(
    context: ToolContext, daemon: FakeDaemon
) -> None:
    await kv.kv_set(context, kv.KvSet(key="colour", value="blue"))
    await kv.kv_set(context, kv.KvSet(key="shared.colour", value=["red"]))
    assert daemon.kv.values == {
        (AGENT_ID, "colour"): "blue",
        ("shared", "shared.colour"): ["red"],
    }
    assert (await kv.kv_get(context, kv.KvGet(key="colour"))).text == "blue"
    assert (await kv.kv_get(context, kv.KvGet(key="shared.colour"))).text == '["red"]'


@pytest.mark.parametrize(
    ("pattern", "key", "allowed"),
    [
        ("self.*", "colour", True),
        ("self.a*", "colour", False),
        ("self.*", "shared.colour", False),
        ("shared.*", "shared.colour", True),
        ("shared.*", "colour", False),
        ("*", "shared.colour", True),
    ],
)
async def test_memory_rights_decide_by_pattern(
    context: ToolContext, daemon: FakeDaemon, pattern: str, key: str, allowed: bool
) -> None:
    reader = limited(context, memory_read=(pattern,))
    writer = limited(context, memory_write=(pattern,))
    daemon.kv.values[AGENT_ID, key] = daemon.kv.values["shared", key] = 1
    if allowed:
        assert (await kv.kv_get(reader, kv.KvGet(key=key))).text == "1"
        await kv.kv_set(writer, kv.KvSet(key=key, value=2))
        return
    with pytest.raises(Denied):
        await kv.kv_get(reader, kv.KvGet(key=key))
    with pytest.raises(Denied):
        await kv.kv_set(writer, kv.KvSet(key=key, value=2))


async def test_the_right_to_read_is_not_the_right_to_write(
    context: ToolContext,
) -> None:
    with pytest.raises(Denied):
        await kv.kv_set(
            limited(context, memory_read=("*",)), kv.KvSet(key="k", value=1)
        )


async def test_the_time_is_told_in_the_zone(
    context: ToolContext, daemon: FakeDaemon
) -> None:
    class Noon(SystemClock):
        def now(self, zone: tzinfo = UTC) -> datetime:
            return datetime(2026, 7, 1, 12, tzinfo=UTC).astimezone(zone)

    daemon.clock = Noon()
    call = system_time.SystemTime(timezone="Asia/Tokyo")
    told = await system_time.system_time(context, call)
    assert told.text == "2026-07-01T21:00:00+09:00"


async def test_agents_are_listed_with_their_model(context: ToolContext) -> None:
    listed = json.loads((await agents.agent_list(context, agents.AgentList())).text)
    assert listed[1] == {
        "id": OTHER_ID,
        "name": "bob",
        "state": "Running",
        "model": "offline/model-of-bob",
    }


@pytest.mark.parametrize("reference", ["bob", OTHER_ID])
async def test_an_agent_is_asked_by_id_or_name(
    context: ToolContext, daemon: FakeDaemon, reference: str
) -> None:
    call = agents.AgentCall(agent_id=reference, message="hi")
    allowed = limited(context, agent_message=("bo*",))
    assert (await agents.agent_call(allowed, call)).text == "bob heard: hi"
    with pytest.raises(Denied):
        await agents.agent_call(limited(context, agent_message=("ada",)), call)
    assert daemon.agents.said == [(OTHER_ID, "hi")]


def configured(**values: Any) -> WebFetchSection:
    """``[web.fetch]`` with these values, and loopback allowed."""
    return WebFetchSection(allowed_hosts=("127.0.0.1",), **values)


async def fetch(context: ToolContext, **arguments: Any) -> str:
    call = web_fetch.WebFetch.model_validate(arguments)
    return (await web_fetch.web_fetch(context, call)).text


async def test_a_page_comes_as_markdown_between_markers(context: ToolContext) -> None:
    page = (
        b"<html><head><title>T</title><style>x{}</style></head><body><h1>Hello</h1>"
        b"<script>evil()</script><p>See <a href='/a'>this</a></p></body></html>"
    )
    async with Wire(always(answer(page, content_type="text/html"))) as wire:
        first, second = [await fetch(context, url=wire.url) for _ in range(2)]
    assert "# Hello" in first
    assert "[this](/a)" in first
    assert "evil" not in first
    assert "x{}" not in first
    nonces = re.findall(r"(begin|end) untrusted (\w+)", first)
    assert [kind for kind, _ in nonces] == ["begin", "end"]
    assert nonces[0][1] == nonces[1][1]
    assert nonces[0][1] not in second


async def test_a_request_is_sent_as_the_model_asks(context: ToolContext) -> None:
    async with Wire(always(answer(b'{"ok": 1}', content_type="application/json"))) as w:
        text = await fetch(
            context, url=w.url, method="POST", headers={"X-A": "b"}, body="grüß"
        )
    assert '{"ok": 1}' in text
    assert w.heard[0].line.startswith("POST ")
    assert w.heard[0].header("x-a") == "b"
    assert w.heard[0].body.decode() == "grüß"


async def test_long_text_is_cut_and_says_so(context: ToolContext) -> None:
    body = b"x" * 60_000
    async with Wire(always(answer(body, content_type="text/plain"))) as wire:
        text = await fetch(context, url=wire.url)
    assert "[cut after 50000 of 60000]" in text
    assert text.count("x") < 51_000


@pytest.mark.setting("web.fetch.max_chars")
@pytest.mark.parametrize("kind", ["text/plain", "text/html"])
async def test_text_is_cut_at_the_configured_length(
    context: ToolContext, daemon: FakeDaemon, kind: str
) -> None:
    daemon.fetch = configured(max_chars=100)
    async with Wire(always(answer(b"x" * 150, content_type=kind))) as wire:
        text = await fetch(context, url=wire.url)
    assert "x" * 100 + "\n[cut after 100 of 150]" in text
    assert "x" * 101 not in text


@pytest.mark.setting("web.fetch.timeout_secs")
async def test_a_server_is_left_after_the_configured_seconds(
    context: ToolContext, daemon: FakeDaemon
) -> None:
    daemon.fetch = configured(timeout_secs=0.05)
    async with Wire(then_hang(b"")) as wire:
        with pytest.raises(UpstreamUnreachable, match="in time"):
            async with asyncio.timeout(15):  # half of what stands there by default
                await fetch(context, url=wire.url)


async def test_binary_content_is_named_not_shown(context: ToolContext) -> None:
    async with Wire(always(answer(b"\x89PNG\x00", content_type="image/png"))) as wire:
        assert "[5 bytes of image/png, not text]" in await fetch(context, url=wire.url)


async def test_an_error_page_is_an_error_with_its_text(context: ToolContext) -> None:
    gone = answer(b"gone away", "410 Gone", content_type="text/plain")
    async with Wire(always(gone)) as wire:
        call = web_fetch.WebFetch(url=wire.url)
        result = await web_fetch.web_fetch(context, call)
    assert result.is_error
    assert "HTTP 410" in result.text
    assert "gone away" in result.text


@pytest.mark.setting("web.fetch.max_response_bytes")
async def test_an_answer_over_the_configured_bytes_is_refused(
    context: ToolContext, daemon: FakeDaemon
) -> None:
    daemon.fetch = configured(max_response_bytes=100)
    async with Wire(always(answer(b"x" * 101))) as wire:
        with pytest.raises(TooLarge):
            await fetch(context, url=wire.url)


async def test_network_rights_are_asked_at_every_hop(
    context: ToolContext, daemon: FakeDaemon
) -> None:
    daemon.fetch = WebFetchSection(allowed_hosts=("127.0.0.0/8",))
    only = limited(context, network=("127.0.0.1",))
    async with Wire(always(answer(b"secret")), host="127.0.0.2") as other:
        moved = answer(b"", "302 Found", location=other.url)
        async with Wire(always(moved)) as wire:
            with pytest.raises(Denied):
                await fetch(only, url=wire.url)
            with pytest.raises(Denied):
                await fetch(only, url=other.url)
            assert "secret" in await fetch(context, url=wire.url)
    assert other.connections == 1


async def test_no_network_right_sends_nothing(context: ToolContext) -> None:
    async with Wire(always(answer())) as wire:
        with pytest.raises(Denied):
            await fetch(limited(context), url=wire.url)
    assert wire.connections == 0
