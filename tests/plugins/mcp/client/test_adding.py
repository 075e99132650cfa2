"""Servers are added and removed while the daemon runs, and are there after a start."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost import SchemaSpec, ToolOutput
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_mcp.client import settings
from agenthost_mcp.client.commands import mcp_server
from agenthost_mcp.client.schema import SCHEMA
from click.testing import CliRunner
from sqlalchemy import MetaData

from tests.plugins.storage.sqlite.upgrades import shape

from .fake_http import FakeHttp
from .servers import owner_of, shown, tools_of, until

PATH = "/api/mcp/servers"
MCP = 'mcp_servers = ["*"]'


async def added(daemon: RunningDaemon, **body: Any) -> Any:
    answer = await daemon.http.post(PATH, json=body)
    return answer.status_code, answer.json()


async def test_a_server_is_added_used_kept_and_removed(daemons: Daemons) -> None:
    fake = FakeHttp("modern")
    async with fake.running():
        daemon = await daemons.start()
        assert (await daemon.http.get(PATH)).json() == {"servers": [], "total": 0}
        status, said = await added(daemon, name="s", url=fake.url, timeout_secs=5)
        assert (status, said["name"], said["added"]) == (201, "s", True)
        await until(lambda: tools_of(daemon) == {"mcp_s_echo"})
        agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
        daemon.model.calls("mcp_s_echo", a=1)
        await agent.ask("go")
        (output,) = daemon.model.requests[-1].messages[-1].parts
        assert isinstance(output, ToolOutput)
        assert not output.is_error
        assert (await daemon.http.get("/api/config")).json()["mcp_servers"] == 1
        home = daemon.daemon.home
        await daemon.daemon.stop()
        again = await daemons.start(home=home)
        await until(lambda: tools_of(again) == {"mcp_s_echo"})
        kept = await shown(again, "s")
        assert (kept["url"], kept["added"]) == (fake.url, True)
        gone = await again.http.delete(f"{PATH}/s")
        assert gone.json() == {"status": "removed", "name": "s"}
        await until(lambda: tools_of(again) == set())
        assert (await again.http.get(f"{PATH}/s")).status_code == 404
        audit = (await again.http.get("/api/audit/recent?n=100")).text
        assert "mcp_server_added" in audit
        assert "mcp_server_removed" in audit
        await again.daemon.stop()
        last = await daemons.start(home=home)
        assert (await last.http.get(PATH)).json()["total"] == 0


async def test_what_cannot_be_added_is_told(daemons: Daemons) -> None:
    fake = FakeHttp("modern")
    async with fake.running():
        transport = f'{{ type = "http", url = "{fake.url}" }}'
        config = f'[[mcp_servers]]\nname = "fixed"\ntransport = {transport}\n'
        daemon = await daemons.start(config=config)
        await until(lambda: tools_of(daemon) == {"mcp_fixed_echo"})
        assert (await added(daemon, name="fixed", url=fake.url))[0] == 409
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"name": "a b", "url": fake.url}, "name"),
            ({"name": "x", "url": "file:///etc/passwd"}, "url"),
            ({"name": "x", "url": fake.url, "type": "stdio"}, "type"),
            ({"name": "x", "url": fake.url, "command": "sh"}, "command"),
            ({"name": "x", "url": fake.url, "headers": ["A: b"]}, "headers"),
            ({"name": "x"}, "url"),
        ]
        for body, field in wrong:
            status, said = await added(daemon, **body)
            assert status == 400, said
            assert field in str(said)
        refused = await daemon.http.delete(f"{PATH}/fixed")
        assert (refused.status_code, "config.toml" in refused.text) == (409, True)
        assert (await daemon.http.delete(f"{PATH}/nobody")).status_code == 404
        assert (await daemon.http.get(PATH)).json()["total"] == 1


async def test_there_is_an_end_of_them(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "MOST_SERVERS", 1)
    daemon = await daemons.start()
    address = "http://127.0.0.1:9/mcp"
    assert (await added(daemon, name="one", url=address))[0] == 201
    status, said = await added(daemon, name="two", url=address)
    assert (status, "remove one first" in str(said)) == (409, True)
    await until(lambda: owner_of(daemon, "one").state == "disconnected")


class Api:
    """The daemon, as commands see it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def connect(self) -> Api:
        return self

    def post(self, path: str, body: object) -> Any:
        self.asked.append((path, body))

    def delete(self, path: str) -> None:
        self.asked.append(path)


