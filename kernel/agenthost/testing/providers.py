"""The promises of a provider, as tests that a provider's author inherits."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain, repeat

import pytest
from agenthost_chat.chat import (
    Completion,
    Delta,
    Finish,
    ReasoningChunk,
    Text,
    TextChunk,
    Usage,
)

from ..errors import ProviderError, ProviderFault
from ..providers import ModelFacts
from .provider_requests import ProviderRequests
from .samples import (
    CALLING,
    FAULTS,
    GIANT,
    IN_LISBON,
    IN_PORTO,
    KEY,
    LONG,
    LONGEST,
    user,
)
from .simulators import ProviderSimulator, Reply, ScriptedCall, Turn
from .steps import check_steps

SLUGS, VARIABLES = re.compile(r"[a-z][a-z0-9_-]*"), re.compile(r"[A-Z][A-Z0-9_]*")
TIERS = {"frontier", "smart", "balanced", "fast", "local", "custom"}


class ProviderContract(ProviderRequests):
    """What every provider promises; inherit it and name the provider.

    Set ``provider`` to a slug, or override :meth:`spec`. Override :meth:`wire` when
    the dialect is your own or the provider bends one of ours.

    Example:
        ::

            class TestGroq(ProviderContract):
                provider = "groq"
    """

    async def test_text_arrives_in_pieces_and_whole(
        self, upstream: ProviderSimulator
    ) -> None:
        """Chunks add up to the message of the Completion."""
        upstream.play(Turn("Olá, this is a streamed answer."))
        deltas = await self.deltas(upstream, self.request())
        pieces = [delta.text for delta in deltas if isinstance(delta, TextChunk)]
        last = deltas[-1]
        assert len(pieces) > 1
        assert isinstance(last, Completion)
        assert last.message.text == "".join(pieces) == "Olá, this is a streamed answer."
        assert last.finish is Finish.STOP

    async def test_an_answer_can_come_in_one_piece(
        self, upstream: ProviderSimulator
    ) -> None:
        """A call that does not stream gives the same Completion."""
        turn = Turn("sunny", "look outside", calls=(IN_LISBON,), finish=Finish.TOOL_USE)
        upstream.play(turn, turn)
        streamed = await self.answer(upstream)
        whole = await self.answer(upstream, self.request(stream=False))
        assert streamed == whole
        assert [heard.stream for heard in upstream.heard] == [True, False]

    async def test_reasoning_stays_out_of_the_text(
        self, upstream: ProviderSimulator
    ) -> None:
        """What a model thinks is shown apart."""
        upstream.play(Turn("42", reasoning="six times seven"))
        deltas = await self.deltas(upstream, self.request())
        thoughts = [d.text for d in deltas if isinstance(d, ReasoningChunk)]
        assert "".join(thoughts) == "six times seven"
        last = deltas[-1]
        assert isinstance(last, Completion)
        assert last.message.text == "42"

    async def test_tool_calls_are_parsed(self, upstream: ProviderSimulator) -> None:
        """Several calls of one step arrive with their arguments."""
        upstream.play(CALLING)
        done = await self.answer(upstream)
        assert done.finish is Finish.TOOL_USE
        cities = [use.arguments["city"] for use in done.message.tool_uses]
        assert cities == ["Lisbon", "Porto"]

    async def test_usage_is_normalised(self, upstream: ProviderSimulator) -> None:
        """Counts mean what ``Usage`` says, whatever the vendor counts apart."""
        usage = Usage(1000, 300, cached_tokens=600, reasoning_tokens=200)
        upstream.play(Turn("ok", usage=usage), Turn("ok", usage=usage))
        streamed = await self.answer(upstream)
        whole = await self.answer(upstream, self.request(stream=False))
        assert streamed.usage == whole.usage == self.wire().told(usage)

    async def test_a_call_cut_by_the_limit_is_not_made(
        self, upstream: ProviderSimulator
    ) -> None:
        """LENGTH is honoured before arguments are read."""
        upstream.play(Turn("I will", calls=(IN_LISBON,), finish=Finish.LENGTH))
        done = await self.answer(upstream)
        assert done.finish is Finish.LENGTH
        assert done.message.tool_uses == ()
        assert done.message.text == "I will"

    async def test_a_blocked_answer_is_no_good_end(
        self, upstream: ProviderSimulator
    ) -> None:
        """What content rules cut is told as such, streamed and whole."""
        turn = Turn("I can", finish=Finish.CONTENT_BLOCKED)
        upstream.play(turn, turn)
        for stream in (True, False):
            done = await self.answer(upstream, self.request(stream=stream))
            assert done.finish is Finish.CONTENT_BLOCKED
            assert done.message.text == "I can"

    async def test_equal_ids_are_made_unique(self, upstream: ProviderSimulator) -> None:
        """Results need calls that can be told apart, in the whole conversation."""
        again = replace(CALLING, calls=(IN_LISBON, replace(IN_PORTO, id="call_1")))
        upstream.play(again, again)
        asked = user(Text("weather?"))
        first = await self.answer(upstream, self.request(asked))
        second = await self.answer(upstream, self.request(asked, first.message))
        uses = (*first.message.tool_uses, *second.message.tool_uses)
        assert len({use.id for use in uses}) == 4
        assert all(use.id for use in uses)

    @pytest.mark.parametrize("arguments", ["[1]", '"Lisbon"', "7"])
    async def test_arguments_must_be_an_object(
        self, upstream: ProviderSimulator, arguments: str
    ) -> None:
        """Anything else is a call that is never made: the model is told."""
        wrong = ScriptedCall("get_weather", arguments)
        upstream.play(replace(CALLING, calls=(wrong, IN_PORTO)))
        done = await self.answer(upstream)
        assert done.finish is Finish.TOOL_USE
        bad, good = done.message.tool_uses
        assert (bad.name, bad.arguments) == ("get_weather", {})
        assert "not a JSON object" in bad.malformed
        assert (good.arguments, good.malformed) == ({"city": "Porto"}, "")

    async def test_broken_arguments_are_no_guess(
        self, upstream: ProviderSimulator
    ) -> None:
        """A call that is not made; a malformed answer where they are no text."""
        wrong = ScriptedCall("get_weather", '{"city": ')
        upstream.play(replace(CALLING, calls=(wrong,)))
        deltas: list[Delta] = []
        fault = None
        try:
            await self.gather(upstream, self.request(), deltas)
        except ProviderError as error:
            fault = error.fault
        assert fault in {None, ProviderFault.MALFORMED}
        whole = [delta for delta in deltas if isinstance(delta, Completion)]
        told = [use.malformed for done in whole for use in done.message.tool_uses]
        assert fault or (told and all(told))

    async def test_half_a_surrogate_pair_is_replaced(
        self, upstream: ProviderSimulator
    ) -> None:
        """What no store and no wire can take never leaves the decoder."""
        call = ScriptedCall("get_weather", '{"city": "\\ud800"}')
        upstream.play(Turn("sun \ud83d", calls=(call,), finish=Finish.TOOL_USE))
        done = await self.answer(upstream)
        assert done.message.text == "sun \ufffd"
        assert done.message.tool_uses[0].arguments == {"city": "\ufffd"}

    async def test_an_endless_answer_is_cut(self, upstream: ProviderSimulator) -> None:
        """It may have 16 bytes a token, 64 KiB at least; so much is handed on."""
        events = self.wire().events(Turn("x" * 500))
        half = len(events) // 2
        upstream.play(Reply(chain(events[:half], repeat(events[half] * 100, 300))))
        deltas: list[Delta] = []
        with pytest.raises(ProviderError) as caught:
            await self.gather(upstream, self.request(), deltas)
        assert caught.value.fault is ProviderFault.TOO_LONG
        said = "".join(d.text for d in deltas if isinstance(d, TextChunk))
        assert 0.9 * LONGEST < len(said) <= LONGEST

    @pytest.mark.parametrize(("status", "fault"), FAULTS)
    async def test_statuses_have_their_fault(
        self, upstream: ProviderSimulator, status: int, fault: ProviderFault
    ) -> None:
        """The kernel retries by fault, so it must be the right one."""
        body = self.wire().refusal(status, "no")
        upstream.play(Reply((body,), status), Reply((b"<html>no</html>",), status))
        assert (await self.fault(upstream)).fault is fault
        assert (await self.fault(upstream)).fault is fault

    async def test_retry_after_is_read(self, upstream: ProviderSimulator) -> None:
        """The provider's own wait is known to who retries."""
        body = self.wire().refusal(429, "slow down")
        upstream.play(Reply((body,), 429, {"Retry-After": "7"}))
        error = await self.fault(upstream)
        assert error.retry_after == 7
        assert "slow down" in error.detail

    async def test_errors_never_show_the_key(self, upstream: ProviderSimulator) -> None:
        """Vendors repeat the key; the message that people read must not."""
        body = self.wire().refusal(401, f"invalid key {KEY}")
        upstream.play(Reply((body,), 401))
        assert KEY not in str(await self.fault(upstream))

    async def test_a_stream_cut_anywhere_is_no_answer(
        self, upstream: ProviderSimulator
    ) -> None:
        """At every event boundary, ended or dropped: an error, never a Completion."""
        turn = Turn("sunny", "thinking", calls=(IN_LISBON,), finish=Finish.TOOL_USE)
        events = self.wire().events(turn)
        for count in range(len(events)):
            cut = tuple(events[:count])
            upstream.play(Reply(cut), Reply(cut, drop=True))
            assert (await self.fault(upstream)).fault is ProviderFault.MALFORMED
            dropped = (await self.fault(upstream)).fault
            assert dropped in {ProviderFault.UNREACHABLE, ProviderFault.MALFORMED}

    async def test_garbage_in_a_stream_is_malformed(
        self, upstream: ProviderSimulator
    ) -> None:
        """An event that is no JSON ends the call."""
        events = self.wire().events(Turn("hello"))
        upstream.play(Reply((events[0], self.wire().garbage(), *events[1:])))
        assert (await self.fault(upstream)).fault is ProviderFault.MALFORMED

    async def test_an_error_inside_a_stream_is_an_error(
        self, upstream: ProviderSimulator
    ) -> None:
        """A provider that gives up half-way is heard."""
        events = self.wire().events(Turn("hello"))
        upstream.play(Reply((events[0], self.wire().failure("out of memory"))))
        error = await self.fault(upstream)
        assert error.fault in {ProviderFault.SERVER, ProviderFault.OVERLOADED}
        assert "out of memory" in error.detail

    async def test_a_slow_drip_changes_nothing(
        self, upstream: ProviderSimulator
    ) -> None:
        """Bytes that come one by one give the same answer."""
        turn = Turn("Olá €", "hm", calls=(IN_LISBON,), finish=Finish.TOOL_USE)
        drip = b"".join(self.wire().events(turn))
        upstream.play(turn, Reply(tuple(bytes([byte]) for byte in drip)))
        assert await self.answer(upstream) == await self.answer(upstream)

    @pytest.mark.parametrize("stream", [True, False])
    async def test_it_leaves_the_loop_free(
        self, upstream: ProviderSimulator, *, stream: bool
    ) -> None:
        """No step of a call takes the event loop's thread for long, or blocks it."""

        async def call() -> None:
            upstream.play(Turn(LONG))
            await self.deltas(upstream, self.request(stream=stream))

        await check_steps(self.spec().facts.slug, call)

    @pytest.mark.parametrize("stream", [True, False])
    async def test_an_empty_body_is_malformed(
        self, upstream: ProviderSimulator, *, stream: bool
    ) -> None:
        """A 200 that says nothing is no answer."""
        upstream.play(Reply())
        error = await self.fault(upstream, self.request(stream=stream))
        assert error.fault is ProviderFault.MALFORMED

    @pytest.mark.parametrize("stream", [True, False])
    @pytest.mark.parametrize("body", [b"[]", b'{"a": 1}', b"null", b"<html>"])
    async def test_an_answer_of_another_kind_is_malformed(
        self, upstream: ProviderSimulator, body: bytes, *, stream: bool
    ) -> None:
        """A 200 with JSON of another shape, or none, is no answer."""
        upstream.play(Reply((body,), headers={"Content-Type": "application/json"}))
        error = await self.fault(upstream, self.request(stream=stream))
        assert error.fault is ProviderFault.MALFORMED

    @pytest.mark.parametrize("said", [0, 1])
    async def test_silence_is_a_timeout(
        self, upstream: ProviderSimulator, monkeypatch: pytest.MonkeyPatch, said: int
    ) -> None:
        """A provider that says no more does not hold its caller for ever."""
        monkeypatch.setattr(type(self), "patience", 0.05)
        events = self.wire().events(Turn("hello"))
        upstream.play(Reply(tuple(events[:said]), stall=True))
        assert (await self.fault(upstream)).fault is ProviderFault.TIMEOUT

    async def test_a_giant_line_is_refused(self, upstream: ProviderSimulator) -> None:
        """Memory is bounded: a line of 9 MiB is not gathered."""
        upstream.play(Reply((b"data: ", *[GIANT] * 9)))
        assert (await self.fault(upstream)).fault is ProviderFault.MALFORMED

    async def test_a_closed_port_is_unreachable(self) -> None:
        """Nothing was sent, so that another provider may be asked."""
        async with self.simulator() as gone:
            pass
        assert (await self.fault(gone)).fault is ProviderFault.UNREACHABLE

    async def test_its_facts_agree(self) -> None:
        """Budgets, routing and the catalogue count on them."""
        facts = self.spec().facts
        assert SLUGS.fullmatch(facts.slug)
        assert facts.base_url.startswith("https://") or facts.local
        assert VARIABLES.fullmatch(facts.env_var or "NONE")
        assert facts.env_var or not facts.key_required, "say where the key comes from"
        ids = [row.id for row in facts.models]
        assert len(set(ids)) == len(ids)
        assert facts.default_model in {None, *ids}
        for row in facts.models:
            assert row.provider == facts.slug
            _check(row)
        vectors = [row.id for row in facts.embeddings]
        assert len({*ids, *vectors}) == len(ids) + len(vectors)
        for row in facts.embeddings:
            assert row.provider == facts.slug
            assert row.upstream_id, row.id
            assert row.dimensions > 0, row.id
            assert row.batch > 0, row.id
            assert (row.max_input or 0) > 0, row.id
            assert row.input_cost_per_1m >= 0, row.id
            assert row.output_cost_per_1m == 0, row.id


def _check(row: ModelFacts) -> None:
    """Demand that the row of a model does not contradict itself."""
    assert row.upstream_id, row.id
    assert row.tier in TIERS, row.id
    assert 0 < row.max_output <= row.context_window, row.id
    assert 0 < (row.max_input or 1) <= row.context_window, row.id
    assert row.input_cost_per_1m >= 0, row.id
    assert row.output_cost_per_1m >= 0, row.id
    assert 0 <= (row.cached_input_cost_per_1m or 0) <= row.input_cost_per_1m, row.id
    assert row.supports_thinking or not row.always_thinks, row.id
    assert row.status in {"active", "deprecating"}, row.id
