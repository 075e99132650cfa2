"""The vault is never silently empty."""

from __future__ import annotations

import asyncio
import base64
import errno
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from agenthost import ConfigError, InvalidInput, StorageFull, Unavailable
from agenthost_storage.vault import FileVault, HeldSecret, replace_file, vault_key
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY = bytes(range(32))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vault"


@pytest.fixture
async def vault(path: Path) -> FileVault:
    vault = FileVault(path, lambda: KEY)
    await vault.change({"openai": "sk-canary"})
    await vault.change({"groq": "gsk-ключ"})
    return vault


def content(path: Path) -> bytes:
    return path.read_bytes()


def cut(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])


def in_folder(folder: Path) -> list[tuple[str, int]]:
    return [(file.name, file.stat().st_mode & 0o777) for file in folder.iterdir()]


def revealed(vault: FileVault, name: str) -> str | None:
    secret = vault.get(name)
    return secret.reveal() if secret else None


def test_secrets_outlive_the_vault_object(vault: FileVault, path: Path) -> None:
    again = FileVault(path, lambda: KEY)
    assert again.names() == vault.names() == ["groq", "openai"]
    assert revealed(again, "openai") == "sk-canary"
    assert revealed(again, "groq") == "gsk-ключ"
    assert again.get("nobody") is None


async def test_secrets_are_held_in_memory_of_their_own(
    vault: FileVault, path: Path
) -> None:
    await vault.change({"new": "sk-new"})
    for known in (vault, FileVault(path, lambda: KEY)):
        assert {type(known.get(name)) for name in known.names()} == {HeldSecret}


async def test_a_deleted_secret_is_gone(vault: FileVault, path: Path) -> None:
    for _ in range(2):
        await vault.change({"groq": None})
    assert FileVault(path, lambda: KEY).names() == ["openai"]


async def test_several_secrets_change_in_one_write_or_not_at_all(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[bytes] = []

    def write(place: Path, data: bytes) -> None:
        writes.append(data)
        if len(writes) == 3:
            raise OSError("the machine stops here")
        replace_file(place, data)

    monkeypatch.setattr("agenthost_storage.vault.replace_file", write)
    vault = FileVault(path, lambda: KEY)
    await vault.change({"a": "1", "b": "2"})
    await vault.change({"a": None, "b": "3", "c": "4", "nobody": None})
    assert len(writes) == 2
    with pytest.raises(Unavailable, match="refused to read or write the vault"):
        await vault.change({"b": None, "c": "5", "d": "6"})
    for known in (vault, FileVault(path, lambda: KEY)):
        assert {name: revealed(known, name) for name in known.names()} == {
            "b": "3",
            "c": "4",
        }


async def test_the_file_is_private_and_shows_nothing(
    vault: FileVault, path: Path
) -> None:
    first = content(path)
    assert b"canary" not in first
    assert b"openai" not in first
    await vault.change({"openai": "sk-canary"})
    assert content(path)[16:] != first[16:]
    assert in_folder(path.parent) == [("vault", 0o600)]


def test_the_file_is_plain_aes_gcm(vault: FileVault, path: Path) -> None:
    header, _, body = path.read_bytes().partition(b"\n")
    assert header == b"agenthost vault 1"
    plain = AESGCM(KEY).decrypt(body[:12], body[12:], header + b"\n")
    assert b'"openai": "sk-canary"' in plain


def test_every_changed_byte_is_noticed(vault: FileVault, path: Path) -> None:
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(ConfigError, match="vault"):
            FileVault(path, lambda: KEY).names()


@pytest.mark.parametrize("length", [0, 5, 18, 30, 40])
async def test_a_cut_file_is_noticed(vault: FileVault, path: Path, length: int) -> None:
    cut(path, length)
    with pytest.raises(ConfigError, match="cannot be opened"):
        FileVault(path, lambda: KEY).get("openai")
    with pytest.raises(ConfigError, match="cannot be opened"):
        await FileVault(path, lambda: KEY).change({"new": "value"})


def test_another_key_is_refused_with_the_remedy(vault: FileVault, path: Path) -> None:
    with pytest.raises(ConfigError, match="AGENTHOST_VAULT_KEY"):
        FileVault(path, lambda: bytes(32)).get("openai")


def test_a_newer_version_is_named(vault: FileVault, path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"vault 1", b"vault 2"))
    with pytest.raises(ConfigError, match="another version"):
        FileVault(path, lambda: KEY).names()


async def test_empty_names_and_values_are_refused(vault: FileVault) -> None:
    with pytest.raises(InvalidInput, match="name"):
        await vault.change({"": "x"})
    with pytest.raises(InvalidInput, match="value"):
        await vault.change({"x": ""})
    with pytest.raises(InvalidInput, match="value"):
        await vault.change({"good": "x", "empty": ""})
    assert vault.names() == ["groq", "openai"]


