"""The promises of a provider, as tests that a provider's author inherits."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import chain, repeat
from typing import ClassVar

import httpx
import pytest
from agenthost_chat.chat import (
    ChatRequest,
    Completion,
    Delta,
    Finish,
    Image,
    Message,
    ReasoningChunk,
    Role,
    Text,
    TextChunk,
    ToolOutput,
    Usage,
)

from ..errors import ProviderError, ProviderFault
from ..providers import Endpoint, ModelCall, ProviderSpec
from ..secrets import Secret
from .exchanges import installed_exchange
from .installed import provider_of
from .samples import (
    CALLING,
    FAULTS,
    GIANT,
    IN_LISBON,
    IN_PORTO,
    KEY,
    LONG,
    LONGEST,
    PICTURE,
    UNSEEN,
    WEATHER,
    WIRES,
    user,
)
from .simulators import (
    ProviderSimulator,
    ReplicateSimulator,
    ReplicateWire,
    Reply,
    ScriptedCall,
    Turn,
    Wire,
)
from .steps import check_steps

EXTENSION = "agenthost.contract"


async def _extended(request: httpx.Request) -> None:
    """Demand that a request is sent with the extensions of its call."""
    assert EXTENSION in request.extensions, "send every request with call.extensions"


class ProviderContract:
    """What every provider promises; inherit it and name the provider.

    Set ``provider`` to a slug, or override :meth:`spec`. Override :meth:`wire` when
    the dialect is your own or the provider bends one of ours.

    Example:
        ::

            class TestGroq(ProviderContract):
                provider = "groq"
    """

    provider: ClassVar[str]
    returns_reasoning: ClassVar[bool] = False
    """Whether reasoning must go back inside a tool loop."""

    sees_results: ClassVar[bool] = False
    """Whether the model's results of tools may bring pictures."""

    patience: ClassVar[float] = 5.0
    """Seconds that the client waits for more of an answer."""

    pytestmark = pytest.mark.asyncio

    def spec(self) -> ProviderSpec:
        """The provider under test."""
        return provider_of(self.provider)

    def wire(self) -> Wire:
        """What its dialect looks like from the other side."""
        return WIRES[self.spec().spoken_to(self.model()).name]

    def model(self) -> str:
        """The id on the wire of the model that is asked: the provider's first."""
        models = self.spec().facts.models
        return models[0].upstream_id if models else "simulated"

    def simulator(self) -> ProviderSimulator:
        """The service that speaks so."""
        wire = self.wire()
        if isinstance(wire, ReplicateWire):
            return ReplicateSimulator(wire)
        return ProviderSimulator(wire)

    @pytest.fixture
    async def upstream(self) -> AsyncIterator[ProviderSimulator]:
        """The simulated service."""
        async with self.simulator() as simulator:
            yield simulator

    def request(self, *messages: Message, stream: bool = True) -> ChatRequest:
        """A request for the provider's first model, with one tool."""
        asked = messages or (user(Text("hello")),)
        return ChatRequest(
            self.model(), "Be brief.", asked, (WEATHER,), 1000, stream=stream
        )

    async def deltas(
        self, upstream: ProviderSimulator, request: ChatRequest
    ) -> list[Delta]:
        """Make the call and give what it yields."""
        deltas: list[Delta] = []
        await self.gather(upstream, request, deltas)
        return deltas

    async def gather(
        self, upstream: ProviderSimulator, request: ChatRequest, deltas: list[Delta]
    ) -> None:
        """Make the call and gather what it yields, also when it fails."""
        spec = self.spec()
        rows = (r for r in spec.facts.models if r.upstream_id == request.model)
        row = next(rows, None)
        where = Endpoint(spec.facts.slug, upstream.base_url, Secret(KEY), row)
        # Loading certificates takes longer than the call, and nothing here is TLS.
        bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        async with httpx.AsyncClient(
            verify=bare,
            trust_env=False,
            timeout=self.patience,
            event_hooks={"request": [_extended]},
        ) as http:
            exchange = installed_exchange()
            call = ModelCall(request, where, http, exchange, {EXTENSION: True})
            async for delta in exchange.open(spec, call):
                deltas.append(delta)  # noqa: PERF401 - kept when it fails

    async def answer(
        self, upstream: ProviderSimulator, request: ChatRequest | None = None
    ) -> Completion:
        """Make the call; return its Completion, which must be the only and last."""
        deltas = await self.deltas(upstream, request or self.request())
        whole = [delta for delta in deltas if isinstance(delta, Completion)]
        assert len(whole) == 1, "exactly one Completion"
        assert deltas[-1] is whole[0], "the Completion comes last"
        return whole[0]

    async def fault(
        self, upstream: ProviderSimulator, request: ChatRequest | None = None
    ) -> ProviderError:
        """Make a call that must fail; return its error."""
        with pytest.raises(ProviderError) as caught:
            await self.deltas(upstream, request or self.request())
        assert caught.value.provider == self.spec().facts.slug
        return caught.value

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
        """Prompt caches hit: the body is stable, and a prefix of the next turn's."""
        upstream.play(Turn("one"), Turn("one"))
        await self.answer(upstream)
        await self.answer(upstream)
        first, second = upstream.heard
        assert first.raw == second.raw

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
            assert heard.thoughts[0][0] == "two cities"

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
