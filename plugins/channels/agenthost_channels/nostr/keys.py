"""Keys, signatures and events. Source: NIP-01 and NIP-19."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Self

import bech32
from coincurve import PrivateKey, PublicKey, PublicKeyXOnly

HEX = re.compile(r"[0-9a-f]{64}")
SIGNATURE = re.compile(r"[0-9a-f]{128}")
Tags = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Event:
    """An event as relays carry it; ``sig`` is "" for one that is not signed."""

    id: str
    pubkey: str
    created_at: int
    kind: int
    tags: Tags
    content: str
    sig: str = ""

    @classmethod
    def read(cls, found: Any, *, signed: bool = True) -> Self:
        """Read an event; one that should be signed is verified.

        Raises:
            ValueError: It is no event, or its id or its signature is wrong.
        """
        if not isinstance(found, dict):
            raise ValueError("an event is a JSON object")  # noqa: TRY004 # malformed
        tags = found.get("tags")
        if not isinstance(tags, list) or not all(map(_is_tag, tags)):
            raise ValueError("an event has tags, of texts")
        stamp, kind = found.get("created_at"), found.get("kind")
        if type(stamp) is not int or type(kind) is not int or stamp < 0:
            raise ValueError("an event has a time and a kind")
        words = [found.get(each) for each in ("pubkey", "content", "id", "sig")]
        pubkey, content, name, sig = (w if isinstance(w, str) else "" for w in words)
        event = cls(name, pubkey, stamp, kind, tags, content, sig if signed else "")
        if not HEX.fullmatch(pubkey) or event.digest().hex() != name:
            raise ValueError("the id of the event is wrong")
        if signed and not event.is_signed():
            raise ValueError("the signature of the event is wrong")
        return event

    def digest(self) -> bytes:
        """Compute what the id is and what is signed."""
        words = [0, self.pubkey, self.created_at, self.kind, self.tags, self.content]
        return sha256(_json(words).encode()).digest()

    def is_signed(self) -> bool:
        """Tell whether its author has signed it."""
        if not SIGNATURE.fullmatch(self.sig):
            return False
        key = PublicKeyXOnly(bytes.fromhex(self.pubkey))
        return bool(key.verify(bytes.fromhex(self.sig), self.digest()))

    def as_json(self) -> dict[str, Any]:
        """Give it as it is sent."""
        found = {
            "id": self.id,
            "pubkey": self.pubkey,
            "created_at": self.created_at,
            "kind": self.kind,
            "tags": [list(tag) for tag in self.tags],
            "content": self.content,
        }
        return {**found, "sig": self.sig} if self.sig else found

    def as_text(self) -> str:
        """Give it as JSON text, which is what is encrypted."""
        return _json(self.as_json())

    def named(self, name: str) -> list[str]:
        """Give the values of the tags of a name."""
        return [tag[1] for tag in self.tags if len(tag) > 1 and tag[0] == name]


class Identity:
    """A private key, and what it can do. It is never shown."""

    def __init__(self, key: PrivateKey) -> None:
        self._key = key
        self.pubkey: str = PublicKeyXOnly.from_secret(key.secret).format().hex()

    @classmethod
    def new(cls) -> Self:
        """Make one that nobody knows."""
        return cls(PrivateKey())

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a private key, as ``nsec1...`` or in hexadecimal.

        Raises:
            ValueError: It is none.
        """
        text = text.strip()
        raw = _unpacked(text, "nsec") if text.startswith("nsec1") else text.lower()
        if not HEX.fullmatch(raw):
            raise ValueError("not a key")
        return cls(PrivateKey(bytes.fromhex(raw)))

    def event(self, kind: int, content: str, tags: Tags, at: int) -> Event:
        """Make an event of ours and sign it."""
        bare = self.unsigned(kind, content, tags, at)
        sig = self._key.sign_schnorr(bytes.fromhex(bare.id)).hex()
        return Event(bare.id, bare.pubkey, at, kind, tags, content, sig)

    def unsigned(self, kind: int, content: str, tags: Tags, at: int) -> Event:
        """Make an event of ours that nobody can show around as ours."""
        bare = Event("", self.pubkey, at, kind, tags, content)
        return Event(bare.digest().hex(), self.pubkey, at, kind, tags, content)

    def shared_with(self, pubkey: str) -> bytes:
        """Compute the secret that the owner of another key computes too.

        Raises:
            ValueError: The other key is none.
        """
        point = PublicKey(b"\x02" + bytes.fromhex(pubkey))
        shared: bytes = point.multiply(self._key.secret).format()
        return shared[1:]


def npub(pubkey: str) -> str:
    """Write a public key as people see it."""
    data = bech32.convertbits(bytes.fromhex(pubkey), 8, 5) or []
    return str(bech32.bech32_encode("npub", data))


def pubkey_of(name: str) -> str:
    """Read a public key that is written as ``npub1...``.

    Raises:
        ValueError: It is none.
    """
    return _unpacked(name, "npub")


def _unpacked(text: str, prefix: str) -> str:
    found, data = bech32.bech32_decode(text)
    raw = bech32.convertbits(data or [], 5, 8, pad=False)
    if found != prefix or not raw:
        raise ValueError(f"not a key that begins with {prefix}1")
    return bytes(raw).hex()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _is_tag(tag: Any) -> bool:
    return isinstance(tag, list) and all(isinstance(each, str) for each in tag)
