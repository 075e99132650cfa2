"""Prompt caches hit: what a long tool loop costs, and what stays the same in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from agenthost import (
    ChatRequest,
    Context,
    Dialect,
    Driver,
    Effect,
    Endpoint,
    Message,
    Role,
    Text,
    ToolOutput,
    ToolResult,
    ToolSpec,
    ToolUse,
    hookimpl,
)
from agenthost.testing.daemons import Daemons
from agenthost_dialects.spoken import make
from agenthost_providers.catalogue import load_facts
from pydantic import BaseModel

from .exchange import body_of, there
from .prefix_cache import (
    Block,
    PrefixCache,
    Reading,
    claude,
    converse,
    gateway,
    ideal,
)

STEPS = 30
PAGE = "word " * 2000
CLAUDES = [
    ("anthropic", "claude-opus-5-5", "anthropic-messages", claude),
    ("bedrock", "anthropic.claude-opus-5-5", "bedrock-converse", converse),
    ("openrouter", "anthropic/claude-opus-5.5", "openai-chat", gateway),
]
everywhere = pytest.mark.parametrize(("slug", "model", "name", "read"), CLAUDES)


class Number(BaseModel):
    """Which page to read."""

    number: int


async def page(_: Context, call: Number) -> ToolResult:
    """Give a page of 2,500 tokens."""
    return ToolResult(f"{call.number} {PAGE}")


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer the pages of a book."""
    yield ToolSpec("page", "Read a page.", Number, Effect.READ, page)


BOOK = SimpleNamespace(__name__="book", register_tool=register_tool)


async def asked_in_two_turns(daemons: Daemons) -> list[ChatRequest]:
    """Have an agent read thirty pages and then, asked again, two more."""
    config = "[turns]\nmax_iterations = 40\n"
    running = await daemons.start(config=config, plugins=[BOOK])
    agent = await running.agent(tools=["page", "calculate"])
    for turn in (range(STEPS - 1), range(STEPS, STEPS + 2)):
        for number in turn:
            running.model.calls("page", number=number)
        running.model.says("read")
        await agent.ask("read on")
    return running.model.requests


def dialect_of(slug: str, name: str) -> Dialect:
    made = make(name, load_facts(slug).quirks)
    assert not isinstance(made, Driver)
    return made


def prompts_of(
    dialect: Dialect, requests: Iterable[ChatRequest], where: Endpoint, read: Reading
) -> list[list[Block]]:
    assert where.model is not None
    model = where.model.upstream_id
    bodies = (body_of(dialect, replace(r, model=model), where) for r in requests)
    return [list(read(body)) for body in bodies]


def cost(prompts: list[list[Block]], apart: float = 10.0) -> float:
    cache = PrefixCache()
    for number, blocks in enumerate(prompts):
        cache.ask(blocks, number * apart)
    return cache.bill


@everywhere
async def test_a_long_tool_loop_costs_what_it_has_to(
    daemons: Daemons, slug: str, model: str, name: str, read: Reading
) -> None:
    requests = await asked_in_two_turns(daemons)
    assert len(requests) == STEPS + 3
    prompts = prompts_of(dialect_of(slug, name), requests, there(slug, model), read)
    assert cost(prompts) <= 1.1 * ideal(prompts)
    fresh = sum(block.tokens for blocks in prompts for block in blocks)
    assert cost(prompts) < fresh / 4


@everywhere
async def test_steps_and_turns_begin_with_the_same_bytes(
    daemons: Daemons, slug: str, model: str, name: str, read: Reading
) -> None:
    requests = await asked_in_two_turns(daemons)
    prompts = prompts_of(dialect_of(slug, name), requests, there(slug, model), read)
    for shorter, longer in pairwise(prompts):
        begun = [block.words for block in shorter]
        assert [block.words for block in longer[: len(begun)]] == begun
        assert len(longer) > len(begun)


def loop_of(calls: int, steps: int) -> list[ChatRequest]:
    """A loop whose steps make many calls at once."""
    messages: tuple[Message, ...] = (Message(Role.USER, (Text("read on " + PAGE),)),)
    requests = [ChatRequest("m", "Be brief.", messages)]
    for step in range(steps):
        ids = [f"c{step}_{number}" for number in range(calls)]
        uses = tuple(ToolUse(i, "page", {"number": step}) for i in ids)
        outputs = tuple(ToolOutput(i, "page", PAGE[:400]) for i in ids)
        messages += (Message(Role.ASSISTANT, uses), Message(Role.TOOL, outputs))
        requests.append(ChatRequest("m", "Be brief.", messages))
    return requests


@everywhere
def test_steps_of_more_blocks_than_are_looked_back_hit(
    slug: str, model: str, name: str, read: Reading
) -> None:
    where = there(slug, model)
    prompts = prompts_of(dialect_of(slug, name), loop_of(25, 10), where, read)
    assert cost(prompts) <= 1.1 * ideal(prompts)


