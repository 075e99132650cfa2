"""Keys as they are shown and as they are kept: ``ah_<id>_<secret>``, and its digest.

The secret is 256 random bits: nobody guesses it, however fast, so a plain SHA-256 keeps
it. A slow hash is for what people make up; here it would only cost every request.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from uuid import UUID

PREFIX = "ah_"
_TOKEN = re.compile(r"ah_([0-9a-f]{32})_[A-Za-z0-9_-]{43}", re.ASCII)


def make_token(key_id: UUID) -> str:
    """Make the text of a new key; it is shown once and kept nowhere."""
    return f"{PREFIX}{key_id.hex}_{secrets.token_urlsafe(32)}"


def id_in(token: str) -> str:
    """Read the id in the text of a key, "" when it is none."""
    match = _TOKEN.fullmatch(token)
    return str(UUID(match[1])) if match is not None else ""


def digest_of(token: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


NOBODY = digest_of("")
"""Compared with where there is no such key, so that an unknown one takes as long."""
