"""The contract of providers catches broken ones: each of these has one fault."""

from __future__ import annotations

import inspect
import itertools
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from agenthost import (
    ChatRequest,
    Completion,
    Decoder,
    Delta,
    Dialect,
    Endpoint,
    Finish,
    HttpRequest,
    Message,
    ModelFacts,
    ModelSettings,
    ProviderError,
    ProviderFacts,
    ProviderSpec,
    Reasoning,
    Role,
    ToolUse,
)
from agenthost.testing import ProviderContract
from agenthost_dialects.anthropic_messages import AnthropicMessages

Body = dict[str, Any]


def leave(_: Body) -> None:
    """Spoil nothing."""


@dataclass(frozen=True)
class Broken:
    """A dialect that is spoilt at one place, in front of one that is not."""

    asked: Callable[[ChatRequest], ChatRequest] = lambda request: request
    sent: Callable[[Body], None] = leave
    posted: Callable[[HttpRequest, Endpoint], HttpRequest] = lambda sent, _: sent
    told: Callable[[Delta], Delta] = lambda delta: delta
    sound: Dialect = field(default_factory=AnthropicMessages)
    name: str = "anthropic-messages"

    def encode(self, request: ChatRequest, endpoint: Endpoint) -> HttpRequest:
        """Spoil the request, its body, or how it is sent."""
        whole = self.sound.encode(self.asked(request), endpoint)
        body = json.loads(whole.body)
        self.sent(body)
        return self.posted(replace(whole, body=json.dumps(body).encode()), endpoint)

    def decoder(self, request: ChatRequest, endpoint: Endpoint) -> Decoder:
        """Spoil what was understood."""
        return cast("Decoder", Spoilt(self.sound.decoder(request, endpoint), self.told))

    def fault(self, *args: Any) -> ProviderError:
        """Read errors as they are."""
        return self.sound.fault(*args)


@dataclass
class Spoilt:
    """A decoder that tells otherwise."""

    sound: Decoder
    told: Callable[[Delta], Delta]

    @property
    def heard(self) -> int:
        """How much came."""
        return self.sound.heard

    def feed(self, chunk: bytes) -> list[Delta]:
        """Take bytes."""
        return [self.told(delta) for delta in self.sound.feed(chunk)]

    def close(self) -> list[Delta]:
        """Take the end."""
        return [self.told(delta) for delta in self.sound.close()]


ROW = ModelFacts(
    "acme-small",
    "acme",
    "small",
    "Acme Small",
    supports_thinking=True,
    thinking="budget",
    thinking_off="disabled",
    max_output=32_000,
    sampling=True,
)
FACTS = ProviderFacts(
    "acme", "Acme", "https://acme.example", "ACME_API_KEY", models=(ROW,)
)
FIRST = "test_the_request_carries_everything"
WHOLE = "test_a_conversation_is_told_whole_and_in_order"
TOOLS = "test_tools_are_offered_whole"
LIMIT = "test_the_limit_of_the_answer_is_sent"
WARMTH = "test_a_temperature_is_sent_where_the_model_takes_one"
THINKS = "test_a_wish_to_think_is_written_where_the_row_says_how"
STEP = "test_a_step_begins_with_the_request_before"
TURN = "test_a_turn_begins_with_the_one_before"
SEALED = "test_what_another_model_sealed_stays_away"
HEADER = "test_the_key_stands_in_one_header_alone"
SILENT = "test_the_key_is_never_told"
BLOCKED = "test_a_blocked_answer_is_no_good_end"
FITTING = "test_its_facts_agree"
REASONED = "test_results_find_their_calls"
SETTINGS = "test_settings_are_sent_or_left_out"
MEANT = "test_settings_are_sent_or_refused"
FORM = "test_the_form_of_an_answer_is_sent_or_told"
NAMES = [
    FIRST, WHOLE, TOOLS, LIMIT, WARMTH, THINKS, STEP,
    TURN, SEALED, HEADER, SILENT, BLOCKED, FITTING, REASONED,
    SETTINGS, MEANT, FORM,
]  # fmt: skip


def blocks_of(body: Body, kind: str) -> Iterator[Body]:
    for message in body["messages"]:
        yield from (block for block in message["content"] if block["type"] == kind)


def shorten_answers(body: Body) -> None:
    body["max_tokens"] = 10


def drop_schemas(body: Body) -> None:
    for tool in body.get("tools", ()):
        tool["input_schema"] = {"type": "object"}


def drop_descriptions(body: Body) -> None:
    for tool in body.get("tools", ()):
        tool["description"] = ""


def drop_errors(body: Body) -> None:
    for block in blocks_of(body, "tool_result"):
        block.pop("is_error", None)


