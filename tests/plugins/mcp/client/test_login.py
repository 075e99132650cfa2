"""Logins at servers that want a token: how one comes about, and how none does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from agenthost import Secret
from agenthost.testing import Recorded
from agenthost.testing.daemons import Daemons
from agenthost_mcp.client.commands import mcp_server
from agenthost_mcp.client.events import (
    McpLoginEvent,
    McpServerLoggedIn,
    McpServerLoggedOut,
)
from agenthost_mcp.client.oauth.discovery import Challenge, challenge_of, covers
from agenthost_mcp.client.oauth.grant import kept
from agenthost_mcp.client.settings import McpServer
from agenthost_mcp.server.stdio import mcp
from click.testing import CliRunner
from pydantic import ValidationError

from ..authority import Authority
from .guarded import WANTED, Guarded, answer_of, begin, bring, logged_in, outside
from .servers import owner_of, tools_of, until
from .test_source import asked

MCP = 'mcp_servers = ["*"]'
KEY = "a-key-of-this-test-0123456"


@pytest.fixture
async def authority() -> AsyncIterator[Authority]:
    async with Authority().running() as running:
        yield running


@pytest.fixture
async def server(authority: Authority) -> AsyncIterator[Guarded]:
    async with Guarded(authority).running() as running:
        authority.resources = {running.url}
        yield running


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


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"state": "another"}, 400, "no login waits for this"),
        ({"state": ""}, 400, "no login waits for this"),
        ({"iss": "https://evil.example"}, 403, "of another issuer"),
        ({"iss": None}, 403, "does not say that it is of"),
        ({"code": None, "error": "access_denied"}, 403, "refuses: 'access_denied'"),
        ({"code": None, "error": "<b>\x1b[2J"}, 403, "<b>\\x1b[2J"),
        ({"code": None}, 400, "code: is missing"),
        ({"code": "another"}, 403, "refuses: invalid_grant"),
    ],
)
async def test_what_a_browser_brings_must_be_the_answer_to_this_login(
    daemons: Daemons,
    server: Guarded,
    authority: Authority,
    *,
    change: dict[str, str | None],
    status: int,
    said: str,
) -> None:
    daemon = await outside(daemons, server)
    query = {**await answer_of(daemon), **change}
    back = await bring(daemon, {k: v for k, v in query.items() if v is not None})
    assert back.status_code == status, back.text
    assert said in back.text
    assert "\x1b" not in back.text
    asked_for = [] if change.get("code") != "another" else ["another"]
    assert [form["code"] for form in authority.forms] == asked_for
    assert kept(daemon.daemon.vault, owner_of(daemon, "t").server) is None


async def test_one_login_is_not_ended_with_the_answer_to_another(
    daemons: Daemons, server: Guarded, authority: Authority
) -> None:
    daemon = await outside(daemons, server)
    first, second = await answer_of(daemon), await answer_of(daemon)
    mixed = await bring(daemon, {**first, "code": second["code"]})
    assert mixed.status_code == 403
    assert "invalid_grant" in mixed.text
    # A state is good for one answer, also for one that failed.
    assert (await bring(daemon, first)).status_code in {400, 404}
    assert kept(daemon.daemon.vault, owner_of(daemon, "t").server) is None


PLAIN = "http://login.example.com"


@pytest.mark.parametrize(
    ("of_server", "of_issuer", "said"),
    [
        ({"resource": "https://other.example/mcp"}, {}, "of another resource"),
        ({"resource": None}, {}, "of another resource"),
        ({"authorization_servers": [PLAIN]}, {}, "no address of https"),
        ({"authorization_servers": ["javascript:alert(1)"]}, {}, "no address of https"),
        ({"authorization_servers": []}, {}, "names no authorization server"),
        ({}, {"issuer": "https://other.example"}, "is of another issuer"),
        ({}, {"authorization_endpoint": f"{PLAIN}/a"}, "no address of https"),
        ({}, {"authorization_endpoint": "file:///a"}, "no address of https"),
        ({}, {"token_endpoint": f"{PLAIN}/t"}, "no address of https"),
        ({}, {"registration_endpoint": f"{PLAIN}/r"}, "no address of https"),
        ({}, {"code_challenge_methods_supported": ["plain"]}, "PKCE with S256"),
        ({}, {"code_challenge_methods_supported": None}, "PKCE with S256"),
        ({}, {"registration_endpoint": None}, "write client_id into its oauth"),
    ],
)
async def test_metadata_that_is_not_to_be_trusted_begins_no_login(
    daemons: Daemons,
    server: Guarded,
    authority: Authority,
    *,
    of_server: dict[str, Any],
    of_issuer: dict[str, Any],
    said: str,
) -> None:
    server.says, authority.says = of_server, of_issuer
    daemon = await outside(daemons, server)
    started = await begin(daemon)
    assert started.status_code == 502
    assert said in started.json()["error"]
    assert authority.asked["/register"] == 0
    assert (await bring(daemon, {"state": "x"})).status_code == 404


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        ({"token_type": "DPoP"}, "another kind than Bearer"),
        ({"token_type": None}, "another kind than Bearer"),
        ({"access_token": None}, "no token that a header could have"),
        ({"access_token": "a\r\nX-Evil: 1"}, "no token that a header could have"),
        ({"access_token": ["a"]}, "no token that a header could have"),
        ({"access_token": "a" * 20_000}, "no token that a header could have"),
    ],
)
async def test_an_answer_without_a_plain_token_is_none(
    daemons: Daemons,
    server: Guarded,
    authority: Authority,
    gives: dict[str, Any],
    said: str,
) -> None:
    authority.gives = gives
    daemon = await outside(daemons, server)
    back = await bring(daemon, await answer_of(daemon))
    assert back.status_code == 502
    assert said in back.text
    assert kept(daemon.daemon.vault, owner_of(daemon, "t").server) is None


@pytest.mark.setting("mcp_servers[].oauth.issuer")
async def test_a_server_sends_nobody_to_places_of_this_machine(
    daemons: Daemons,
) -> None:
    local = Authority()
    async with local.running("localhost"), Guarded(local).running() as server:
        daemon = await outside(daemons, server)
        started = await begin(daemon)
        assert started.status_code == 502
        assert local.asked.total() == 0
        # Unless the operator has named it.
        named = await outside(daemons, server, {"issuer": local.issuer})
        await logged_in(named)
        other = {"issuer": "https://login.example.com"}
        daemon = await outside(daemons, server, other)
        refused = (await begin(daemon)).json()["error"]
        assert "it takes no tokens of https://login.example.com" in refused


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


@pytest.mark.setting("mcp_servers[].oauth")
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"oauth": {"client_secret": "s"}}, "needs the client_id whose it is"),
        ({"oauth": {"issuer": PLAIN}}, "must be an address of https"),
        ({"oauth": {"redirect_uri": PLAIN}}, "must be an address of https"),
        ({"oauth": {}, "headers": ["authorization: x"]}, "oauth is for type http"),
        (
            {"oauth": {}, "transport": {"type": "sse", "url": "https://a.example"}},
            "oauth is for type http",
        ),
    ],
)
def test_settings_of_a_login_that_cannot_be_are_refused(
    said: dict[str, Any], reason: str
) -> None:
    transport = {"type": "http", "url": "https://a.example/mcp"}
    with pytest.raises(ValidationError, match=reason):
        McpServer.model_validate({"name": "t", "transport": transport, **said})


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


def test_tokens_are_for_the_address_and_the_issuer_they_were_given_for() -> None:
    class Held(dict[str, Secret]):
        revision = 0

    grant = (
        '{"url": "https://a.example/mcp", "resource": "https://a.example/mcp", '
        '"issuer": "https://i.example", "token_endpoint": "https://i.example/t", '
        '"redirect": "", "client": "c", "secret": "", "method": "none", '
        '"access": "token", "refresh": "", "scope": "", "ends": 0}'
    )
    vault: Any = Held({"mcp/t": Secret(grant)})

    def found(url: str = "https://a.example/mcp", **oauth: str) -> bool:
        transport = {"type": "http", "url": url}
        said = {"name": "t", "transport": transport, "oauth": oauth}
        return kept(vault, McpServer.model_validate(said)) is not None

    assert found()
    assert found(issuer="https://i.example", client_id="c")
    assert not found("https://b.example/mcp")
    assert not found("https://a.example/mcp/")
    assert not found(issuer="https://other.example")
    assert not found(client_id="d")
    vault["mcp/t"] = Secret("{}")
    assert not found()
    vault["mcp/t"] = Secret("no JSON")
    assert not found()


@pytest.mark.parametrize(
    ("resource", "url", "does"),
    [
        ("https://a.example/mcp", "https://a.example/mcp", True),
        ("https://a.example", "https://a.example/mcp", True),
        ("https://A.example/", "https://a.example/mcp", True),
        ("https://a.example/mc", "https://a.example/mcp", False),
        ("https://a.example/mcp/x", "https://a.example/mcp", False),
        ("http://a.example/mcp", "https://a.example/mcp", False),
        ("https://a.example:8443/mcp", "https://a.example/mcp", False),
        ("https://a.example.evil.example/mcp", "https://a.example/mcp", False),
        ("https://u@a.example/mcp", "https://a.example/mcp", False),
        ("https://a.example/mcp?a=1", "https://a.example/mcp", False),
        ("None", "https://a.example/mcp", False),
    ],
)
def test_a_resource_covers_what_is_below_it(
    resource: str, url: str, *, does: bool
) -> None:
    assert covers(resource, url) is does


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
