"""What else is asked of an answer: written, left out or refused by its name."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from agenthost import (
    ChatRequest,
    Endpoint,
    Message,
    ModelFacts,
    ModelSettings,
    ProviderError,
    ProviderFault,
    Role,
    ToolDefinition,
    ToolOutput,
    ToolUse,
    user_message,
)
from agenthost_dialects.anthropic_messages import AnthropicMessages
from agenthost_dialects.bedrock import Bedrock
from agenthost_dialects.cohere import Cohere
from agenthost_dialects.forms import IN_WORDS, closed_form, strict_form
from agenthost_dialects.gemini import Gemini
from agenthost_dialects.ollama import Ollama
from agenthost_dialects.openai_chat import OpenAIChat
from agenthost_dialects.openai_responses import OpenAIResponses
from agenthost_dialects.settings import TAKES, fitted
from agenthost_dialects.spoken import DIALECTS, make
from agenthost_providers.catalogue import load_facts

from .exchange import HERE, body_of, there

TOOLS = (
    ToolDefinition("look", "Look.", {"type": "object"}),
    ToolDefinition("hear", "Hear.", {"type": "object"}),
)
PLAIN = ChatRequest("m", "Be brief.", (user_message("hi"),), TOOLS)
BARE = replace(PLAIN, tools=())
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
CLOSED = {**FORM, "additionalProperties": False}
TOLD = IN_WORDS + json.dumps(FORM, separators=(",", ":"))
ANSWERED = (
    Message(Role.ASSISTANT, (ToolUse("1", "look", {}),)),
    Message(Role.TOOL, (ToolOutput("1", "look", "white"),)),
)


def asked(request: ChatRequest = PLAIN, **settings: Any) -> ChatRequest:
    return replace(request, **settings)


def refused(dialect: Any, request: ChatRequest, where: Endpoint = HERE) -> str:
    with pytest.raises(ProviderError) as caught:
        dialect.encode(request, where)
    assert caught.value.fault is ProviderFault.BAD_REQUEST
    return caught.value.detail


def test_every_dialect_says_what_it_takes() -> None:
    assert TAKES.keys() == DIALECTS.keys()


def test_a_request_without_settings_comes_back_as_it_is() -> None:
    for takes in TAKES.values():
        assert fitted(PLAIN, HERE, takes) is PLAIN


@pytest.mark.parametrize("name", TAKES)
def test_what_a_dialect_does_not_take_leaves_nothing_behind(name: str) -> None:
    settings: dict[str, Any] = {
        "parallel_tool_calls": True,
        "seed": 1,
        "top_p": 0.5,
        "user": "u",
    }
    left = fitted(asked(**settings), HERE, TAKES[name])
    kept = {n for n in settings if getattr(left, n) != getattr(ModelSettings(), n)}
    assert kept == settings.keys() & TAKES[name].settings


@pytest.mark.parametrize("way", ["effort", "object", "switch", "template"])
def test_how_much_is_thought_is_said_once(way: str) -> None:
    own = {"openai-chat": {"reasoning_effort": "minimal"}}
    dialect = OpenAIChat.from_quirks({"thinking": way})
    plain = body_of(dialect, replace(BARE, thinking_budget=None))
    body = body_of(dialect, replace(BARE, thinking_budget=1_024, native=own))
    assert body == {**plain, "reasoning_effort": "minimal"}


# Replicate's is a driver: it writes more than one request.
@pytest.mark.parametrize("name", sorted(DIALECTS.keys() - {"replicate-predictions"}))
def test_what_one_wire_alone_has_goes_on_no_other(name: str) -> None:
    dialect: Any = make(name, {})
    fields = {each: {f"of {each}": 1} for each in DIALECTS}
    told = {k for k in body_of(dialect, replace(BARE, native=fields)) if "of " in k}
    own = {"openai-chat", "anthropic-messages"} & {name}
    assert told == {f"of {each}" for each in own}


@pytest.mark.parametrize("name", ["openai-responses", "replicate-predictions"])
def test_words_to_stop_at_are_refused_by_who_has_none(name: str) -> None:
    with pytest.raises(ProviderError, match="stop: the model takes no stop"):
        fitted(asked(stop=("END",)), HERE, TAKES[name])


def test_a_model_without_a_temperature_has_no_top_p() -> None:
    left = fitted(asked(top_p=0.5), HERE, TAKES["openai-chat"], samples=False)
    assert left.top_p is None


def test_claude_takes_a_temperature_or_top_p_never_both() -> None:
    both = asked(top_p=0.5, temperature=0.2)
    for name in ("anthropic-messages", "bedrock-converse"):
        assert fitted(both, HERE, TAKES[name]).top_p is None
    assert fitted(both, HERE, TAKES["openai-chat"]).top_p == 0.5


def test_top_p_is_sent_with_the_last_version_that_has_it() -> None:
    dialect = AnthropicMessages()
    sent = dialect.encode(asked(top_p=0.5), HERE)
    assert sent.headers["anthropic-version"] == "2023-06-01"
    assert "top_p" not in body_of(dialect, asked(top_p=0.5, thinking_budget=2000))


@pytest.mark.parametrize("dialect", [OpenAIChat(), OpenAIResponses(), Gemini()])
def test_tools_that_are_not_offered_are_not_spoken_of(dialect: Any) -> None:
    plain = body_of(dialect, BARE)
    for choice in ("auto", "none"):
        quiet = asked(BARE, tool_choice=choice, parallel_tool_calls=False)
        assert body_of(dialect, quiet) == plain


@pytest.mark.parametrize("choice", ["required", "look"])
@pytest.mark.parametrize("dialect", [OpenAIChat(), Cohere(), Bedrock(), Ollama()])
def test_a_call_of_a_tool_that_is_not_offered_is_refused(
    dialect: Any, choice: str
) -> None:
    assert "tool_choice: no tool" in refused(dialect, asked(BARE, tool_choice=choice))


def test_one_tool_is_offered_alone_where_none_can_be_named() -> None:
    body = body_of(Cohere(), asked(tool_choice="hear"))
    assert [tool["function"]["name"] for tool in body["tools"]] == ["hear"]
    assert body["tool_choice"] == "REQUIRED"


def test_a_local_model_is_kept_from_tools_and_cannot_be_made_to_call_one() -> None:
    assert "tools" not in body_of(Ollama(), asked(tool_choice="none"))
    assert body_of(Ollama(), asked(tool_choice="auto")) == body_of(Ollama(), PLAIN)
    assert "be made to call" in refused(Ollama(), asked(tool_choice="required"))


def test_bedrock_names_the_tools_of_a_conversation_and_keeps_nobody_from_them() -> None:
    request = asked(messages=(*PLAIN.messages, *ANSWERED), tool_choice="none")
    assert "tool_choice: " in refused(Bedrock(), request)


@pytest.mark.parametrize("choice", ["required", "look"])
def test_claude_does_not_think_when_it_is_made_to_call(choice: str) -> None:
    where = there("anthropic", "claude-sonnet-4-6")
    thinks = asked(tool_choice=choice, thinking_budget=9000)
    body = body_of(AnthropicMessages(), thinks, where)
    assert body["thinking"] == {"type": "disabled"}
    usual = asked(tool_choice="auto", thinking_budget=9000)
    assert body_of(AnthropicMessages(), usual, where)["thinking"]["type"] == "adaptive"


def test_claude_that_always_thinks_cannot_be_made_to_call() -> None:
    where = there("anthropic", "claude-opus-5-5")
    told = refused(AnthropicMessages(), asked(tool_choice="required"), where)
    assert "tool_choice: the model cannot be made" in told
    assert body_of(AnthropicMessages(), asked(tool_choice="none"), where)


def test_the_form_stands_beside_the_effort() -> None:
    where = there("anthropic", "claude-sonnet-4-6")
    request = asked(response_format=FORM, thinking_budget=2000)
    config = body_of(AnthropicMessages(), request, where)["output_config"]
    assert config["effort"]
    assert config["format"] == {"type": "json_schema", "schema": CLOSED}


def test_who_cannot_be_held_to_a_form_is_asked_in_words() -> None:
    where = there("openai", "gpt-5.5-pro")
    body = body_of(OpenAIResponses(), asked(response_format=FORM), where)
    assert "text" not in body
    assert body["instructions"] == f"Be brief.\n\n{TOLD}"
    unknown = body_of(AnthropicMessages(), asked(response_format=FORM))
    assert unknown["system"][0]["text"].endswith(TOLD)
    assert "output_config" not in unknown


def test_claude_is_asked_in_words_for_a_form_that_is_open() -> None:
    where = there("anthropic", "claude-sonnet-4-6")
    schema = {**FORM, "additionalProperties": {"type": "string"}}
    body = body_of(AnthropicMessages(), asked(response_format=schema), where)
    assert "output_config" not in body
    assert IN_WORDS in body["system"][0]["text"]


@pytest.mark.parametrize("dialect", [Gemini(), Cohere(), Ollama()])
def test_beside_tools_the_form_is_asked_for_in_words(dialect: Any) -> None:
    told = json.dumps(TOLD)[1:-1]
    assert told in json.dumps(body_of(dialect, asked(response_format=FORM)))
    assert told not in json.dumps(body_of(dialect, asked(BARE, response_format=FORM)))


def test_deepseek_takes_any_json_and_is_told_the_rest() -> None:
    dialect = OpenAIChat.from_quirks(load_facts("deepseek").quirks)
    body = body_of(dialect, asked(response_format=FORM))
    assert body["response_format"] == {"type": "json_object"}
    assert body["messages"][0]["content"].endswith(TOLD)
    listed = body_of(dialect, asked(response_format={"type": "array"}))
    assert "response_format" not in listed


def test_the_models_row_goes_before_the_quirk() -> None:
    row = ModelFacts("m", "acme", "m", "M", structured=True)
    words = OpenAIChat.from_quirks({"forms": "words"})
    where = replace(HERE, model=row)
    body = body_of(words, asked(response_format=FORM), where)
    assert body["response_format"]["type"] == "json_schema"
    unheld = replace(HERE, model=replace(row, structured=False))
    assert "response_format" not in body_of(
        OpenAIChat(), asked(response_format=FORM), unheld
    )


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (FORM, True),
        (CLOSED, True),
        ({**FORM, "required": []}, False),
        ({**FORM, "additionalProperties": True}, False),
        ({"type": "object"}, False),
        ({**FORM, "properties": {"city": {"type": "string", "minLength": 2}}}, False),
        ({**FORM, "properties": {"city": True}}, False),
        ({**FORM, "properties": {"city": {"type": "array", "items": FORM}}}, True),
    ],
)
def test_a_form_is_strict_where_openai_can_hold_to_all_of_it(
    schema: dict[str, Any], strict: bool
) -> None:
    written, held = strict_form(schema)
    assert held is strict
    if not strict:
        assert written.get("additionalProperties") == schema.get("additionalProperties")


@pytest.mark.parametrize(
    "inner",
    [
        {},
        True,
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "array", "items": {}},
        {"anyOf": [{"type": "string"}, {}]},
    ],
    ids=str,
)
def test_where_anything_may_stand_no_form_is_closed(inner: Any) -> None:
    assert closed_form({"type": "object", "properties": {"x": inner}}) is None


def test_a_closed_form_keeps_what_claude_reads() -> None:
    place = {"type": "string", "minLength": 2, "format": "uri"}
    schema = {
        "$defs": {"place": place},
        "type": "object",
        "properties": {
            "places": {
                "type": "array",
                "maxItems": 3,
                "items": {"$ref": "#/$defs/place"},
            },
            "kind": {"oneOf": [{"const": "a"}, {"type": "null"}]},
        },
    }
    assert closed_form(schema) == {
        "type": "object",
        "properties": {
            "places": {"type": "array", "items": {"type": "string", "format": "uri"}},
            "kind": {"anyOf": [{"const": "a"}, {"type": "null"}]},
        },
        "additionalProperties": False,
    }


def test_a_form_that_refers_to_itself_is_asked_for_in_words() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    assert closed_form(tree) is None
    assert strict_form(tree)[1] is False
