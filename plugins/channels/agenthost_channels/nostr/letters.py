"""Direct messages: NIP-17, which hides who writes to whom, and NIP-04 of old.

A letter of NIP-17 (kind 14) is not signed; it lies in a seal (13), which its author
signs, and that in a wrap (1059) of a key used once. What counts is who sealed it.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass

from .ciphers import decrypted, decrypted_of_old, encrypted, encrypted_of_old
from .keys import Event, Identity

OLD, SEAL, LETTER, WRAP = 4, 13, 14, 1059
TWO_DAYS = 2 * 24 * 3600
LONGEST = 100_000


@dataclass(frozen=True, slots=True)
class Letter:
    """What somebody wrote to us alone."""

    id: str
    pubkey: str
    text: str
    at: int
    answers: str
    old: bool


def opened(event: Event, us: Identity) -> Letter:
    """Open an event that came for us.

    Raises:
        ValueError: It is no letter to us alone, or not of who it says it is of.
    """
    if len(event.content) > LONGEST or us.pubkey not in event.named("p"):
        raise ValueError("not for us")
    shared = us.shared_with(event.pubkey)
    if event.kind == OLD:
        return _letter(event, decrypted_of_old(event.content, shared), event.id, us)
    if event.kind != WRAP:
        raise ValueError("not a direct message")
    seal = Event.read(_read(decrypted(event.content, shared)))
    if seal.kind != SEAL:
        raise ValueError("a wrap holds a seal")
    inner = _read(decrypted(seal.content, us.shared_with(seal.pubkey)))
    rumor = Event.read(inner, signed=False)
    if rumor.pubkey != seal.pubkey:
        raise ValueError("somebody sealed the words of another")
    if rumor.kind != LETTER:
        raise ValueError("not a text")
    # The same words in the same second are two letters when they came in two wraps.
    return _letter(rumor, rumor.content, f"{rumor.id}/{event.id[:16]}", us)


def _letter(event: Event, text: str, name: str, us: Identity) -> Letter:
    if event.pubkey == us.pubkey or set(event.named("p")) != {us.pubkey}:
        raise ValueError("ours, or for several")
    answers = event.named("e")
    return Letter(
        name,
        event.pubkey,
        text,
        event.created_at,
        answers[-1] if answers else "",
        event.kind == OLD,
    )


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("too deep") from None


@dataclass(frozen=True, slots=True)
class Written:
    """What is published, and the id under which it is known to who reads it."""

    id: str
    event: Event


def written(us: Identity, to: str, text: str, at: int, answers: str = "") -> Written:
    """Write a letter by NIP-17. Nobody sees who it is from, nor quite when.

    Raises:
        ValueError: The other key is none, or the text is too long.
    """
    tags = [["p", to], *([["e", answers]] if answers else [])]
    # Said twice in a second, the same words would have the same id.
    tags.append(["nonce", secrets.token_hex(8)])
    rumor = us.unsigned(LETTER, text, tags, at)
    sealed = encrypted(rumor.as_text(), us.shared_with(to))
    seal = us.event(SEAL, sealed, [], at - secrets.randbelow(TWO_DAYS))
    once = Identity.new()
    wrapped = encrypted(seal.as_text(), once.shared_with(to))
    at -= secrets.randbelow(TWO_DAYS)
    return Written(rumor.id, once.event(WRAP, wrapped, [["p", to]], at))


def written_of_old(
    us: Identity, to: str, text: str, at: int, answers: str = ""
) -> Written:
    """Write a letter by NIP-04: everybody sees who writes to whom."""
    tags = [["p", to], *([["e", answers]] if answers else [])]
    event = us.event(OLD, encrypted_of_old(text, us.shared_with(to)), tags, at)
    return Written(event.id, event)
