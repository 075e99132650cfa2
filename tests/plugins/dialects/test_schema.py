"""Tool schemas are shaped without losing their meaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agenthost_dialects.schema import SchemaRules, shape_schema
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

RULES = SchemaRules()


class Step(BaseModel):
    name: str
    after: list[Step] = []


class Plan(BaseModel):
    title: str
    first: Step


def keywords(node: Any, *, names: bool = False) -> Iterator[str]:
    """List the keywords of a schema; names of properties are none."""
    if isinstance(node, list):
        for item in node:
            yield from keywords(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if not names:
                yield key
            if key not in {"enum", "const", "default", "examples", "required"}:
                yield from keywords(value, names=key == "properties" and not names)


def test_references_are_written_out_and_recursion_ends() -> None:
    shaped = shape_schema(Plan.model_json_schema(), RULES)
    assert "$ref" not in set(keywords(shaped))
    first = shaped["properties"]["first"]
    assert first["properties"]["name"]["type"] == "string"
    assert first["properties"]["after"]["items"] == {}


def test_a_property_may_be_named_like_a_keyword() -> None:
    names = {"$schema": {"type": "string"}, "anyOf": {"type": "string"}}
    shaped = shape_schema({"type": "object", "properties": names}, RULES)
    assert shaped["properties"] == names


def test_data_is_not_taken_for_schema() -> None:
    default = {"default": {"$ref": "#/x", "$id": 1}, "enum": [{"$ref": 1}]}
    shaped = shape_schema({"properties": {"a": default}}, RULES)
    assert shaped["properties"]["a"] == default


def test_the_top_is_always_a_plain_object() -> None:
    shaped = shape_schema({"anyOf": [{"type": "object"}], "$schema": "x"}, RULES)
    assert shaped == {"type": "object", "properties": {}}


def test_a_reference_may_lead_to_nothing() -> None:
    for reference in ("#/$defs/none", "http://else/where", "#", "other.json"):
        shaped = shape_schema({"properties": {"a": {"$ref": reference}}}, RULES)
        assert shaped["properties"]["a"] == {}


def test_what_stands_beside_a_reference_wins() -> None:
    schema = {
        "$defs": {"a/b": {"type": "string", "description": "old"}},
        "properties": {"x": {"$ref": "#/$defs/a~1b", "description": "new"}},
    }
    assert shape_schema(schema, RULES)["properties"]["x"] == {
        "type": "string",
        "description": "new",
    }


def test_references_that_double_stay_bounded() -> None:
    defs = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    schema = {"$defs": defs, "properties": {"x": {"$ref": "#/$defs/d0"}}}
    assert len(str(shape_schema(schema, RULES))) < 100_000


NODES = st.recursive(
    st.fixed_dictionaries({"type": st.sampled_from(["string", "integer"])})
    | st.sampled_from([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {}, True]),
    lambda inner: (
        st.dictionaries(
            st.sampled_from(["items", "anyOf", "not", "$schema", "title"]), inner
        )
        | st.fixed_dictionaries(
            {
                "properties": st.dictionaries(
                    st.sampled_from(["$ref", "x", "items"]), inner
                )
            }
        )
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(NODES, NODES, st.dictionaries(st.sampled_from(["x", "$id", "y"]), NODES))
def test_any_schema_becomes_one_without_what_is_refused(
    a: Any, b: Any, properties: dict[str, Any]
) -> None:
    schema = {"properties": properties, "$defs": {"a": a, "b": b}}
    shaped = shape_schema(schema, RULES)
    assert set(shaped["properties"]) == set(properties)
    assert not {"$ref", "$defs", *RULES.dropped} & set(keywords(shaped))
    assert shape_schema(shaped, RULES) == shaped
