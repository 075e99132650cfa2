"""Servers over HTTP are spoken to as each of their revisions wants it."""

from __future__ import annotations

from functools import partial

import pytest
from agenthost import ToolOutput
from agenthost.testing.daemons import Daemons

from .fake_http import META, FakeHttp
from .servers import owner_of, tools_of, until
from .test_source import asked

MCP = 'mcp_servers = ["*"]'
SECRET = "a-token-of-this-test"


def config(name: str, kind: str, url: str) -> str:
    return (
        f'[[mcp_servers]]\nname = "{name}"\nheaders = ["X-Token: {SECRET}"]\n'
        f'transport = {{ type = "{kind}", url = "{url}" }}\n'
    )


@pytest.mark.setting("mcp_servers[].headers", "mcp_servers[].transport.url")
async def test_each_revision_is_spoken_to_in_its_own_way(daemons: Daemons) -> None:
    modern, older, first = (FakeHttp(kind) for kind in ("modern", "older", "sse"))
    async with modern.running(), older.running(), first.running():
        text = config("modern", "http", modern.url) + config("older", "http", older.url)
        daemon = await daemons.start(config=text + config("first", "sse", first.url))
        await until(lambda: len(tools_of(daemon)) == 3)
        agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
        for name in ("modern", "older", "first"):
            said = await asked(agent, f"mcp_{name}_echo", city="Pörto")
            assert said.text == '{"city": "P\\u00f6rto"}'

        kinds = [each.heard[-1][2].get("method") for each in (modern, older, first)]
        assert kinds == ["tools/call"] * 3
        _, headers, message = modern.heard[-1]
        assert headers["mcp-name"] == "echo"
        assert headers["mcp-protocol-version"] == message["params"]["_meta"][META]
        assert headers["mcp-param-city"] == "=?base64?UMO2cnRv?="
        assert not any(m.get("method") == "initialize" for *_, m in modern.heard)
        _, headers, message = older.heard[-1]
        assert headers["mcp-session-id"] == "s1"
        assert headers["mcp-protocol-version"] == "2025-06-18"
        assert META not in message["params"]["_meta"]
        for each in (modern, older, first):
            assert all(h["x-token"] == SECRET for _, h, _ in each.heard)

        # News of each comes over the stream that it has.
        for each in (modern, older, first):
            each.tools = ["echo", "new"]
            each.tell("notifications/tools/list_changed")
        for name in ("modern", "older", "first"):
            owner = owner_of(daemon, name)
            await until(partial(getattr, owner, "pending"))

        answer = await daemon.http.get("/api/mcp/servers")
        assert SECRET not in answer.text
        await daemon.daemon.stop()
        assert [m for m, *_ in older.heard if m == "DELETE"] == ["DELETE"]


async def resumed(
    daemons: Daemons, *cuts: str, breaks: bool = False
) -> tuple[FakeHttp, ToolOutput]:
    """Have a call's stream end early, and give what the server and the model heard."""
    async with FakeHttp("older").running() as server:
        daemon = await daemons.start(config=config("s", "http", server.url))
        await until(lambda: len(tools_of(daemon)) == 1)
        agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
        server.cuts, server.breaks = list(cuts), breaks
        return server, await asked(agent, "mcp_s_echo", city="Rom")


def asked_for(server: FakeHttp) -> list[str]:
    return [h["last-event-id"] for _, h, _ in server.heard if "last-event-id" in h]


@pytest.mark.parametrize("breaks", [False, True])
async def test_a_stream_that_ended_is_read_on_and_the_call_is_made_once(
    daemons: Daemons, breaks: bool
) -> None:
    parts = ("id: e1\nretry: 1\ndata:", "id: e2\ndata:", "id: e3")
    server, said = await resumed(daemons, *parts, breaks=breaks)
    assert said.text == '{"city": "Rom"}'
    assert asked_for(server) == ["e1", "e2", "e3"]
    methods = [m.get("method") for *_, m in server.heard]
    assert methods.count("tools/call") == 1


@pytest.mark.parametrize("part", ["data:", "id: \ndata:", "id: \u00fc\ndata:"])
async def test_a_stream_that_cannot_be_read_on_may_have_run(
    daemons: Daemons, part: str
) -> None:
    server, said = await resumed(daemons, part)
    assert said.is_error
    assert "ended without an answer" in said.text
    assert asked_for(server) == []


async def test_the_first_kind_hears_that_a_call_was_given_up(daemons: Daemons) -> None:
    async with FakeHttp("sse").running() as server:
        text = f"{config('s', 'sse', server.url)}timeout_secs = 0.3\n"
        daemon = await daemons.start(config=text)
        await until(lambda: len(tools_of(daemon)) == 1)
        agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
        server.silent = True
        said = await asked(agent, "mcp_s_echo", city="Rom")
        assert "no sign of life" in said.text
        (call,) = (m for *_, m in server.heard if m.get("method") == "tools/call")
        await until(lambda: given_up(server))
        assert given_up(server) == [call["id"]]


async def test_the_first_kind_sends_no_request_to_another_server(
    daemons: Daemons,
) -> None:
    other, server = FakeHttp("sse"), FakeHttp("sse")
    async with other.running(), server.running():
        server.endpoint = other.url
        daemon = await daemons.start(config=config("s", "sse", server.url))
        owner = owner_of(daemon, "s")
        await until(lambda: owner.state == "disconnected")
        assert owner.reason == "it names an address of another server for requests"
        assert other.heard == []


async def test_an_answer_without_end_is_not_read(daemons: Daemons) -> None:
    async with FakeHttp("older").running() as server:
        server.padding = 8 * 1024 * 1024
        daemon = await daemons.start(config=config("s", "http", server.url))
        owner = owner_of(daemon, "s")
        await until(lambda: owner.state == "disconnected")
        assert "over 8 MiB" in owner.reason


async def test_a_session_that_has_ended_is_begun_anew(daemons: Daemons) -> None:
    async with FakeHttp("older").running() as server:
        daemon = await daemons.start(config=config("s", "http", server.url))
        await until(lambda: len(tools_of(daemon)) == 1)
        agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
        server.forgetful = True
        assert (await asked(agent, "mcp_s_echo", city="Rom")).is_error
        server.forgetful = False
        await until(lambda: begun(server) == 2)
        await until(lambda: len(tools_of(daemon)) == 1)
        assert not (await asked(agent, "mcp_s_echo", city="Rom")).is_error


def begun(server: FakeHttp) -> int:
    """How many sessions have begun."""
    return [m.get("method") for *_, m in server.heard].count("initialize")


def given_up(server: FakeHttp) -> list[int]:
    """The calls that the server heard nobody waits for any more."""
    method = "notifications/cancelled"
    told = (m for *_, m in server.heard if m.get("method") == method)
    return [each["params"]["requestId"] for each in told]
