"""Secrets are taken out of texts here: whole or cut off, as they are or encoded."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from .errors import ConfigError
from .secrets import HIDDEN, Secret

if TYPE_CHECKING:
    from .host import Host

SHORTEST = 6
"""Shorter ones are looked for only by who used one: they stand in any text."""
BEGINNING = 8
"""So many characters of a secret give it away."""
_NAMED = re.compile(r"(?i)(key|token|secret|password)$")


def secrets_of(host: Host) -> list[str]:
    """Give every secret that the daemon was given, of six characters or more."""
    key, kept = host.config.api_key, list[Secret | None]()
    # A vault that cannot be opened has given nothing away.
    with suppress(ConfigError):
        kept = [host.vault.get(name) for name in host.vault.names()]
    given = [secret.reveal() for secret in (key, *kept) if secret is not None]
    given += [v for name, v in host.environ.items() if _NAMED.search(name)]
    return [secret for secret in given if len(secret.strip()) >= SHORTEST]


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Blot secrets out of a text, and what gives them away.

    That is each of the parts of a key with colons in it, and what a key that is JSON
    holds under the name of one, as it is, in base64, in a URL, in JSON or as Python
    shows it, and its first eight characters or more.
    """
    told_of = filter(None, (secret.strip() for secret in secrets))
    forms = {form for secret in told_of for form in _forms(secret)}
    spans = sorted(span for form in forms for span in _spans(text, form))
    told, at = list[str](), 0
    for begin, end in spans:
        if begin >= at:
            told += (text[at:begin], HIDDEN)
        at = max(at, end)
    return "".join((*told, text[at:]))


def _spans(text: str, form: str) -> Iterator[tuple[int, int]]:
    """Find where a form begins, with as much of it as stands there."""
    found = text.find(form[:BEGINNING])
    while found >= 0:
        end, size = found + len(form[:BEGINNING]), len(form)
        while end < len(text) and end - found < size and text[end] == form[end - found]:
            end += 1
        yield found, end
        found = text.find(form[:BEGINNING], end)


def _forms(secret: str) -> Iterator[str]:
    for part in _parts(secret):
        yield from (part, quote(part), quote(part, safe=""), quote_plus(part))
        yield from (json.dumps(part)[1:-1], repr(part)[1:-1])
        yield json.dumps(part, ensure_ascii=False)[1:-1]
        yield from filter(lambda form: len(form) >= BEGINNING, _base64(part.encode()))


def _parts(secret: str) -> set[str]:
    """Take a composite key apart; of JSON, as a service account has, little is one."""
    with suppress(ValueError, RecursionError):
        if isinstance(members := json.loads(secret), dict):
            named = (value for name, value in members.items() if _NAMED.search(name))
            if held := {each for each in named if isinstance(each, str) and each}:
                return held
    return {secret, *(part for part in secret.split(":") if len(part) >= BEGINNING)}


def _base64(data: bytes) -> Iterator[str]:
    """Write it as it looks behind none, one or two other bytes."""
    for before, cut in ((0, 0), (1, 2), (2, 3)):
        size = (before + len(data)) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(b"\0" * before + data).decode()[cut:size]
