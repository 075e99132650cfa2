"""Each system, broken from outside: it says so, and what needs it is refused."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from agenthost import ALLOW
from agenthost.testing import Daemons, RunningDaemon
from agenthost_http_api.security import ABSENT

from ..plugins.security.merkle_audit_trail.book import tamper
from ..plugins.security.test_fail_closed import without

Break = Callable[[pytest.MonkeyPatch, Path], None]
Refused = Callable[[RunningDaemon, str], Awaitable[None]]


def replaced(place: str, value: Any) -> Break:
    """Put something else where the system, or what it looks at, keeps it."""

    def put(patch: pytest.MonkeyPatch, _: Path) -> None:
        module, name = place.split(":")
        *owner, last = name.split(".")
        target: Any = importlib.import_module(module)
        for step in owner:
            target = getattr(target, step)
        patch.setattr(target, last, value)

    return put


def edited(_: pytest.MonkeyPatch, home: Path) -> None:
    tamper(home, "UPDATE audit_entries SET actor = 'eve' WHERE id = 1")


async def no_new_agent(daemon: RunningDaemon, system: str) -> None:
    made = await daemon.http.post("/api/agents", json={"manifest_toml": 'name = "b"'})
    assert made.status_code == 403
    assert f"{system} is not active" in made.json()["error"]


def no_tool(tool: str, **arguments: str) -> Refused:
    async def refused(daemon: RunningDaemon, system: str) -> None:
        daemon.model.calls(tool, **arguments)
        daemon.model.says("done")
        await daemon.known_agent("tester").ask("use it")
        [output] = daemon.model.requests[-1].messages[-1].parts
        assert f"{system} is not active" in str(getattr(output, "text", ""))

    return refused


async def no_branch(daemon: RunningDaemon, system: str) -> None:
    """What a turn has in memory was judged as it was read: another one reads anew."""
    agent = daemon.known_agent("tester")
    await agent.ask("one")
    session = await agent.session()
    path = f"/api/sessions/{session['session_id']}/fork"
    at = session["messages"][-1]["id"]
    answer = await daemon.http.post(path, json={"at_message": at, "message": "2"})
    assert f"{system} is not active" in answer.json()["error"]


async def no_request(daemon: RunningDaemon, system: str) -> None:
    answer = await daemon.http.get("/api/agents")
    assert answer.status_code == 403
    assert f"{system} is not active" in answer.json()["error"]


async def nothing_more(daemon: RunningDaemon, _: str) -> None:
    """What only proves others' work guards nothing: health tells of it."""
    health = (await daemon.http.get("/api/health")).json()
    assert health["status"] == "degraded"


class Sabotage(NamedTuple):
    system: str
    how: Break
    refused: Refused


HERE = "agenthost_security"
FILE = no_tool("file_write", path="note", content="x")
PAGE = no_tool("web_fetch", url="http://127.0.0.1/")
SABOTAGE = {
    "a row of the trail is edited": Sabotage(
        "merkle_audit_trail", edited, no_new_agent
    ),
    "the limiter lets everybody in": Sabotage(
        "gcra_rate_limiter",
        replaced(f"{HERE}.gcra_rate_limiter:Limiter.__call__", lambda *_: ALLOW),
        no_request,
    ),
    "a header is taken out": Sabotage(
        "security_headers",
        replaced("agenthost_front.headers:CONSTANT", ()),
        nothing_more,
    ),
    "a page of others is let in": Sabotage(
        "security_headers",
        replaced("agenthost_front.origins:Origins.check_origin", lambda *_: None),
        nothing_more,
    ),
    "an error tells what it was about": Sabotage(
        "health_redaction",
        replaced("agenthost_front.answers:INTERNAL", "canary"),
        nothing_more,
    ),
    "the loop guard sees no loop": Sabotage(
        "loop_guard",
        replaced(f"{HERE}.loop_guard.watch:Loops.called", lambda *_: ALLOW),
        FILE,
    ),
    "histories stay as they are": Sabotage(
        "session_repair",
        replaced(f"{HERE}.session_repair:repaired", lambda history: history),
        no_branch,
    ),
    "secrets are not wiped": Sabotage(
        "secret_zeroization",
        replaced("agenthost_values.secret_bytes:SecretBytes.wipe", lambda _: None),
        nothing_more,
    ),
    "the process can be read again": Sabotage(
        "secret_zeroization",
        replaced(f"{HERE}.secret_zeroization:is_open", lambda: True),
        nothing_more,
    ),
    "files are opened wherever a link leads": Sabotage(
        "path_traversal_prevention",
        replaced("agenthost_storage.beneath:_BENEATH", 0),
        FILE,
    ),
    "no network is special": Sabotage(
        "ssrf_protection", replaced(f"{HERE}.ssrf_protection:SPECIAL", ()), PAGE
    ),
    "every right holds every other": Sabotage(
        "capability_inheritance_validation",
        replaced(f"{HERE}.capability_inheritance_validation:contains", lambda *_: True),
        no_new_agent,
    ),
}
SYSTEMS = sorted({sabotage.system for sabotage in SABOTAGE.values()})
SECOND = {"a page of others is let in", "the process can be read again"}
"""Further ways with a system that another one breaks at every change."""


