"""The IPC bridge, on a running daemon, by a WebSocket client that is not ours."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agenthost.testing import Daemons, RunningDaemon
from agenthost_desktop_shell.tokens import LIMIT, seen_origin
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from .building import capability

TITLE = "core:window:set-title"
SCOPE = {"identifier": "shell:allow-execute", "allow": [{"name": "git", "cmd": "git"}]}
GRANTS = [
    capability(
        windows=None,
        webviews=["view"],
        permissions=["core:window:allow-set-title", SCOPE, "shell:default"],
    ),
    capability(
        identifier="remote",
        local=False,
        remote={"urls": ["https://a.dev"]},
        permissions=["core:window:allow-title"],
    ),
]


@pytest.fixture
async def served(daemons: Daemons, tmp_path: Any) -> AsyncIterator[RunningDaemon]:
    home = tmp_path / "home"
    (home / "capabilities").mkdir(parents=True)
    (home / "capabilities" / "all.json").write_text(json.dumps(GRANTS))
    config = '[server]\nallowed_origins = ["https://a.dev"]\n'
    yield await daemons.start(home=home, config=config)


async def issue(daemon: RunningDaemon, **binding: Any) -> dict[str, Any]:
    body = {"window": "main", **binding}
    answer = await daemon.http.post("/api/desktop/tokens", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def bridge(daemon: RunningDaemon, **options: Any) -> connect:
    url = daemon.url.replace("http", "ws") + "/api/desktop/ipc"
    return connect(url, proxy=None, **options)


async def say(socket: ClientConnection, frame: Any) -> dict[str, Any]:
    await socket.send(json.dumps(frame))
    return dict(json.loads(await socket.recv()))


async def invoke(socket: ClientConnection, command: str, **args: Any) -> dict[str, Any]:
    return await say(socket, {"id": 1, "command": command, "args": args})


async def test_each_command_is_checked_for_the_bound_webview(
    served: RunningDaemon,
) -> None:
    for webview, expected in (("view", True), ("other", False)):
        token = (await issue(served, webview=webview))["token"]
        async with bridge(served) as socket:
            hello = await say(socket, {"token": token})
            assert (hello["status"], hello["webview"]) == ("bound", webview)
            assert "token" not in hello
            answer = await invoke(socket, "plugin:window|set_title", title="x")
            assert (answer["id"], answer["allowed"]) == (1, expected)
            assert answer["reason"]


async def test_shell_commands_are_answered_with_what_would_run(
    served: RunningDaemon,
) -> None:
    token = (await issue(served, webview="view"))["token"]
    async with bridge(served) as socket:
        await say(socket, {"token": token})
        assert (await invoke(socket, "shell:execute", name="git"))["argv"] == ["git"]
        refused = await invoke(socket, "shell:execute", name="git", args=["x"])
        assert "argument 1" in refused["reason"]
        opened = await invoke(socket, "shell:open", path="https://a.dev")
        assert opened["allowed"]
        wrong = await invoke(socket, "shell:execute", name=5)
        assert wrong["code"] == "invalid_input"


@pytest.mark.parametrize(
    "frame", [{"token": "guess"}, {"token": ""}, {}, {"command": TITLE}, [], "x"]
)
async def test_without_a_good_token_the_bridge_closes(
    served: RunningDaemon, frame: Any
) -> None:
    async with bridge(served) as socket:
        answer = await say(socket, frame)
        assert answer["code"] == "unauthenticated"
        with pytest.raises(ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 1008


async def test_a_revoked_token_ends_its_bridge(served: RunningDaemon) -> None:
    issued = await issue(served, webview="view")
    async with bridge(served) as socket:
        await say(socket, {"token": issued["token"]})
        assert (await invoke(socket, TITLE))["allowed"]
        url = f"/api/desktop/tokens/{issued['id']}"
        assert (await served.http.delete(url)).status_code == 200
        assert (await invoke(socket, TITLE))["code"] == "unauthenticated"
    assert (await served.http.delete(url)).status_code == 404


async def test_a_frame_that_is_no_invocation_is_answered(
    served: RunningDaemon,
) -> None:
    token = (await issue(served, webview="view"))["token"]
    async with bridge(served) as socket:
        await say(socket, {"token": token})
        for frame in ({}, {"id": 1}, [], {"id": 1, "command": TITLE, "window": "x"}):
            assert (await say(socket, frame))["code"] == "invalid_input"
        assert (await invoke(socket, TITLE))["allowed"]


async def test_a_remote_page_with_a_local_token_stays_remote(
    served: RunningDaemon,
) -> None:
    token = (await issue(served, webview="view"))["token"]
    async with bridge(served, origin="https://a.dev") as socket:
        await say(socket, {"token": token})
        assert not (await invoke(socket, TITLE))["allowed"]
        assert (await invoke(socket, "core:window:title"))["allowed"]


async def test_tokens_are_listed_without_themselves(served: RunningDaemon) -> None:
    issued = await issue(served, webview="view")
    listed = (await served.http.get("/api/desktop/tokens")).json()
    token = issued.pop("token")
    assert listed == [issued]
    assert token not in json.dumps(listed)


async def test_tokens_are_bounded(served: RunningDaemon) -> None:
    from agenthost_desktop_shell.decide import Caller
    from agenthost_desktop_shell.tokens import Tokens

    tokens = Tokens()
    for _ in range(LIMIT):
        tokens.issue(Caller("main"), "linux")
    with pytest.raises(Exception, match="revoke those of closed webviews"):
        tokens.issue(Caller("main"), "linux")


@pytest.mark.parametrize(
    ("bound", "header", "seen"),
    [
        ("local", None, "local"),
        ("local", "tauri://localhost", "local"),
        ("local", "null", "local"),
        ("local", "http://tauri.localhost", "local"),
        ("local", "http://localhost:1420", "local"),
        ("local", "http://127.0.0.1:4200", "local"),
        ("local", "http://[::1]:4200", "local"),
        ("local", "https://a.dev", "https://a.dev"),
        ("local", "https://localhost.evil.example", "https://localhost.evil.example"),
        ("https://a.dev/x", "https://b.dev", "https://a.dev/x"),
    ],
)
def test_the_browsers_origin_counts_for_local_tokens(
    bound: str, header: str | None, seen: str
) -> None:
    assert seen_origin(bound, header) == seen
