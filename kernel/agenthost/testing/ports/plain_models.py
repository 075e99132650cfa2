"""A router of model calls without patience, for tests of what calls models."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn
from urllib.parse import urlsplit

from agenthost_chat.chat import (
    ChatRequest,
    Completion,
    Delta,
    Message,
    ReasoningChunk,
    Role,
    Text,
    TextChunk,
    Usage,
)
from httpx import AsyncClient

from ...agent import Agent
from ...embedders import Embedded, EmbedderSpec, EmbeddingCall
from ...errors import (
    ConfigError,
    InvalidInput,
    ProviderError,
    ProviderFault,
    QuotaExceeded,
)
from ...host import Host
from ...observe import Observers
from ...ports.egress import CONTEXT, EgressPolicy
from ...ports.models import Answered, Attempt, Choice, Payer, Quoted, Target
from ...ports.usage import Spent
from ...providers import Endpoint, ModelCall, ModelFacts, ProviderSpec
from ...secrets import Secret


@dataclass(slots=True)
class Try:
    """One call of one model: what is asked, what is held for it, what was heard."""

    target: Target
    request: ChatRequest
    payer: Payer | None
    held: int
    began: float
    first: float = 0.0
    heard: int = 0
    said: bool = False
    outcome: str = "cancelled"

    def breaks_off(self) -> NoReturn:
        """Refuse an answer without an end."""
        slug, _ = self.target.names
        raise ProviderError(ProviderFault.MALFORMED, slug, "the answer has no end")

    def hears(self, delta: TextChunk | ReasoningChunk, now: float) -> None:
        """Note what is handed on."""
        self.first = self.first or now
        self.heard += len(delta.text.encode(errors="surrogatepass"))
        self.said = self.said or isinstance(delta, TextChunk)


class PlainModels:
    """Asks the providers of plugins, each once and with its first key.

    ``ModelsBackend("plain", PlainModels)`` serves a daemon with it. Of budgets it knows
    those that a payer brings; local servers are not asked what they have.

    Args:
        host: The daemon.
        observers: Told of calls outside of turns.
    """

    hourly_tokens = 0

    def __init__(self, host: Host, observers: Observers) -> None:
        self._host = host
        self._observers = observers
        offered = host.registry.offered(ProviderSpec)
        self.providers: Mapping[str, ProviderSpec] = {
            spec.facts.slug: spec for _, spec in offered
        }

    async def probe_local(self) -> None:
        """Find out whether a local server answers; nobody is asked."""

    def default(self) -> Target:
        """Give the daemon's default model."""
        return self._chosen("", "", "").target

    def names_of_default(self) -> tuple[str, str]:
        """Name the default provider's slug and model id, for display."""
        return self.default().names

    def check_default(self) -> list[str]:
        """Warn of what ``[default_model]`` lacks; one nobody has is a ConfigError."""
        written = self._host.config.default_model
        if not (written.provider or written.model):
            return []
        try:
            choice = self._chosen("", "", "")
        except InvalidInput as error:
            raise ConfigError(f"default_model: {error.message}") from error
        told = [*choice.notices]
        with suppress(ProviderError):
            self.check(choice.target)
            return told
        return [*told, f"default_model: {choice.target.names[0]} has no key"]

    def find(self, name: str) -> Target | None:
        """Find what is listed under an id, an alias or ``<provider>/<model>``."""
        for slug, spec in self.providers.items():
            for row in spec.facts.models:
                known = row.id, *row.aliases
                if name in known or name in {f"{slug}/{each}" for each in known}:
                    return Target(spec, row)
        return None

    def auth_status(self, slug: str) -> str:
        """How a provider's key stands: configured, missing or no_key_needed."""
        if self.keys_of(slug):
            return "configured"
        needed = self.providers[slug].facts.key_required
        return "missing" if needed else "no_key_needed"

    def keys_of(self, slug: str) -> Sequence[Secret]:
        """Give a provider's key in force: of the vault, else of its variable."""
        stored = self._host.vault.get(f"provider/{slug}")
        variable = self.providers[slug].facts.env_var
        said = self._host.environ.get(variable or "", "")
        return [stored] if stored else [Secret(said)] if said else []

    def resolve(self, provider: str | None, model: str | None) -> Target:
        """Find the model, else raise InvalidInput; ``default`` is the daemon's."""
        return self._chosen(_plain(provider), _plain(model), "").target

    async def choose(
        self, provider: str | None, model: str | None, own: str = ""
    ) -> Choice:
        """Resolve what somebody names for an agent of the provider ``own``."""
        return self._chosen(_plain(provider), _plain(model), own)

    def resting(self, slug: str) -> Sequence[tuple[str, int, str, float]]:  # noqa: ARG002
        """Tell which of a provider's models rest: none ever does."""
        return ()

    def gauges(self) -> Iterable[tuple[str, Mapping[str, str], float]]:
        """What a monitor may show now: nothing."""
        return ()

    def check(self, target: Target) -> None:
        """Refuse a target without a key: ProviderError, fault AUTH."""
        slug, _ = target.names
        if self.auth_status(slug) == "missing":
            raise ProviderError(ProviderFault.AUTH, slug, "no API key; give it one")

    async def quote(
        self, agent: Agent, message: Message, session_id: str = ""
    ) -> Quoted:
        """Tell what a message to an agent would cost; its tools are not counted."""
        own = session_id or agent.session_id
        session = await self._host.sessions.get(own, agent.id)
        history = await self._host.sessions.history(session)
        said = (*history.messages, message) if session_id else (message,)
        target = self._host.agents.target_of(agent)
        system = agent.manifest.model.system_prompt
        model, request = target.model, ChatRequest(target.model.id, system, said)
        tokens = _bytes(request), model.max_output
        most = _cost(model, Usage(*tokens))
        likely = _cost(model, Usage(tokens[0] // 4, 1))
        return Quoted("/".join(target.names), *tokens, most, 1, 1, likely, 0)

    async def stream(
        self, target: Target, request: ChatRequest, payer: Payer | None = None
    ) -> AsyncGenerator[Delta | Answered, None]:
        """Call the model, or what stands in for it; Answered comes last."""
        first: ProviderError | None = None
        for each in self._candidates(target, payer):
            try:
                self.check(each)
            except ProviderError as error:
                first = first or error
                continue
            call = self._begun(each, request, payer)
            try:
                async with aclosing(self._deltas(call)) as deltas:
                    async for delta in deltas:
                        yield delta
            except ProviderError as error:
                if call.said and not (payer and payer.take_back and payer.take_back()):
                    raise
                first = first or error
            else:
                return
        assert first is not None, "there is a target at least"
        raise first

    async def ask(
        self, target: Target, request: ChatRequest, payer: Payer
    ) -> AsyncGenerator[Delta | Answered, None]:
        """Call a model for who asks it itself, outside of any turn."""
        assert payer.context is not None, "who asks is known"
        watch = self._observers.watch(payer.context, request, target, payer.failed)
        with watch as seen:
            async with aclosing(self.stream(target, request, payer)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, Answered):
                        await self._host.usage.book(delta.spent)
                        if seen is not None:
                            seen.result, seen.spent = delta.completion, delta.spent
                            seen.answered = delta
                    yield delta

    async def embed(
        self,
        texts: Sequence[str],
        model: str | None = None,
        payer: Payer | None = None,
        *,
        query: bool = False,
    ) -> Embedded:
        """Turn texts into vectors, in as many requests as the model's row asks for."""
        target = self._embedding(texts, model)
        vectors: list[Sequence[float]] = []
        usage = Usage()
        for at in range(0, len(texts), target.model.batch):
            batch = tuple(texts[at : at + target.model.batch])
            done = await self._embedded(target, batch, payer, query=query)
            vectors += done.vectors
            usage += done.usage
        return Embedded(vectors, usage, target.names)

    def _embedding(self, texts: Sequence[str], model: str | None) -> Target:
        """Find the model; InvalidInput without one, or without texts."""
        if not texts or not all(texts):
            raise InvalidInput("texts", "must be some, none of them empty")
        for slug, spec in self.providers.items():
            for row in spec.facts.embeddings:
                if model in {None, row.id, f"{slug}/{row.id}"}:
                    target = Target(spec, row)
                    self.check(target)
                    return target
        raise InvalidInput("model", f"no provider lists embeddings {model!r}")

    async def _embedded(
        self, target: Target, texts: Sequence[str], payer: Payer | None, *, query: bool
    ) -> Embedded:
        """Make one request, and book what that has cost."""
        said = Message(Role.USER, tuple(map(Text, texts)))
        request = ChatRequest(target.model.upstream_id, "", (said,), max_tokens=1)
        call = self._begun(target, request, payer)
        spent = Usage()
        try:
            embedder = self._embedder(target.provider)
            done = await embedder.embed(self._embedding_call(call, texts, query=query))
            if {len(vector) for vector in done.vectors} != {target.model.dimensions}:
                call.breaks_off()
            spent = done.usage
        finally:
            settled = self._settled(call, spent)
        self._host.usage.book(settled)
        return done

    def _embedder(self, spec: ProviderSpec) -> EmbedderSpec:
        name = spec.dialect if isinstance(spec.dialect, str) else spec.dialect.name
        offered = self._host.registry.offered(EmbedderSpec)
        return next(each for _, each in offered if each.name == name)

    def _embedding_call(
        self, call: Try, texts: Sequence[str], *, query: bool
    ) -> EmbeddingCall:
        endpoint, client, told = self._way(call)
        exchange = self._host.egress.exchange
        return EmbeddingCall(texts, endpoint, client, exchange, query, told)

    def _candidates(self, target: Target, payer: Payer | None) -> Iterator[Target]:
        yield target
        agent = payer.agent if payer else None
        for spare in agent.manifest.fallback_models if agent else ():
            with suppress(InvalidInput):
                yield self.resolve(spare.provider, spare.model)

    def _begun(self, target: Target, request: ChatRequest, payer: Payer | None) -> Try:
        """Make a call ready, and hold what it can come to at most."""
        model = target.model
        tools = request.tools if model.supports_tools else ()
        request = replace(request, model=model.upstream_id, tools=tools)
        pools, held = payer.pools if payer else (), 0
        if pools:
            room = min(pool.limit - pool.used - pool.held for pool in pools)
            # No token is smaller than a byte.
            read = _cost(model, Usage(_bytes(request), 0))
            most = min(request.max_tokens or model.max_output, model.max_output)
            if rate := model.output_cost_per_1m:
                most = min(most, int((room - read) / rate))
            if read > room or most < 1:
                raise QuotaExceeded("no budget has room for the call; raise it")
            request = replace(request, max_tokens=most)
            held = _cost(model, Usage(_bytes(request), most))
        for pool in pools:
            pool.held += held
        return Try(target, request, payer, held, self._host.clock.monotonic())

    async def _deltas(self, call: Try) -> AsyncGenerator[Delta | Answered, None]:
        """Hear one model, and settle what that has cost, however it ends."""
        answered: Answered | None = None
        try:
            async with aclosing(self._opened(call)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, Completion):
                        answered = self._answered(call, delta)
                        break
                    call.hears(delta, self._host.clock.monotonic())
                    yield delta
            if answered is None:
                call.breaks_off()
        except ProviderError as error:
            call.outcome = error.fault.value
            raise
        except Exception:
            call.outcome = "error"
            raise
        finally:
            if answered is None:
                self._lost(call)
        yield answered

    def _answered(self, call: Try, completion: Completion) -> Answered:
        spent = self._settled(call, completion.usage)
        if call.payer is None:
            self._host.usage.book(spent)
        return Answered(completion, spent, call.began, call.first)

    def _lost(self, call: Try) -> None:
        """Book what came of a call without an end, and tell who pays."""
        spent: Spent | None = None
        read = _bytes(call.request) // 4
        if call.heard or call.outcome == "cancelled":
            spent = self._settled(call, Usage(read, math.ceil(call.heard / 4)))
            self._host.usage.book(spent)
        else:
            self._settled(call, Usage())
        if call.payer is not None:
            seconds = self._host.clock.monotonic() - call.began
            told = Attempt(call.target, call.outcome, spent, call.began, seconds)
            call.payer.failed.append(told)

    def _settled(self, call: Try, usage: Usage) -> Spent:
        """Give back what was held, and count what was spent."""
        slug, model = call.target.names
        cost = _cost(call.target.model, usage)
        payer, context = call.payer, call.payer.context if call.payer else None
        agent = payer.agent if payer else None
        for pool in payer.pools if payer else ():
            pool.held -= call.held
            pool.used += cost
        return Spent(
            self._host.clock.time(),
            agent.id if agent else "",
            agent.session_id if agent else "",
            payer.turn_id if payer else "",
            slug,
            model,
            usage,
            cost,
            context.owner if context else "",
            context.principal.person if context else "",
        )

    def _opened(self, call: Try) -> AsyncGenerator[Delta, None]:
        endpoint, client, told = self._way(call)
        exchange = self._host.egress.exchange
        wanted = ModelCall(call.request, endpoint, client, exchange, told)
        return exchange.open(call.target.provider, wanted)

    def _way(self, call: Try) -> tuple[Endpoint, AsyncClient, dict[str, Any]]:
        """Give where a call goes, and what with."""
        spec, egress = call.target.provider, self._host.egress
        facts, keys = spec.facts, self.keys_of(spec.facts.slug)
        key = keys[0] if keys else None
        endpoint = Endpoint(facts.slug, facts.base_url, key, call.target.model)
        host = urlsplit(facts.base_url).hostname
        local = frozenset({host}) if host and facts.local else frozenset[str]()
        client = egress.client(EgressPolicy(f"provider:{facts.slug}", local))
        told = {CONTEXT: call.payer.context} if call.payer else {}
        return endpoint, client, told

    def _chosen(self, provider: str, name: str, own: str) -> Choice:
        """Find what is named; what nobody lists is passed on."""
        written = self._host.config.default_model
        usual = _plain(written.provider)
        if not (provider or name):
            provider, name = usual, _plain(written.model)
        if provider and provider not in self.providers:
            raise InvalidInput("model.provider", f"unknown provider {provider!r}")
        slug = provider or (own if own in self.providers else usual or self._first())
        found = self._within(slug, name) or (None if provider else self.find(name))
        if found is not None:
            return Choice(found)
        if not name:
            raise InvalidInput("model", f"provider {slug!r} needs a model name")
        row = ModelFacts(name, slug, name, name)
        notice = f"{slug} lists no model {name!r}, which is passed on as it is"
        return Choice(Target(self.providers[slug], row), (notice,))

    def _first(self) -> str:
        """The first provider that can be called, and has a model."""
        for slug, spec in self.providers.items():
            if spec.facts.models and self.auth_status(slug) != "missing":
                return slug
        raise InvalidInput("model", "no provider can answer; enable one")

    def _within(self, slug: str, name: str) -> Target | None:
        spec = self.providers[slug]
        rows = spec.facts.models
        wanted = name.removeprefix(f"{slug}/") or spec.facts.default_model
        for row in rows:
            if wanted in {None, row.id, row.upstream_id, *row.aliases}:
                return Target(spec, row)
        return None


def _plain(written: str | None) -> str:
    """Read what was written for a provider or a model; ``default`` is nothing."""
    name = (written or "").strip()
    return "" if name == "default" else name


def _bytes(request: ChatRequest) -> int:
    """Count a prompt's bytes, at most."""
    read = request.system, request.messages, request.tools
    return len(str(read).encode(errors="surrogatepass"))


def _cost(model: ModelFacts, usage: Usage) -> int:
    """Price a call in micro-USD: a dollar for a million is one for each."""
    if usage.cost_micro_usd is not None:
        return usage.cost_micro_usd
    read = usage.input_tokens * model.input_cost_per_1m
    return math.ceil(read + usage.output_tokens * model.output_cost_per_1m)
