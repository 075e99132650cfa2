"""A daemon in a process of its own, so that a test can kill it."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

START_SECONDS = 60.0


class DaemonProcess:
    """``python -m agenthost`` on a home, with a client for it.

    Raises AssertionError with what the daemon said when it does not start.

    Args:
        home: Its home; kept when it ends.
        environ: Environment variables on top of a loopback port and the home.
        module: What is run instead of ``agenthost``, and ends up in it.
    """

    def __init__(
        self,
        home: Path,
        environ: Mapping[str, str] | None = None,
        module: str = "agenthost",
    ) -> None:
        self.home = home
        self._log = home.with_suffix(".log")
        self._log_file = self._log.open("ab")
        self.process = subprocess.Popen(  # noqa: S603 # nosec B603 # the harness' own argv
            [sys.executable, "-m", module],
            env={
                "PATH": os.environ.get("PATH", ""),
                "AGENTHOST_HOME": str(home),
                "AGENTHOST_LISTEN_ADDR": "127.0.0.1:0",
                "AGENTHOST_RATE_LIMIT__ENABLED": "false",
                **(environ or {}),
            },
            stdout=subprocess.DEVNULL,
            stderr=self._log_file,
        )
        try:
            address = self._address()
        except BaseException:
            self._end()
            raise
        # Certificates are not read for a plain connection: that takes 20 ms.
        self.http = httpx.Client(
            base_url=address,
            timeout=30,
            trust_env=False,
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    @property
    def log(self) -> str:
        """What it has said on standard error, in all its lives on this home."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.process.kill()
        self.process.wait()

    def terminate(self, patience: float = 30.0) -> int:
        """Ask it to end and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.http.close()
        self._end()

    def _end(self) -> None:
        if self.process.poll() is None:
            self.kill()
        self._log_file.close()

    def _address(self) -> str:
        deadline = time.monotonic() + START_SECONDS
        announced = self.home / "daemon.json"
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the daemon did not start:\n{self.log}")
            try:
                facts = json.loads(announced.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                facts = {}
            if facts.get("pid") == self.process.pid:
                return f"http://{facts['listen_addr']}"
            time.sleep(0.01)
        raise AssertionError(f"the daemon did not announce itself:\n{self.log}")
