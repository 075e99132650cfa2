"""How likely the tokens of an answer were, out of vendors' words into OpenAI's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from agenthost import JsonObject

from .answers import objects_of

MOST_BESIDE = 20
LONGEST_TOKEN = 200
NEVER = -9_999.0
"""What OpenAI writes of a token that is as good as impossible."""


def scored(tokens: Any) -> tuple[JsonObject, ...]:
    """Read tokens with those in their place; what is none of them says nothing."""
    return tuple(_entries(tokens))


def scored_by_google(result: Any) -> tuple[JsonObject, ...]:
    """Read what Gemini says of the tokens it chose, and of those it might have."""
    given = result if isinstance(result, dict) else {}
    chosen, tops = given.get("chosenCandidates"), given.get("topCandidates")
    nothing: dict[str, Any] = {}
    pairs = zip_longest(objects_of(chosen), objects_of(tops), fillvalue=nothing)
    return scored(
        [
            {**_of_google(token), "top_logprobs": _those_of(top)}
            for token, top in pairs
            if token
        ]
    )


def _those_of(top: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [_of_google(each) for each in objects_of(top.get("candidates"))]


def _of_google(token: Mapping[str, Any]) -> dict[str, Any]:
    return {"token": token.get("token"), "logprob": token.get("logProbability")}


def _entries(tokens: Any) -> Iterator[JsonObject]:
    for given in objects_of(tokens):
        if token := _token(given):
            beside = objects_of(given.get("top_logprobs"))[:MOST_BESIDE]
            top = [each for each in map(_token, beside) if each]
            yield {**token, "top_logprobs": top}


def _token(given: Mapping[str, Any]) -> dict[str, Any]:
    token: Any = given.get("token")
    logprob: Any = given.get("logprob")
    known = isinstance(logprob, int | float) and not isinstance(logprob, bool)
    if not isinstance(token, str) or not known or math.isnan(logprob):
        return {}
    token = token[:LONGEST_TOKEN]
    likely = min(max(float(logprob), NEVER), 0.0)
    return {"token": token, "logprob": likely, "bytes": _bytes(given, token)}


def _bytes(given: Mapping[str, Any], token: str) -> list[int]:
    """Give the bytes of a token, which alone may be no characters."""
    told: Any = given.get("bytes")
    whole = isinstance(told, list) and len(told) <= LONGEST_TOKEN
    if whole and all(type(each) is int and 0 <= each < 256 for each in told):
        return list(told)
    return list(token.encode("utf-8", "replace"))
