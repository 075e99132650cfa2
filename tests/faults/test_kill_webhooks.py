"""kill -9 during webhooks: what was acknowledged is answered once, after it."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess
from agenthost_channels.webhook.signing import signed, verified

from tests.acceptance.test_offline import create

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()
ENVIRON = {"WEBHOOK_SECRET": SECRET}
SENDERS = 8
PATIENCE = 120.0


class Program(ThreadingHTTPServer):
    """Hears the answers, each by its own id: one that comes twice is one."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Heard)
        self.answers: dict[str, str] = {}
        self.changed = threading.Condition()

    def wait(self, count: int) -> None:
        """Wait until so many answers are there."""
        with self.changed:
            done = self.changed.wait_for(
                lambda: len(self.answers) >= count, timeout=PATIENCE
            )
        assert done, f"{len(self.answers)} of {count} are answered"


class Heard(BaseHTTPRequestHandler):
    """Takes an answer."""

    server: Program

    def do_POST(self) -> None:
        """Verify it and remember it."""
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        name = verified(SECRET, headers, body, time.time())
        with self.server.changed:
            self.server.answers[name] = json.loads(body)["reply_to"]
            self.server.changed.notify_all()
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def listening() -> Iterator[Program]:
    program = Program()
    thread = threading.Thread(target=program.serve_forever)
    thread.start()
    try:
        yield program
    finally:
        program.shutdown()
        thread.join()
        program.server_close()


def post(http: httpx.Client, name: str) -> bool:
    """Send a webhook; tell whether it was acknowledged."""
    call = {"conversation": f"c-{name[-1]}", "sender": "ada", "text": f"hello {name}"}
    body = json.dumps(call).encode()
    headers = signed(SECRET, name, int(time.time()), body)
    headers["content-type"] = "application/json"
    try:
        answer = http.post("/channels/webhook/in", content=body, headers=headers)
    except httpx.TransportError:
        return False
    return answer.status_code == 202


def opened(daemon: DaemonProcess) -> None:
    """Wait until the channel is connected."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        rows = daemon.http.get("/api/channels").json()["channels"]
        if any(row["name"] == "webhook" and row["connected"] for row in rows):
            return
        time.sleep(0.02)
    raise AssertionError(daemon.log)


def kill_while_called(home: Path, count: int, kills: int) -> None:
    names = [f"msg_{number}" for number in range(count)]
    acknowledged: set[str] = set()
    with listening() as program:
        home.mkdir(mode=0o700)
        (home / "config.toml").write_text(
            '[channels.webhook]\nagent = "helper"\nallow_from = ["ada"]\n'
            f'url = "http://127.0.0.1:{program.server_port}/"\n'
            'allowed_hosts = ["127.0.0.1"]\n'
        )
        (home / "config.toml").chmod(0o600)
        for life in range(kills):
            with DaemonProcess(home, ENVIRON) as daemon:
                if not life:
                    create(daemon.http, "helper")
                opened(daemon)
                until = count * (life + 1) // (kills + 1)
                kill_amid(daemon, names, acknowledged, until)
        assert len(acknowledged) >= count * kills // (kills + 1)
        with DaemonProcess(home, ENVIRON) as daemon:
            # Who was acknowledged does not send again; the others do, as services do.
            opened(daemon)
            rest = [name for name in names if name not in acknowledged]
            assert rest
            for name in rest:
                assert post(daemon.http, name), daemon.log
            program.wait(count)
    assert sorted(program.answers.values()) == sorted(names)


def kill_amid(
    daemon: DaemonProcess, names: list[str], acknowledged: set[str], until: int
) -> None:
    """Send what is not acknowledged, several at once; kill when so many are."""
    left = iter([name for name in names if name not in acknowledged])
    changed = threading.Condition()
    dead = threading.Event()

    def work() -> None:
        while not dead.is_set():
            with changed:
                name = next(left, None)
            if name is None:
                return
            if post(daemon.http, name):
                with changed:
                    acknowledged.add(name)
                    changed.notify_all()

    with ThreadPoolExecutor(SENDERS) as pool:
        for _ in range(SENDERS):
            pool.submit(work)
        with changed:
            enough = changed.wait_for(lambda: len(acknowledged) >= until, PATIENCE)
        daemon.kill()
        dead.set()
    assert enough, daemon.log


@pytest.mark.conformance
def test_a_kill_during_webhooks_loses_none_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    kill_while_called(tmp_path / "home", 40, kills=1)


@pytest.mark.faults
def test_kills_during_webhooks_lose_none_that_was_acknowledged(tmp_path: Path) -> None:
    kill_while_called(tmp_path / "home", 400, kills=4)
