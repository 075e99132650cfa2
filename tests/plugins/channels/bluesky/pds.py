"""A real host of accounts (@atproto/pds), a directory of DIDs, and people there."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from agenthost_channels.testing.servers import free_port

PROGRAM = Path(__file__).parents[4] / ".cache/programs/pds"
SCRIPT = Path(__file__).with_name("pds.mjs")
UP_SECONDS = 60


class Person:
    """One account, by the host's API."""

    def __init__(self, base: str, made: dict[str, str]) -> None:
        self.did = made["did"]
        self._client = httpx.AsyncClient(
            base_url=f"{base}/xrpc/",
            headers={"authorization": f"Bearer {made['accessJwt']}"},
            trust_env=False,
            timeout=30,
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def ask(self, name: str, **query: Any) -> Any:
        answered = await self._client.get(name, params=query)
        assert answered.status_code == 200, answered.text
        return answered.json()

    async def call(self, name: str, given: Any) -> Any:
        answered = await self._client.post(name, json=given)
        assert answered.status_code == 200, answered.text
        return answered.json()

    async def upload(self, kind: str, data: bytes) -> Any:
        answered = await self._client.post(
            "com.atproto.repo.uploadBlob", content=data, headers={"content-type": kind}
        )
        assert answered.status_code == 200, answered.text
        return answered.json()["blob"]

    async def post(self, record: Any) -> Any:
        given = {"repo": self.did, "collection": record["$type"], "record": record}
        return await self.call("com.atproto.repo.createRecord", given)

    async def app_password(self, *, privileged: bool) -> str:
        given = {"name": secrets.token_hex(4), "privileged": privileged}
        made = await self.call("com.atproto.server.createAppPassword", given)
        return str(made["password"])

    async def posts(self) -> list[Any]:
        query = {"repo": self.did, "collection": "app.bsky.feed.post", "limit": 100}
        listed = await self.ask("com.atproto.repo.listRecords", **query)
        found: list[Any] = listed["records"]
        return sorted(found, key=lambda each: each["value"]["createdAt"])


class Host:
    """The host: who is there gets an account by ``join``, until all leave.

    Attributes:
        url: Its address.
        directory: That of the directory of DIDs.
        behind: The port at which it looks for its AppView and chat service.
    """

    def __init__(self) -> None:
        self.url, self.directory = (f"http://127.0.0.1:{free_port()}" for _ in "ab")
        self.behind = free_port()
        self._word = secrets.token_hex(16)
        self._people: list[Person] = []

    async def join(self, name: str) -> Person:
        given = {
            "handle": f"{name}.test",
            "email": f"{name}@example.org",
            "password": secrets.token_hex(8),
        }
        address = f"{self.url}/xrpc/com.atproto.server.createAccount"
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            answered = await client.post(address, json=given)
        assert answered.status_code == 200, answered.text
        person = Person(self.url, answered.json())
        self._people.append(person)
        return person

    async def leave(self) -> None:
        """Delete all accounts: others may have their names."""
        address = f"{self.url}/xrpc/com.atproto.admin.deleteAccount"
        admin = httpx.BasicAuth("admin", self._word)
        async with httpx.AsyncClient(auth=admin, trust_env=False) as client:
            for each in self._people:
                await each.aclose()
                answered = await client.post(address, json={"did": each.did})
                assert answered.status_code == 200, answered.text
        self._people.clear()

    def environ(self, folder: Path) -> dict[str, str]:
        """Say how it is to be."""
        behind = f"http://127.0.0.1:{self.behind}"
        return {
            "PATH": os.environ["PATH"],
            "CHAT_URL": behind,
            "LOG_ENABLED": "false",
            "PDS_HOSTNAME": "localhost",
            "PDS_PORT": self.url.rpartition(":")[2],
            "PDS_DATA_DIRECTORY": str(folder),
            "PDS_BLOBSTORE_DISK_LOCATION": str(folder / "blobs"),
            "PDS_DID_PLC_URL": self.directory,
            "PDS_BSKY_APP_VIEW_URL": behind,
            "PDS_BSKY_APP_VIEW_DID": "did:web:api.bsky.app",
            "PDS_SERVICE_HANDLE_DOMAINS": ".test",
            "PDS_INVITE_REQUIRED": "false",
            "PDS_DISABLE_SSRF_PROTECTION": "true",
            "PDS_PROXY_ALLOW_HTTP": "true",
            "PDS_DEV_MODE": "true",
            "PDS_JWT_SECRET": secrets.token_hex(16),
            "PDS_DPOP_SECRET": secrets.token_hex(32),
            "PDS_ADMIN_PASSWORD": self._word,
            "PDS_PLC_ROTATION_KEY_K256_PRIVATE_KEY_HEX": secrets.token_hex(32),
        }


@asynccontextmanager
async def real_host(folder: Path) -> AsyncIterator[Host]:
    """Run a host, and a directory of DIDs beside it."""
    if not (PROGRAM / ".installed").exists():
        pytest.skip("no @atproto/pds here: make channels installs it")
    host = Host()
    node = PROGRAM / "node_modules" / _node() / "bin/node"
    process = await asyncio.create_subprocess_exec(
        *(str(node), "--input-type=module", "--eval", SCRIPT.read_text()),
        cwd=PROGRAM,
        env=host.environ(folder),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await _healthy(host.url, process)
        yield host
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _node() -> str:
    kind = {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine, "x64")
    return f"node-linux-{kind}"


async def _healthy(url: str, process: asyncio.subprocess.Process) -> None:
    async with (
        asyncio.timeout(UP_SECONDS),
        httpx.AsyncClient(trust_env=False) as client,
    ):
        while True:
            assert process.returncode is None, "the host has ended"
            try:
                if (await client.get(f"{url}/xrpc/_health")).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)
