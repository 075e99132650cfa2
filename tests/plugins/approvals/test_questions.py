"""Questions, as pure functions: what may be asked, and which values fit."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest
from agenthost import InvalidInput, Question
from agenthost_approvals.questions import (
    check_question,
    check_values,
    digest_of,
    shown_to_people,
)

OBJECT = {"type": "object"}


def of(**properties: Any) -> Mapping[str, Any]:
    return {**OBJECT, "properties": properties}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "array"},
        {**OBJECT, "allOf": []},
        {**OBJECT, "properties": []},
        {**OBJECT, "required": ["a"]},
        {**OBJECT, "required": "a"},
        {**OBJECT, "required": [["a"]]},
        of(a={}),
        of(a={"type": "object"}),
        of(a={"type": "array"}),
        of(a={"type": ["string"]}),
        of(a={"type": "string", "pattern": "(a+)+$"}),
        of(a={"type": "string", "maxLength": "x"}),
        of(a={"type": "number", "minimum": math.nan}),
        of(a={"type": "string", "enum": "ab"}),
        of(a="string"),
        of(**{f"a{n}": {"type": "string"} for n in range(21)}),
    ],
)
def test_a_schema_that_is_not_flat_cannot_be_asked(schema: Mapping[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        check_question(Question("Which?", schema=schema))


@pytest.mark.parametrize("url", ["ftp://a", "javascript:x", "//a", "https://", "a b"])
def test_only_pages_of_the_web_can_be_visited(url: str) -> None:
    with pytest.raises(InvalidInput, match="url"):
        check_question(Question("Log in", url=url))


@pytest.mark.parametrize(
    ("rules", "good", "bad"),
    [
        ({"type": "string"}, ["", "é"], [1, None, [], {}, True, "x" * 10_001]),
        ({"type": "string", "maxLength": 99_999}, ["x"], ["x" * 10_001]),
        ({"type": "string", "enum": ["a", "b"]}, ["a"], ["c", "A", "", ["a"]]),
        ({"type": "boolean"}, [True, False], [0, 1, "true", None]),
        ({"type": "integer"}, [0, -5, 10**400], [1.0, "1", True, None]),
        ({"type": "number"}, [0, 1.5], [math.nan, math.inf, -math.inf, True, "1"]),
        ({"type": "number", "minimum": 1, "maximum": 2}, [1, 2, 1.5], [0.9, 2.1]),
        ({"type": "integer", "enum": [1, 2]}, [1], [3, True]),
    ],
)
def test_values_fit_their_rules_or_are_named(
    rules: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    question = {"schema": of(value=rules)}
    check_question(Question("Which?", schema=question["schema"]))
    for value in good:
        check_values(question, {"value": value})
    for value in bad:
        with pytest.raises(InvalidInput, match=r"values\.value"):
            check_values(question, {"value": value})


def test_a_plain_question_takes_no_values() -> None:
    check_values({"text": "May it?"}, {})
    with pytest.raises(InvalidInput, match=r"values\.x"):
        check_values({"text": "May it?"}, {"x": 1})


def test_what_is_shown_is_written_the_same_way_each_time() -> None:
    question = Question("May it?", choices=("a", "b"), url="https://a.example")
    one = shown_to_people(question, {"tool": "pay", "arguments": {"a": 1, "b": "é"}})
    two = shown_to_people(question, {"arguments": {"b": "é", "a": 1}, "tool": "pay"})
    assert one == two
    assert json.dumps(json.loads(one), sort_keys=True) == one
    more = shown_to_people(question, {"tool": "pay", "arguments": {"a": 2, "b": "é"}})
    assert digest_of(more) != digest_of(one)


def test_what_cannot_be_shown_is_refused() -> None:
    for arguments in (object(), "x" * 300_000, 10**5_000):
        with pytest.raises(InvalidInput):
            shown_to_people(Question("May it?"), {"arguments": arguments})