@everywhere
def test_an_hour_is_asked_for_where_the_row_says_so(
    slug: str, model: str, name: str, read: Reading
) -> None:
    where, dialect = there(slug, model), dialect_of(slug, name)
    assert where.model is not None
    long = replace(where.model, caches=(*where.model.caches, "hour"))
    hour = replace(where, model=long)
    brief = prompts_of(dialect, loop_of(1, 5), where, read)
    lasting = prompts_of(dialect, loop_of(1, 5), hour, read)
    assert {block.mark for blocks in lasting for block in blocks} == {"", "1h"}
    # Ten minutes between the steps: five are over, an hour is not.
    assert cost(lasting, apart=600.0) < cost(brief, apart=600.0)


@everywhere
def test_odd_conversations_have_four_marks_at_most(
    slug: str, model: str, name: str, read: Reading
) -> None:
    user, said = Message(Role.USER, (Text("a"),)), Message(Role.ASSISTANT, (Text("b"),))
    empty = Message(Role.USER, (Text(""),))
    call = Message(Role.ASSISTANT, (ToolUse("c", "page", {}),))
    result = Message(Role.TOOL, (ToolOutput("c", "page", ""),))
    where, dialect = there(slug, model), dialect_of(slug, name)
    for messages in (
        (user,),
        (said,),
        (call, result),
        (empty, said, user),
        (user, user, said, said, user, user),
        (user, call, result, said),
        (user, call, result, user),
    ):
        for system in ("", "Be brief."):
            request = ChatRequest(model, system, messages)
            blocks = list(read(body_of(dialect, request, where)))
            PrefixCache().ask(blocks, 0.0)


def test_a_text_without_words_bears_no_mark() -> None:
    where, dialect = there(*CLAUDES[2][:2]), dialect_of("openrouter", "openai-chat")
    silent = Message(Role.TOOL, (ToolOutput("c", "page", ""),))
    call = Message(Role.ASSISTANT, (ToolUse("c", "page", {}),))
    request = ChatRequest(CLAUDES[2][1], "", (call, silent))
    assert b"cache_control" not in dialect.encode(request, where).body


def test_other_models_of_a_gateway_are_not_marked() -> None:
    dialect = dialect_of("openrouter", "openai-chat")
    (asked,) = loop_of(1, 0)
    request = replace(asked, model="deepseek/deepseek-r1")
    where = there("openrouter", request.model)
    assert b"cache_control" not in dialect.encode(request, where).body


def test_a_model_of_a_gateway_that_no_row_speaks_of_is_marked() -> None:
    dialect = dialect_of("openrouter", "openai-chat")
    (asked,) = loop_of(1, 0)
    request = replace(asked, model="anthropic/claude-tomorrow")
    where = there("openrouter", request.model)
    assert where.model is None
    assert b"cache_control" in dialect.encode(request, where).body


@pytest.mark.parametrize(
    ("slug", "name", "sent"),
    [
        ("openai", "openai-chat", True),
        ("groq", "openai-chat", False),
        ("perplexity", "openai-responses", False),
    ],
)
def test_openai_is_told_which_prompts_begin_alike(
    slug: str, name: str, *, sent: bool
) -> None:
    dialect = dialect_of(slug, name)
    request = ChatRequest("m", "", (), cache_key="session")
    body = body_of(dialect, request)
    assert body.get("prompt_cache_key") == ("session" if sent else None)
    assert "prompt_cache_key" not in body_of(dialect, replace(request, cache_key=""))


def test_openais_responses_are_told_it_too() -> None:
    dialect = make("openai-responses", {})
    assert not isinstance(dialect, Driver)
    request = ChatRequest("m", "", (), cache_key="session")
    assert body_of(dialect, request)["prompt_cache_key"] == "session"


async def test_the_key_is_the_sessions_in_all_its_turns(daemons: Daemons) -> None:
    running = await daemons.start()
    one, other = await running.agent("one"), await running.agent("other")
    for agent in (one, one, other):
        await agent.ask("hello")
    first, second, third = (request.cache_key for request in running.model.requests)
    assert first == second != third
    assert 0 < len(first) <= 64
    assert json.dumps(first).isascii()


def test_the_simulated_cache_knows_the_vendors_rules() -> None:
    big = Block(b"x" * 8000, "5m")
    cache = PrefixCache()
    cache.ask([big], 0.0)
    assert cache.bill == pytest.approx(2500)
    cache.ask([big], 299.0)
    assert cache.bill == pytest.approx(2700)
    cache.ask([big], 1000.0)
    assert cache.bill == pytest.approx(5200)
    small = PrefixCache()
    for _ in range(2):
        small.ask([Block(b"x" * 400, "5m")], 0.0)
    assert small.bill == pytest.approx(200)
    far = PrefixCache()
    far.ask([big], 0.0)
    late = [replace(big, mark=""), *[Block(b"y")] * 20, Block(b"y", "5m")]
    far.ask(late, 1.0)
    assert far.bill > 5000
    with pytest.raises(AssertionError, match="four marks"):
        far.ask([big] * 5, 1.0)
