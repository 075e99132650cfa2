"""Where keys are kept: one encrypted file."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from pathlib import Path
from tempfile import mkstemp
from threading import Lock

from agenthost import ConfigError, InvalidInput, Secret, StorageFull, Unavailable
from agenthost_values.secret_bytes import SecretBytes

KEY_BYTES = 32
NONCE_BYTES = 12
KEY_VARIABLE = "AGENTHOST_VAULT_KEY"
CREDENTIAL = "agenthost-vault-key"
FAMILY = b"agenthost vault "
HEADER = FAMILY + b"1\n"
"""First line of the file and associated data of its one sealed message."""

HEX_KEY = re.compile(r"[0-9a-fA-F]{64}")


class HeldSecret(Secret):
    """A secret in memory of its own, wiped when nobody holds it any more."""

    __slots__ = ("_held",)

    def __init__(self, value: str) -> None:
        self._held = SecretBytes(bytearray(value, "utf-8", "surrogatepass"))

    def reveal(self) -> str:
        """Hand out the value, for the header that needs it."""
        return self._held.text()


class FileVault:
    """Secrets by name in one encrypted file (AES-256-GCM), written as a whole.

    The file is read at the first use and remembered; it belongs to one process. Use
    it from the event loop: reads are answered from memory, a change is written on a
    thread.

    Args:
        path: The file; it need not exist. Its folder must.
        key: Finds the 32 bytes of the key, as ``vault_key`` does; asked for only when
            there is something to open or to keep.
    """

    def __init__(self, path: Path, key: Callable[[], bytes]) -> None:
        self._path = path
        self._key = key
        self._secrets: dict[str, HeldSecret] | None = None
        self._master: SecretBytes | None = None
        self.revision = 0
        # A lock of threads: what writes is called off the loop, several at once.
        self._writing = Lock()

    def get(self, name: str) -> Secret | None:
        """Give a secret, or None when there is none of this name.

        Raises:
            ConfigError: The file was changed, or sealed with another key.
            Unavailable: The disk refused to read it.
        """
        return self._opened().get(name)

    def names(self) -> list[str]:
        """List the names, sorted.

        Raises:
            ConfigError: The file was changed, or sealed with another key.
            Unavailable: The disk refused to read it.
        """
        return sorted(self._opened())

    async def change(self, secrets: Mapping[str, str | None]) -> None:
        """Keep these secrets, forget those that are None: all, on disk, or none.

        A change whose caller was cancelled may still happen.

        Raises:
            InvalidInput: A name or a value is empty.
            ConfigError: The file was changed, or sealed with another key.
            StorageFull: The disk has no room; nothing changed.
            Unavailable: The disk refused to write.
        """
        if "" in secrets:
            raise InvalidInput("name", "a secret needs a name")
        if "" in secrets.values():
            raise InvalidInput("value", "a secret cannot be empty; delete it instead")
        # Opened before the thread begins, so that no reader opens the file beside it
        # and puts what it read in place of what the thread has just written.
        self._opened()
        await asyncio.to_thread(self._change, dict(secrets))

    def _change(self, secrets: Mapping[str, str | None]) -> None:
        # A lock of threads: it outlives a caller that is cancelled meanwhile.
        with self._writing:
            before = self._opened()
            rest = {name: before[name] for name in before.keys() - secrets.keys()}
            given = {name: HeldSecret(v) for name, v in secrets.items() if v}
            if given or len(rest) < len(before):
                self._keep({**rest, **given})

    def _opened(self) -> dict[str, HeldSecret]:
        if self._secrets is None:
            with disk_faults():
                self._secrets = self._read()
        return self._secrets

    def _read(self) -> dict[str, HeldSecret]:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        return unsealed(data, self._key_held())

    def _key_held(self) -> bytes:
        # Looked for once: each time leaves copies that nobody can wipe.
        if self._master is None:
            self._master = SecretBytes(self._key())
        return self._master.data()

    def _keep(self, secrets: dict[str, HeldSecret]) -> None:
        with disk_faults():
            replace_file(self._path, sealed(secrets, self._key_held()))
        self._secrets = secrets
        self.revision += 1


@contextmanager
def disk_faults() -> Iterator[None]:
    """Tell what the disk refuses as the store does.

    Raises:
        StorageFull: There is no room.
        Unavailable: Anything else.
    """
    try:
        yield
    except OSError as error:
        if error.errno in {ENOSPC, EDQUOT}:
            raise StorageFull(
                "the disk is full; free some space and try again"
            ) from error
        raise Unavailable("the disk refused to read or write the vault") from error


def sealed(secrets: Mapping[str, Secret], key: bytes) -> bytes:
    """Encrypt all secrets under a fresh nonce."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    plain = _plain(secrets)
    nonce = os.urandom(NONCE_BYTES)
    try:
        return HEADER + nonce + AESGCM(key).encrypt(nonce, plain, HEADER)
    finally:
        plain[:] = bytes(len(plain))


