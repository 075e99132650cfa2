"""JSON Schemas are held by the book, and within bounds whoever wrote them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agenthost import InvalidInput
from agenthost_toolbox import json_schema
from agenthost_toolbox.json_schema import JsonSchema
from hypothesis import given
from hypothesis import strategies as st

SUITE = Path(__file__).parent / "json_schema_suite" / "draft2020-12.jsonl"
CASES = [json.loads(line) for line in SUITE.read_text("utf-8").splitlines()]
TOO_LONG = "to hold it against its schema takes too long"
BOMB = "^(a+)+$"
Schema = Mapping[str, Any]


@pytest.mark.parametrize("keyword", sorted({case["keyword"] for case in CASES}))
def test_the_official_suite_agrees(keyword: str) -> None:
    for case in (case for case in CASES if case["keyword"] == keyword):
        schema = JsonSchema(case["schema"])
        for test in case["tests"]:
            told = schema.problems(test["data"])
            assert (not told) is test["valid"], (case["description"], test, told)


@pytest.mark.parametrize(
    "draft",
    [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
    ],
)
def test_these_drafts_are_taken(draft: str) -> None:
    schema = JsonSchema({"$schema": draft, "type": "integer"})
    assert not schema.problems(1)
    assert schema.problems("x")


def test_draft_7_keeps_its_own_keywords() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    written = {"$schema": draft, "items": [True], "additionalItems": False}
    assert JsonSchema(written).problems([1, 2])
    assert not JsonSchema(written).problems([1])


@pytest.mark.parametrize("named", [True, False])
def test_a_schema_that_names_its_draft_is_held_in_the_same_way(*, named: bool) -> None:
    again: dict[str, Any] = {"pattern": "^\\p{L}+$", "properties": {"a": {"$ref": "#"}}}
    if named:
        again["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    # Only linear patterns know what a letter is: the library's own keywords fail.
    assert not JsonSchema(again).problems({"a": "é"})
    assert JsonSchema(again).problems({"a": "1"})


def nested(depth: int) -> Schema:
    schema: Schema = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (nested(10_000), "nested more than 64 deep"),
        ({"enum": list(range(10_001))}, "more than 10000 values"),
        ({"description": "x" * 200_000}, "over 200000 characters"),
        ({"$ref": "https://example.com/schema"}, "nothing is fetched"),
        ({"$ref": "file:///etc/passwd"}, "nothing is fetched"),
        ({"$ref": "#/$defs/none"}, "leads nowhere"),
        ({"properties": {"a": {"$ref": "#/none"}}}, "leads nowhere"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "specification"),
        ({"$id": "http://json-schema.org/x", "$ref": "draft-07/schema"}, "names a"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "is not known"),
        ({"$schema": "x"}, "is not known"),
        ({"$defs": {"a": {"$schema": "x"}}}, "at the top alone"),
        ({"default": {"$schema": "x", "pattern": BOMB}}, "at the top alone"),
        ({"pattern": "(?=a)b"}, "is not taken"),
        ({"pattern": r"(a)\1"}, "is not taken"),
        ({"pattern": "("}, "is not taken"),
        ({"pattern": "(a{1,1000}){1,1000}"}, "is not taken"),
        ({"pattern": "\ud800"}, "is not taken"),
        ({"patternProperties": {"(?<!a)": {}}}, "is not taken"),
        (
            {"patternProperties": {"a": {}}, "unevaluatedProperties": False},
            "unevaluatedProperties beside patternProperties",
        ),
        ({"type": "thing"}, "is not valid under any"),
        ({"minLength": -1}, "less than the minimum"),
        ({"properties": {"a": 1}}, "is not of type"),
    ],
)
def test_a_schema_that_is_none_or_too_much_is_refused(
    schema: Schema, reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason.replace("$", r"\$")):
        JsonSchema(schema)


def doubling(levels: int) -> Schema:
    """Asks 2 to the power of the levels, whatever it is asked about."""
    definitions: dict[str, Any] = {
        f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(levels)
    }
    return {"$ref": "#/$defs/l0", "$defs": {**definitions, f"l{levels}": {}}}


def inside(depth: int) -> Any:
    value: Any = None
    for _ in range(depth):
        value = {"a": value}
    return value


TWICE = {"allOf": [{"properties": {"a": {"$ref": "#"}}}] * 2}
MANY = {f"a{n}$": True for n in range(2_000)}


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (doubling(60), 1),
        (TWICE, inside(50)),
        ({"anyOf": [{"type": "integer"}] * 2_000}, "x" * 2_000_000),
        ({"anyOf": [{"type": "integer"}] * 2_000}, [{"a": "b"}] * 4_000),
        ({"items": True, "unevaluatedItems": False}, list(range(9_900))),
        ({"patternProperties": MANY}, {f"a{n}": 1 for n in range(5_000)}),
        (
            {"allOf": [{"pattern": f"(a|b)*{n}$"} for n in range(500)]},
            "a" * 1_000_000,
        ),
    ],
)
def test_a_schema_that_multiplies_ends_after_so_much_work(
    schema: Schema, value: Any
) -> None:
    assert TOO_LONG in JsonSchema(schema).problems(value)


def test_work_is_counted_alike_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_schema, "MOST_WORK", 100)
    assert JsonSchema({"items": {"type": "integer"}}).problems([1] * 99) == TOO_LONG
    assert not JsonSchema({"items": {"type": "integer"}}).problems([1] * 98)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$dynamicAnchor": "a", "$dynamicRef": "#a"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
        | {"$ref": "#/$defs/a"},
        {"not": {"anyOf": [{"$ref": "#"}]}},
    ],
)
def test_a_schema_that_is_its_own_condition_is_an_answer(schema: Schema) -> None:
    assert JsonSchema(schema).problems(1) == "the schema refers to itself without end"


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"pattern": BOMB}, "a" * 100_000 + "!", False),
        ({"pattern": BOMB}, "a" * 100_000, True),
        ({"pattern": "(x+x+)+y"}, "x" * 1_000_000, False),
        (
            {"patternProperties": {BOMB: {}}, "additionalProperties": False},
            {"a" * 50_000 + "!": 1},
            False,
        ),
        ({"propertyNames": {"pattern": BOMB}}, {"a" * 50_000 + "!": 1}, False),
        ({"pattern": "^\\u00e9\\d$"}, "é1", True),
        ({"pattern": "\\\\u0041"}, "\\u0041", True),
    ],
)
def test_patterns_take_linear_time_and_read_as_ecma(
    schema: Schema, value: Any, *, fits: bool
) -> None:
    assert (not JsonSchema(schema).problems(value)) is fits


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (inside(10_000), "nested more than 64 deep"),
        ([0] * 10_001, "more than 10000 values"),
    ],
)
def test_a_value_beyond_all_need_is_refused(value: Any, reason: str) -> None:
    assert reason in JsonSchema({}).problems(value)


def test_half_a_surrogate_pair_is_told() -> None:
    assert "surrogate" in JsonSchema({"pattern": "a"}).problems("\ud800")


def test_what_is_told_is_short_and_not_endless() -> None:
    told = JsonSchema({"items": {"type": "integer"}}).problems(["x" * 5_000] * 20)
    assert len(told.split("; ")) == json_schema.MOST_PROBLEMS
    assert len(told) < 2_500


def test_problems_found_before_the_work_ran_out_are_told() -> None:
    schema = JsonSchema({"items": {"type": "integer"}})
    told = schema.problems(["x" * 500_000] * 20)
    assert told.startswith("0: 'xxx")
    assert told.endswith(TOO_LONG)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES, VALUES)
def test_elements_are_equal_as_json_is(one: Any, other: Any) -> None:
    told = JsonSchema({"uniqueItems": True}).problems([one, other])
    equal = JsonSchema({"const": one}).problems(other) == ""
    assert bool(told) is equal
