"""Tools made ready: names, schemas of models, and those that are left out alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from agenthost import Grants, InvalidInput, Manifest, ToolSpec
from agenthost_toolbox.ready import ReadyTool, made_ready
from agenthost_toolbox.table import Offer, Table
from pydantic import BaseModel, Field

from .making import CITY, call, tool

ANY = Manifest(name="any")


def table(*specs: ToolSpec) -> Table:
    ready, problems = made_ready("tool:a", specs)
    assert not problems
    return Table([Offer("tool:a", ready, {})])


class Inner(BaseModel):
    """Inside."""

    title: str
    more: Mapping[str, int] = Field(default_factory=dict)


class Outer(BaseModel):
    """Outside."""

    one: Inner = Field(description="the one")
    many: list[Inner] = []


class Tree(BaseModel):
    """Recurs."""

    name: str
    children: list[Tree] = []


class Odd(BaseModel):
    """Has no schema."""

    call: Callable[[int], int]


def test_tools_are_found_by_name_and_alias() -> None:
    tools = table(tool("kv_set", "memory_store")).tools
    assert tools["memory_store"] is tools["kv_set"]
    assert tools["kv_set"].definition.parameters["type"] == "object"
    assert "nothing" not in tools


def test_granted_tools_come_sorted_and_by_any_name() -> None:
    made = table(tool("kv_set", "memory_store"), tool("b"), tool("a"))
    granted = made.granted(Grants({"tool": ("memory_*", "a")}), ANY)
    assert [definition.name for definition in granted] == ["a", "kv_set"]
    assert made.granted(Grants(), ANY) == ()


def test_a_tool_may_be_offered_to_some_manifests_alone() -> None:
    mine = replace(tool("a"), offered_to=lambda manifest: "mine" in manifest.tags)
    made, grants = table(mine, tool("b")), Grants({"tool": ("*",)})
    assert [each.name for each in made.granted(grants, ANY)] == ["b"]
    tagged = Manifest(name="any", tags=("mine",))
    assert [each.name for each in made.granted(grants, tagged)] == ["a", "b"]


@pytest.mark.parametrize("name", ["", "a b", "a" * 65, "a.b", "é"])
def test_a_tool_whose_name_models_refuse_is_left_out_alone(name: str) -> None:
    ready, (problem,) = made_ready("tool:a", [tool(name), tool("good")])
    assert [each.spec.name for each in ready] == ["good"]
    assert "must be 1 to 64" in problem


def test_a_model_without_a_schema_leaves_its_tool_out_alone() -> None:
    ready, (problem,) = made_ready("tool:a", [tool("odd", input=Odd), tool("good")])
    assert [each.spec.name for each in ready] == ["good"]
    assert problem.startswith("tool odd of tool:a is left out: ")


def test_a_description_without_end_leaves_its_tool_out_alone() -> None:
    ready, (problem,) = made_ready("tool:a", [tool("a", description="x" * 10_001)])
    assert ready == ()
    assert "over 10000 characters" in problem


def test_a_schema_is_closed_and_holds_no_references() -> None:
    schema = ReadyTool("tool:a", tool("a", input=Outer)).schema
    assert "$defs" not in schema
    assert schema["additionalProperties"] is False
    one = schema["properties"]["one"]
    assert one["description"] == "the one"
    assert one["additionalProperties"] is False
    assert one["properties"]["title"] == {"type": "string"}
    assert one["properties"]["more"]["additionalProperties"] == {"type": "integer"}
    assert schema["properties"]["many"]["items"]["properties"] == one["properties"]


def test_a_schema_that_recurs_keeps_its_definitions() -> None:
    schema = ReadyTool("tool:a", tool("a", input=Tree)).schema
    assert schema["$defs"]["Tree"]["additionalProperties"] is False
    assert schema["$defs"]["Tree"]["properties"]["name"] == {"type": "string"}


def test_a_json_schema_gives_its_tool_a_dict_of_its_own() -> None:
    ready = ReadyTool("tool:a", tool("a", input={"type": "object"}))
    asked = call("a", list=[1])
    given = ready.arguments(asked)
    assert given == {"list": [1]}
    given["list"].append(2)
    assert asked.arguments == {"list": [1]}


def test_every_argument_that_does_not_fit_a_json_schema_is_named() -> None:
    ready = ReadyTool("tool:a", tool("a", input=CITY))
    with pytest.raises(InvalidInput) as caught:
        ready.arguments(call("a", days=0, town="x"))
    said = caught.value.message
    assert said.startswith("wrong arguments: ")
    assert "'city' is a required property" in said
    assert "days: 0 is less than the minimum of 1" in said
    assert "there is no 'town'; known: city, days" in said


def test_a_json_schema_that_is_changed_later_changes_no_tool() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    ready = ReadyTool("tool:a", tool("a", input=schema))
    schema["properties"] = {}
    with pytest.raises(InvalidInput, match="a: 1 is not of type 'string'"):
        ready.arguments(call("a", a=1))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "array"}, "arguments are an object"),
        ({}, "arguments are an object"),
        ({"type": "object", "properties": []}, "is not of type 'object'"),
        ({"type": "object", "required": "a"}, "is not of type 'array'"),
        ({"type": "object", "x": {1, 2}}, "it is no JSON"),
        ({"type": "object", "x": float("nan")}, "it is no JSON"),
    ],
)
def test_a_tool_whose_json_schema_is_none_is_left_out_alone(
    schema: Mapping[str, object], reason: str
) -> None:
    ready, (problem,) = made_ready("tool:a", [tool("bad", input=schema), tool("good")])
    assert [each.spec.name for each in ready] == ["good"]
    assert reason in problem


def test_who_has_not_changed_is_not_made_again() -> None:
    first, _ = made_ready("tool:a", [tool("a", input=CITY), tool("b")])
    again = [tool("a", input=dict(CITY)), tool("b", description="Another tool.")]
    second, _ = made_ready("tool:a", again, first)
    assert second[0] is first[0]
    assert second[1] is not first[1]


def test_of_two_owners_the_earlier_keeps_a_name() -> None:
    one, _ = made_ready("tool:a", [tool("x", "y")])
    two, _ = made_ready("tool:b", [tool("y"), tool("z")])
    made = Table([Offer("tool:a", one, {}), Offer("tool:b", two, {})])
    assert sorted(made.tools) == ["x", "y", "z"]
    assert made.tools["y"] is one[0]
    assert made.left_out == ["tool y of tool:b is left out: tool:a has y"]
