"""Shape a tool's JSON Schema into the part of the standard that a vendor reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Keywords whose value maps names to schemas: the names are data, not keywords.
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
# Keywords whose value is data, never a schema.
LITERAL = frozenset({"enum", "const", "default", "examples", "required", "example"})
DEFINITIONS = ("$defs", "definitions")
# References that double at each step would grow without end.
MOST_REFERENCES = 500


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """What a vendor does not read: keywords that are dropped anywhere or at the top."""

    dropped: frozenset[str] = frozenset({"$schema", "$id", "$comment", "$anchor"})
    dropped_at_top: frozenset[str] = frozenset({"oneOf", "anyOf", "allOf", "not"})


def shape_schema(schema: Mapping[str, Any], rules: SchemaRules) -> dict[str, Any]:
    """Rewrite a tool's parameters so that the vendor takes them.

    References to definitions are written out; one that leads back into itself, and
    those beyond a bound, become a schema that takes anything. The result is always
    an object schema and holds what the given one held in the same order.
    """
    shaper = _Shaper(schema, rules)
    walked = shaper.walk(schema, ())
    shaped = walked if isinstance(walked, dict) else {}
    for keyword in rules.dropped_at_top:
        shaped.pop(keyword, None)
    shaped["type"] = "object"
    shaped.setdefault("properties", {})
    return shaped


class _Shaper:
    def __init__(self, root: Mapping[str, Any], rules: SchemaRules) -> None:
        self._root = root
        self._rules = rules
        self._followed = 0

    def walk(self, node: Any, path: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [self.walk(item, path) for item in node]
        if not isinstance(node, Mapping):
            return node
        reference = node.get("$ref")
        if isinstance(reference, str):
            return self._follow(reference, node, path)
        return {
            keyword: self._value(keyword, value, path)
            for keyword, value in node.items()
            if keyword not in self._rules.dropped and keyword not in DEFINITIONS
        }

    def _value(self, keyword: str, value: Any, path: tuple[str, ...]) -> Any:
        if keyword in LITERAL:
            return value
        if keyword in NAMED and isinstance(value, Mapping):
            return {name: self.walk(item, path) for name, item in value.items()}
        return self.walk(value, path)

    def _follow(
        self, reference: str, node: Mapping[str, Any], path: tuple[str, ...]
    ) -> dict[str, Any]:
        beside = {key: value for key, value in node.items() if key != "$ref"}
        self._followed += 1
        lost = reference in path or self._followed > MOST_REFERENCES
        target = None if lost else self._find(reference)
        merged = {**target, **beside} if isinstance(target, Mapping) else beside
        walked = self.walk(merged, (*path, reference))
        return walked if isinstance(walked, dict) else {}

    def _find(self, reference: str) -> Any:
        if not reference.startswith("#/"):
            return None
        found: Any = self._root
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or name not in found:
                return None
            found = found[name]
        return found
