"""The key that heads and receipts are signed with; cryptography is imported late."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from agenthost import ConfigError

HEAD_TAG = b"agenthost-audit-head\x01"
RECEIPT_TAG = b"agenthost-audit-receipt\x01"
ALGORITHM = "ed25519"


class SigningKey:
    """An Ed25519 key.

    Args:
        seed: Its secret, 32 bytes.

    Attributes:
        public: What everybody may know of it, in hexadecimal.
    """

    def __init__(self, seed: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric import ed25519

        self._key = ed25519.Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self._key.public_key().public_bytes_raw().hex()

    def sign(self, tag: bytes, message: bytes) -> str:
        """Sign a message of a kind."""
        return self._key.sign(tag + message).hex()


def signed_by(public: str, tag: bytes, message: bytes, signature: object) -> bool:
    """Tell whether the holder of a key has signed a message of a kind."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ed25519

    try:
        key = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(str(signature)), tag + message)
    except (ValueError, InvalidSignature):
        return False
    return True


def public_in(path: Path) -> str | None:
    """Read what the key's file says of its public half; None when there is no file.

    Raises:
        ConfigError: It cannot be read.
    """
    facts = _read(path)
    return None if facts is None else str(facts.get("public", ""))


def load_key(path: Path) -> SigningKey:
    """Read the key, or make it where there is none.

    Raises:
        ConfigError: The file is no key, or others may read it.
    """
    facts = _read(path)
    if facts is None:
        return _made(path)
    if path.stat().st_mode & 0o077:
        raise ConfigError("audit.key: others may read it; run chmod 600 on it")
    try:
        key = SigningKey(bytes.fromhex(facts["private"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError("audit.key holds no key; put the right one back") from error
    if key.public != facts.get("public"):
        raise ConfigError("audit.key was changed; put the right one back")
    return key


def _made(path: Path) -> SigningKey:
    seed = os.urandom(32)
    key = SigningKey(seed)
    facts = {"algorithm": ALGORITHM, "public": key.public, "private": seed.hex()}
    # Made whole beside its place: a crash leaves no half of a key there.
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(facts, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
    sync_folder(path.parent)
    return key


def sync_folder(folder: Path) -> None:
    """Put what a folder lists on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigError("audit.key cannot be read; put the right one back") from error
    return facts if isinstance(facts, dict) else {}