def states(daemon: RunningDaemon) -> dict[str, tuple[bool, str | None]]:
    return {
        state.name: (state.active, state.reason)
        for state in daemon.daemon.registry.systems()
    }


async def reported(daemon: RunningDaemon) -> tuple[dict[str, str], bool]:
    answer = (await daemon.http.get("/api/security")).json()
    return answer["security_systems"], answer["all_active"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.conformance if name in SECOND else ())
        for name in SABOTAGE
    ],
)
async def test_a_system_that_is_broken_while_it_runs_says_so_and_refuses(
    daemons: Daemons, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    system, how, refused = SABOTAGE[name]
    home = tmp_path / "home"
    daemon = await daemons.start(home=home)
    await daemon.agent()
    await daemon.daemon.registry.prove()
    assert states(daemon)[system] == (True, None)
    how(monkeypatch, home)
    await daemon.daemon.registry.prove()
    active, reason = states(daemon)[system]
    assert not active
    assert reason
    await refused(daemon, system)
    others = {name for name, (active, _) in states(daemon).items() if not active}
    assert others == {system}


async def test_what_a_setting_switches_off_is_not_active_and_nothing_is_refused(
    daemons: Daemons,
) -> None:
    off = "[rate_limit]\nenabled = false\n[secret_zeroization]\ndebuggable = true\n"
    daemon = await daemons.start(config=off)
    systems, all_active = await reported(daemon)
    assert not all_active
    for system in ("gcra_rate_limiter", "secret_zeroization"):
        assert systems[system] == "inactive"
        told = f"security: {system} is not active"
        assert any(line.startswith(told) for line in daemon.daemon.warnings)
    assert (await (await daemon.agent()).send("hello")).status_code == 200


async def test_without_any_of_them_all_is_told_and_their_effects_are_refused(
    daemons: Daemons,
) -> None:
    home = await daemons.start(config=without(*SYSTEMS))
    report = (await home.http.get("/api/security")).json()
    assert not report["all_active"]
    assert set(report["security_systems"].values()) == {"inactive"}
    assert {report["reasons"][system] for system in SYSTEMS} == {ABSENT}
    await no_new_agent(home, "capability_inheritance_validation")
    closed = (await home.http.get("/api/health/detail")).json()["closed_guards"]
    assert set(closed) == {"address", "path", "spawn", "url"}
    assert (await home.http.get("/api/health")).json()["status"] == "degraded"


@pytest.mark.parametrize(
    "system",
    [
        pytest.param(
            system,
            marks=() if system == "loop_guard" else pytest.mark.conformance,
        )
        for system in SYSTEMS
    ],
)
async def test_a_system_that_cannot_be_imported_closes_every_effect(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    monkeypatch.setitem(sys.modules, f"{HERE}.{system}", None)
    daemon = await daemons.start()
    answer = await daemon.http.post("/api/agents", json={"manifest_toml": 'name = "b"'})
    assert answer.status_code == 403
    systems, all_active = await reported(daemon)
    assert systems[system] == "inactive"
    assert not all_active
    closed = (await daemon.http.get("/api/health/detail")).json()["closed_guards"]
    assert {"address", "path", "spawn", "url"} <= set(closed)
