"""Every provider keeps every promise."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest
from agenthost.testing.providers import ProviderContract

Test = Callable[..., Coroutine[Any, Any, None]]
OF_ONE_DIALECT = pytest.mark.conformance
"""These speak the dialect that OpenAI, DeepSeek, Mistral and Perplexity hold in the
quick selection; theirs differ in data alone."""


def exempt(test: Test, reason: str) -> Test:
    """Let a provider off a promise, for as long as it does not keep it."""

    @wraps(test)
    async def excused(*args: Any, **kwargs: Any) -> None:
        await test(*args, **kwargs)

    marked: Test = pytest.mark.xfail(strict=True, reason=reason)(excused)
    return marked


class TestAnthropic(ProviderContract):
    provider = "anthropic"
    lacks = frozenset({"seed", "tool_choice"})
    returns_reasoning = True
    sees_results = True


class TestBedrock(ProviderContract):
    provider = "bedrock"
    lacks = frozenset({"parallel_tool_calls", "seed", "tool_choice", "user"})
    returns_reasoning = True
    sees_results = True


@OF_ONE_DIALECT
class TestCerebras(ProviderContract):
    provider = "cerebras"


class TestCohere(ProviderContract):
    provider = "cohere"
    lacks = frozenset({"parallel_tool_calls", "user"})
    returns_reasoning = True


class TestDeepSeek(ProviderContract):
    provider = "deepseek"
    lacks = frozenset({"parallel_tool_calls", "seed", "user"})
    returns_reasoning = True


@OF_ONE_DIALECT
class TestFireworks(ProviderContract):
    provider = "fireworks"


class TestGemini(ProviderContract):
    provider = "gemini"
    lacks = frozenset({"parallel_tool_calls", "user"})
    sees_results = True


@OF_ONE_DIALECT
class TestGroq(ProviderContract):
    provider = "groq"


@OF_ONE_DIALECT
class TestHuggingFace(ProviderContract):
    provider = "huggingface"


@OF_ONE_DIALECT
class TestLMStudio(ProviderContract):
    provider = "lmstudio"


class TestMistral(ProviderContract):
    provider = "mistral"
    lacks = frozenset({"user"})


class TestOllama(ProviderContract):
    provider = "ollama"
    lacks = frozenset({"parallel_tool_calls", "tool_choice", "user"})
    returns_reasoning = True

    test_a_blocked_answer_is_no_good_end = exempt(
        ProviderContract.test_a_blocked_answer_is_no_good_end,
        "a local server has no content rules to tell of",
    )


class TestOpenAI(ProviderContract):
    provider = "openai"
    lacks = frozenset({"stop"})

    def model(self) -> str:
        return "gpt-5.2"


class TestOpenAIResponses(ProviderContract):
    provider = "openai"
    lacks = frozenset({"seed", "stop"})
    returns_reasoning = True
    sees_results = True

    def model(self) -> str:
        return "gpt-5.5-pro"


@OF_ONE_DIALECT
class TestOpenRouter(ProviderContract):
    provider = "openrouter"


class TestPerplexity(ProviderContract):
    provider = "perplexity"
    lacks = frozenset({"seed", "stop", "user"})
    samples = False


NO_TOOLS = "Replicate's models take a prompt: they know neither tools nor images"


class TestReplicate(ProviderContract):
    provider = "replicate"
    lacks = frozenset({"parallel_tool_calls", "seed", "stop", "tool_choice", "user"})

    test_a_blocked_answer_is_no_good_end = exempt(
        ProviderContract.test_a_blocked_answer_is_no_good_end,
        "a prediction does not tell that it was blocked",
    )
    test_a_call_cut_by_the_limit_is_not_made = exempt(
        ProviderContract.test_a_call_cut_by_the_limit_is_not_made,
        "a prediction does not tell that it was cut by the limit",
    )
    test_a_conversation_is_told_whole_and_in_order = exempt(
        ProviderContract.test_a_conversation_is_told_whole_and_in_order, NO_TOOLS
    )
    test_a_step_begins_with_the_request_before = exempt(
        ProviderContract.test_a_step_begins_with_the_request_before, NO_TOOLS
    )
    test_a_turn_begins_with_the_one_before = exempt(
        ProviderContract.test_a_turn_begins_with_the_one_before, NO_TOOLS
    )
    test_arguments_must_be_an_object = exempt(
        ProviderContract.test_arguments_must_be_an_object, NO_TOOLS
    )
    test_broken_arguments_are_no_guess = exempt(
        ProviderContract.test_broken_arguments_are_no_guess, NO_TOOLS
    )
    test_half_a_surrogate_pair_is_replaced = exempt(
        ProviderContract.test_half_a_surrogate_pair_is_replaced, NO_TOOLS
    )
    test_equal_ids_are_made_unique = exempt(
        ProviderContract.test_equal_ids_are_made_unique, NO_TOOLS
    )
    test_results_bring_their_pictures = exempt(
        ProviderContract.test_results_bring_their_pictures, NO_TOOLS
    )
    test_results_find_their_calls = exempt(
        ProviderContract.test_results_find_their_calls, NO_TOOLS
    )
    test_the_request_carries_everything = exempt(
        ProviderContract.test_the_request_carries_everything, NO_TOOLS
    )
    test_tool_calls_are_parsed = exempt(
        ProviderContract.test_tool_calls_are_parsed, NO_TOOLS
    )
    test_tools_are_offered_whole = exempt(
        ProviderContract.test_tools_are_offered_whole, NO_TOOLS
    )


@OF_ONE_DIALECT
class TestSambaNova(ProviderContract):
    provider = "sambanova"


@OF_ONE_DIALECT
class TestTogether(ProviderContract):
    provider = "together"


@OF_ONE_DIALECT
class TestVLLM(ProviderContract):
    provider = "vllm"


@OF_ONE_DIALECT
class TestXAI(ProviderContract):
    provider = "xai"
    lacks = frozenset({"stop"})
