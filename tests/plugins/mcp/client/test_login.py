"""Logins at servers that want a token: how one comes about, and how none does."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from agenthost.testing import Recorded
from agenthost.testing.daemons import Daemons
from agenthost_mcp.client.commands import mcp_server
from agenthost_mcp.client.events import (
    McpLoginEvent,
    McpServerLoggedIn,
    McpServerLoggedOut,
)
from agenthost_mcp.client.oauth.discovery import (
    Challenge,
    challenge_of,
)
from agenthost_mcp.client.oauth.grant import kept
from agenthost_mcp.server.stdio import mcp
from agenthost_security import health_redaction
from click.testing import CliRunner

from ..authority import Authority
from .guarded import WANTED, Guarded, answer_of, begin, bring, logged_in, outside
from .servers import owner_of, tools_of, until
from .test_source import asked

MCP = 'mcp_servers = ["*"]'


KEY = "a-key-of-this-test-0123456"


async def test_a_person_logs_in_and_agents_get_the_tools(
    daemons: Daemons, server: Guarded, authority: Authority
) -> None:
    daemon = await outside(daemons, server, environ={"AGENTHOST_API_KEY": KEY})
    daemon.http.headers["authorization"] = f"Bearer {KEY}"
    trail = Recorded(daemon.daemon.events, McpLoginEvent)
    # Nobody is awaited: there is no such path.
    assert (await bring(daemon, {"state": "x", "code": "y"})).status_code == 401
    query = await answer_of(daemon)
    back = await bring(daemon, query)
    assert back.status_code == 200, back.text
    assert back.headers["content-type"].startswith("text/plain")
    assert back.headers["cache-control"] == "no-store"
    await until(lambda: tools_of(daemon) == {"mcp_t_echo"})
    agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
    assert "over there" in (await asked(agent, "mcp_t_echo", text="over there")).text

    form = authority.forms[0]
    assert form["resource"] == server.url
    assert form["grant_type"] == "authorization_code"
    (client,) = authority.clients.values()
    assert client["redirect_uris"] == [f"{daemon.url}/oauth/callback"]
    assert client["token_endpoint_auth_method"] == "none"
    (told,) = trail.kept
    assert isinstance(told, McpServerLoggedIn)
    assert (told.subject, told.issuer, told.by) == (
        "t",
        authority.issuer,
        "api_key:api_key",
    )
    token = server.shown[-1]
    said = (await daemon.http.get("/api/mcp/servers")).text
    home = daemon.daemon.home
    files = [f.read_bytes() for f in home.rglob("*") if f.is_file()]
    assert token not in said
    assert not any(token.encode() in each for each in files)
    # What came once comes no more.
    assert (await bring(daemon, query)).status_code == 401

    gone = await daemon.http.delete("/api/mcp/servers/t/login")
    assert gone.status_code == 200, gone.text
    await until(lambda: WANTED in owner_of(daemon, "t").reason)
    assert server.shown[-1] == ""
    assert [type(each) for each in trail.kept] == [
        McpServerLoggedIn,
        McpServerLoggedOut,
    ]
    assert "mcp/t" not in daemon.daemon.vault.names()


async def test_a_login_that_cannot_be_told_of_is_none(
    daemons: Daemons, server: Guarded
) -> None:
    daemon = await outside(daemons, server)
    trail = Recorded(daemon.daemon.events, McpLoginEvent)
    trail.refuses = (McpServerLoggedIn,)
    back = await bring(daemon, await answer_of(daemon))
    assert back.status_code == 503
    assert "mcp/t" not in daemon.daemon.vault.names()
    trail.refuses = ()
    await logged_in(daemon)


async def test_a_login_outlives_the_daemon(
    daemons: Daemons, server: Guarded, authority: Authority
) -> None:
    daemon = await outside(daemons, server)
    await logged_in(daemon)
    await daemon.daemon.stop()
    again = await daemons.start(home=daemon.daemon.home)
    await until(lambda: owner_of(again, "t").state == "connected")
    assert len(authority.forms) == 1


async def test_a_server_that_is_removed_leaves_no_token(
    daemons: Daemons, server: Guarded
) -> None:
    daemon = await daemons.start()
    body = {"name": "t", "url": server.url}
    added = await daemon.http.post("/api/mcp/servers", json=body)
    assert added.status_code == 201, added.text
    await until(lambda: WANTED in owner_of(daemon, "t").reason)
    await logged_in(daemon)
    assert "mcp/t" in daemon.daemon.vault.names()
    gone = await daemon.http.delete("/api/mcp/servers/t")
    assert gone.status_code == 200, gone.text
    assert "mcp/t" not in daemon.daemon.vault.names()


async def test_nobody_without_the_right_logs_in(
    daemons: Daemons, server: Guarded
) -> None:
    daemon = await outside(daemons, server, environ={"AGENTHOST_API_KEY": KEY})
    assert (await begin(daemon)).status_code == 401
    body = {"name": "o", "scopes": ["operate"]}
    key = {"authorization": f"Bearer {KEY}"}
    made = await daemon.http.post("/api/keys", json=body, headers=key)
    daemon.http.headers["authorization"] = f"Bearer {made.json()['key']}"
    assert (await begin(daemon)).status_code == 403
    gone = await daemon.http.delete("/api/mcp/servers/t/login")
    assert gone.status_code == 403


async def test_a_token_is_renewed_before_it_ends_and_once_for_all(
    daemons: Daemons, server: Guarded, authority: Authority
) -> None:
    authority.gives = {"expires_in": 5}
    daemon = await outside(daemons, server)
    await logged_in(daemon)
    authority.gives = {}
    door = owner_of(daemon, "t").door
    assert door is not None
    before = len(authority.forms)
    tokens = await asyncio.gather(*(door._token() for _ in range(5)))
    assert len(set(tokens)) == 1
    renewed = authority.forms[before:] or authority.forms[1:]
    assert {form["grant_type"] for form in renewed} == {"refresh_token"}
    assert {form["resource"] for form in renewed} == {server.url}
    # Each of the issuer's refresh tokens is good for one use.
    used = [form["refresh_token"] for form in authority.forms[1:]]
    assert len(used) == len(set(used))
    count = len(authority.forms)
    assert await door._token() == tokens[0]
    assert len(authority.forms) == count


async def test_a_token_is_kept_whose_caller_has_left_meanwhile(
    daemons: Daemons, server: Guarded, authority: Authority
) -> None:
    daemon = await outside(daemons, server)
    await logged_in(daemon)
    door = owner_of(daemon, "t").door
    assert door is not None
    before = door.grant
    assert before is not None
    authority.opens.clear()
    leaving = asyncio.create_task(door._renewed(before.access))
    await until(lambda: len(authority.forms) == 2)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    authority.opens.set()
    await door.stop()
    assert door.grant is not None
    assert door.grant.refresh not in {before.refresh, ""}


async def test_a_token_that_is_taken_no_more_is_renewed(
    daemons: Daemons, server: Guarded, authority: Authority
) -> None:
    daemon = await outside(daemons, server)
    await logged_in(daemon)
    agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
    old = server.shown[-1]
    server.revoked.add(old)
    # Its refusal has no end: nobody may wait for that.
    server.endless = True
    assert "again" in (await asked(agent, "mcp_t_echo", text="again")).text
    assert authority.forms[-1]["grant_type"] == "refresh_token"
    assert server.shown[-1] not in {old, ""}
    grant = kept(daemon.daemon.vault, owner_of(daemon, "t").server)
    assert grant is not None
    assert grant.access == server.shown[-1]


async def test_tokens_that_are_worth_nothing_are_shown_no_more(
    daemons: Daemons, server: Guarded, authority: Authority
) -> None:
    daemon = await outside(daemons, server)
    await logged_in(daemon)
    authority.refuses = "invalid_grant"
    server.revoked |= set(server.shown)
    owner_of(daemon, "t").reconnect()
    await until(lambda: WANTED in owner_of(daemon, "t").reason)
    count = len(authority.forms)
    owner_of(daemon, "t").reconnect()
    await until(lambda: server.shown[-1] == "")
    assert len(authority.forms) == count
    # A new login needs no new registration.
    authority.refuses = ""
    await logged_in(daemon)
    assert authority.asked["/register"] == 1


async def test_more_rights_need_a_login_and_keep_those_of_before(
    daemons: Daemons, server: Guarded, authority: Authority
) -> None:
    daemon = await outside(daemons, server)
    await logged_in(daemon)
    server.wants = {"mcp:tools"}
    agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
    said = await asked(agent, "mcp_t_echo", text="a")
    assert "it wants a login with mcp:tools: agenthost mcp login t" in said.text
    # Nobody is asked again and again, and nothing is renewed for it.
    assert len(authority.forms) == 1
    started = (await begin(daemon)).json()
    assert started["scope"] == "mcp:use mcp:tools"


@pytest.mark.setting(
    "mcp_servers[].oauth.client_id",
    "mcp_servers[].oauth.client_secret",
    "mcp_servers[].oauth.scopes",
    "mcp_servers[].oauth.redirect_uri",
)
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_who_is_known_already_registers_not(
    daemons: Daemons, server: Guarded, authority: Authority, method: str
) -> None:
    redirect = "https://agents.example.com/oauth/callback"
    authority.says = {"token_endpoint_auth_methods_supported": [method]}
    row = {"redirect_uris": [redirect], "client_secret": "s:cret/ +ä"}
    authority.clients = {"us": row}
    oauth = {
        "client_id": "us",
        "client_secret": row["client_secret"],
        "scopes": ["mcp:use", "more"],
        "redirect_uri": redirect,
    }
    daemon = await outside(daemons, server, oauth)
    started = (await begin(daemon)).json()
    sent = dict(parse_qsl(urlsplit(started["url"]).query))
    assert (sent["client_id"], sent["scope"]) == ("us", "mcp:use more")
    assert sent["redirect_uri"] == started["redirect_uri"] == redirect
    assert "cret" not in str(started)
    await logged_in(daemon)
    assert authority.asked["/register"] == 0
    assert authority.forms[-1]["client_secret"] == row["client_secret"]


async def test_a_server_with_a_token_of_its_own_has_no_login(
    daemons: Daemons, server: Guarded, authority: Authority
) -> None:
    token = authority.token(server.url)
    text = (
        '[[mcp_servers]]\nname = "t"\n'
        f'headers = ["Authorization: Bearer {token}"]\n'
        f'transport = {{ type = "http", url = "{server.url}" }}\n'
    )
    daemon = await daemons.start(config=text)
    await until(lambda: owner_of(daemon, "t").state == "connected")
    refused = await begin(daemon)
    assert refused.status_code == 409
    assert "without Authorization in its headers" in refused.json()["error"]


@pytest.mark.parametrize(
    ("header", "read"),
    [
        ("Bearer", Challenge()),
        ('Bearer scope="a b"', Challenge(scope="a b")),
        ("Bearer error=invalid_token, scope=a", Challenge("", "a", "invalid_token")),
        (
            'Basic realm="x, y", bearer resource_metadata="https://a.example/m"',
            Challenge("https://a.example/m"),
        ),
        ('Bearer scope="a\x1b[2J"', Challenge()),
        ('Bearer scope="' + "a" * 3000 + '"', Challenge()),
        ('Basic realm="Bearer"', Challenge()),
    ],
)
def test_a_challenge_is_read_however_it_is_written(
    header: str, read: Challenge
) -> None:
    assert challenge_of([header]) == read


class Api:
    """The daemon, as commands see it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def connect(self) -> Api:
        return self

    def post(self, path: str, body: object) -> Any:
        assert body == {}
        self.asked.append(("POST", path))
        return {
            "url": "https://i.example/authorize?x=1",
            "issuer": "https://i.example",
            "redirect_uri": "http://127.0.0.1:4200/oauth/callback",
            "scope": "",
        }

    def delete(self, path: str) -> None:
        self.asked.append(("DELETE", path))


@pytest.mark.parametrize("group", [mcp, mcp_server])
def test_the_command_prints_what_to_open(group: Any) -> None:
    api = Api()
    said = CliRunner().invoke(group, ["login", "a/b"], obj=api)
    assert said.exit_code == 0, said.output
    assert "\nhttps://i.example/authorize?x=1\n" in said.output
    gone = CliRunner().invoke(group, ["logout", "a/b"], obj=api)
    assert gone.exit_code == 0, gone.output
    path = "/api/mcp/servers/a%2Fb/login"
    assert api.asked == [("POST", path), ("DELETE", path)]


async def test_the_protections_know_of_the_callback(
    daemons: Daemons, server: Guarded
) -> None:
    daemon = await outside(daemons, server)
    await answer_of(daemon)
    await asyncio.to_thread(health_redaction._prove_routes, daemon.daemon)
