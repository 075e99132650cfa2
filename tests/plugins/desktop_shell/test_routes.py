"""The HTTP surface, on a running daemon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agenthost.testing import Daemons, ManualClock, RunningDaemon
from agenthost_desktop_shell.bodies import ValidateBody
from agenthost_desktop_shell.routes import CapabilityRoutes
from agenthost_desktop_shell.rules import RULES
from agenthost_desktop_shell.served import ServedFolders

from .building import capability, own_table
from .test_bridge import Talk
from .test_check import call as command
from .test_lints import CASES
from .test_project import write

PREFIX = "/api/desktop/capabilities"
TITLE = "core:window:set-title"
ALLOW = capability(permissions=["core:window:allow-set-title"])
GIT = {"name": "git", "cmd": "$RESOURCE/git", "args": ["log", {"validator": r"-n\d+"}]}
SHELL = capability(permissions=[{"identifier": "shell:allow-execute", "allow": [GIT]}])


async def ask(daemon: RunningDaemon, what: str, **body: Any) -> dict[str, Any]:
    answer = await daemon.http.post(f"{PREFIX}/{what}", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def refused(daemon: RunningDaemon, what: str, **body: Any) -> str:
    answer = await daemon.http.post(f"{PREFIX}/{what}", json=body)
    assert answer.status_code == 400, answer.text
    return str(answer.json()["error"])


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path / "home")


async def test_validate_answers_in_the_agreed_shape(daemon: RunningDaemon) -> None:
    good = await ask(daemon, "validate", capabilities=[ALLOW], mode="strict")
    nothing: list[Any] = []
    lists = {"errors": nothing, "strict_errors": nothing, "warnings": nothing}
    assert good == {"valid": True, **lists}
    bad = capability(permissions=["shell:alow-open"])
    answer = await ask(daemon, "validate", capabilities=bad)
    assert answer["valid"] is False
    (error,) = answer["errors"]
    assert error["capability"] == "a"
    assert error["field"] == "permissions[0]"
    assert error["value"] == "shell:alow-open"
    assert "did you mean 'shell:allow-open'?" in error["message"]


async def test_lenient_lists_what_strict_would_refuse(daemon: RunningDaemon) -> None:
    twice = capability(permissions=["shell:default", "shell:default"])
    strict = await ask(daemon, "validate", capabilities=twice)
    lenient = await ask(daemon, "validate", capabilities=twice, mode="lenient")
    assert (strict["valid"], lenient["valid"]) == (False, True)
    assert lenient["strict_errors"] == strict["errors"]


@pytest.mark.parametrize(
    ("rule", "written"), [c[:2] for c in CASES if isinstance(c[1], dict)]
)
async def test_lints_are_those_of_the_command_line(
    talk: Talk, tmp_path: Path, rule: str, written: Any
) -> None:
    routes = CapabilityRoutes(ServedFolders())
    body = ValidateBody(capabilities=written)
    answer: Any = await routes.validate(talk.call(), body)
    (lint,) = answer["warnings"]
    assert (lint["rule"], lint["severity"]) == (rule, RULES[rule].severity)
    file = write(tmp_path / "a.json", written)
    (told,) = json.loads(command("check", file, "--format", "json").output)
    assert {**told, "file": "", "line": 0} == {**lint, "file": "", "line": 0}


@pytest.mark.parametrize("value", [5, None, "x", {"capabilities": 5}, [[]]])
async def test_a_document_of_no_form_is_invalid_and_no_error(
    daemon: RunningDaemon, value: Any
) -> None:
    assert (await ask(daemon, "validate", capabilities=value))["valid"] is False


async def test_resolve_shows_the_resolved_form(daemon: RunningDaemon) -> None:
    form = await ask(daemon, "resolve", capabilities=ALLOW, platform="macOS")
    assert form["platform"] == "macOS"
    assert list(form["allowed"]) == [TITLE]


async def test_decide_says_who_decided(daemon: RunningDaemon) -> None:
    call = {"capabilities": ALLOW, "command": TITLE, "window": "main"}
    yes = await ask(daemon, "decide", **call, webview="main", platform="linux")
    assert yes["allowed"] is True
    assert yes["capability"] == "a"
    assert yes["permission"] == "core:window:allow-set-title"
    no = await ask(daemon, "decide", **call, origin="https://a.dev/x")
    assert no["allowed"] is False
    assert "not to this origin" in no["reason"]


async def test_decide_shell_says_what_would_run(daemon: RunningDaemon) -> None:
    call = {"capabilities": SHELL, "name": "git", "window": "main", "resource": "/r"}
    call |= {"command": "shell:execute", "platform": "linux", "origin": "local"}
    yes = await ask(daemon, "decide-shell", **call, args=["log", "-n5"])
    assert set(yes) == {"allowed", "reason", "argv"}
    assert yes["argv"] == ["/r/git", "log", "-n5"]
    no = await ask(daemon, "decide-shell", **call, args=["log", "-p"])
    assert (no["allowed"], no["argv"]) == (False, None)
    assert "argument 2 '-p'" in no["reason"]
    spawn = {**call, "command": "shell:spawn"}
    assert not (await ask(daemon, "decide-shell", **spawn))["allowed"]


async def test_decide_shell_decides_opening(daemon: RunningDaemon) -> None:
    links = capability(permissions=["shell:default"])
    call = {"capabilities": links, "command": "shell:open", "window": "main"}
    yes = await ask(daemon, "decide-shell", **call, path="mailto:me@a.dev")
    no = await ask(daemon, "decide-shell", **call, path="file:///etc/passwd")
    assert (yes["allowed"], no["allowed"]) == (True, False)


async def test_a_wrong_request_names_its_field(daemon: RunningDaemon) -> None:
    call = {"capabilities": ALLOW, "command": TITLE, "window": "main"}
    assert "origin" in await refused(daemon, "decide", **call, origin="nonsense")
    assert "platform" in await refused(daemon, "decide", **call, platform="macos")
    assert "window" in await refused(daemon, "decide", command=TITLE)
    bad = {**call, "capabilities": capability(permissions=["nope:x"])}
    assert "unknown module 'nope'" in await refused(daemon, "decide", **bad)
    shell = {"capabilities": SHELL, "window": "main"}
    assert "name" in await refused(daemon, "decide-shell", **shell)
    opening = {**shell, "command": "shell:open"}
    assert "path" in await refused(daemon, "decide-shell", **opening)


async def test_a_hostile_document_is_answered_in_json(daemon: RunningDaemon) -> None:
    deep = json.loads("[" * 100 + "]" * 100)
    answer = await ask(daemon, "validate", capabilities=deep)
    assert "nested deeper" in answer["errors"][0]["message"]
    half = rb'{"capabilities": {"identifier": "\ud800", "permissions": []}}'
    kind = {"content-type": "application/json"}
    url = f"{PREFIX}/validate"
    told = await daemon.http.post(url, content=half, headers=kind)
    assert told.status_code in {200, 400}
    assert told.json()


async def test_the_schema_is_served(daemon: RunningDaemon) -> None:
    answer = await daemon.http.get(f"{PREFIX}/schema")
    assert answer.json()["title"] == "CapabilityFile"


async def test_without_capabilities_the_served_folder_decides(daemons: Daemons) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    call = {"command": TITLE, "window": "main"}
    assert not (await ask(daemon, "decide", **call))["allowed"]
    folder = daemon.daemon.home / "capabilities"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(ALLOW))
    await clock.advance(1)
    assert (await ask(daemon, "decide", **call))["allowed"]
    (folder / "a.json").unlink()
    await clock.advance(1)
    assert not (await ask(daemon, "decide", **call))["allowed"]


async def test_a_broken_served_folder_allows_nothing_and_says_why(
    daemons: Daemons,
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    folder = daemon.daemon.home / "capabilities"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(ALLOW))
    (folder / "b.json").write_text('{"identifier": "b",\n"permissions": ["x:y"]}')
    await clock.advance(1)
    call = {"command": TITLE, "window": "main"}
    answer = await daemon.http.post(f"{PREFIX}/decide", json=call)
    assert answer.status_code == 409
    assert "b.json:2: capability 'b', permissions[0]" in answer.json()["error"]
    given = await ask(daemon, "decide", capabilities=ALLOW, **call)
    assert given["allowed"]
    (folder / "b.json").write_text(json.dumps(capability(identifier="b")))
    await clock.advance(1)
    assert (await ask(daemon, "decide", **call))["allowed"]


async def test_manifests_of_the_served_folder_are_known(daemons: Daemons) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    folder = daemon.daemon.home / "capabilities" / "manifests"
    folder.mkdir(parents=True)
    (folder / "app.toml").write_text(own_table("greet"))
    await clock.advance(1)
    call = {"command": "greet", "window": "main"}
    greeting = capability(permissions=["allow-greet"])
    assert (await ask(daemon, "decide", capabilities=greeting, **call))["allowed"]
    (folder / "app.toml").write_text("permission = 5\n")
    await clock.advance(1)
    url = f"{PREFIX}/validate"
    answer = await daemon.http.post(url, json={"capabilities": greeting})
    assert answer.status_code == 409
    assert "app.toml" in answer.json()["error"]
