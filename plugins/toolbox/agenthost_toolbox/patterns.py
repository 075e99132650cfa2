"""Regular expressions of schemas, matched in linear time."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from agenthost import InvalidInput

COMPILED = 128
MEMORY = 1 << 19
"""Bytes that a pattern may take; times ``COMPILED`` is what all take together."""
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


def readable(pattern: str) -> Any:
    """Read a pattern as JSON Schema writes it.

    Raises:
        InvalidInput: It is none, or looks around or back, which linear time forbids.
    """
    import re2  # type: ignore[import-untyped,import-not-found,unused-ignore]  # reason: it has no stubs

    try:
        return _compiled(pattern)
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if isinstance(error, re2.error) else b"it is no text"
        told = f"{pattern[:100]!r} is not taken: {reason.decode('utf-8', 'replace')}"
        raise InvalidInput("pattern", told) from error


def found(pattern: str, text: str) -> bool:
    """Tell whether the pattern occurs in the text."""
    return readable(pattern).search(text) is not None


@lru_cache(COMPILED)
def _compiled(pattern: str) -> Any:
    import re2  # type: ignore[import-untyped,import-not-found,unused-ignore]  # reason: it has no stubs

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY
    return re2.compile(_ESCAPE.sub(_as_re2, pattern), options)


def _as_re2(escape: re.Match[str]) -> str:
    return rf"\x{{{escape[1]}}}" if escape[1] else escape[0]
