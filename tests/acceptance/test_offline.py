"""A fresh machine: the offline provider's agent at work, over every surface."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess
from websockets.asyncio.client import connect

MANIFEST = """
name = "{name}"
[capabilities]
tools = ["file_list", "file_read", "file_write", "kv_get", "kv_set", "calculate",
  "agent_call"]
memory_read = ["*"]
memory_write = ["self.*"]
agent_message = ["*"]
"""


def create(http: httpx.Client, name: str) -> str:
    answer = http.post(
        "/api/agents", json={"manifest_toml": MANIFEST.format(name=name)}
    )
    assert answer.status_code == 201, answer.text
    return str(answer.json()["agent_id"])


def over_rest(http: httpx.Client, agent_id: str, text: str) -> str:
    answer = http.post(f"/api/agents/{agent_id}/message", json={"message": text})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["response"])


def over_sse(http: httpx.Client, agent_id: str, text: str) -> str:
    said, dones, name = "", 0, ""
    with http.stream(
        "POST", f"/api/agents/{agent_id}/message/stream", json={"message": text}
    ) as answer:
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                data: dict[str, Any] = json.loads(line.removeprefix("data: "))
                said += data.get("content", "") if name == "chunk" else ""
                dones += name == "done"
    assert dones == 1
    return said


def over_socket(http: httpx.Client, agent_id: str, text: str) -> str:
    url = str(http.base_url).replace("http", "ws") + f"/api/agents/{agent_id}/ws"

    async def chat() -> str:
        async with connect(url, proxy=None) as socket:
            await socket.send(json.dumps({"type": "message", "content": text}))
            while True:
                frame = json.loads(await socket.recv())
                assert frame["type"] != "error", frame
                if frame["type"] == "response":
                    return str(frame["content"])

    return asyncio.run(chat())


SAID = [
    over_rest,
    *(
        pytest.param(say, marks=pytest.mark.conformance)
        for say in (over_sse, over_socket)
    ),
]


@pytest.mark.parametrize("say", SAID)
def test_an_offline_agent_works_and_remembers_across_a_restart(
    tmp_path: Path, say: Any
) -> None:
    home = tmp_path / "home"
    with DaemonProcess(home) as daemon:
        ada = create(daemon.http, "ada")
        create(daemon.http, "bob")
        assert "notes.txt" in say(daemon.http, ada, "write hello to notes.txt")
        assert "notes.txt" in say(daemon.http, ada, "list files")
        assert "hello" in say(daemon.http, ada, "read notes.txt")
        assert "colour is blue" in say(daemon.http, ada, "remember colour is blue")
        assert "42" in say(daemon.http, ada, "calculate 6 * 7")
        assert "7" in say(daemon.http, ada, "ask bob to calculate 3 + 4")
        assert daemon.terminate() == 0
    with DaemonProcess(home) as daemon:
        assert "blue" in say(daemon.http, ada, "recall colour")
        session = daemon.http.get(f"/api/agents/{ada}/session").json()
        assert session["messages"][0]["content"] == "write hello to notes.txt"


def test_a_second_daemon_on_the_same_home_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with DaemonProcess(home) as first:
        with pytest.raises(AssertionError, match="another agenthost"):
            DaemonProcess(home)
        assert first.http.get("/api/health").json()["status"] == "ok"


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with DaemonProcess(tmp_path / "one") as first:
        port = first.http.base_url.port
        with pytest.raises(AssertionError, match=str(port)):
            DaemonProcess(
                tmp_path / "two", {"AGENTHOST_LISTEN_ADDR": f"127.0.0.1:{port}"}
            )


def test_a_broken_configuration_is_named_by_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('api_key = "k"\n[turns]\nmax_iterations = "x"\n')
    with pytest.raises(AssertionError, match=r"line 3.*turns.max_iterations"):
        DaemonProcess(home)