def drop_words(body: Body) -> None:
    for message in body["messages"]:
        if message["role"] == "assistant":
            calls = [b for b in message["content"] if b["type"] != "text"]
            message["content"] = calls or [{"type": "text", "text": "."}]


def drop_arguments(body: Body) -> None:
    for block in blocks_of(body, "tool_use"):
        block["input"] = {}


def drop_temperature(body: Body) -> None:
    body.pop("temperature", None)


def warm_always(body: Body) -> None:
    body.setdefault("temperature", 0.25)


def drop_thinking(body: Body) -> None:
    body.pop("thinking", None)


def count_messages(body: Body) -> None:
    body["metadata"] = {"user_id": str(len(body["messages"]))}


def count_in_the_prompt(body: Body) -> None:
    if len(body["messages"]) > 1:
        body["system"][0]["text"] += f" {len(body['messages'])}"


def shuffle_tools(body: Body) -> None:
    if len(body["messages"]) > 6:
        body.get("tools", []).reverse()


def swap_results(body: Body) -> None:
    results = list(blocks_of(body, "tool_result"))
    for one, two in itertools.pairwise(results):
        one["content"], two["content"] = two["content"], one["content"]


def last_alone(request: ChatRequest) -> ChatRequest:
    said = [m for m in request.messages if m.role is Role.USER]
    return replace(request, messages=tuple(said[-1:]))


def newest_first(request: ChatRequest) -> ChatRequest:
    user, *rest = request.messages
    if len(rest) < 5:
        return request
    return replace(request, messages=(rest[1], rest[0], user, *rest[2:]))


def take_all_for_ours(request: ChatRequest) -> ChatRequest:
    """Forget who sealed what."""
    by = {"provider": "acme", "model": request.model}

    def owned(message: Message) -> Message:
        parts = (
            replace(p, opaque={k: {**v, **by} for k, v in p.opaque.items()})
            if isinstance(p, Reasoning | ToolUse)
            else p
            for p in message.parts
        )
        return replace(message, parts=tuple(parts))

    return replace(request, messages=tuple(map(owned, request.messages)))


def drop_reasoning(request: ChatRequest) -> ChatRequest:
    def silent(message: Message) -> Message:
        kept = (p for p in message.parts if not isinstance(p, Reasoning))
        return replace(message, parts=tuple(kept))

    return replace(request, messages=tuple(map(silent, request.messages)))


def without(name: str) -> Broken:
    """Lose one of the settings of a request."""
    unset = {name: getattr(ModelSettings(), name)}
    return Broken(asked=lambda request: replace(request, **unset))


def call_anything(request: ChatRequest) -> ChatRequest:
    """Take any tool for the one that is named."""
    named = request.tool_choice not in ("", "auto", "none")
    return replace(request, tool_choice="required") if named else request


def key_of(where: Endpoint) -> str:
    assert where.key is not None
    return where.key.reveal()


def key_in_the_address(sent: HttpRequest, where: Endpoint) -> HttpRequest:
    return replace(sent, url=f"{sent.url}?key={key_of(where)}")


def key_twice(sent: HttpRequest, where: Endpoint) -> HttpRequest:
    return replace(sent, headers={**sent.headers, "x-trace": key_of(where)})


def key_in_the_body(sent: HttpRequest, where: Endpoint) -> HttpRequest:
    body = json.loads(sent.body)
    body["metadata"] = {"user_id": key_of(where)}
    return replace(sent, body=json.dumps(body).encode())


def key_printed(sent: HttpRequest, where: Endpoint) -> HttpRequest:
    print(f"asking with {key_of(where)}")  # noqa: T201 - the fault to be caught
    return sent


def key_logged(sent: HttpRequest, where: Endpoint) -> HttpRequest:
    logging.getLogger("acme").debug("asking with %s", key_of(where))
    return sent


def blocked_is_fine(delta: Delta) -> Delta:
    if isinstance(delta, Completion) and delta.finish is Finish.CONTENT_BLOCKED:
        return replace(delta, finish=Finish.STOP)
    return delta


