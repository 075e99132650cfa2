"""Every field of a request for a response, as OpenAI's client knows it.

What a model itself is asked is walked field by field: each reaches the vendor, stands
in the answer, is refused by its name or has no effect. What the client knows and the
table does not, fails: a newer client shows what came new.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, get_type_hints

import pytest
import pytest_asyncio
from agenthost.testing.daemons import Daemons, RunningDaemon

from ..messages.vendor import Vendor

responses = pytest.importorskip(
    "openai.types.responses", reason="needs agenthost[judges]"
)
create = pytest.importorskip("openai.types.responses.response_create_params")
pytestmark = pytest.mark.conformance

MODEL = "openai/gpt-4o"
CONFIG = """
[openai]
passthrough = true

[providers.openai]
base_url = "{}/v1"
"""
PARAMETERS = {"type": "object", "properties": {}, "additionalProperties": False}
TOOL = {"type": "function", "name": "f", "parameters": PARAMETERS, "strict": True}
SENT_TOOL = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "",
        "parameters": PARAMETERS,
        "strict": True,
    },
}
FORM = {"type": "json_schema", "name": "a", "schema": PARAMETERS, "strict": True}

REACHES: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
    "input": ("hi", {"messages": [{"role": "user", "content": "hi"}]}),
    "instructions": (
        "Be brief.",
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hello"},
            ]
        },
    ),
    "max_output_tokens": (99, {"max_completion_tokens": 99}),
    "model": (MODEL, {"model": "gpt-4o"}),
    "parallel_tool_calls": (False, {"parallel_tool_calls": False}),
    "prompt_cache_key": ("k", {"prompt_cache_key": "k"}),
    "reasoning": ({"effort": "low"}, {"reasoning_effort": "low"}),
    "safety_identifier": ("u", {"safety_identifier": "u"}),
    "service_tier": ("flex", {"service_tier": "flex"}),
    "temperature": (0.5, {"temperature": 0.5}),
    "text": (
        {"verbosity": "low", "format": FORM},
        {"verbosity": "low", "response_format.json_schema.schema": PARAMETERS},
    ),
    "tool_choice": ("required", {"tool_choice": "required"}),
    "tools": ([TOOL], {"tools": [SENT_TOOL]}),
    "top_logprobs": (2, {"logprobs": True, "top_logprobs": 2}),
    "include": (["message.output_text.logprobs"], {"logprobs": True}),
    "top_p": (0.5, {"top_p": 0.5}),
    "user": ("u", {"safety_identifier": "u"}),
    "stream": (True, {"stream": True}),
}
"""By field: what is asked, and what of it the vendor is sent, by its place."""
BESIDE: Mapping[str, Mapping[str, Any]] = {
    "tool_choice": {"tools": [TOOL]},
    "parallel_tool_calls": {"tools": [TOOL]},
}
ECHOED: Mapping[str, Any] = {
    "metadata": {"a": "b"},
    "store": False,
    "truncation": "disabled",
    "background": False,
}
"""What only stands in the answer."""
REFUSED: Mapping[str, Any] = {
    "access_programs": {"type": "auto"},
    "background": True,
    "context_management": [{"type": "compaction"}],
    "conversation": "conv_1",
    "max_tool_calls": 3,
    "moderation": {"model": "omni-moderation-latest"},
    "previous_response_id": "resp_1",
    "prompt": {"id": "pmpt_1"},
    "service_tier": "priority",
    "store": True,
    "truncation": "auto",
}
"""What is 400, naming the field."""
NO_EFFECT: Mapping[str, Any] = {
    "background_options": {"completion_window": "2h"},
    "image": {"detail": "low"},
    "prompt_cache_options": {"mode": "explicit"},
    "prompt_cache_retention": "24h",
    "stream_options": {"include_obfuscation": False},
}
"""What docs/responses.md says is passed over."""


class ChatVendor(Vendor):
    """Answers as OpenAI's chat completions do."""

    def _whole(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": "{}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        tokens = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
        told: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 1}
        if self.sent[-1].get("logprobs"):
            choice["logprobs"] = {
                "content": [
                    {"token": "{}", "logprob": -0.5, "bytes": None, "top_logprobs": []}
                ]
            }
        return {**told, "model": "gpt-4o", "choices": [choice], "usage": tokens}

    def _events(self) -> Iterator[str]:
        whole = self._whole()
        delta = {"role": "assistant", "content": "{}"}
        choice = {"index": 0, "delta": delta, "finish_reason": "stop"}
        chunk = {**whole, "object": "chat.completion.chunk", "choices": [choice]}
        yield f"data: {json.dumps(chunk)}\n\n"
        yield "data: [DONE]\n\n"


@pytest_asyncio.fixture
async def vendor() -> AsyncIterator[Vendor]:
    vendor = ChatVendor()
    server = await asyncio.start_server(vendor.serve, "127.0.0.1", 0)
    vendor.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield vendor


@pytest_asyncio.fixture
async def daemon(daemons: Daemons, vendor: Vendor) -> RunningDaemon:
    environ = {"OPENAI_API_KEY": "sk-x"}
    return await daemons.start(config=CONFIG.format(vendor.url), environ=environ)


async def ask(daemon: RunningDaemon, **fields: Any) -> Any:
    body = {"model": MODEL, "input": "hello", **fields}
    return await daemon.http.post("/v1/responses", json=body)


def at(sent: Any, place: str) -> Any:
    """Find what stands at a place, its names with points between them."""
    for name in place.split("."):
        sent = sent.get(name) if isinstance(sent, dict) else None
    return sent


def test_the_table_has_every_field_the_client_knows() -> None:
    known = set(get_type_hints(create.ResponseCreateParamsBase)) | {"stream"}
    listed = {*REACHES, *ECHOED, *REFUSED, *NO_EFFECT}
    assert listed == known


@pytest.mark.parametrize("field", REACHES)
async def test_it_reaches_the_vendor(
    vendor: Vendor, daemon: RunningDaemon, field: str
) -> None:
    value, expected = REACHES[field]
    answer = await ask(daemon, **{**BESIDE.get(field, {}), field: value})
    (sent,) = vendor.sent
    assert {place: at(sent, place) for place in expected} == expected, answer.text


@pytest.mark.parametrize("field", ECHOED)
async def test_it_stands_in_the_answer(daemon: RunningDaemon, field: str) -> None:
    answer = await ask(daemon, **{field: ECHOED[field]})
    assert answer.status_code == 200, answer.text
    assert answer.json()[field] == ECHOED[field]


@pytest.mark.parametrize("field", REFUSED)
async def test_it_is_refused_by_its_name(
    vendor: Vendor, daemon: RunningDaemon, field: str
) -> None:
    answer = await ask(daemon, **{field: REFUSED[field]})
    assert (answer.status_code, answer.json()["param"]) == (400, field)
    assert vendor.sent == []


@pytest.mark.parametrize("field", NO_EFFECT)
async def test_it_has_no_effect(
    vendor: Vendor, daemon: RunningDaemon, field: str
) -> None:
    for fields in ({}, {field: NO_EFFECT[field]}):
        answer = await ask(daemon, **fields)
        assert answer.status_code == 200, answer.text
    plain, with_field = vendor.sent
    assert plain == with_field


async def test_the_answer_has_every_field_that_the_client_requires(
    daemon: RunningDaemon,
) -> None:
    told = (await ask(daemon, tools=[TOOL], metadata={"a": "b"})).json()
    fields = responses.Response.model_fields
    assert {name for name, field in fields.items() if field.is_required()} <= {*told}
    read = responses.Response.model_validate(told, strict=True)
    assert read.output_text == "{}"
