"""Twenty keys, five hundred calls each: where they are once they are deleted."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from agenthost.testing.processes import DaemonProcess

from .figures import told

pytestmark = pytest.mark.security

KEYS = 20
CALLS = 500
TOGETHER = 8
SAID = {"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}
CHUNK = {"id": "a", "object": "chat.completion.chunk", "model": "m", "choices": [SAID]}
ANSWER = f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n"


class Echo(BaseHTTPRequestHandler):
    """A vendor that answers, or refuses with the key in its words, as JSON or not."""

    protocol_version = "HTTP/1.1"
    count = 0
    seen: frozenset[str] = frozenset()

    def do_POST(self) -> None:
        """Answer one call, in one of three ways."""
        self.rfile.read(int(self.headers["Content-Length"]))
        shown = self.headers["Authorization"]
        Echo.count += 1
        Echo.seen |= {shown.removeprefix("Bearer ")}
        status, text = 200, ANSWER
        if Echo.count % 5 == 1:
            status, text = 400, json.dumps({"error": {"message": f"no: {shown}"}})
        elif Echo.count % 5 == 2:
            status, text = 400, f"<html>{shown}</html>"
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def vendor() -> Iterator[int]:
    """Serve the vendor; give its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def config(port: int) -> str:
    """Twenty providers of one vendor, all in words, and a log that says everything."""
    tables = [
        f'[providers.canary{n}]\ndialect = "openai-chat"\n'
        f'base_url = "http://127.0.0.1:{port}/v1"\n'
        for n in range(KEYS)
    ]
    return 'log_level = "debug"\n' + "".join(tables)


def talk(daemon: DaemonProcess, agent: str) -> str:
    """Send one message; give all of what came back."""
    answer = daemon.http.post(f"/api/agents/{agent}/message", json={"message": "so?"})
    return f"{answer.headers}{answer.text}"


def stored(home: Path, keys: Sequence[str]) -> int:
    """Count keys in files: the database and its log, backups, the vault, the log."""
    files = [path for path in home.parent.rglob("*") if path.is_file()]
    data = [path.read_bytes() for path in files]
    return sum(key.encode() in each for key in keys for each in data)


def shown(pid: int, keys: Sequence[str]) -> int:
    """Count keys in command lines and environments, also of child processes."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    pids = [pid, *(int(child) for task in tasks for child in task.read_text().split())]
    names = ("cmdline", "environ")
    data = [
        Path(f"/proc/{each}/{name}").read_bytes() for each in pids for name in names
    ]
    return sum(key.encode() in each for key in keys for each in data)


def in_memory(pid: int, keys: Sequence[str]) -> int:
    """Count what is left of keys in the memory of the process; only root can."""
    copies = 0
    wanted = [key.encode() for key in keys]
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, rights, *_ = line.split()
            if not rights.startswith("rw"):
                continue
            first, last = (int(each, 16) for each in span.split("-"))
            memory.seek(first)
            try:
                data = memory.read(last - first)
            except OSError:
                continue
            copies += sum(data.count(key) for key in wanted)
    return copies


def test_deleted_keys_are_nowhere(tmp_path: Path) -> None:
    keys = [f"sk-{secrets.token_hex(24)}" for _ in range(KEYS)]
    home = tmp_path / "home"
    home.mkdir()
    with vendor() as port:
        (home / "config.toml").write_text(config(port))
        with DaemonProcess(home) as daemon:
            answers = converse(daemon, keys)
            assert Echo.seen == set(keys)
            held = in_memory(daemon.process.pid, keys)
            for number in range(KEYS):
                path = f"/api/providers/canary{number}/key"
                assert daemon.http.delete(path).status_code == 200
            pages = ("/api/config", "/api/providers", "/api/health/detail")
            answers += [daemon.http.get(page).text for page in pages]
            talked = sum(key in answer for key in keys for answer in answers)
            proc = shown(daemon.process.pid, keys)
            left = in_memory(daemon.process.pid, keys)
            assert daemon.terminate() == 0
        disk = stored(home, keys)
    told("secret_zeroization: keys in answers", "0", str(talked))
    told("secret_zeroization: keys in files and logs", "0", str(disk))
    told("secret_zeroization: keys in process list and environments", "0", str(proc))
    copies = f"{left} of {KEYS} keys ({held} before they were deleted)"
    told("secret_zeroization: copies left in memory", "counted", copies)
    assert (talked, disk, proc) == (0, 0, 0)


def converse(daemon: DaemonProcess, keys: Sequence[str]) -> list[str]:
    """Give each provider its key and an agent, and let all of them be asked."""
    agents: list[str] = []
    for number, key in enumerate(keys):
        path = f"/api/providers/canary{number}/key"
        assert daemon.http.post(path, json={"api_key": key}).status_code == 200
        model = f'[model]\nprovider = "canary{number}"\nmodel = "m"\n'
        manifest = {"manifest_toml": f'name = "a{number}"\n{model}'}
        made = daemon.http.post("/api/agents", json=manifest)
        assert made.status_code == 201, made.text
        agents.append(made.json()["agent_id"])
    with ThreadPoolExecutor(TOGETHER) as pool:
        wanted = [agent for _ in range(CALLS) for agent in agents]
        return list(pool.map(lambda agent: talk(daemon, agent), wanted))