BROKEN: dict[str, tuple[Broken, str]] = {
    "max_tokens dropped": (Broken(sent=shorten_answers), LIMIT),
    "tool schema dropped": (Broken(sent=drop_schemas), TOOLS),
    "description dropped": (Broken(sent=drop_descriptions), TOOLS),
    "is_error dropped": (Broken(sent=drop_errors), WHOLE),
    "assistant words dropped": (Broken(sent=drop_words), WHOLE),
    "call arguments dropped": (Broken(sent=drop_arguments), WHOLE),
    "results swapped": (Broken(sent=swap_results), WHOLE),
    "out of order": (Broken(asked=newest_first), WHOLE),
    "only the last user message": (Broken(asked=last_alone), WHOLE),
    "temperature dropped": (Broken(sent=drop_temperature), WARMTH),
    "temperature made up": (Broken(sent=warm_always), WARMTH),
    "thinking dropped": (Broken(sent=drop_thinking), THINKS),
    "top_p dropped": (without("top_p"), SETTINGS),
    "user dropped": (without("user"), SETTINGS),
    "parallel_tool_calls dropped": (without("parallel_tool_calls"), SETTINGS),
    "stop dropped": (without("stop"), MEANT),
    "tool_choice dropped": (without("tool_choice"), MEANT),
    "another tool forced": (Broken(asked=call_anything), MEANT),
    "response_format dropped": (without("response_format"), FORM),
    "reasoning dropped": (Broken(asked=drop_reasoning), REASONED),
    "another's seal sent": (Broken(asked=take_all_for_ours), SEALED),
    "prefix unstable between steps": (Broken(sent=count_messages), STEP),
    "prompt unstable between turns": (Broken(sent=count_in_the_prompt), TURN),
    "tools unstable between turns": (Broken(sent=shuffle_tools), TURN),
    "key also in the URL": (Broken(posted=key_in_the_address), HEADER),
    "key in two headers": (Broken(posted=key_twice), HEADER),
    "key in the body": (Broken(posted=key_in_the_body), HEADER),
    "printed key": (Broken(posted=key_printed), SILENT),
    "logged key": (Broken(posted=key_logged), SILENT),
    "content_blocked read as stop": (Broken(told=blocked_is_fine), BLOCKED),
}
WRONG: dict[str, ProviderFacts] = {
    "a row of another provider": replace(
        FACTS, models=(replace(ROW, provider="other"),)
    ),
    "a negative price": replace(FACTS, models=(replace(ROW, input_cost_per_1m=-1),)),
    "a dear cache": replace(FACTS, models=(replace(ROW, cached_input_cost_per_1m=1),)),
    "no room": replace(FACTS, models=(replace(ROW, context_window=0),)),
    "more out than in": replace(FACTS, models=(replace(ROW, context_window=10),)),
    "an unknown tier": replace(FACTS, models=(replace(ROW, tier="best"),)),
    "one id twice": replace(FACTS, models=(ROW, ROW)),
    "a default that is none": replace(FACTS, default_model="acme-large"),
    "no variable": replace(FACTS, env_var=None),
    "a key in clear": replace(FACTS, base_url="http://acme.example"),
    "thoughts of one that cannot": replace(
        FACTS,
        models=(replace(ROW, supports_thinking=False, always_thinks=True),),
    ),
}


class Acme(ProviderContract):
    """The contract for whatever provider it is given."""

    __test__ = False
    returns_reasoning = True
    lacks = frozenset({"seed"})

    def __init__(self, dialect: Broken, facts: ProviderFacts = FACTS) -> None:
        self._spec = ProviderSpec(facts, dialect)

    def spec(self) -> ProviderSpec:
        """The provider under test."""
        return self._spec


async def hold(contract: Acme, promise: str, request: pytest.FixtureRequest) -> None:
    """Run one test of the contract, with what it asks for."""
    test = getattr(contract, promise)
    wanted = inspect.signature(test).parameters
    given: dict[str, Any] = {
        name: request.getfixturevalue(name)
        for name in wanted
        if name in ("capfd", "caplog")
    }
    if "maker" in wanted:
        given["maker"] = "provider"
    async with contract.simulator() as upstream:
        if "upstream" in wanted:
            given["upstream"] = upstream
        await test(**given)


@pytest.mark.parametrize("promise", NAMES)
async def test_a_sound_provider_keeps_each_promise(
    request: pytest.FixtureRequest, promise: str
) -> None:
    await hold(Acme(Broken()), promise, request)


@pytest.mark.parametrize("fault", BROKEN)
async def test_a_broken_provider_is_caught(
    request: pytest.FixtureRequest, fault: str
) -> None:
    dialect, promise = BROKEN[fault]
    with pytest.raises(AssertionError):
        await hold(Acme(dialect), promise, request)


@pytest.mark.parametrize("fault", WRONG)
async def test_wrong_facts_are_caught(
    request: pytest.FixtureRequest, fault: str
) -> None:
    with pytest.raises(AssertionError):
        await hold(Acme(Broken(), WRONG[fault]), FITTING, request)


def test_each_promise_of_a_request_has_a_provider_that_breaks_it() -> None:
    assert {promise for _, promise in BROKEN.values()} | {FIRST, FITTING} == set(NAMES)
