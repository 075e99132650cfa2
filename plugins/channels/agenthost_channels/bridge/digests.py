"""Names of fixed length for what vendors name at any length."""

from __future__ import annotations

import json
from hashlib import sha256


def digest(*parts: str) -> str:
    """Give one name for all parts together: 64 hexadecimal digits."""
    return sha256(json.dumps(parts).encode()).hexdigest()