def test_the_commands_add_and_remove() -> None:
    api = Api()
    line = ["add", "t", "https://mcp.example.com/mcp", "--sse", "--sampling"]
    said = CliRunner().invoke(mcp_server, line, obj=api)
    assert said.exit_code == 0, said.output
    gone = CliRunner().invoke(mcp_server, ["remove", "a/b"], obj=api)
    assert gone.exit_code == 0, gone.output
    body = {"name": "t", "url": "https://mcp.example.com/mcp", "type": "sse"}
    may = {"elicitation": False, "sampling": True}
    assert api.asked == [(PATH, {**body, **may}), f"{PATH}/a%2Fb"]


async def test_the_configuration_counts_where_both_have_a_name(
    daemons: Daemons,
) -> None:
    ours, theirs = FakeHttp("modern"), FakeHttp("modern")
    async with ours.running(), theirs.running():
        daemon = await daemons.start()
        assert (await added(daemon, name="s", url=theirs.url))[0] == 201
        await until(lambda: tools_of(daemon) == {"mcp_s_echo"})
        home = daemon.daemon.home
        await daemon.daemon.stop()
        transport = f'{{ type = "http", url = "{ours.url}" }}'
        config = f'[[mcp_servers]]\nname = "s"\ntransport = {transport}\n'
        again = await daemons.start(config=config, home=home)
        kept = await shown(again, "s")
        assert (kept["url"], kept["added"]) == (ours.url, False)
        assert any("was added as well" in each for each in again.daemon.warnings)
        # Another address by the same name: a person must agree to it.
        await until(lambda: owner_of(again, "s").state == "quarantined")


async def test_only_an_administrator_adds_and_removes(daemons: Daemons) -> None:
    daemon = await daemons.start(config='api_key = "canary-of-the-owner-0123456789"\n')
    owner = {"authorization": "Bearer canary-of-the-owner-0123456789"}
    made = await daemon.http.post(
        "/api/keys", json={"name": "one", "scopes": ["operate"]}, headers=owner
    )
    assert made.status_code == 201, made.text
    lesser = {"authorization": f"Bearer {made.json()['key']}"}
    body = {"name": "s", "url": "http://127.0.0.1:9/mcp"}
    refused = await daemon.http.post(PATH, json=body, headers=lesser)
    assert refused.status_code == 403
    assert (await daemon.http.delete(f"{PATH}/s", headers=lesser)).status_code == 403
    assert (await daemon.http.post(PATH, json=body)).status_code == 401


def test_an_earlier_home_gets_the_table() -> None:
    earlier = MetaData()
    for name, table in SCHEMA.metadata.tables.items():
        if name != "mcp_servers":
            table.to_metadata(earlier)
    assert shape(earlier, SCHEMA) == shape(SCHEMA.metadata)
    assert isinstance(SCHEMA, SchemaSpec)


PROGRAM = '{"name": "x", "transport": {"type": "stdio", "command": "true"}}'


@pytest.mark.parametrize("definition", ["{}", "no JSON", '{"name": "x"}', PROGRAM])
async def test_a_row_that_is_no_address_stops_no_start_and_runs_nothing(
    daemons: Daemons, definition: str
) -> None:
    daemon = await daemons.start()
    home = daemon.daemon.home

    def put(connection: Any) -> None:
        row = ("x", definition, 1.0, "o", "[]")
        sql = "INSERT INTO mcp_servers VALUES (?, ?, ?, ?, ?)"
        connection.exec_driver_sql(sql, row)

    await daemon.daemon.store.write(put)
    await daemon.daemon.stop()
    again = await daemons.start(home=home)
    assert (await again.http.get(PATH)).json()["total"] == 0