@pytest.mark.parametrize(
    "text",
    [KEY.hex(), base64.b64encode(KEY).decode(), base64.urlsafe_b64encode(KEY).decode()],
)
def test_the_environment_gives_the_key(tmp_path: Path, text: str) -> None:
    environ = {"AGENTHOST_VAULT_KEY": f" {text}\n"}
    assert vault_key(tmp_path, tmp_path / "vault", environ) == KEY
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["short", "x" * 64, "é", KEY.hex()[:-2]])
def test_a_malformed_key_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"AGENTHOST_VAULT_KEY: .*32 bytes"):
        vault_key(tmp_path, tmp_path / "vault", {"AGENTHOST_VAULT_KEY": text})


def test_the_credential_file_gives_the_key(tmp_path: Path) -> None:
    credential = tmp_path / "agenthost-vault-key"
    credential.write_text(KEY.hex())
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert vault_key(tmp_path, tmp_path / "vault", environ) == KEY
    credential.write_bytes(b"\xff" * 32)
    with pytest.raises(ConfigError, match="the credential agenthost-vault-key"):
        vault_key(tmp_path, tmp_path / "vault", environ)


def test_a_key_file_is_made_once_and_private(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    key = vault_key(tmp_path, vault, {})
    assert (tmp_path / "vault.key").stat().st_mode & 0o777 == 0o600
    vault.touch()
    assert vault_key(tmp_path, vault, {}) == key


def test_no_key_is_made_for_a_vault_that_has_lost_its_own(tmp_path: Path) -> None:
    (tmp_path / "vault").touch()
    with pytest.raises(ConfigError, match=r"restore vault\.key"):
        vault_key(tmp_path, tmp_path / "vault", {})
    assert [file.name for file in tmp_path.iterdir()] == ["vault"]


def test_no_vault_needs_no_cryptography(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; "
        "from agenthost_storage.vault import FileVault; "
        "FileVault(Path(sys.argv[1]), lambda: bytes(32)).get('x'); "
        "sys.exit('cryptography' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "vault")], check=True)


async def test_the_key_is_asked_for_only_when_needed(tmp_path: Path) -> None:
    path = tmp_path / "vault"
    vault = FileVault(path, partial(vault_key, tmp_path, path, {}))
    assert vault.get("x") is None
    await vault.change({"x": None})
    assert in_folder(tmp_path) == []
    await vault.change({"x": "first"})
    again = FileVault(path, partial(vault_key, tmp_path, path, {}))
    await again.change({"y": "second"})
    assert vault_names(tmp_path) == ["x", "y"]


def vault_names(home: Path) -> list[str]:
    path = home / "vault"
    return FileVault(path, partial(vault_key, home, path, {})).names()


async def test_every_change_raises_the_revision(vault: FileVault) -> None:
    before = vault.revision
    await vault.change({"groq": "gsk"})
    await vault.change({"groq": None})
    assert vault.revision == before + 2
    await vault.change({"groq": None})
    assert vault.revision == before + 2


class SlowDisk:
    """Gives the key only when it is told to, as a disk that does not answer."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.answers = threading.Event()

    def __call__(self) -> bytes:
        self.asked.set()
        assert self.answers.wait(10)
        return KEY


async def test_the_loop_goes_on_and_reads_while_a_change_waits_for_the_disk(
    path: Path,
) -> None:
    disk = SlowDisk()
    vault = FileVault(path, disk)
    first = asyncio.create_task(vault.change({"a": "1"}))
    second = asyncio.create_task(vault.change({"b": "2"}))
    assert await asyncio.to_thread(disk.asked.wait, 10)
    assert vault.names() == []
    disk.answers.set()
    await asyncio.gather(first, second)
    assert vault.names() == FileVault(path, lambda: KEY).names() == ["a", "b"]


async def test_a_change_whose_caller_left_is_remembered_as_it_is_on_disk(
    path: Path,
) -> None:
    disk = SlowDisk()
    vault = FileVault(path, disk)
    left = asyncio.create_task(vault.change({"a": "1"}))
    assert await asyncio.to_thread(disk.asked.wait, 10)
    left.cancel()
    disk.answers.set()
    await vault.change({"b": "2"})
    assert vault.names() == FileVault(path, lambda: KEY).names() == ["a", "b"]


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.ENOSPC, StorageFull),
        (errno.EDQUOT, StorageFull),
        (errno.EIO, Unavailable),
        (errno.EROFS, Unavailable),
    ],
)
async def test_a_disk_that_refuses_is_told_and_nothing_changes(
    vault: FileVault,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    error: type[Exception],
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(number, "/secret/path")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(error) as refused:
        await vault.change({"openai": "another"})
    assert "/secret/path" not in str(refused.value)
    assert revealed(vault, "openai") == "sk-canary"


def test_a_vault_that_cannot_be_read_is_unavailable(path: Path) -> None:
    path.mkdir()
    with pytest.raises(Unavailable, match="vault"):
        FileVault(path, lambda: KEY).names()
