"""Calls of a provider at a simulated service, as its contract makes them."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from typing import ClassVar

import httpx
import pytest
from agenthost_chat.chat import ChatRequest, Completion, Delta, Message, Text

from ..errors import ProviderError
from ..providers import Endpoint, Extras, ModelCall, ModelFacts, ProviderSpec
from ..secrets import Secret
from .exchanges import installed_exchange
from .installed import provider_of
from .samples import KEY, WEATHER, WIRES, user
from .simulators import ProviderSimulator, ReplicateSimulator, ReplicateWire, Wire

EXTENSION = "agenthost.contract"


async def _extended(request: httpx.Request) -> None:
    """Demand that a request is sent with the extensions of its call."""
    assert EXTENSION in request.extensions, "send every request with call.extensions"


class ProviderCalls:
    """How the provider under test is called."""

    provider: ClassVar[str]
    patience: ClassVar[float] = 5.0
    """Seconds that the client waits for more of an answer."""

    extras: Extras = Extras()
    """What an operator adds to each request."""

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

    def row(self, model: str) -> ModelFacts | None:
        """What is known of the model of this id on the wire."""
        rows = (r for r in self.spec().facts.models if r.upstream_id == model)
        return next(rows, None)

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
        row = self.row(request.model)
        slug, key = spec.facts.slug, Secret(KEY)
        where = Endpoint(slug, upstream.base_url, key, row, self.extras)
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
