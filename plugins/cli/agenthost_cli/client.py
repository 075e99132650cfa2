"""Speak HTTP to the daemon that runs on a home."""

from __future__ import annotations

import http.client
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import CommandError
from .running import RunningDaemon, api_key, not_running, running_daemon


class Client:
    """Asks the daemon of a home.

    Raises:
        CommandError: From every method: nobody runs there, or it refused.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self.daemon: RunningDaemon = running_daemon(home)
        self._key = api_key(home)
        self.last_event_id = ""

    def get(self, path: str) -> Any:
        """Ask for JSON."""
        return self._ask("GET", path, None, 10)

    def post(self, path: str, body: object = None, *, timeout: float = 10) -> Any:
        """Send JSON and read the answer's."""
        return self._ask("POST", path, body, timeout)

    def put(self, path: str, body: object = None) -> Any:
        """Have something be so and read the answer's JSON."""
        return self._ask("PUT", path, body, 10)

    def patch(self, path: str, body: object) -> Any:
        """Send what is to change and read the answer's JSON."""
        return self._ask("PATCH", path, body, 10)

    def delete(self, path: str) -> Any:
        """Have something deleted and read the answer's JSON."""
        return self._ask("DELETE", path, None, 10)

    @property
    def address(self) -> str:
        """Where its page is."""
        scheme = "https" if self.daemon.fingerprint else "http"
        host = f"[{self.daemon.host}]" if ":" in self.daemon.host else self.daemon.host
        return f"{scheme}://{host}:{self.daemon.port}/"

    def events(
        self, path: str, body: object = None, *, timeout: float
    ) -> Generator[tuple[str, Any], None, None]:
        """Yield the events of an answer: their names and their data.

        JSON is sent where there is some. Leaving the iteration closes the connection;
        ``last_event_id`` is where it broke off: the next that sends nothing begins
        behind it.
        """
        method = "GET" if body is None else "POST"
        with self._asked(method, path, body, timeout) as answer:
            if answer.status >= 400:
                _read(answer.status, answer.read())
            name = ""
            for line in answer:
                field, _, value = line.decode().rstrip("\r\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "id":
                    self.last_event_id = value
                elif field == "data":
                    yield name, json.loads(value)

    def agent_id(self, name: str) -> str:
        """Find an agent by its name or id."""
        agents = self.get("/api/agents")
        for agent in agents:
            if name in (agent["name"], agent["id"]):
                return str(agent["id"])
        known = ", ".join(sorted(agent["name"] for agent in agents)) or "none"
        raise CommandError(f"no agent is named {name!r}; there are: {known}")

    def _ask(self, method: str, path: str, body: object, timeout: float) -> Any:
        with self._asked(method, path, body, timeout) as answer:
            return _read(answer.status, answer.read())

    @contextmanager
    def _asked(
        self, method: str, path: str, body: object, timeout: float
    ) -> Iterator[http.client.HTTPResponse]:
        headers = {"accept": "application/json"}
        if body is not None:
            headers["content-type"] = "application/json"
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        if method == "GET" and self.last_event_id:
            headers["last-event-id"] = self.last_event_id
        data = None if body is None else json.dumps(body).encode()
        connection = _connection(self.daemon, timeout)
        try:
            connection.request(method, path, data, headers)
            yield connection.getresponse()
        except ConnectionRefusedError:
            raise not_running(self._home) from None
        except TimeoutError:
            raise CommandError(f"no answer within {timeout:g} seconds") from None
        except (OSError, http.client.HTTPException) as error:
            raise CommandError(f"the connection broke off: {error}") from error
        finally:
            connection.close()


def _connection(daemon: RunningDaemon, timeout: float) -> http.client.HTTPConnection:
    if not daemon.fingerprint:
        return http.client.HTTPConnection(daemon.host, daemon.port, timeout=timeout)
    from .pinned import PinnedConnection

    return PinnedConnection(daemon, timeout)


def _read(status: int, body: bytes) -> Any:
    try:
        answer = json.loads(body)
    except ValueError:
        raise CommandError(f"the daemon answered {status} without JSON") from None
    if status < 400:
        return answer
    if status == 401:
        raise CommandError(
            "the daemon wants its key; set AGENTHOST_API_KEY or api_key in config.toml"
        )
    said = answer.get("error") if isinstance(answer, dict) else None
    raise CommandError(str(said or f"the daemon answered {status}"))
