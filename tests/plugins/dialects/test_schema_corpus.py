"""Two hundred nasty tool schemas become what each vendor reads, and nothing else.

The judges here know nothing of how schemas are shaped: the standard's own metaschema,
and for each vendor a plain list of what its documentation lets through.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from agenthost_dialects.schema import (
    ANTHROPIC,
    BEDROCK,
    COHERE,
    GEMINI,
    OLLAMA,
    OPENAI,
    SchemaRules,
    shape_schema,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

VENDORS = {
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
    "ollama": OLLAMA,
    "gemini": GEMINI,
    "cohere": COHERE,
    "bedrock": BEDROCK,
}
EVERY = pytest.mark.parametrize("vendor", VENDORS)
SUBSCHEMAS = ("items", "additionalProperties", "not", "contains", "if", "then", "else")
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
MAPS = ("properties", "patternProperties", "dependentSchemas")

# What Google's reference lists for schemas in JSON form.
GOOGLE = {
    "$id",
    "$defs",
    "$ref",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
    "propertyOrdering",
}
# What Cohere's guide on structured outputs says is not supported.
NOT_COHERE = {
    "allOf",
    "oneOf",
    "not",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "if",
    "then",
    "else",
}
NOT_AT_TOP = {"anyOf", "oneOf", "allOf", "not", "enum"}


def subschemas(schema: Any) -> Iterator[Any]:
    """Yield a schema and every schema in it."""
    yield schema
    if not isinstance(schema, dict):
        return
    inner = [schema[name] for name in SUBSCHEMAS if name in schema]
    inner += [item for name in LISTS for item in schema.get(name, ())]
    inner += [item for name in MAPS for item in schema.get(name, {}).values()]
    for item in inner:
        yield from subschemas(item)


def check(vendor: str, shaped: dict[str, Any]) -> None:
    """Hold a shaped schema against the standard and the vendor's documentation."""
    Draft202012Validator.check_schema(shaped)
    assert shaped["type"] == "object"
    assert isinstance(shaped["properties"], dict)
    found = list(subschemas(shaped))
    keywords = {key for node in found if isinstance(node, dict) for key in node}
    assert not keywords & {"$ref", "$defs", "definitions", "$schema", "$id"}
    for node in found:
        if isinstance(node, dict):
            known = node.get("properties", {})
            assert set(node.get("required", ())) <= set(known)
            assert node.get("type") != "array" or {"items", "prefixItems"} & set(node)
    if vendor == "openai":
        assert not NOT_AT_TOP & set(shaped)
    elif vendor == "gemini":
        assert keywords <= GOOGLE
        booleans = sum(isinstance(node, bool) for node in found)
        allowed = [n.get("additionalProperties") for n in found if isinstance(n, dict)]
        assert booleans == sum(isinstance(value, bool) for value in allowed)
    elif vendor == "cohere":
        assert not keywords & NOT_COHERE
    elif vendor == "bedrock":
        assert set(shaped) <= {"type", "properties", "required"}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


