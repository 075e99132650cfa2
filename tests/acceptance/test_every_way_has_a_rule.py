"""No route, no tool and no way out of the house is without a rule."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import agenthost
import pytest
import websockets
from agenthost.testing import Daemons
from agenthost_front.front import QuartFront

ROOT = Path(agenthost.__file__).parents[2]
KEY = "a key of the operator"
NOBODY = "00000000-0000-4000-8000-000000000000"
PARAMETER = re.compile(r"<(?:path:)?[^>]*>|\{[^}]*\}")
PUBLIC = {"/", "/api/health"}
"""And what the page at ``/`` is made of, which is below ``/static/``."""

# What opens connections or starts processes, by the module that brings it ...
WAYS_OUT = {
    *(
        "_socket",
        "aiohttp",
        "ftplib",
        "grpc",
        "http.client",
        "imaplib",
        "multiprocessing",
    ),
    *(
        "nntplib",
        "paramiko",
        "poplib",
        "psycopg",
        "pty",
        "requests",
        "smtplib",
        "socket",
    ),
    *("socketserver", "subprocess", "telnetlib", "urllib.request", "urllib3"),
    *("websockets", "xmlrpc"),
}
# ... and by what is called, on anything or on the module ``os``.
CALLS = {
    *("create_connection", "create_datagram_endpoint", "create_subprocess_exec"),
    *("create_subprocess_shell", "create_unix_connection", "open_connection"),
    *("open_unix_connection", "sock_connect", "subprocess_exec", "subprocess_shell"),
    *("AsyncHTTPTransport", "HTTPTransport", "AsyncClient"),
}
OS_CALLS = re.compile("exec.*|fork.*|popen|posix_spawn.*|spawn.*|system")
RULES = {
    "plugins/channels/agenthost_channels/bridge/line.py": (
        "addresses that the guard point address lets through"
    ),
    "plugins/cli/agenthost_cli/client.py": "the daemon's own address, from its home",
    "plugins/cli/agenthost_cli/doctor.py": "asks whether the own port is free",
    "plugins/cli/agenthost_cli/pinned.py": "the same, by its fingerprint",
    "plugins/cli/agenthost_cli/detached.py": "starts the daemon itself",
    "plugins/cluster": "the database that the operator configured",
    "plugins/desktop_shell/agenthost_desktop_shell/review.py": "runs git",
    "plugins/egress": "the one client, whose guards everything passes",
    "plugins/front/agenthost_front/listening.py": "listens; connects to nothing",
    "plugins/mcp/agenthost_mcp/client/launcher.py": "becomes a configured server",
    "plugins/mcp/agenthost_mcp/client/stdio.py": "servers that the operator configured",
    "plugins/observability": "hands what the exporter sends to the one client",
    "plugins/security/agenthost_security/gcra_rate_limiter/addresses.py": "reads them",
    "plugins/tools/agenthost_tools/shell": "commands, behind the guard point process",
    "plugins/workers/agenthost_workers/processes.py": "the workers' own processes",
}


def ways_out(path: Path) -> Iterator[str]:
    """Name what a file imports or calls that leads out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (a.name for a in names if leads_out(a.name))
            case ast.ImportFrom(module=str(module), names=names, level=0):
                found = {module, *(f"{module}.{alias.name}" for alias in names)}
                yield from filter(leads_out, found)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr=name)):
                yield from filter(OS_CALLS.fullmatch, [name])
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
                yield from {name} & CALLS


def leads_out(module: str) -> bool:
    parts = module.split(".")
    return any(".".join(parts[:end]) in WAYS_OUT for end in range(1, len(parts) + 1))


def rule_of(path: Path) -> str | None:
    name = path.relative_to(ROOT).as_posix()
    return next(
        (rule for rule in RULES if name == rule or name.startswith(f"{rule}/")), None
    )


def test_every_way_out_has_a_rule() -> None:
    used = set()
    for folder in ("kernel", "libraries", "plugins"):
        for path in (ROOT / folder).rglob("*.py"):
            if "testing" in path.relative_to(ROOT).parts:
                continue
            if found := sorted(set(ways_out(path))):
                rule = rule_of(path)
                assert rule, f"{path.relative_to(ROOT)} leads out by {found}"
                used.add(rule)
    assert used == set(RULES)


@pytest.mark.parametrize(
    "source",
    [
        "import socket",
        "from urllib.request import urlopen",
        "import http.client as plain",
        "from http import client",
        "def f():\n    import subprocess",
        "import asyncio\nasync def f(): await asyncio.open_connection('h', 1)",
        "import os\nos.system('x')",
        "import httpx\nhttpx.AsyncClient()",
        "from aiohttp.client import ClientSession",
    ],
)
def test_a_way_out_is_seen(source: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(source)
    assert list(ways_out(tmp_path / "a.py"))


async def test_every_route_turns_a_stranger_away(daemons: Daemons) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n')
    front = daemon.daemon.front
    assert isinstance(front, QuartFront)
    mounted = front._mounted
    await mounted.complete()
    places = {(each.route.method, each.route.path) for each in mounted.endpoints}
    assert len(places) > 80
    for method, path in sorted(places | {("GET", "/openapi.json")}):
        if path in PUBLIC or path.startswith("/static/"):
            continue
        for headers in ({}, {"Authorization": "Bearer another"}):
            answer = await daemon.http.request(
                method, PARAMETER.sub(NOBODY, path), headers=headers
            )
            assert answer.status_code == 401, (method, path, answer.text)
    for template, _ in mounted.sockets:
        uri = f"ws://{daemon.daemon.address}{PARAMETER.sub(NOBODY, template.openapi)}"
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with websockets.connect(uri):
                pass
        assert refused.value.response.status_code == 401


async def test_no_tool_is_done_for_an_agent_that_was_not_given_it(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    tools = (await daemon.http.get("/api/tools")).json()["tools"]
    assert len(tools) > 10
    agent = await daemon.agent(tools=())
    daemon.model.calls_all(*((name, {}) for name in tools))
    daemon.model.says("none of them")
    assert await agent.ask("try all") == "none of them"
    session = (await daemon.http.get(f"/api/agents/{agent.id}/session")).json()
    done = [
        tool for message in session["messages"] for tool in message.get("tools", [])
    ]
    assert sorted(tool["name"] for tool in done) == sorted(tools)
    assert all(tool["is_error"] for tool in done)
    assert all("wrong arguments" not in tool["result"] for tool in done)
