"""The command line and a daemon that speaks TLS."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from agenthost_cli.client import Client
from agenthost_cli.errors import CommandError

from tests.plugins.security.certificate import self_signed


class Handler(BaseHTTPRequestHandler):
    """Says that it is well."""

    heard: list[str]

    def do_GET(self) -> None:
        self.heard.append(self.path)
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - theirs
        """Say nothing."""


@pytest.mark.parametrize("itself", [True, False], ids=["the daemon", "another"])
def test_a_command_speaks_only_to_the_certificate_that_was_announced(
    tmp_path: Path, itself: bool
) -> None:
    cert, key = self_signed(tmp_path, "agents.example")

    class Here(Handler):
        heard: list[str] = []  # noqa: RUF012 - of this test alone

    server = ThreadingHTTPServer(("127.0.0.1", 0), Here)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    leaf = ssl.PEM_cert_to_DER_cert(cert.read_text())
    shown = sha256(leaf if itself else b"another").hexdigest()
    facts = {"pid": 1, "listen_addr": f"127.0.0.1:{server.server_address[1]}"}
    (tmp_path / "daemon.json").write_text(json.dumps({**facts, "tls_sha256": shown}))
    (tmp_path / "config.toml").write_text('api_key = "secret"\n')
    try:
        client = Client(tmp_path)
        if itself:
            assert client.get("/api/health") == {}
        else:
            with pytest.raises(CommandError, match="another certificate"):
                client.get("/api/health")
        assert Here.heard == (["/api/health"] if itself else [])
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.conformance
def test_a_daemon_with_tls_is_started_asked_and_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = self_signed(tmp_path, "agents.example")
    key.chmod(0o600)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    text = f'[server]\ntls_cert = "{cert}"\ntls_key = "{key}"\n'
    (home / "config.toml").write_text(text)
    monkeypatch.setenv("AGENTHOST_HOME", str(home))
    monkeypatch.setenv("AGENTHOST_LISTEN_ADDR", "127.0.0.1:0")

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "agenthost_cli", *words]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=90, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("start", "--detach")
    try:
        assert "agents: 0" in run("status")
    finally:
        assert "stopped" in run("stop")
    said = (home / "daemon.log").read_text()
    assert "serves at https://127.0.0.1:" in said
    assert "No api_key" not in said
