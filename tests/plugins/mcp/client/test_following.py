"""A configuration that is read anew: servers come, go, change, and hear of roots."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from agenthost import ToolOutput
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_mcp.client.following import same_but_roots
from agenthost_mcp.client.settings import McpServer, McpServers

from .fake_http import FakeHttp
from .servers import Fake, owner_of, shown, source_of, start, tools_of, until
from .test_adding import PATH, added
from .test_source import asked

MCP = 'mcp_servers = ["*"]'
CHANGED = "notifications/roots/list_changed"


async def reload(daemon: RunningDaemon, *servers: str) -> list[str]:
    """Have other servers be configured; give the keys that took effect."""
    (daemon.daemon.home / "config.toml").write_text(
        'listen_addr = "127.0.0.1:0"\n' + "\n".join(servers)
    )
    answer = await daemon.http.post("/api/config/reload")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["in_effect"])


def methods(fake: Fake) -> list[str]:
    return [each["method"] for each in fake.heard() if "method" in each]


def names(output: ToolOutput) -> list[str]:
    return [each["name"] for each in json.loads(output.text)["roots"]]


async def test_a_server_hears_that_its_roots_are_others(
    daemons: Daemons, tmp_path: Path
) -> None:
    fake = Fake(tmp_path, "s", "where")
    daemon = await start(daemons, fake, roots=["/srv/a"])
    agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
    assert names(await asked(agent, "mcp_s_where")) == ["a"]
    assert await reload(daemon, fake.config(roots=["/srv/b"])) == ["mcp_servers"]
    await until(lambda: CHANGED in methods(fake))
    assert names(await asked(agent, "mcp_s_where")) == ["b"]
    assert methods(fake).count("initialize") == 1
    (first,) = [m for m in fake.heard() if m.get("method") == "initialize"]
    assert first["params"]["capabilities"] == {"roots": {"listChanged": True}}
    # The same once more is no news.
    await reload(daemon, fake.config(roots=["/srv/b"], timeout_secs=30))
    (said,) = daemon.daemon.settings(McpServers).root
    await until(lambda: owner_of(daemon, "s").server is said)
    assert methods(fake).count(CHANGED) == 1
    await reload(daemon, fake.config(roots=["/srv/c"]))
    await until(lambda: methods(fake).count(CHANGED) == 2)


async def test_a_modern_server_asks_anew_and_is_told_nothing(
    daemons: Daemons, tmp_path: Path
) -> None:
    fake = Fake(tmp_path, "s", "where", modern=True)
    daemon = await start(daemons, fake, roots=["/srv/a"])
    agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
    await reload(daemon, fake.config(roots=["/srv/b"]))
    await until(lambda: owner_of(daemon, "s").server.roots == ("/srv/b",))
    output = await asked(agent, "mcp_s_where")
    assert names(output) == ["b"]
    assert CHANGED not in methods(fake)
    assert methods(fake).count("server/discover") == 1


@pytest.mark.parametrize("before", [[], ["/srv/a"]])
async def test_whether_there_are_roots_is_said_in_a_connection_of_its_own(
    daemons: Daemons, tmp_path: Path, before: list[str]
) -> None:
    fake = Fake(tmp_path, "s", "where")
    daemon = await start(daemons, fake, roots=before)
    await reload(daemon, fake.config(roots=[] if before else ["/srv/b"]))
    await until(lambda: methods(fake).count("initialize") == 2)
    last = [m for m in fake.heard() if m.get("method") == "initialize"][-1]
    assert bool(last["params"]["capabilities"]) != bool(before)


async def test_servers_come_and_go_and_the_others_stay(
    daemons: Daemons, tmp_path: Path
) -> None:
    stays, goes, comes = (Fake(tmp_path, name, "echo") for name in ("a", "b", "c"))
    daemon = await start(daemons, stays, goes)
    agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
    await reload(daemon, comes.config(), stays.config())
    await until(lambda: tools_of(daemon) == {"mcp_a_echo", "mcp_c_echo"})
    assert (await asked(agent, "mcp_c_echo", n=1)).text == '{"n": 1}'
    assert "was removed" in (await asked(agent, "mcp_b_echo")).text
    assert methods(stays).count("initialize") == 1
    assert (await daemon.http.get(PATH)).json()["total"] == 2


async def test_another_command_waits_for_a_person_here_too(
    daemons: Daemons, tmp_path: Path
) -> None:
    fake, other = Fake(tmp_path, "s", "echo"), Fake(tmp_path, "t", "echo")
    daemon = await start(daemons, fake)
    other.name = "s"
    await reload(daemon, other.config())
    owners = source_of(daemon).owners
    await until(lambda: "s" in owners and owners["s"].state == "quarantined")
    assert not other.told.with_suffix(".log").exists()
    await until(lambda: tools_of(daemon) == set())


def connected(daemon: RunningDaemon, *, added: bool) -> bool:
    """Tell whether the server ``s`` is there and connected, and whose it is."""
    owner = source_of(daemon).owners.get("s")
    return owner is not None and (owner.added, owner.state) == (added, "connected")


async def test_one_that_was_added_gives_way_and_comes_back(daemons: Daemons) -> None:
    fake = FakeHttp("modern")
    async with fake.running():
        daemon = await daemons.start()
        assert (await added(daemon, name="s", url=fake.url))[0] == 201
        await until(lambda: tools_of(daemon) == {"mcp_s_echo"})
        config = f'transport = {{ type = "http", url = "{fake.url}" }}\n'
        await reload(daemon, f'[[mcp_servers]]\nname = "s"\n{config}')
        await until(lambda: connected(daemon, added=False))
        tasks = [each.get_name() for each in asyncio.all_tasks()]
        assert tasks.count("mcp server s") == 1
        await reload(daemon)
        await until(lambda: connected(daemon, added=True))
        assert (await shown(daemon, "s"))["added"] is True


async def test_one_that_is_removed_and_added_anew_is_called(daemons: Daemons) -> None:
    fake = FakeHttp("modern")
    async with fake.running():
        daemon = await daemons.start()
        agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
        for _ in range(2):
            assert (await added(daemon, name="s", url=fake.url))[0] == 201
            await until(lambda: tools_of(daemon) == {"mcp_s_echo"})
            said = await asked(agent, "mcp_s_echo", city="Rom")
            assert said.text == '{"city": "Rom"}'
            await daemon.http.delete(f"{PATH}/s")
            await until(lambda: tools_of(daemon) == set())


async def test_what_cannot_be_done_is_tried_again(
    daemons: Daemons, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Fake(tmp_path, "s", "echo")
    daemon = await daemons.start()
    source = source_of(daemon)
    applied = source.apply
    tries: list[Iterable[McpServer]] = []

    async def fail_once(wanted: Any) -> None:
        tries.append(wanted)
        if len(tries) == 1:
            raise RuntimeError("not now")
        await applied(wanted)

    monkeypatch.setattr(source, "apply", fail_once)
    await reload(daemon, fake.config())
    await until(lambda: tools_of(daemon) == {"mcp_s_echo"})
    assert len(tries) == 2


def server(**keys: Any) -> McpServer:
    transport = {"type": "http", "url": "https://a.example"}
    return McpServer.model_validate({"name": "s", "transport": transport, **keys})


ONE: dict[str, Any] = {"roots": ["/srv"], "headers": ["X-Token: of-this-test"]}
LOGIN = {"client_id": "c", "client_secret": "one"}


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (ONE, True),
        ({**ONE, "roots": ["/elsewhere"]}, True),
        ({**ONE, "roots": []}, False),
        ({**ONE, "headers": ["X-Token: of-another"]}, False),
        ({**ONE, "timeout_secs": 3}, False),
        ({**ONE, "sampling": True}, False),
        ({**ONE, "transport": {"type": "sse", "url": "https://a.example"}}, False),
        ({**ONE, "oauth": LOGIN}, False),
    ],
)
def test_a_connection_serves_what_differs_in_roots_alone(
    other: dict[str, Any], same: bool
) -> None:
    assert same_but_roots(server(**ONE), server(**other)) is same


def test_another_secret_is_another_login() -> None:
    one = server(oauth=LOGIN)
    assert same_but_roots(one, server(oauth=LOGIN))
    assert not same_but_roots(one, server(oauth={**LOGIN, "client_secret": "two"}))
