"""The form of an answer: a JSON Schema as vendors take it, or asked for in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agenthost import ChatRequest, JsonObject

from .answers import compact
from .schema import OPENAI, SchemaRules, shape_schema

NAME = "answer"
"""What a form is called where a vendor wants a name."""
IN_WORDS = (
    "Answer with JSON alone, without any words or a code fence around it. "
    "It must fit this JSON Schema: "
)
CLOSED = SchemaRules(
    kept=frozenset(
        {
            *("additionalProperties", "allOf", "anyOf", "const", "default"),
            *("description", "enum", "format", "items", "properties", "required"),
            *("title", "type"),
        }
    ),
    formats=frozenset(
        {
            *("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6"),
            *("time", "uri", "uuid"),
        }
    ),
    choices=False,
    booleans=False,
)
# What OpenAI's strict mode reads; whoever copies it reads no more.
STRICT = frozenset(
    {
        *("additionalProperties", "anyOf", "const", "description", "enum"),
        *("exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems"),
        *("maximum", "minItems", "minimum", "multipleOf", "pattern", "properties"),
        *("required", "title", "type"),
    }
)


def in_words(request: ChatRequest) -> ChatRequest:
    """Ask for the form of an answer at the end of the system prompt."""
    asked = IN_WORDS + compact(dict(request.response_format or {}))
    system = f"{request.system}\n\n{asked}" if request.system else asked
    return replace(request, system=system, response_format=None)


def closed_form(schema: JsonObject) -> dict[str, Any] | None:
    """Write a form whose objects have the properties they name and no others.

    None where one of them may have more, or where anything may stand.
    """
    shaped = shape_schema(schema, CLOSED)
    return shaped if _close(shaped) else None


def strict_form(schema: JsonObject) -> tuple[dict[str, Any], bool]:
    """Write a form, and tell whether OpenAI's strict mode holds a model to it."""
    shaped = shape_schema(schema, OPENAI)
    strict = all(map(_is_strict, _nodes(shaped))) and _close(shaped)
    return (shaped, True) if strict else (shape_schema(schema, OPENAI), False)


def _close(node: Any) -> bool:
    """Say of every object that it has no other properties; False where it may."""
    if not isinstance(node, dict):
        return False
    listed = [inner for key in ("anyOf", "allOf") for inner in node.get(key, ())]
    named = node.get("type")
    kinds = named if isinstance(named, list) else [named]
    if not (named or listed or "enum" in node or "const" in node):
        return False
    if "object" in kinds:
        if node.get("additionalProperties") or not node.get("properties"):
            return False
        node["additionalProperties"] = False
        listed += node["properties"].values()
    if "array" in kinds:
        listed.append(node.get("items"))
    return all(map(_close, listed))


def _is_strict(node: Mapping[str, Any]) -> bool:
    return node.keys() <= STRICT and set(node.get("required", ())) == set(
        node.get("properties", ())
    )


def _nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Walk over the schemas in one; whatever else is none is one without keywords."""
    if not isinstance(schema, dict):
        return
    yield schema
    inner = [*schema.get("properties", {}).values(), schema.get("items")]
    for each in (*inner, *schema.get("anyOf", ())):
        yield from _nodes(each)
