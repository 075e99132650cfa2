"""A homeserver of one test module, and people in it."""

import hashlib
import hmac
import itertools
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from agenthost_channels.testing.servers import free_port

PYTHON = Path(__file__).parents[4] / ".cache/programs/synapse/bin/python"
UP_SECONDS = 60
CONFIGURATION = """\
server_name: test.local
report_stats: false
pid_file: {folder}/pid
signing_key_path: {folder}/key
media_store_path: {folder}/media
log_config: {folder}/log.yaml
database: {{name: sqlite3, args: {{database: "{folder}/db"}}}}
registration_shared_secret: shared
macaroon_secret_key: macaroon
form_secret: form
trusted_key_servers: []
bcrypt_rounds: 4
max_upload_size: 20M
listeners:
  - {{port: {port}, type: http, bind_addresses: ["127.0.0.1"],
      resources: [{{names: [client, media]}}]}}
rc_message: {{per_second: 1000, burst_count: 1000}}
rc_joins: {{local: {{per_second: 1000, burst_count: 1000}}}}
rc_invites: {{per_room: {{per_second: 1000, burst_count: 1000}},
  per_user: {{per_second: 1000, burst_count: 1000}},
  per_issuer: {{per_second: 1000, burst_count: 1000}}}}
rc_registration: {{per_second: 1000, burst_count: 1000}}
rc_login: {{address: {{per_second: 1000, burst_count: 1000}}}}
"""
LOG = "version: 1\nroot: {level: ERROR}\n"


class User:
    """One person, by the client-server API."""

    _keys = itertools.count()

    def __init__(self, port: int, user: str, token: str) -> None:
        self.id = user
        self.token = token
        self._base = f"http://127.0.0.1:{port}"
        self._client = httpx.AsyncClient(trust_env=False, timeout=40)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def call(self, method: str, path: str, **given: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", **given.pop("headers", {})}
        url = f"{self._base}{path}"
        answered = await self._client.request(method, url, headers=headers, **given)
        assert answered.status_code == 200, answered.text
        kind = answered.headers["content-type"]
        return answered.json() if "json" in kind else answered.content

    async def room(self, *invited: "User") -> str:
        names = [each.id for each in invited]
        body = {"invite": names, "preset": "trusted_private_chat"}
        made = await self.call("POST", "/_matrix/client/v3/createRoom", json=body)
        room: str = made["room_id"]
        for each in invited:
            path = f"/_matrix/client/v3/rooms/{quote(room)}/join"
            await each.call("POST", path, json={})
        return room

    async def send(self, room: str, content: Any, kind: str = "m.room.message") -> str:
        key = f"k{next(self._keys)}"
        path = f"/_matrix/client/v3/rooms/{quote(room)}/send/{kind}/{key}"
        event: str = (await self.call("PUT", path, json=content))["event_id"]
        return event

    async def until(
        self, room: str, wanted: Callable[[list[Any]], Any], sender: str
    ) -> Any:
        """Look at what somebody sent to a room until it is what is waited for."""
        since = None
        ends = time.monotonic() + 20
        while time.monotonic() < ends:
            query = {"dir": "b", "limit": "1000"}
            path = f"/_matrix/client/v3/rooms/{quote(room)}/messages"
            page = await self.call("GET", path, params=query)
            sent = [each for each in page["chunk"][::-1] if each["sender"] == sender]
            if found := wanted(sent):
                return found
            query = {"timeout": "1000", **({"since": since} if since else {})}
            news = await self.call("GET", "/_matrix/client/v3/sync", params=query)
            since = news["next_batch"]
        raise AssertionError("it never came")


@contextmanager
def homeserver(folder: Path) -> Iterator[int]:
    if not PYTHON.exists():
        pytest.skip("no synapse here: make channels installs it")
    port = free_port()
    path = folder / "homeserver.yaml"
    path.write_text(CONFIGURATION.format(folder=folder, port=port))
    (folder / "log.yaml").write_text(LOG)
    argv = [str(PYTHON), "-m", "synapse.app.homeserver", "-c", str(path)]
    subprocess.run([*argv, "--generate-keys"], check=True, capture_output=True)
    null = subprocess.DEVNULL
    with subprocess.Popen(argv, cwd=folder, stdout=null, stderr=null) as process:
        try:
            _wait(port, process)
            yield port
        finally:
            process.terminate()
            process.wait(20)


def _wait(port: int, process: "subprocess.Popen[bytes]") -> None:
    ends = time.monotonic() + UP_SECONDS
    while time.monotonic() < ends:
        assert process.poll() is None, "synapse has ended"
        try:
            httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("synapse did not come up")


def registered(port: int, name: str) -> tuple[str, str]:
    url = f"http://127.0.0.1:{port}/_synapse/admin/v1/register"
    nonce = httpx.get(url, trust_env=False).json()["nonce"]
    words = "\0".join([nonce, name, "password", "notadmin"]).encode()
    proof = hmac.new(b"shared", words, hashlib.sha1).hexdigest()
    body = {"nonce": nonce, "username": name, "password": "password", "mac": proof}
    made = httpx.post(url, json={**body, "admin": False}, trust_env=False).json()
    return made["user_id"], made["access_token"]
