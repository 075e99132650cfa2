"""Tell what two calls, or two results, have in common once what always differs is gone.

Times, nonces and ids of requests make each call of a loop look new. What names a thing
(the id of a record, a page, a path) is kept: it is how honest calls differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LOOKED_AT = 1_000
"""Of a longer result, the rest counts letter by letter."""
SHORT = 400
NODES = 2_000

_VOLATILE = re.compile(
    r"_?(?:timestamp|ts|now|nonce|salt|seed|random|rand|uuid|guid|attempt|retry|retries"
    r"|(?:request|trace|span|correlation|call|message|session|idempotency|dedup)[_-]?"
    r"(?:id|key|token)|cache[_-]?buster|cb)?",
    re.IGNORECASE,
)
_IN_URL = re.compile(
    r"([?&](?:_|t|ts|cb|nonce|rand|random|timestamp|cache_?buster)=)[^&\s#]*"
)
_IN_WORD = re.compile(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:]{5,8}(?:\.[0-9]+)?(?:Z|[+-][0-9:]{4,5})?)?"
    r"|[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"|[0-9a-fA-F]{16,}"
    r"|[0-9]{10}(?:[0-9]{3})?(?:\.[0-9]+)?"
    r"|[0-9]+(?:\.[0-9]+)?(?:ms|us|ns|sec|s)\b"
)
_DIGIT = re.compile(r"[0-9]")
_UNITS = ("ms", "us", "ns", "sec", "seconds", "s")


def call_key(tool: str, arguments: Mapping[str, object]) -> int:
    """Give the number that all calls share which ask the same."""
    told: list[object] = [tool]
    # No recursion: a model may nest as deeply as it likes.
    left: list[object] = [arguments]
    while left and len(told) < NODES:
        value = left.pop()
        if isinstance(value, Mapping):
            told.append("{")
            for name in sorted(map(str, value)):
                if not _VOLATILE.fullmatch(name):
                    told.append(name)
                    left.append(value.get(name))
        elif isinstance(value, list | tuple):
            told.append(len(value))
            left.extend(value[:NODES])
        else:
            told.append(_plain(value))
    return hash(tuple(told))


def _plain(value: object) -> object:
    if not isinstance(value, str):
        return value if isinstance(value, int | float | None) else repr(value)
    if len(value) > SHORT:
        return value
    if "=" in value:
        value = _IN_URL.sub(r"\1", value)
    return " ".join(value.split())


def result_key(text: str) -> int:
    """Give the number that all results share which say the same."""
    told: list[str] = []
    for word in text[:LOOKED_AT].split():
        # Most words are words: what is no time and no id is not searched for one.
        if word.isalpha() or not _DIGIT.search(word):
            if word.rstrip(".,;:)]") in _UNITS and told:
                told[-1] = _DIGIT.sub("", told[-1])
            told.append(word)
        else:
            told.append(_IN_WORD.sub("~", word))
    return hash((tuple(told), text[LOOKED_AT:]))
