"""The JSON Schema of arguments that a pydantic model describes, as models read it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

_REFERENCE = "#/$defs/"


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles that pydantic makes up: every one costs tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


@lru_cache(maxsize=1_024)
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Write the schema of a closed object, definitions inlined unless they recur.

    It is the same for everybody who asks: it is read, and not written to.
    """
    schema = model.model_json_schema(schema_generator=_Untitled)
    definitions = schema.pop("$defs", {})
    kept: set[str] = set()
    inlined: dict[str, Any] = _inline(schema, definitions, (), kept)
    if kept:
        inlined["$defs"] = {
            name: _inline(definitions[name], {}, (), set()) for name in definitions
        }
    inlined.pop("title", None)
    return inlined


def _inline(
    node: Any, definitions: dict[str, Any], inside: tuple[str, ...], kept: set[str]
) -> Any:
    if isinstance(node, list):
        return [_inline(element, definitions, inside, kept) for element in node]
    if not isinstance(node, dict):
        return node
    name = str(node.get("$ref", "")).removeprefix(_REFERENCE)
    if name in definitions:
        if name in inside:
            kept.add(name)
            return node
        rest = {key: value for key, value in node.items() if key != "$ref"}
        node = {**definitions[name], **rest}
        node.pop("title", None)
        inside = (*inside, name)
    closed = _closed(node)
    return {k: _inline(v, definitions, inside, kept) for k, v in closed.items()}


def _closed(node: dict[str, Any]) -> dict[str, Any]:
    if node.get("type") == "object" and isinstance(node.get("properties"), dict):
        return {"additionalProperties": False, **node}
    return node