LOOP = {
    "$defs": {"n": {"type": "object", "properties": {"c": {"$ref": "#/$defs/n"}}}},
    "properties": {"root": {"$ref": "#/$defs/n"}},
}
MUTUAL = {
    "definitions": {
        "a": {"anyOf": [{"$ref": "#/definitions/b"}, {"type": "null"}]},
        "b": {"allOf": [{"$ref": "#/definitions/a"}], "title": "B"},
    },
    "properties": {"x": {"$ref": "#/definitions/a"}},
}
HAND_PICKED: list[Any] = [
    {},
    {"type": "object"},
    {"type": "object", "properties": None},
    {"type": ["object", "null"], "properties": {}},
    {"type": "string"},
    {"properties": {"a": True, "b": False}},
    {"properties": {"a": None, "b": 7, "c": "string", "d": []}},
    {"$schema": "http://json-schema.org/draft-07/schema#", "$id": "x", "$comment": "y"},
    {"anyOf": [of(a={"type": "string"}), of(b={"type": "integer"})]},
    {"allOf": [of(a={}), {"required": ["a"]}]},
    {"type": "object", "required": ["a"]},
    {"type": "object", "required": "a", "properties": {"a": {}}},
    {"type": "object", "required": [1, "a", "a"], "properties": {"a": {}}},
    of(a={"type": "string", "required": True}),
    of(a={"type": "any"}, b={"type": "date"}, c={"type": ["string", "file"]}),
    of(a={"type": []}, b={"type": ["string", "string"]}, c={"type": None}),
    of(a={"type": "array"}),
    of(a={"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}),
    of(a={"type": "array", "prefixItems": [{"type": "string"}], "items": False}),
    of(a={"type": "array", "items": {"$ref": "#/nowhere"}}),
    of(a={"enum": []}, b={"enum": "x"}, c={"enum": [None, 1, "x", {"y": 1}]}),
    of(
        a={"const": None},
        b={"const": {"type": "x"}},
        c={"const": "x", "type": "string"},
    ),
    of(a={"oneOf": [{"const": "x"}, {"const": "y"}]}),
    of(a={"anyOf": []}, b={"allOf": {}}, c={"not": 7}),
    of(a={"not": {"type": "null"}}, b={"if": {}, "then": {}, "else": False}),
    of(a={"type": "string", "format": "email"}, b={"format": 7}, c={"format": "uri"}),
    of(a={"type": "string", "pattern": 7}, b={"pattern": "^[a-z]+$"}),
    of(a={"minimum": "1"}, b={"minimum": True}, c={"exclusiveMinimum": 0}),
    of(a={"exclusiveMinimum": True, "minimum": 0}),
    of(a={"minItems": -1}, b={"maxItems": 1.5}, c={"minLength": None}),
    of(a={"description": 7, "title": ["x"]}),
    of(a={"description": None, "default": {"$ref": "x"}, "examples": [{"$id": 1}]}),
    of(**{"$ref": {"type": "string"}, "properties": {"type": "string"}}),
    of(anyOf={"type": "string"}, required={"type": "boolean"}),
    of(**{"": {"type": "string"}, "a b": {}, "é": {}, "$schema": {}}),
    {"properties": {"a": {"$ref": "#"}}},
    {"properties": {"a": {"$ref": "#/properties/a"}}},
    {"properties": {"a": {"$ref": 7}, "b": {"$ref": "other.json#/x"}}},
    {"properties": {"a": {"$ref": "#/properties/b"}, "b": True}},
    LOOP,
    MUTUAL,
    of(a={"additionalProperties": {"type": "string"}}, b={"additionalProperties": "x"}),
    {
        "additionalProperties": False,
        "properties": {"a": {"additionalProperties": True}},
    },
    {
        "patternProperties": {"^x": {"type": "string"}},
        "propertyNames": {"pattern": "x"},
    },
    of(a={"propertyNames": {"format": "email"}, "unevaluatedProperties": False}),
    {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"a": of(b={})}},
    of(a={"nullable": True, "type": "string"}, b={"discriminator": {"x": 1}}),
    of(a={"x-order": 1, "readOnly": True, "deprecated": True, "example": 1}),
    of(a={"type": "number", "multipleOf": 0.01}, b={"uniqueItems": True}),
    of(a={"contentEncoding": "base64", "contentMediaType": "image/png"}),
    of(a={"$dynamicRef": "#x"}, b={"$recursiveRef": "#"}, c={"$anchor": "here"}),
]
NESTS = [
    lambda s: of(a=s),
    lambda s: of(a={"type": "array", "items": s}),
    lambda s: of(a={"anyOf": [s, {"type": "null"}]}),
    lambda s: {"$defs": {"d": s}, "properties": {"a": {"$ref": "#/$defs/d"}}},
]
CORPUS = [*HAND_PICKED, *(nest(s) for nest, s in product(NESTS, HAND_PICKED))]


def shape(vendor: str, schema: Any) -> dict[str, Any]:
    rules: SchemaRules = VENDORS[vendor]
    return shape_schema(schema, rules)


def test_the_corpus_is_large() -> None:
    assert len(CORPUS) >= 200


@EVERY
def test_the_corpus_becomes_what_the_vendor_reads(vendor: str) -> None:
    for schema in CORPUS:
        before = json.dumps(schema)
        shaped = shape(vendor, schema)
        check(vendor, shaped)
        assert shape(vendor, shaped) == shaped
        assert json.dumps(schema) == before


KEYWORDS = st.sampled_from(
    [
        "type",
        "properties",
        "required",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "enum",
        "const",
        "$ref",
        "$defs",
        "format",
        "description",
        "additionalProperties",
        "prefixItems",
        "minimum",
        "minItems",
        "pattern",
        "title",
        "default",
        "if",
        "then",
        "propertyNames",
        "patternProperties",
        "a",
        "b",
    ]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.text("ab$#/", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner),
    max_leaves=6,
)
TYPES = st.sampled_from(["string", "object", "array", "null", "nonsense"])
SCHEMAS = st.recursive(
    st.dictionaries(KEYWORDS, ANYTHING, max_size=3) | st.booleans(),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, max_size=2),
            "properties": st.dictionaries(st.sampled_from(["a", "b", "type"]), inner),
            "required": st.lists(st.sampled_from(["a", "b", "c"]), max_size=3),
            "items": inner,
            "anyOf": st.lists(inner, max_size=2),
            "oneOf": st.lists(inner, max_size=2),
            "const": ANYTHING,
            "$ref": st.sampled_from(["#", "#/properties/a", "#/$defs/a", "#/$defs/b"]),
        },
    ),
    max_leaves=8,
)
DOCUMENTS = st.fixed_dictionaries(
    {"properties": st.dictionaries(st.sampled_from(["a", "b"]), SCHEMAS)},
    optional={"$defs": st.dictionaries(st.sampled_from(["a", "b"]), SCHEMAS)},
)


@pytest.mark.conformance
@EVERY
@settings(max_examples=60, deadline=None)
@given(schema=DOCUMENTS)
def test_any_schema_becomes_what_the_vendor_reads(
    vendor: str, schema: dict[str, Any]
) -> None:
    shaped = shape(vendor, schema)
    check(vendor, shaped)
    assert set(shaped["properties"]) == set(schema["properties"])
    assert shape(vendor, shaped) == shaped


@EVERY
def test_what_every_vendor_reads_stays_as_it_is(vendor: str) -> None:
    plain = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where"},
            "unit": {"type": "string", "enum": ["C", "F"]},
            "days": {"type": "array", "items": {"type": "integer"}},
            "at": {"type": "string", "format": "date-time"},
            "near": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["city"],
    }
    assert shape(vendor, plain) == plain


def test_google_reads_constants_and_choices_in_another_form() -> None:
    schema = of(a={"oneOf": [{"const": "x"}, {"const": "y", "title": "Y"}]})
    assert shape("gemini", schema)["properties"]["a"] == {
        "anyOf": [{"enum": ["x"]}, {"enum": ["y"], "title": "Y"}]
    }
