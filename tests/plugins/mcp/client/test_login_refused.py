"""Logins that come to nothing, and whom tokens are not shown to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from agenthost import Secret
from agenthost.testing.daemons import Daemons
from agenthost_mcp.client.oauth.discovery import (
    Challenge,
    covers,
    discovered,
)
from agenthost_mcp.client.oauth.grant import kept
from agenthost_mcp.client.settings import McpServer
from agenthost_mcp.metadata import Unusable
from pydantic import ValidationError

from ..authority import Authority
from .guarded import Guarded, answer_of, begin, bring, logged_in, outside
from .servers import owner_of, source_of


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


async def test_a_login_waits_for_ten_minutes(
    daemons: Daemons, server: Guarded, authority: Authority
) -> None:
    daemon = await outside(daemons, server)
    late, query = await answer_of(daemon), await answer_of(daemon)
    logins = source_of(daemon).logins
    assert logins is not None
    waiting = logins._waiting
    waiting[late["state"]] = replace(waiting[late["state"]], ends=0.0)
    back = await bring(daemon, late)
    assert back.status_code == 400
    assert "no login waits for this" in back.text
    assert not authority.forms
    assert (await bring(daemon, query)).status_code == 200


async def test_no_login_is_made_at_a_server_without_https() -> None:
    asks: Any = None
    with pytest.raises(Unusable, match="is not https, so that no token is sent there"):
        await discovered(asks, "http://a.example/mcp", Challenge(), None)


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
