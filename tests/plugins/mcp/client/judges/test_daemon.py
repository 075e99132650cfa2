"""A whole daemon before the suite's client scenarios, and before servers that ask.

The suite starts a client of its own; here that is a relay, and the daemon the client.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agenthost import ToolOutput
from agenthost.testing.daemons import Daemons, RunningDaemon

from ..servers import owner_of, tools_of, until
from ..test_asking import waiting
from .suite import NODE, Told, judged
from .test_others import EVERYTHING, MCP, free_port, listening, needs_node, transport

pytestmark = [pytest.mark.conformance, needs_node]
DEFAULTS = "elicitation-sep1034-client-defaults"
MAY = "elicitation = true\nsampling = true\n"


@asynccontextmanager
async def suite(
    daemons: Daemons, scenario: str, checks: int, but: str = ""
) -> AsyncIterator[str]:
    """Have the suite judge what is done in the block, and give its server's address.

    Args:
        daemons: They stop at the end: the suite waits for their connections.
        scenario: What is judged.
        checks: So many must pass.
        but: The error of the one more check that does not.
    """
    begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def client(told: Told) -> None:
        begun.set_result(told.url)
        await done.wait()

    judging = asyncio.create_task(judged(client, "--scenario", scenario))
    try:
        await asyncio.wait({begun, judging}, return_when=asyncio.FIRST_COMPLETED)
        assert begun.done(), await judging
        yield begun.result()
    finally:
        await daemons.close()
        done.set()
        text = await judging
    failed = 1 if but else 0
    passed = f"Passed: {checks}/{checks + failed}, {failed} failed, 0 warnings"
    assert passed in text, text
    assert f"Error: {but}\n" in text or not but, text


async def connected(daemons: Daemons, config: str, least: int) -> RunningDaemon:
    daemon = await daemons.start(config=config, environ={"PATH": os.environ["PATH"]})
    await until(lambda: len(tools_of(daemon)) >= least)
    return daemon


async def called(daemon: RunningDaemon, tool: str, **arguments: Any) -> ToolOutput:
    """Call a tool, whose server asks for nothing."""
    name = f"caller{len(daemon.model.requests)}"
    agent = await daemon.agent(name, tools=["mcp_*"], extra=MCP)
    daemon.model.calls(tool, **arguments)
    await agent.ask("go")
    return outcome(daemon)


def outcome(daemon: RunningDaemon) -> ToolOutput:
    (said,) = daemon.model.requests[-1].messages[-1].parts
    assert isinstance(said, ToolOutput)
    return said


async def approved(
    daemon: RunningDaemon, tool: str, values: dict[str, Any]
) -> ToolOutput:
    """Call a tool, and answer as a person what its server asks."""
    agent = await daemon.agent(tool[:40], tools=["mcp_*"], extra=MCP)
    seen = len(daemon.model.requests)
    daemon.model.calls(tool)
    path = f"/api/agents/{agent.id}/message"
    sent = await daemon.http.post(path, json={"message": "go"})
    assert sent.status_code == 202, sent.text
    row = await waiting(daemon)
    keys = {key.rsplit("_", 2)[0]: key for key in row["schema"]["properties"]}
    send = next(key for key in keys.values() if key.startswith("send_"))
    said = {keys[name]: value for name, value in values.items()}
    path = f"/api/approvals/{row['id']}/approve"
    answer = await daemon.http.post(path, json={"values": {send: True, **said}})
    assert answer.status_code == 200, answer.text
    await until(lambda: len(daemon.model.requests) == seen + 2)
    return outcome(daemon)


async def test_a_person_who_only_agrees_sends_the_defaults(daemons: Daemons) -> None:
    # Nobody is waited for in the midst of a call, as the suite would have it: it is
    # broken off, its question dismissed, and made anew with what the person said.
    dismissed = "Expected action 'accept', got 'cancel'"
    async with suite(daemons, DEFAULTS, 5, but=dismissed) as url:
        daemon = await connected(daemons, f"{transport('http', url=url)}{MAY}", 1)
        (tool,) = tools_of(daemon)
        await approved(daemon, tool, {})


async def test_a_stream_that_ends_is_gone_on_with(daemons: Daemons) -> None:
    async with suite(daemons, "sse-retry", 3) as url:
        daemon = await connected(daemons, transport("http", url=url), 1)
        said = await called(daemon, "mcp_j_test_reconnection")
        assert said.text == "Reconnection test completed successfully"


async def test_the_state_of_a_call_comes_back_and_stays_with_it(
    daemons: Daemons,
) -> None:
    async with suite(daemons, "sep-2322-client-request-state", 6) as url:
        daemon = await connected(daemons, f"{transport('http', url=url)}{MAY}", 4)
        for tool in ("echo_state", "no_state"):
            name = f"mcp_j_test_mrtr_{tool}"
            said = await approved(daemon, name, {"confirmed": True})
            assert not said.is_error, said.text
            await called(daemon, "mcp_j_test_mrtr_unrelated")
        await called(daemon, "mcp_j_test_mrtr_no_result_type")


async def test_a_model_sees_a_schema_as_the_server_wrote_it(daemons: Daemons) -> None:
    async with suite(daemons, "json-schema-2020-12-preservation", 9) as url:
        daemon = await connected(daemons, transport("http", url=url), 2)
        await called(daemon, "mcp_j_json_schema_2020_12_tool")
        (shown,) = (
            tool.parameters
            for tool in daemon.model.requests[-1].tools
            if tool.name == "mcp_j_json_schema_2020_12_tool"
        )
        await called(daemon, "mcp_j_json_schema_echo", schema=shown)


async def test_no_address_in_a_schema_is_fetched(
    daemons: Daemons, caplog: pytest.LogCaptureFixture
) -> None:
    async with suite(daemons, "json-schema-ref-no-deref", 1) as url:
        daemon = await connected(daemons, transport("http", url=url), 0)
        # A tool that no call could be checked for is none.
        await until(lambda: "is left out" in caplog.text)
        assert tools_of(daemon) == set()


async def asks(daemon: RunningDaemon) -> None:
    """Have server-everything ask a person and a model in the midst of its calls."""
    assert owner_of(daemon, "j").version == "2025-11-25"
    agent = await daemon.agent("asker", tools=["mcp_*"], extra=MCP)
    daemon.model.calls("mcp_j_trigger_sampling_request", prompt="Say a word")
    daemon.model.says("a word")
    await agent.ask("go")
    said = outcome(daemon)
    assert '"text": "a word"' in said.text
    assert "Say a word" in daemon.model.requests[1].messages[0].text
    tool = "mcp_j_trigger_elicitation_request"
    said = await approved(daemon, tool, {"name": "Ada", "check": True})
    told = json.loads(said.text.partition("Raw result: ")[2])
    assert told["action"] == "accept"
    assert told["content"]["name"] == "Ada"
    assert told["content"]["integer"] == 42


async def test_server_everything_asks_over_stdio(daemons: Daemons) -> None:
    config = transport("stdio", command=str(NODE), args=[str(EVERYTHING), "stdio"])
    await asks(await connected(daemons, f"{config}{MAY}", 6))


@pytest.mark.parametrize(
    ("kind", "served", "path"),
    [("http", "streamableHttp", "/mcp"), ("sse", "sse", "/sse")],
)
async def test_server_everything_asks_over_http(
    daemons: Daemons, kind: str, served: str, path: str
) -> None:
    port = free_port()
    async with listening(NODE, EVERYTHING, served, port=port):
        url = f"http://127.0.0.1:{port}{path}"
        config = f"{transport(kind, url=url)}{MAY}"
        await asks(await connected(daemons, config, 6))
