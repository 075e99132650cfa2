"""A model server that says one half, waits for the test, and says the other."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HALVES = ("first half", ", second half")


class SlowUpstream(ThreadingHTTPServer):
    """Speaks the OpenAI dialect; ``refuses`` answers every call with 401."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.go_on = threading.Event()
        self.refuses = False

    @property
    def config(self) -> str:
        """The configuration of a daemon that uses it by default."""
        return (
            '[default_model]\nprovider = "slow"\nmodel = "m1"\n'
            '[providers.slow]\ndialect = "openai-chat"\nmodels = ["m1"]\n'
            f'base_url = "http://127.0.0.1:{self.server_port}/v1"\n'
        )


class _Handler(BaseHTTPRequestHandler):
    server: SlowUpstream

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.refuses:
            self._refuse()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            self._say({"content": HALVES[0]}, None)
            self.server.go_on.wait(30)
            self._say({"content": HALVES[1]}, None)
            self._say({}, "stop")
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            return

    def _refuse(self) -> None:
        body = json.dumps({"error": {"message": "bad key", "type": "auth"}}).encode()
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _say(self, delta: dict[str, Any], finish: str | None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (named so above)
        """Keep standard error clean."""


@contextmanager
def upstream() -> Iterator[SlowUpstream]:
    """Serve it in a thread of its own."""
    with SlowUpstream() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.go_on.set()
            server.shutdown()
            thread.join()
