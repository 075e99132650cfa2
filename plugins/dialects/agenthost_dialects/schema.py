"""Shape a tool's JSON Schema into the part of the standard that a vendor reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# Keywords whose value maps names to schemas: the names are data, not keywords.
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
# Keywords whose value is a schema, or a list of them.
NESTED = frozenset(
    {
        "additionalProperties",
        "allOf",
        "anyOf",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "oneOf",
        "prefixItems",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
DEFINITIONS = ("$defs", "definitions")
# References that double at each step would grow without end.
MOST_REFERENCES = 500
ADDRESSES = frozenset(
    {"$schema", "$id", "$comment", "$anchor", "$vocabulary", "$dynamicAnchor"}
)


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """What a vendor reads of JSON Schema.

    Args:
        dropped: Keywords that are left out anywhere.
        dropped_at_top: Keywords that are left out of the outermost schema.
        kept: The only keywords that may stay; None for all others.
        formats: The only values of ``format`` that may stay; None for all.
        constants: Whether ``const`` may stay, or becomes a list of one choice.
        choices: Whether ``oneOf`` may stay, or becomes ``anyOf``.
        booleans: Whether true and false may stand for a schema.
    """

    dropped: frozenset[str] = ADDRESSES
    dropped_at_top: frozenset[str] = frozenset(
        {"oneOf", "anyOf", "allOf", "not", "enum", "const"}
    )
    kept: frozenset[str] | None = None
    formats: frozenset[str] | None = None
    constants: bool = True
    choices: bool = True
    booleans: bool = True


OPENAI = SchemaRules()
ANTHROPIC = SchemaRules()
OLLAMA = SchemaRules()
GEMINI = SchemaRules(
    kept=frozenset(
        {
            "additionalProperties",
            "anyOf",
            "description",
            "enum",
            "format",
            "items",
            "maxItems",
            "maximum",
            "minItems",
            "minimum",
            "prefixItems",
            "properties",
            "required",
            "title",
            "type",
        }
    ),
    formats=frozenset(
        {"date", "date-time", "double", "enum", "float", "int32", "int64", "time"}
    ),
    constants=False,
    choices=False,
    booleans=False,
)
COHERE = SchemaRules(
    kept=frozenset(
        {
            "additionalProperties",
            "anyOf",
            "const",
            "default",
            "description",
            "enum",
            "format",
            "items",
            "pattern",
            "properties",
            "required",
            "title",
            "type",
        }
    ),
    formats=frozenset({"date", "date-time", "time", "uuid"}),
    choices=False,
    booleans=False,
)
# Nova refuses every keyword of the outermost schema but these three.
BEDROCK = SchemaRules(
    dropped_at_top=frozenset(
        {
            *("$defs", "additionalProperties", "allOf", "anyOf", "const", "default"),
            *("dependentRequired", "dependentSchemas", "description", "else", "enum"),
            *("examples", "if", "maxProperties", "minProperties", "not", "oneOf"),
            *("patternProperties", "propertyNames", "then", "title"),
            "unevaluatedProperties",
        }
    ),
)


def shape_schema(schema: Mapping[str, Any], rules: SchemaRules) -> dict[str, Any]:
    """Rewrite a tool's parameters so that the vendor takes them.

    References to definitions are written out; one that leads back into itself, and
    those beyond a bound, become a schema that takes anything. What is no schema at
    all (an unknown type, names that are required and do not exist) is left out. The
    result is always an object schema and holds what the given one held in the same
    order.
    """
    walked = _Shaper(schema, rules).walk(schema, ())
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
        """Shape a schema; what is none becomes one that takes anything."""
        if isinstance(node, bool) and self._rules.booleans:
            return node
        if not isinstance(node, Mapping):
            return {}
        reference = node.get("$ref")
        if isinstance(reference, str):
            return self._follow(reference, node, path)
        shaped: dict[str, Any] = {}
        for keyword, value in node.items():
            name, told = self._renamed(keyword, value)
            if self._stays(name, told):
                shaped[name] = self._value(name, told, path)
        return _mended(shaped)

    def _renamed(self, keyword: str, value: Any) -> tuple[str, Any]:
        if keyword == "const" and not self._rules.constants:
            return "enum", [value]
        if keyword == "oneOf" and not self._rules.choices:
            return "anyOf", value
        return keyword, value

    def _stays(self, keyword: str, value: Any) -> bool:
        rules = self._rules
        if keyword in rules.dropped or keyword in {*DEFINITIONS, "$ref"}:
            return False
        if rules.kept is not None and keyword not in rules.kept:
            return False
        if keyword == "format" and rules.formats is not None:
            return value in rules.formats if isinstance(value, str) else False
        return _is_sound(keyword, value)

    def _value(self, keyword: str, value: Any, path: tuple[str, ...]) -> Any:
        if keyword in NAMED:
            return {name: self.walk(item, path) for name, item in value.items()}
        if keyword == "additionalProperties" and isinstance(value, bool):
            return value
        if keyword not in NESTED:
            return value
        if keyword in LISTED:
            return [self.walk(item, path) for item in value]
        # Tuples of the older drafts are lists of what each place may hold.
        if isinstance(value, list):
            return {}
        return self.walk(value, path)

    def _follow(
        self, reference: str, node: Mapping[str, Any], path: tuple[str, ...]
    ) -> Any:
        beside = {key: value for key, value in node.items() if key != "$ref"}
        self._followed += 1
        lost = reference in path or self._followed > MOST_REFERENCES
        target = None if lost else self._find(reference)
        if isinstance(target, bool) and not beside:
            return self.walk(target, path)
        merged = {**target, **beside} if isinstance(target, Mapping) else beside
        return self.walk(merged, (*path, reference))

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


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool)


def _is_bound(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_type(value: Any) -> bool:
    listed = value if isinstance(value, list) else [value]
    known = {name for name in listed if isinstance(name, str) and name in TYPES}
    return bool(listed) and len(known) == len(listed)


# What kind of value the standard demands, by keyword.
SOUND: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(NAMED, _is_map),
    **dict.fromkeys((*LISTED, "enum", "examples"), _is_list),
    **dict.fromkeys(("$dynamicRef", "$recursiveRef"), _is_text),
    **dict.fromkeys(("description", "format", "pattern", "title"), _is_text),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), _is_text),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly"), _is_switch),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), _is_bound),
    **dict.fromkeys(("maximum", "minimum"), _is_bound),
    **dict.fromkeys(("maxContains", "maxItems", "maxLength"), _is_count),
    **dict.fromkeys(("minContains", "minItems", "minLength"), _is_count),
    **dict.fromkeys(("maxProperties", "minProperties"), _is_count),
    "dependentRequired": _is_map,
    "type": _is_type,
    "uniqueItems": _is_switch,
}


def _is_sound(keyword: str, value: Any) -> bool:
    """Tell whether a keyword's value is of the kind that the standard demands."""
    demanded = SOUND.get(keyword)
    return demanded is None or demanded(value)


def _mended(schema: dict[str, Any]) -> dict[str, Any]:
    """Make the parts of a schema agree: what is required exists, lists have items."""
    if "required" in schema:
        required = schema["required"]
        listed = required if isinstance(required, list) else []
        names = schema.get("properties", {})
        known = [name for name in listed if isinstance(name, str) and name in names]
        schema["required"] = list(dict.fromkeys(known))
        if not known:
            del schema["required"]
    if schema.get("type") == "array" and "prefixItems" not in schema:
        schema.setdefault("items", {})
    return schema
