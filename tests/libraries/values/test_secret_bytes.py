"""Bytes that are locked, shown nowhere and wiped."""

from __future__ import annotations

import copy
import mmap
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from agenthost_values.secret_bytes import SecretBytes

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="Linux tells of its pages")


def flags_of_locked_pages() -> list[set[str]]:
    lines = Path("/proc/self/smaps").read_text().splitlines()
    flags = [set(each.split()[1:]) for each in lines if each.startswith("VmFlags:")]
    return [each for each in flags if "lo" in each]


def test_a_secret_is_what_was_given_and_its_source_is_wiped() -> None:
    source = bytearray("sk-ключ", "utf-8")
    secret = SecretBytes(source)
    assert secret.text() == "sk-ключ"
    assert secret.data() == "sk-ключ".encode()
    assert source == bytes(len(source))
    assert SecretBytes(b"").text() == ""


@pytest.mark.parametrize("show", [repr, str, "{}".format, lambda each: f"{each!s}"])
def test_a_secret_is_shown_nowhere(show: Callable[[object], str]) -> None:
    assert "canary" not in show(SecretBytes(b"canary"))


@pytest.mark.parametrize("take", [copy.copy, copy.deepcopy, pickle.dumps, bytes])
def test_a_secret_is_not_copied(take: Callable[[object], object]) -> None:
    with pytest.raises(TypeError):
        take(SecretBytes(b"canary"))


def test_a_wiped_secret_is_zeros_and_cannot_be_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left: list[bytes] = []

    class Pages(mmap.mmap):
        def close(self) -> None:
            if not self.closed:
                left.append(self[:])
            super().close()

    monkeypatch.setattr(mmap, "mmap", Pages)
    secret = SecretBytes(b"canary")
    secret.wipe()
    secret.wipe()
    assert left == [bytes(6)]
    for ask in (secret.text, secret.data):
        with pytest.raises(ValueError, match="closed"):
            ask()
    SecretBytes(b"let go")
    assert left[1:] == [bytes(6)]


@LINUX
def test_its_pages_are_locked_and_in_no_dump() -> None:
    before = len(flags_of_locked_pages())
    secret = SecretBytes(b"canary")
    assert secret.locked
    pages = flags_of_locked_pages()
    assert len(pages) >= max(before, 1)
    assert all("dd" in flags for flags in pages)


FORK = """
import os
from agenthost_values.secret_bytes import SecretBytes
secret = SecretBytes(b"canary")
child = os.fork()
if not child:
    os._exit(0 if secret.data() == bytes(6) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert secret.data() == b"canary"
"""


@LINUX
def test_a_forked_child_finds_zeros() -> None:
    subprocess.run([sys.executable, "-c", FORK], check=True)


@LINUX
def test_more_secrets_than_can_be_locked_are_kept_all_the_same() -> None:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, limits[1]))
    try:
        assert SecretBytes(b"canary").text() == "canary"
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, limits)