def _plain(secrets: Mapping[str, Secret]) -> bytearray:
    """Write them as JSON into memory that can be wiped, at once in its full size."""
    pieces = [b"{"]
    for name, secret in secrets.items():
        pieces.append(b", " if len(pieces) > 1 else b"")
        pieces.append(f"{json.dumps(name)}: {json.dumps(secret.reveal())}".encode())
    pieces.append(b"}")
    plain, at = bytearray(sum(map(len, pieces))), 0
    for piece in pieces:
        plain[at : at + len(piece)] = piece
        at += len(piece)
    return plain


def unsealed(data: bytes, key: bytes) -> dict[str, HeldSecret]:
    """Decrypt the file.

    Raises:
        ConfigError: It was changed, sealed with another key, or is of another version.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if data.startswith(FAMILY) and not data.startswith(HEADER):
        raise ConfigError("the vault was written by another version; use that one")
    body = data.removeprefix(HEADER)
    nonce, message = body[:NONCE_BYTES], body[NONCE_BYTES:]
    try:
        plain = AESGCM(key).decrypt(nonce, message, HEADER)
    except (InvalidTag, ValueError):
        raise ConfigError(
            "the vault cannot be opened: its key is another one or its file was "
            f"changed; give the right key in {KEY_VARIABLE}, restore both from a "
            "backup, or move the vault away and set its secrets again"
        ) from None
    return {name: HeldSecret(value) for name, value in json.loads(plain).items()}


def vault_key(home: Path, vault: Path, environ: Mapping[str, str]) -> bytes:
    """Find the master key: environment, credential file, or ``<home>/vault.key``.

    Where none is given, ``vault.key`` is made, unless a vault already waits for the
    key that is missing.

    Args:
        home: The daemon's home.
        vault: The vault's file.
        environ: AGENTHOST_VAULT_KEY holds the key itself, CREDENTIALS_DIRECTORY the
            folder of the credential ``agenthost-vault-key``.

    Raises:
        ConfigError: The key is malformed or missing.
    """
    if given := environ.get(KEY_VARIABLE):
        return decoded_key(given, KEY_VARIABLE)
    if folder := environ.get("CREDENTIALS_DIRECTORY"):
        credential = Path(folder) / CREDENTIAL
        if credential.exists():
            return decoded_key(text_of(credential), f"the credential {CREDENTIAL}")
    file = home / "vault.key"
    if file.exists():
        return decoded_key(text_of(file), file.name)
    if vault.exists():
        raise ConfigError(
            f"the vault {vault.name} is there but its key is not: restore {file.name}, "
            f"or give the key in {KEY_VARIABLE}"
        )
    key = os.urandom(KEY_BYTES)
    replace_file(file, key.hex().encode() + b"\n")
    return key


def text_of(file: Path) -> str:
    """Read a key file; bytes that are not text make a malformed key, not a crash."""
    return file.read_text("ascii", "replace")


def decoded_key(text: str, source: str) -> bytes:
    """Read a key written as hex or base64.

    Raises:
        ConfigError: It is neither, or not 32 bytes.
    """
    text = text.strip()
    try:
        key = (
            bytes.fromhex(text)
            if HEX_KEY.fullmatch(text)
            else base64.b64decode(text.translate({45: "+", 95: "/"}), validate=True)
        )
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigError(
            f"{source}: the vault key must be {KEY_BYTES} bytes as hex or base64; "
            "`openssl rand -hex 32` makes one"
        )
    return key


def replace_file(path: Path, data: bytes) -> None:
    """Put a file of mode 0600 in place, wholly or not at all, and on disk."""
    descriptor, name = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
