"""A yes that holds for more than its call: for a session, or for what a pattern says.

It answers only what it was said about: the same agent, tool and question, asked on
behalf of the same principal and open to the same people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agenthost import InvalidInput, JsonObject

from .questions import digest_of
from .rows import Approval, Remember, State, approval_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

HOLDS_SECONDS = 30 * 86_400.0
"""No yes answers for people longer."""
PATTERN_LENGTH = 2_000
# Not line ends, nor what a shell takes for an end of a command or a part of another:
# "git *" is no yes to "git log; rm -r .".
_ENDING = re.compile(r"[\x00-\x1f\x7f;|&$`<>(){}\\]")


def check_remember(
    approval: Approval, remember: Remember, pattern: Mapping[str, str]
) -> None:
    """See that a yes can hold for more than its call.

    Raises:
        InvalidInput: Naming why not.
    """
    if remember == "once":
        if pattern:
            raise InvalidInput("pattern", "goes with remember = pattern")
        return
    asked = approval.shown["question"]
    if approval.expense is not None:
        raise InvalidInput("remember", "money is asked about each time")
    if any(asked.get(each) for each in ("schema", "choices", "url")):
        raise InvalidInput("remember", "what asks for a value is asked each time")
    if remember == "session":
        if pattern:
            raise InvalidInput("pattern", "goes with remember = pattern")
        return
    if len(json.dumps(dict(pattern))) > PATTERN_LENGTH:
        raise InvalidInput("pattern", f"must have at most {PATTERN_LENGTH} characters")
    if not fits(pattern, approval.shown["arguments"]):
        raise InvalidInput(
            "pattern", "must name every argument of this call, and fit each; * is any"
        )


def exact_pattern(approval: Approval) -> dict[str, str] | None:
    """Give the pattern that a call itself fits; None where no yes holds for more."""
    try:
        check_remember(approval, "session", {})
    except InvalidInput:
        return None
    arguments: JsonObject = approval.shown["arguments"]
    return {name: _text(value) for name, value in arguments.items()}


def fits(pattern: Mapping[str, str], arguments: JsonObject) -> bool:
    """Tell whether a pattern names all arguments of a call, and fits each."""
    if pattern.keys() != arguments.keys():
        return False
    return all(_fits(pattern[name], value) for name, value in arguments.items())


def _fits(pattern: str, value: object) -> bool:
    text = _text(value)
    if text == pattern:
        return True
    if ".." in text and ".." not in pattern:
        # A star stays below the folder that stands before it.
        return False
    gaps = _gaps(pattern, text)
    return gaps is not None and not any(_ENDING.search(gap) for gap in gaps)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _gaps(pattern: str, text: str) -> list[str] | None:
    """Give what stands for the stars, None where it does not fit.

    Each part is looked for once, from the left: the time does not grow with the ways
    in which a text could be split.
    """
    first, *parts = pattern.split("*")
    if not parts or not text.startswith(first):
        return None
    *middle, last = parts
    at, gaps = len(first), []
    for part in middle:
        found = text.find(part, at)
        if found < 0:
            return None
        gaps.append(text[at:found])
        at = found + len(part)
    end = len(text) - len(last)
    if end < at or not text.endswith(last):
        return None
    return [*gaps, text[at:end]]


def answered_before(
    connection: Connection, row: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Give what a new question is answered with by a yes that holds; None without."""
    from .tables import REMEMBERED

    wanted = {
        "agent": row["agent_id"],
        "tool": row["tool"],
        "asked_by": row["asked_by"],
        "may_answer": row["may_answer"],
    }
    asked = json.loads(row["shown"])
    for each in connection.execute(REMEMBERED, wanted).mappings():
        known = approval_of(each)
        if _answers(known, row, asked):
            return {
                "state": State.APPROVED.value,
                "answered_by": known.answered_by,
                "answered_at": row["created_at"],
                "reason": f"as for the {known.remember} with {known.id}",
                "answers": "{}",
                "carried": 1,
            }
    return None


def _answers(known: Approval, row: Mapping[str, Any], asked: JsonObject) -> bool:
    if row["created_at"] > (known.answered_at or 0.0) + HOLDS_SECONDS:
        return False
    if digest_of(json.dumps(known.shown, sort_keys=True)) != known.digest:
        return False
    if known.shown["question"] != asked["question"]:
        return False
    if known.remember == "session":
        return bool(known.session_id == row["session_id"])
    arguments: JsonObject = asked["arguments"]
    return fits(known.pattern, arguments)
