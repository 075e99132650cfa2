"""Questions and answers as people read and type them, in a terminal or a chat."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenthost import InvalidInput, Json, JsonObject

SHORT = 8
"""So many characters of an id tell it from others."""
_TRUTH = {"yes": True, "true": True, "no": False, "false": False}


def plain(text: str) -> str:
    """Take out of a text what a terminal or a chat would obey rather than show."""
    return "".join(
        char if char.isprintable() or char == "\n" else "\ufffd" for char in text
    )


def line_of(item: Mapping[str, Any]) -> str:
    """Tell an approval in one line."""
    question = plain(item["question"]).replace("\n", " ")
    who = f"{plain(item['agent_name'])} wants {_wish(item)}"
    return f"{item['id'][:SHORT]}  {item['state']:<9} {who}: {question}"


def row_of(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Tell an approval in a row of a table."""
    about = item["agent_name"], _wish(item), item["deadline"]
    question = item["question"].replace("\n", " ")
    return item["id"][:SHORT], item["state"], *about, question


def _wish(item: Mapping[str, Any]) -> str:
    expense = item["expense"]
    return f"{expense['more_usd']:g} USD" if expense else plain(item["tool"])


def lines_of(detail: Mapping[str, Any]) -> Iterator[str]:
    """Tell all that a person reads before they answer."""
    yield f"approval {detail['id']} is {detail['state']}"
    yield f"question: {plain(detail['question'])}"
    who = plain(detail["asked_by"])
    yield f"agent: {plain(detail['agent_name'])}, on behalf of {who}"
    if expense := detail["expense"]:
        used, limit = expense["used_usd"], expense["limit_usd"]
        yield f"money: {expense['more_usd']:g} USD more; {used:g} of {limit:g} used"
    else:
        arguments = json.dumps(detail["arguments"], indent=2, ensure_ascii=False)
        yield f"call: {plain(detail['tool'])} {plain(arguments)}"
    if detail["url"]:
        yield f"visit first: {plain(detail['url'])}"
    for choice in detail["choices"]:
        yield f"choice: {plain(choice)}"
    yield from _fields(detail["schema"] or {})
    if detail["state"] == "pending":
        yield f"no answer until {detail['deadline']} is a no"
    elif detail["answered_by"]:
        why = f": {plain(detail['reason'])}" if detail["reason"] else ""
        by = plain(detail["answered_by"])
        yield f"answered by {by} at {detail['answered_at']}{why}"


def _fields(schema: JsonObject) -> Iterator[str]:
    required = schema.get("required", ())
    for name, rules in schema.get("properties", {}).items():
        needed = ", required" if name in required else ""
        among = f", one of {', '.join(map(str, rules.get('enum', ())))}"
        allowed = among if "enum" in rules else ""
        about = plain(str(rules.get("description", "")))
        yield f"value {plain(name)} ({rules['type']}{needed}{allowed}) {about}".rstrip()


def typed_values(schema: JsonObject | None, texts: Sequence[str]) -> dict[str, Json]:
    """Read values as people type them, each of the kind that is asked for.

    Args:
        schema: What is asked for, None where it is no schema.
        texts: Each ``name=value``.

    Raises:
        InvalidInput: Naming the value that cannot be read.
    """
    wanted = (schema or {}).get("properties", {})
    values: dict[str, Json] = {}
    for text in texts:
        name, equals, said = text.partition("=")
        if not equals or not name:
            raise InvalidInput("values", f"{text!r} must be written as name=value")
        if name in values:
            raise InvalidInput(f"values.{name}", "is given twice")
        values[name] = _read(name, wanted.get(name, {}).get("type", "string"), said)
    return values


def _read(name: str, kind: str, text: str) -> Json:
    if kind == "string":
        return text
    if kind == "boolean":
        if text.lower() in _TRUTH:
            return _TRUTH[text.lower()]
        raise InvalidInput(f"values.{name}", "must be yes or no")
    try:
        number: int | float = int(text)
    except ValueError:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
    if not math.isfinite(number) or (kind == "integer" and isinstance(number, float)):
        words = "a whole number" if kind == "integer" else "a number"
        raise InvalidInput(f"values.{name}", f"must be {words}")
    return number
