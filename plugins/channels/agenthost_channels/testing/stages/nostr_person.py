"""A person with the vendor's own library, at a relay."""

import asyncio
import json
from typing import Any, Self

import pytest
from aiohttp import ClientSession

MISSING = "no nostr-sdk here: pip install 'agenthost[judges]'"
sdk = pytest.importorskip("nostr_sdk", reason=MISSING)

WRAP, OLD = 1059, 4


class Person:
    """Writes letters to one key, and reads what comes."""

    def __init__(self, url: str, to: str) -> None:
        self._url = url
        self._to = sdk.PublicKey.parse(to)
        self.keys = sdk.Keys.generate()
        self.hex = self.keys.public_key().to_hex()
        self.npub = self.keys.public_key().to_bech32()
        self.got: list[tuple[str, str, dict[str, Any]]] = []
        self.last: dict[str, Any] = {}
        self._answers: dict[str, asyncio.Future[list[Any]]] = {}
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._session = ClientSession()
        self._socket = await self._session.ws_connect(self._url)
        wanted = {"kinds": [WRAP, OLD], "#p": [self.hex]}
        await self._socket.send_json(["REQ", "mine", wanted])
        self._task = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._socket.close()
        await self._session.close()

    async def publish(self, event: Any) -> list[Any]:
        answered = asyncio.get_running_loop().create_future()
        self._answers[event["id"]] = answered
        await self._socket.send_json(["EVENT", event])
        async with asyncio.timeout(20):
            found: list[Any] = await answered
        return found

    async def write(self, text: str, *tags: list[str]) -> None:
        """Write by NIP-17."""
        extra = [sdk.Tag.parse(tag) for tag in tags]
        event = sdk.nip17_make_private_msg(self.keys, self._to, text, None, extra)
        self.last = json.loads(event.as_json())
        _, _, taken, reason = await self.publish(self.last)
        assert taken, reason

    def rumor(self, **changed: Any) -> Any:
        """Make a letter that is not what it says it is."""
        made = {
            "pubkey": self.hex,
            "created_at": sdk.Timestamp.now().as_secs(),
            "kind": 14,
            "tags": [["p", self._to.to_hex()]],
            "content": "x",
        }
        return sdk.UnsignedEvent.from_json(json.dumps({**made, **changed}))

    def wrapped(self, rumor: Any, **more: Any) -> Any:
        event = sdk.nip59_make_gift_wrap(self.keys, self._to, rumor, None, [])
        return {**json.loads(event.as_json()), **more}

    def event(self, kind: int, content: str, *tags: list[str]) -> Any:
        """Make an event of any kind, signed."""
        made = {
            "pubkey": self.hex,
            "created_at": sdk.Timestamp.now().as_secs(),
            "kind": kind,
            "tags": [["p", self._to.to_hex()], *tags],
            "content": content,
        }
        unsigned = sdk.UnsignedEvent.from_json(json.dumps(made))
        return json.loads(unsigned.sign(self.keys).as_json())

    def of_old(self, text: str) -> Any:
        hidden = sdk.nip04_encrypt(self.keys.secret_key(), self._to, text)
        return self.event(OLD, hidden)

    async def seen(self, count: int) -> list[str]:
        async with asyncio.timeout(20):
            while len(self.got) < count:
                self._changed.clear()
                await self._changed.wait()
        return [text for _, text, _ in self.got]

    async def asked(self, wanted: Any) -> list[dict[str, Any]]:
        """Ask the relay for something, on a connection of its own."""
        found = []
        connecting = self._session.ws_connect(self._url)
        async with asyncio.timeout(20), connecting as socket:
            await socket.send_json(["REQ", "asked", wanted])
            async for frame in socket:
                kind, *rest = frame.json()
                if kind == "EOSE":
                    break
                found.append(rest[1])
        return found

    async def _read(self) -> None:
        async for frame in self._socket:
            kind, *rest = frame.json()
            if kind == "OK":
                self._answers.pop(rest[0]).set_result([kind, *rest])
            elif kind == "EVENT":
                self.got.append(self._opened(rest[1]))
            self._changed.set()

    def _opened(self, found: Any) -> tuple[str, str, dict[str, Any]]:
        event = sdk.Event.from_json(json.dumps(found))
        assert event.verify()
        if found["kind"] == OLD:
            secret = self.keys.secret_key()
            author = sdk.PublicKey.parse(found["pubkey"])
            text = sdk.nip04_decrypt(secret, author, found["content"])
            return found["pubkey"], text, found
        gift = sdk.UnwrappedGift.from_gift_wrap(self.keys, event)
        rumor = json.loads(gift.rumor().as_json())
        return gift.sender().to_hex(), rumor["content"], rumor
