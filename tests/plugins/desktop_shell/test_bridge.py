"""The IPC bridge: by its handler alone, and on a daemon with a client not ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agenthost import OPERATOR, Call, Conflict, NotFound, Reply
from agenthost.testing import Daemons, ManualClock, MemoryStore, RunningDaemon
from agenthost_desktop_shell.bridge import WEBVIEWS, Bridge
from agenthost_desktop_shell.config import DesktopSection
from agenthost_desktop_shell.frames import IssueBody
from agenthost_desktop_shell.plugin import register_schema
from agenthost_desktop_shell.served import ServedFolders
from agenthost_desktop_shell.terms import Caller
from agenthost_desktop_shell.tokens import LIMIT, Tokens, seen_origin
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin

from .building import LINUX, capability

TITLE = "core:window:set-title"
SCOPE = {
    "identifier": "shell:allow-execute",
    "allow": [{"name": "git", "cmd": "$RESOURCE/git"}],
}
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
Frame = Any


def serving(home: Path) -> Path:
    (home / "capabilities").mkdir(parents=True)
    (home / "capabilities" / "all.json").write_text(json.dumps(GRANTS))
    return home


class Wire:
    """A socket whose peer says what it was given, then leaves."""

    def __init__(self, call: Call, frames: Sequence[Frame]) -> None:
        self.call = call
        self.said: list[dict[str, Any]] = []
        self.closed_with = 0
        self._frames = list(frames)

    async def accept(self) -> None:
        pass

    async def receive(self) -> str | None:
        if not self._frames:
            return None
        frame = self._frames.pop(0)
        if callable(frame):
            return str(await frame())
        return frame if isinstance(frame, str) else json.dumps(frame)

    async def send(self, text: str) -> None:
        self.said.append(json.loads(text))

    async def close(self, code: int = 1000) -> None:
        self.closed_with = code


class Talk:
    """A bridge over a folder, spoken to by one webview after another."""

    def __init__(self, home: Path) -> None:
        self.sections = {DesktopSection: DesktopSection()}
        self._daemon: Any = SimpleNamespace(
            home=serving(home),
            clock=ManualClock(),
            settings=self.sections.__getitem__,
            store=MemoryStore([register_schema()]),
        )
        self.bridge = Bridge(ServedFolders())

    def call(self, **headers: str) -> Call:
        return Call(self._daemon, OPERATOR, "127.0.0.1", "1", {}, headers)

    async def issue(self, **binding: Any) -> dict[str, Any]:
        body = IssueBody(**{"window": "main", "platform": "linux", **binding})
        answer = await self.bridge.issue(self.call(), body)
        assert isinstance(answer, Reply)
        return dict(answer.body)

    async def say(self, *frames: Frame, **headers: str) -> Wire:
        wire = Wire(self.call(**headers), frames)
        await self.bridge.serve(wire)
        return wire


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path / "home")


def invocation(command: str, **args: Any) -> Frame:
    return {"id": 1, "command": command, "args": args}


@pytest.mark.parametrize(("webview", "expected"), [("view", True), ("other", False)])
async def test_each_command_is_checked_for_the_bound_webview(
    talk: Talk, webview: str, expected: bool
) -> None:
    token = (await talk.issue(webview=webview))["token"]
    frame = invocation("plugin:window|set_title", title="x")
    hello, answer = (await talk.say({"token": token}, frame)).said
    assert (hello["status"], hello["webview"]) == ("bound", webview)
    assert "token" not in hello
    assert (answer["id"], answer["allowed"]) == (1, expected)
    assert answer["reason"]


async def test_shell_commands_are_answered_with_what_would_run(talk: Talk) -> None:
    token = (await talk.issue(webview="view", resource="/r"))["token"]
    wire = await talk.say(
        {"token": token},
        invocation("shell:execute", name="git"),
        invocation("shell:execute", name="git", args=["x"]),
        invocation("shell:open", path="https://a.dev"),
        invocation("shell:execute", name=5),
    )
    runs, refused, opens, wrong = wire.said[1:]
    assert runs["argv"] == ["/r/git"]
    assert "argument 1" in refused["reason"]
    assert opens["allowed"]
    assert wrong["code"] == "invalid_input"


@pytest.mark.parametrize(
    "frame", [{"token": "guess"}, {"token": ""}, {}, {"command": TITLE}, [], "x"]
)
async def test_without_a_good_token_the_bridge_closes(talk: Talk, frame: Frame) -> None:
    wire = await talk.say(frame, invocation(TITLE))
    assert [answer["code"] for answer in wire.said] == ["unauthenticated"]
    assert wire.closed_with == 1008


async def test_a_peer_that_says_nothing_is_closed(talk: Talk) -> None:
    talk.bridge = Bridge(ServedFolders(), hello_within=0)
    wire = await talk.say(asyncio.Event().wait)
    assert wire.closed_with == 1008


async def test_a_revoked_token_ends_its_bridge(talk: Talk) -> None:
    issued = await talk.issue(webview="view")

    async def after_revocation() -> str:
        await talk.bridge.revoke(talk.call(), issued["id"])
        return json.dumps(invocation(TITLE))

    wire = await talk.say(
        {"token": issued["token"]}, invocation(TITLE), after_revocation
    )
    assert wire.said[1]["allowed"]
    assert wire.said[2]["code"] == "unauthenticated"
    assert wire.closed_with == 1008
    with pytest.raises(NotFound):
        await talk.bridge.revoke(talk.call(), issued["id"])


async def test_a_frame_that_is_no_invocation_is_answered(talk: Talk) -> None:
    token = (await talk.issue(webview="view"))["token"]
    odd: list[Frame] = [
        {},
        {"id": 1},
        [],
        "[" * 5000,
        {**invocation(TITLE), "window": 1},
    ]
    wire = await talk.say({"token": token}, *odd, invocation(TITLE))
    assert [answer.get("code") for answer in wire.said[1:-1]] == ["invalid_input"] * 5
    assert wire.said[-1]["allowed"]


async def test_a_remote_page_with_a_local_token_stays_remote(talk: Talk) -> None:
    token = (await talk.issue(webview="view"))["token"]
    frames = {"token": token}, invocation(TITLE), invocation("core:window:title")
    wire = await talk.say(*frames, origin="https://a.dev")
    assert [answer["allowed"] for answer in wire.said[1:]] == [False, True]


async def test_a_broken_folder_allows_nothing(talk: Talk) -> None:
    token = (await talk.issue(webview="view"))["token"]
    folder = talk.call().host.home / "capabilities"
    (folder / "broken.json").write_text("{")
    wire = await talk.say({"token": token}, invocation(TITLE))
    assert wire.said[1]["code"] == "conflict"
    assert "broken.json:1" in wire.said[1]["error"]


@pytest.mark.setting("desktop_shell.mode")
@pytest.mark.parametrize(("mode", "allowed"), [("strict", None), ("lenient", True)])
async def test_the_served_folder_is_read_as_the_configuration_says(
    talk: Talk, mode: Any, allowed: bool | None
) -> None:
    talk.sections[DesktopSection] = DesktopSection(mode=mode)
    twice = capability(identifier="twice", permissions=["core:default"] * 2)
    folder = talk.call().host.home / "capabilities"
    (folder / "twice.json").write_text(json.dumps(twice))
    token = (await talk.issue(webview="view"))["token"]
    wire = await talk.say({"token": token}, invocation(TITLE))
    assert wire.said[1].get("allowed") is allowed
    assert ("twice.json" in wire.said[1].get("error", "")) is (mode == "strict")


async def test_tokens_are_listed_without_themselves(talk: Talk) -> None:
    issued = await talk.issue(webview="view")
    listed = await talk.bridge.listed(talk.call())
    token = issued.pop("token")
    assert listed == [issued]
    assert token not in json.dumps(listed)


def test_tokens_are_bounded() -> None:
    tokens = Tokens(ManualClock())
    for _ in range(LIMIT):
        tokens.issue(Caller("main"), LINUX)
    with pytest.raises(Conflict, match="revoke those of closed webviews"):
        tokens.issue(Caller("main"), LINUX)


async def test_a_token_ends_at_its_time_and_makes_room() -> None:
    clock = ManualClock()
    tokens = Tokens(clock)
    token, _ = tokens.issue(Caller("main"), LINUX, 60.0)
    for _ in range(LIMIT - 1):
        tokens.issue(Caller("main"), LINUX)
    await clock.advance(59)
    assert tokens.find(token)
    await clock.advance(1)
    assert tokens.find(token) is None
    tokens.issue(Caller("main"), LINUX)
    assert len(tokens.listed()) == LIMIT


@pytest.mark.parametrize(("until_closed", "code"), [(True, 1008), (False, 0)])
async def test_a_token_ends_with_its_socket_when_it_shall(
    talk: Talk, until_closed: bool, code: int
) -> None:
    token = (await talk.issue(webview="view", until_closed=until_closed))["token"]
    first = await talk.say({"token": token}, invocation(TITLE))
    assert first.said[1]["allowed"]
    assert (await talk.say({"token": token})).closed_with == code


async def test_a_running_daemon_serves_the_bridge(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon = await daemons.start(home=serving(tmp_path / "home"))
    issued = await _issue(daemon, webview="view")
    url = daemon.url.replace("http", "ws") + "/api/desktop/ipc"
    async with connect(url, proxy=None) as socket:
        assert (await _say(socket, {"token": issued["token"]}))["status"] == "bound"
        assert (await _say(socket, invocation(TITLE)))["allowed"]
        assert not (await _say(socket, invocation("core:window:close")))["allowed"]
        listed = (await daemon.http.get("/api/desktop/tokens")).json()
        assert [binding["id"] for binding in listed] == [issued["id"]]
        revoked = await daemon.http.delete(f"/api/desktop/tokens/{issued['id']}")
        assert revoked.status_code == 200
        answer = await _say(socket, invocation(TITLE))
        assert answer["code"] == "unauthenticated"
        with pytest.raises(ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 1008


async def _issue(daemon: RunningDaemon, **binding: Any) -> dict[str, Any]:
    body = {"window": "main", **binding}
    answer = await daemon.http.post("/api/desktop/tokens", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def _say(socket: ClientConnection, frame: Frame) -> dict[str, Any]:
    await socket.send(json.dumps(frame))
    return dict(json.loads(await socket.recv()))


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


async def test_webviews_may_open_the_bridge_and_no_other_socket_of_theirs(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon = await daemons.start(home=serving(tmp_path / "home"))
    issued = await _issue(daemon, webview="view")
    url = daemon.url.replace("http", "ws") + "/api/desktop/ipc"
    for page in WEBVIEWS:
        async with connect(url, proxy=None, origin=Origin(page)) as socket:
            assert (await _say(socket, {"token": issued["token"]}))["status"] == "bound"
            assert (await _say(socket, invocation(TITLE)))["allowed"]
    elsewhere = daemon.url.replace("http", "ws") + "/api/agents/x/ws"
    for address, page in (
        (url, "https://evil.dev"),
        (url, "https://tauri.localhost.evil.dev"),
        (url, "null"),
        (elsewhere, WEBVIEWS[0]),
    ):
        with pytest.raises(InvalidStatus) as refused:
            await connect(address, proxy=None, origin=Origin(page))
        assert refused.value.response.status_code == 403
    posted = await daemon.http.post(
        "/api/desktop/tokens", json={"window": "main"}, headers={"origin": WEBVIEWS[0]}
    )
    assert posted.status_code == 403


async def test_the_bridge_takes_the_wire_s_own_arguments(talk: Talk) -> None:
    token = (await talk.issue(webview="view", resource="/r"))["token"]
    wire = await talk.say(
        {"token": token},
        invocation("plugin:shell|execute", program="git", options={"cwd": "/x"}),
        invocation("plugin:shell|execute", program="git", options={"sidecar": True}),
        invocation("plugin:shell|execute", program="git", argz=["x"]),
    )
    runs, no_sidecar, wrong = wire.said[1:]
    assert runs["argv"] == ["/r/git"]
    assert "is no sidecar" in no_sidecar["reason"]
    assert (wrong["code"], "argz" in wrong["error"]) == ("invalid_input", True)
