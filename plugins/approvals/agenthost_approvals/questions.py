"""Questions: whether they can be put, what is shown, whether an answer fits."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from agenthost import InvalidInput, JsonObject, Question

TEXT_LENGTH = 4_000
SHOWN_BYTES = 256 * 1024
"""What is longer nobody reads: it cannot be approved."""
PROPERTIES = 20
CHOICES = 100
ANSWER_LENGTH = 10_000


def _is_number(value: object) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


_KEYWORDS = frozenset({"type", "properties", "required", "title", "description"})
_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = MappingProxyType(
    {
        "string": ("text", lambda value: isinstance(value, str)),
        "boolean": ("true or false", lambda value: isinstance(value, bool)),
        "integer": ("a whole number", lambda value: type(value) is int),
        "number": ("a number", _is_number),
    }
)
_RULES = frozenset(
    {"type", "title", "description", "default", "enum"}
    | {"minLength", "maxLength", "minimum", "maximum"}
)


def check_question(question: Question) -> None:
    """See that a person can be asked this, and that an answer can be judged.

    Raises:
        InvalidInput: Naming what is wrong.
    """
    if not question.text.strip() or len(question.text) > TEXT_LENGTH:
        raise InvalidInput("text", f"must have 1 to {TEXT_LENGTH} characters")
    if len(question.choices) > CHOICES:
        raise InvalidInput("choices", f"must be at most {CHOICES}")
    if question.url and not _is_web(question.url):
        raise InvalidInput("url", "must be an http or https address")
    if question.schema is None:
        return
    if question.choices:
        raise InvalidInput("choices", "cannot be combined with a schema")
    _check_schema(question.schema)


def shown_to_people(question: Question, facts: JsonObject) -> str:
    """Write what a person is shown, always the same way.

    Args:
        question: What is asked.
        facts: The call it is asked about.

    Raises:
        InvalidInput: It is too long to be read, or no JSON.
    """
    asked: dict[str, Any] = {"text": question.text}
    if question.schema is not None:
        asked["schema"] = question.schema
    if question.choices:
        asked["choices"] = list(question.choices)
    if question.url:
        asked["url"] = question.url
    try:
        shown = json.dumps({**facts, "question": asked}, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("question", "is not JSON") from error
    if len(shown) > SHOWN_BYTES:
        raise InvalidInput("arguments", "too long for a person to read; send less")
    return shown


def digest_of(shown: str) -> str:
    """Name what was shown by its SHA-256."""
    return sha256(shown.encode()).hexdigest()


def check_values(question: JsonObject, values: JsonObject) -> None:
    """See that the values of a yes are those that were asked for.

    Args:
        question: As it was shown.
        values: As they were given.

    Raises:
        InvalidInput: Naming the value that is missing, unknown or wrong.
    """
    schema: JsonObject = question.get("schema") or {}
    if choices := question.get("choices"):
        one = {"type": "string", "enum": choices}
        schema = {"properties": {"choice": one}, "required": ["choice"]}
    wanted = schema.get("properties", {})
    for name in values:
        if name not in wanted:
            known = ", ".join(wanted) or "none"
            raise InvalidInput(f"values.{name}"[:100], f"nobody asks for it ({known})")
    for name in schema.get("required", ()):
        if name not in values:
            raise InvalidInput(f"values.{name}", "is required")
    for name, value in values.items():
        if problem := _problem(wanted[name], value):
            raise InvalidInput(f"values.{name}", problem)


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def _check_schema(schema: JsonObject) -> None:
    properties = schema.get("properties", {})
    if schema.get("type") != "object" or set(schema) - _KEYWORDS:
        raise InvalidInput("schema", f"must be an object of {sorted(_KEYWORDS)} only")
    if not isinstance(properties, Mapping) or len(properties) > PROPERTIES:
        raise InvalidInput("schema.properties", f"must be at most {PROPERTIES}")
    required = schema.get("required", [])
    names = list(properties)
    if not isinstance(required, list) or any(each not in names for each in required):
        raise InvalidInput("schema.required", "must name properties")
    for name, rules in properties.items():
        _check_rules(f"schema.properties.{name}", rules)


def _check_rules(field: str, rules: object) -> None:
    if not isinstance(rules, Mapping) or rules.get("type") not in list(_TYPES):
        raise InvalidInput(field, f"its type must be one of {', '.join(_TYPES)}")
    if unknown := set(rules) - _RULES:
        raise InvalidInput(field, f"{min(map(str, unknown))!r} is not known here")
    for bound in ("minLength", "maxLength", "minimum", "maximum"):
        if not _is_number(rules.get(bound, 0)):
            raise InvalidInput(field, f"{bound} must be a number")
    if "enum" in rules and not isinstance(rules["enum"], list):
        raise InvalidInput(field, "enum must be a list")


def _problem(rules: JsonObject, value: object) -> str | None:
    """Say what is wrong with a value, None when nothing is."""
    kind, fits = _TYPES[rules["type"]]
    if not fits(value):
        return f"must be {kind}"
    if "enum" in rules and value not in rules["enum"]:
        return f"must be one of {', '.join(map(str, rules['enum']))}"
    if isinstance(value, str):
        least = rules.get("minLength", 0)
        most = min(rules.get("maxLength", ANSWER_LENGTH), ANSWER_LENGTH)
        if not least <= len(value) <= most:
            return f"must have {least} to {most} characters"
    elif isinstance(value, int | float):
        if not rules.get("minimum", -math.inf) <= value:
            return f"must be at least {rules['minimum']}"
        if not value <= rules.get("maximum", math.inf):
            return f"must be at most {rules['maximum']}"
    return None
