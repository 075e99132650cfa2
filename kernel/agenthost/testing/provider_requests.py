"""What a provider promises of its requests: whole, in order, and alike."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import pytest
from agenthost_chat.chat import (
    ChatRequest,
    Image,
    Message,
    ModelSettings,
    Part,
    Reasoning,
    Role,
    Text,
    ToolDefinition,
    ToolOutput,
    ToolUse,
)

from ..errors import ProviderFault
from .provider_calls import ProviderCalls
from .samples import (
    CALLING,
    IN_LISBON,
    KEY,
    PICTURE,
    TALK,
    TOLD,
    UNSEEN,
    WEATHER,
    user,
)
from .simulators import Heard, ProviderSimulator, Turn

SEAL = "foreign-seal-"
CLOCK = ToolDefinition("ask_time", "Tell the time.", {"type": "object"})
# Enough for every service that thinks within the limit of its answer.
LIMIT, BUDGET = 20_000, 10_000
UNSET = ModelSettings()
HARMLESS: Mapping[str, Any] = {
    "parallel_tool_calls": False,
    "seed": 7,
    "top_p": 0.5,
    "user": "u-1",
}
MEANT: Mapping[str, Any] = {"stop": ("END",), "tool_choice": "required"}
FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "warm": {"type": "boolean"}},
    "required": ["city", "warm"],
}


class ProviderRequests(ProviderCalls):
    """What every provider promises of its requests."""

    returns_reasoning: ClassVar[bool] = False
    """Whether reasoning must go back inside a tool loop."""

    sees_results: ClassVar[bool] = False
    """Whether the model's results of tools may bring pictures."""

    samples: ClassVar[bool] = True
    """Whether the model takes a temperature, where its row does not say."""

    lacks: ClassVar[frozenset[str]] = frozenset()
    """The settings (:class:`agenthost.ModelSettings`) that it does not take."""

    @property
    def leaves_out(self) -> frozenset[str]:
        """What is not sent: a model without a temperature has no ``top_p``."""
        row = self.row(self.model())
        takes = self.samples if row is None or row.sampling is None else row.sampling
        return self.lacks if takes else self.lacks | {"top_p"}

    async def test_the_request_carries_everything(
        self, upstream: ProviderSimulator
    ) -> None:
        """Key, model, system prompt, words, image and tools reach the provider."""
        upstream.play(Turn("a cat"))
        asked = self.request(
            user(Text("what is this?"), Image("image/png", "iVBORw0="))
        )
        await self.answer(upstream, asked)
        (heard,) = upstream.heard
        assert heard.key == KEY
        assert heard.model.endswith(asked.model)
        assert heard.system == "Be brief."
        assert heard.said == ("what is this?",)
        assert heard.images == ("iVBORw0=",)
        assert heard.tools == ("get_weather",)

    async def test_equal_requests_are_equal_bytes(
        self, upstream: ProviderSimulator
    ) -> None:
        """Nothing of a request changes by itself."""
        upstream.play(Turn("one"), Turn("one"))
        await self.answer(upstream)
        await self.answer(upstream)
        first, second = upstream.heard
        assert first.raw == second.raw

    async def test_results_find_their_calls(self, upstream: ProviderSimulator) -> None:
        """A tool loop goes back whole: calls, results and, if need be, reasoning."""
        upstream.play(replace(CALLING, reasoning="two cities"), Turn("warm"))
        asked = user(Text("weather?"))
        first = await self.answer(upstream, self.request(asked))
        outputs = tuple(
            ToolOutput(use.id, use.name, f"{use.arguments['city']}: 20 degrees")
            for use in first.message.tool_uses
        )
        results = Message(Role.TOOL, outputs)
        await self.answer(upstream, self.request(asked, first.message, results))
        heard = upstream.heard[1]
        texts = tuple(text for _, text in heard.results)
        assert texts == ("Lisbon: 20 degrees", "Porto: 20 degrees")
        assert tuple(name for name, _ in heard.results) == heard.calls
        if self.returns_reasoning:
            assert [thought for thought, _ in heard.thoughts] == ["two cities"]

    async def test_results_bring_their_pictures(
        self, upstream: ProviderSimulator
    ) -> None:
        """A picture in a result is sent where it can be, and always told in words."""
        upstream.play(
            replace(CALLING, calls=(IN_LISBON,)), Turn("sunny"), Turn("sorry")
        )
        asked = user(Text("weather?"))
        first = await self.answer(upstream, self.request(asked))
        (use,) = first.message.tool_uses
        words, picture = "a map [image: image/png, 5 bytes]", Image(*PICTURE)
        output = ToolOutput(use.id, use.name, words, media=(picture, *UNSEEN))
        for sent in (output, replace(output, is_error=True)):
            results = Message(Role.TOOL, (sent,))
            await self.answer(upstream, self.request(asked, first.message, results))
        _, good, failed = upstream.heard
        assert [text for _, text in good.results] == [words]
        assert good.result_images == ((picture.data,) if self.sees_results else ())
        assert [text for _, text in failed.results] == [words]
        assert good.images == failed.images == ()

    async def test_a_conversation_is_told_whole_and_in_order(
        self, upstream: ProviderSimulator
    ) -> None:
        """Nobody's words are lost: not the model's own, nor what it called with."""
        upstream.play(Turn("rain"))
        await self.answer(upstream, self.request(*TALK))
        (heard,) = upstream.heard
        assert heard.transcript == TOLD
        if heard.errors is not None:
            assert heard.errors == (heard.results[1][0],), "what failed is marked"

    async def test_tools_are_offered_whole(self, upstream: ProviderSimulator) -> None:
        """A model calls a tool well when it reads what it does and takes."""
        upstream.play(Turn("ok"))
        await self.answer(upstream)
        (offered,) = upstream.heard[0].offered
        wanted, schema = WEATHER.parameters, offered.schema
        assert offered.name == WEATHER.name
        assert offered.description == WEATHER.description
        for part in ("properties", "required"):
            assert schema.get(part) == wanted[part], "it says what the tool takes"

    async def test_the_limit_of_the_answer_is_sent(
        self, upstream: ProviderSimulator
    ) -> None:
        """Budgets count on it."""
        upstream.play(Turn("ok"))
        await self.answer(upstream)
        assert upstream.heard[0].max_tokens == 1000

    async def test_a_temperature_is_sent_where_the_model_takes_one(
        self, upstream: ProviderSimulator
    ) -> None:
        """Its row says so, or ``samples``; others would refuse the request."""
        upstream.play(Turn("ok"), Turn("ok"))
        await self.answer(upstream, replace(self.request(), temperature=0.25))
        await self.answer(upstream)
        row = self.row(self.model())
        takes = self.samples if row is None or row.sampling is None else row.sampling
        told, untold = upstream.heard
        assert told.temperature == (0.25 if takes else None)
        assert untold.temperature is None

    async def test_settings_are_sent_or_left_out(
        self, upstream: ProviderSimulator
    ) -> None:
        """Without one of these the answer is worth the same."""
        for name, value in HARMLESS.items():
            heard = await self._set(upstream, name, value)
            left_out = name in self.leaves_out
            assert heard == (getattr(UNSET, name) if left_out else value), name

    async def test_settings_are_sent_or_refused(
        self, upstream: ProviderSimulator
    ) -> None:
        """Who asks to stop at a word, or for a call, is not answered without."""
        for name, value in MEANT.items():
            if name in self.leaves_out:
                asked = replace(self.request(), **{name: value})
                error = await self.fault(upstream, asked)
                assert error.fault is ProviderFault.BAD_REQUEST
                assert name in error.detail, "it says what it does not take"
            else:
                assert await self._set(upstream, name, value) == value
        if "tool_choice" not in self.leaves_out:
            named = await self._set(upstream, "tool_choice", WEATHER.name)
            offered = upstream.heard[-1].tools
            assert named == WEATHER.name or offered == (WEATHER.name,)

    async def test_the_form_of_an_answer_is_sent_or_told(
        self, upstream: ProviderSimulator
    ) -> None:
        """As a schema that holds the model to it, or in the system prompt."""
        for tools in ((), (CLOCK, WEATHER)):
            upstream.play(Turn("{}"))
            asked = replace(self.request(), tools=tools, response_format=FORM)
            await self.answer(upstream, asked)
            heard = upstream.heard[-1]
            held = (heard.settings.response_format or {}).get("properties")
            told = json.dumps(FORM, separators=(",", ":")) in heard.system
            assert told or held == FORM["properties"]

    async def _set(self, upstream: ProviderSimulator, name: str, value: Any) -> Any:
        """Ask with one setting; give what was heard of it."""
        upstream.play(Turn("ok"))
        await self.answer(upstream, replace(self._with_tools(), **{name: value}))
        return getattr(upstream.heard[-1].settings, name)

    async def test_a_wish_to_think_is_written_where_the_row_says_how(
        self, upstream: ProviderSimulator
    ) -> None:
        """Thinking and not thinking differ on the wire; who cannot is not asked to."""
        row = self.row(self.model())
        if row is None or not row.thinking:
            return
        usual, much, none = [
            await self._body(upstream, budget) for budget in (None, BUDGET, 0)
        ]
        if row.thinking == "none":
            assert usual == much == none
            return
        assert much != usual
        assert none != much or not row.thinking_off

    async def _body(self, upstream: ProviderSimulator, budget: int | None) -> Any:
        """Ask with a budget for thinking; give what was sent."""
        upstream.play(Turn("ok"))
        asked = replace(self.request(), max_tokens=LIMIT, thinking_budget=budget)
        await self.answer(upstream, asked)
        return upstream.heard[-1].body

    async def test_a_step_begins_with_the_request_before(
        self, upstream: ProviderSimulator
    ) -> None:
        """Prompt caches hit: what was sent is sent again, and more behind it."""
        steps = await self._steps(upstream)
        for before, after in pairwise(steps):
            assert _grows(_unmarked(before.body), _unmarked(after.body))

    async def test_a_turn_begins_with_the_one_before(
        self, upstream: ProviderSimulator
    ) -> None:
        """The same system prompt, the same tools, and all that was said."""
        *_, before = await self._steps(upstream)
        said = (*self._asked, user(Text("and tomorrow?")))
        upstream.play(Turn("rain"))
        await self.answer(upstream, self._with_tools(*said))
        after = upstream.heard[-1]
        assert (after.system, after.offered) == (before.system, before.offered)
        assert after.transcript[: len(before.transcript)] == before.transcript
        assert len(after.transcript) > len(before.transcript)

    async def _steps(self, upstream: ProviderSimulator) -> list[Heard]:
        """Make the requests of a tool loop of three steps."""
        upstream.play(CALLING, CALLING, Turn("warm"))
        said: tuple[Message, ...] = (user(Text("weather?")),)
        for _ in range(3):
            done = await self.answer(upstream, self._with_tools(*said))
            said += (done.message,)
            uses = done.message.tool_uses
            outputs = tuple(ToolOutput(use.id, use.name, "warm") for use in uses)
            said += (Message(Role.TOOL, outputs),) if uses else ()
        self._asked = said
        return upstream.heard

    def _with_tools(self, *messages: Message) -> ChatRequest:
        return replace(self.request(*messages), tools=(CLOCK, WEATHER))

    @pytest.mark.parametrize("maker", ["provider", "model"])
    async def test_what_another_model_sealed_stays_away(
        self, upstream: ProviderSimulator, maker: str
    ) -> None:
        """Signatures and sealed thoughts go back to their maker alone."""
        upstream.play(replace(CALLING, reasoning="two cities"), Turn("warm"))
        asked = user(Text("weather?"))
        first = await self.answer(upstream, self.request(asked))
        sealed = tuple(_sealed(part, maker) for part in first.message.parts)
        calls = Message(Role.ASSISTANT, sealed)
        outputs = tuple(ToolOutput(u.id, u.name, "warm") for u in calls.tool_uses)
        results = Message(Role.TOOL, outputs)
        await self.answer(upstream, self.request(asked, calls, results))
        assert SEAL.encode() not in upstream.heard[1].raw

    async def test_the_key_stands_in_one_header_alone(
        self, upstream: ProviderSimulator
    ) -> None:
        """Addresses and bodies are logged on the way."""
        upstream.play(Turn("ok"))
        await self.answer(upstream)
        (heard,) = upstream.heard
        bearing = [
            name
            for name, value in heard.headers.items()
            if KEY in value and not name.startswith(":")
        ]
        assert len(bearing) == 1
        assert KEY not in heard.url
        assert KEY.encode() not in heard.raw
        assert heard.headers["content-type"].startswith("application/json")

    async def test_the_key_is_never_told(
        self,
        upstream: ProviderSimulator,
        capfd: pytest.CaptureFixture[str],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """Not printed, not logged, whether the call succeeds or fails."""
        caplog.set_level(logging.DEBUG)
        upstream.play(Turn("ok"))
        await self.answer(upstream)
        await self.fault(upstream)
        printed = capfd.readouterr()
        assert KEY not in printed.out + printed.err + caplog.text


def _sealed(part: Part, maker: str) -> Part:
    """Let somebody else have made a part: what is opaque in it names them."""
    if not isinstance(part, Reasoning | ToolUse):
        return part
    by = {maker: "somebody-else"}
    foreign = {"of-no-dialect": {"signature": SEAL}}
    own = {name: {**_foreign(said), **by} for name, said in part.opaque.items()}
    return replace(part, opaque={**foreign, **own})


def _foreign(opaque: Mapping[str, Any]) -> dict[str, Any]:
    """Write another's seal into each field but those that name its maker."""
    return {
        name: said if name in ("provider", "model") else _seal(said)
        for name, said in opaque.items()
    }


def _seal(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _seal(said) for name, said in value.items()}
    if isinstance(value, list):
        return [_seal(item) for item in value]
    return SEAL + value if isinstance(value, str) else value


def _unmarked(value: Any) -> Any:
    """Leave out what says how long a prompt is kept: caches do not compare it."""
    if isinstance(value, dict):
        return {k: _unmarked(v) for k, v in value.items() if k != "cache_control"}
    if not isinstance(value, list):
        return value
    items = [_unmarked(item) for item in value if "cachePoint" not in item]
    # A part bears a mark, a text cannot; to the model they are the same.
    match items:
        case [{"type": "text", "text": text, **rest}] if not rest:
            return text
    return items


def _grows(before: Any, after: Any) -> bool:
    """Tell whether lists alone have grown, at their ends, and all else is the same."""
    if isinstance(before, list) and isinstance(after, list):
        return len(before) <= len(after) and all(map(_grows, before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        same = list(before) == list(after)
        return same and all(map(_grows, before.values(), after.values()))
    return json.dumps(before) == json.dumps(after)
