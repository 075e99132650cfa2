"""Model calls: the target, its fallbacks and their keys, until one answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING, NoReturn

from agenthost import (
    CONTEXT,
    Answered,
    Attempt,
    ChatRequest,
    Clock,
    Completion,
    Delta,
    Embedded,
    Finish,
    Host,
    InvalidInput,
    ModelCall,
    ModelFacts,
    NotFound,
    Payer,
    ProviderError,
    ProviderFault,
    ReasoningChunk,
    Secret,
    Spent,
    Target,
    TextChunk,
    Usage,
)

from .attempts import ROUNDS, Attempts, Candidate, Patience
from .authentication import tokens_of
from .breaker import Breakers
from .budget import Budgets, Hold
from .catalogue import Catalogue
from .handed import handed, names_files
from .keys import Keys, lack
from .means import Means
from .preference import Latencies, Preference
from .price import length_of, measured, size_of
from .settings import Budget, FallbackProviders, Providers, Trying
from .unseen import in_words
from .uses import Gauge, Uses, slots

if TYPE_CHECKING:
    from agenthost import Agent, Message, Observers, Quoted

log = logging.getLogger(__name__)

SILENCE = 300.0
SILENCE_OF_THINKERS = 900.0
# Asking again, or another, would cost as much and end no better.
FINAL = frozenset({ProviderFault.CONTENT_BLOCKED, ProviderFault.TOO_LONG})


@dataclass(slots=True)
class _Call:
    """One attempt, and what came of it so far; ``first`` is when its first piece came.

    ``heard`` counts UTF-8 bytes, ``size`` what the decoder counts, which last grew at
    ``grown_at``; ``unknown`` says that the provider may have gone on working after we
    stopped listening.
    """

    candidate: Candidate
    hold: Hold
    payer: Payer | None
    clock: Clock
    began: float
    grown_at: float
    first: float = 0.0
    size: int = 0
    heard: int = 0
    delivered: bool = False
    unknown: bool = False
    settled: bool = False
    outcome: str = ""

    def hears(self, delta: TextChunk | ReasoningChunk) -> None:
        """Note what is handed on."""
        if not self.first:
            self.first = self.clock.monotonic()
        self.heard += size_of(delta.text)
        self.delivered = self.delivered or isinstance(delta, TextChunk)

    def progress(self, size: int) -> None:
        """Refuse a silence: what keeps a connection alive is no answer.

        Raises:
            ProviderError: TIMEOUT.
        """
        now = self.clock.monotonic()
        if size != self.size:
            self.first = self.first or now
            self.size, self.grown_at = size, now
        elif now - self.grown_at > (patience := silence(self.candidate.target.model)):
            raise self.fault(
                ProviderFault.TIMEOUT, f"nothing was said for {patience:g} seconds"
            )

    def breaks_off(self) -> NoReturn:
        """Refuse an answer without an end."""
        raise self.fault(ProviderFault.MALFORMED, "the answer has no end")

    def fault(self, fault: ProviderFault, detail: str) -> ProviderError:
        """Make an error of this attempt."""
        return ProviderError(fault, self.candidate.target.provider.facts.slug, detail)


class RoutedModels(Catalogue):
    """The port: resolves names, and calls with retries, fallbacks and budgets."""

    def __init__(self, host: Host, random: Random, observers: Observers) -> None:
        super().__init__(host, Keys(host.vault, host.environ))
        self._host = host
        self._observers = observers
        self._random = random
        self._breakers = Breakers()
        self._budgets = Budgets(host)
        self._latencies = Latencies(host.clock, random)
        self._preference = Preference(
            self._budgets, self._breakers, self._latencies, host.clock
        )
        self._preferred = host.settings(Trying).targets
        self._turn = count()
        self._uses = Uses()
        self._tokens = tokens_of(host, host.settings(Providers).root)
        self._means = Means(
            host,
            self._keys,
            random,
            self.providers,
            self._budgets,
            self._tokens,
            self._breakers,
        )

    @property
    def hourly_tokens(self) -> int:
        """Tokens an hour of an agent whose manifest names no limit; 0 is none."""
        return self._host.settings(Budget).default_max_llm_tokens_per_hour

    def gauges(self) -> Iterator[Gauge]:
        """Tell of breakers that are not closed, of keys and of budgets."""
        clock = self._host.clock
        states = self._breakers.states(clock.monotonic())
        for (provider, state), number in states.items():
            yield "model_breakers", {"provider": provider, "state": state}, number
        for provider in self._uses.providers:
            if keys := self.keys_of(provider):
                yield from self._uses.gauges(provider, keys)
                yield from self._rests(provider)
        yield from self._budgets.gauges()

    def _rests(self, provider: str) -> Iterator[Gauge]:
        """Tell until when each key rests, for that of its models that rests longest."""
        longest: dict[int, float] = {}
        for _, key, _, seconds in self.resting(provider):
            longest[key] = max(seconds, longest.get(key, 0.0))
        for key, seconds in longest.items():
            named = {"provider": provider, "key": str(key)}
            until = self._host.clock.time() + seconds
            yield "model_key_rests_until_timestamp_seconds", named, until

    def check(self, target: Target) -> None:
        """Refuse a target that cannot be called for want of a key.

        Raises:
            ProviderError: Fault AUTH, naming the ways to give it one.
        """
        facts = target.provider.facts
        if facts.key_required and not self._keys.has(facts):
            raise ProviderError(ProviderFault.AUTH, facts.slug, lack(facts))

    def resting(self, slug: str) -> list[tuple[str, int, str, float]]:
        """Tell which of a provider's models rest: name, key, fault, seconds to go."""
        known = slots(self.keys_of(slug))
        resting = self._breakers.resting(slug, self._host.clock.monotonic())
        return [
            (model, known[digest], fault, seconds)
            for (_, digest, model), fault, seconds in resting
            # A key that was taken away rests in vain.
            if digest in known
        ]

    async def quote(
        self, agent: Agent, message: Message, session_id: str = ""
    ) -> Quoted:
        """Tell what a message to an agent would cost; nothing is asked or booked."""
        from .quote import quoted

        said = self._budgets, agent, message, session_id
        return await quoted(self._host, *said)

    async def stream(
        self, target: Target, request: ChatRequest, payer: Payer | None = None
    ) -> AsyncGenerator[Delta | Answered, None]:
        """Call the model, or what stands in for it; Answered comes last.

        Raises:
            ProviderError: What the first target failed with.
            QuotaExceeded: A budget has no room for the call.
        """
        attempts = self._attempts(await self._ordered(target, request, payer), payer)
        failures: dict[bool, ProviderError] = {}
        while (candidate := await attempts.next()) is not None:
            call = await self._begin(candidate, request, payer)
            try:
                async with aclosing(self._open(call)) as deltas:
                    async for delta in deltas:
                        if isinstance(delta, Completion):
                            answered = self._answered(call, delta)
                            break
                        call.hears(delta)
                        yield delta
                    else:
                        call.breaks_off()
            except ProviderError as failure:
                self._broke_off(call, failure)
                error = self._means.without_secrets(failure)
                if error.fault in FINAL or (call.delivered and not _unsaid(payer)):
                    raise error from None
                attempts.failed(candidate, error)
                failures[candidate.target == target] = error
                log.warning("model call failed (%s): %s", error.fault, error.message)
            except BaseException as failure:
                self._broke_off(call, failure)
                raise
            else:
                # Who hears this asks for no more: nothing may be left to do after it.
                yield answered
                return
        raise self._refusal(target, attempts, failures)

    async def _ordered(
        self, target: Target, request: ChatRequest, payer: Payer | None
    ) -> list[Candidate]:
        candidates = self._candidates(target, payer)
        policy = self._preferred
        if policy != "in_order" and payer is not None and not self._pinned(payer):
            given = (candidates, request, payer)
            return await self._preference.order(policy, *given)
        return candidates

    def _refusal(
        self, target: Target, attempts: Attempts, failures: dict[bool, ProviderError]
    ) -> ProviderError:
        """Give what the first target failed with, else another."""
        for candidate, told in attempts.refused:
            error = self._means.without_secrets(told)
            failures.setdefault(candidate.target == target, error)
        if True not in failures:
            self.check(target)
        return failures.get(True) or failures[False]

    async def ask(
        self, target: Target, request: ChatRequest, payer: Payer
    ) -> AsyncGenerator[Delta | Answered, None]:
        """Call a model for who asks it itself: watched, and booked before Answered.

        Raises:
            ProviderError: What the first target failed with.
            QuotaExceeded: A budget has no room for the call.
        """
        assert payer.context is not None  # noqa: S101 - who asks itself is known
        watch = self._observers.watch(payer.context, request, target, payer.failed)
        with watch as seen:
            async with aclosing(self.stream(target, request, payer)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, Answered):
                        if seen is not None:
                            seen.result, seen.spent = delta.completion, delta.spent
                            seen.answered = delta
                        # Who leaves now must not cancel a commit others ride in.
                        await asyncio.shield(self._host.usage.book(delta.spent))
                    yield delta

    async def embed(
        self,
        texts: Sequence[str],
        model: str | None = None,
        payer: Payer | None = None,
        *,
        query: bool = False,
    ) -> Embedded:
        """Turn texts into vectors, in their order, and book what that takes."""
        from .embedding import Embeddings

        embeddings = Embeddings(self._means, self.names_of_default)
        return await embeddings.embed(texts, model, payer, query=query)

    async def transcribe(self, audio: bytes, media_type: str, payer: Payer) -> str:
        """Say what is said in a file, and book it: see ``transcription``."""
        from .transcription import Transcriptions

        return await Transcriptions(self._means).transcribe(audio, media_type, payer)

    def _pinned(self, payer: Payer) -> bool:
        """Whether an agent keeps the model it has, whoever else were quicker.

        Who asks the model itself has named it.
        """
        if payer.agent is None:
            return True
        try:
            return self._host.agents.get(payer.agent.id).pinned_model is not None
        except NotFound:
            # It was deleted meanwhile; the turn ends as it began.
            return False

    def _attempts(self, candidates: list[Candidate], payer: Payer | None) -> Attempts:
        most = self._host.settings(Trying).most_calls
        # A call that nobody pays for is a trial.
        patience = Patience(ROUNDS, most) if payer else Patience(1, len(candidates))
        clock = self._host.clock
        return Attempts(candidates, self._breakers, clock, self._random, patience)

    async def _begin(
        self, candidate: Candidate, request: ChatRequest, payer: Payer | None
    ) -> _Call:
        model = candidate.target.model
        tools = request.tools if model.supports_tools else ()
        if request.model != model.upstream_id or request.tools != tools:
            request = replace(request, model=model.upstream_id, tools=tools)
        if not model.supports_vision:
            request = in_words(request)
        clock = self._host.clock
        try:
            if payer is not None and names_files(request):
                uploads = self._host.uploads
                agent = payer.agent.id if payer.agent else ""
                request = await handed(request, model, uploads, agent)
            hold = await self._budgets.reserve(payer, candidate.target, request)
        except BaseException:
            self._breakers.abandoned(candidate.id, clock.monotonic())
            raise
        now = clock.monotonic()
        call = _Call(candidate, hold, payer, clock, began=now, grown_at=now)
        if self._preferred == "latency":
            self._latencies.began(candidate.target.names, call)
        return call

    def _broke_off(self, call: _Call, error: BaseException) -> None:
        """Settle what an attempt has cost that gave no answer."""
        known, now = call.candidate.id, self._host.clock.monotonic()
        if isinstance(error, ProviderError):
            call.unknown = error.fault is ProviderFault.TIMEOUT
            call.outcome = error.fault.value
            self._breakers.failed(known, error, now)
            self._uses.failed(known, error.fault)
        else:
            call.unknown = isinstance(error, asyncio.CancelledError | GeneratorExit)
            call.outcome = "cancelled" if call.unknown else "error"
            self._breakers.abandoned(known, now)
        self._close(call)

    def _answered(self, call: _Call, completion: Completion) -> Answered:
        """Settle a whole answer.

        Raises:
            ProviderError: It was blocked before it said anything.
        """
        message, target = completion.message, call.candidate.target
        self._breakers.succeeded(call.candidate.id)
        self._budgets.learn(call.hold, target, completion.usage.input_tokens)
        usage = measured(completion.usage, call.hold.request, length_of(message))
        spent = self._spent(call, usage)
        self._settle(call, spent)
        silent = not message.text
        if completion.finish is Finish.CONTENT_BLOCKED and silent:
            call.outcome = ProviderFault.CONTENT_BLOCKED.value
            self._lost(call, spent)
            raise call.fault(
                ProviderFault.CONTENT_BLOCKED,
                "the answer was blocked by the provider's content rules",
            )
        if call.payer is None:
            self._host.usage.book(spent)
        if usage is not completion.usage:
            completion = replace(completion, usage=usage)
        return Answered(completion, spent, call.began, call.first)

    def _close(self, call: _Call) -> None:
        """Book what an unfinished call has cost: what it said, and its prompt."""
        if call.settled:
            return
        spent = None
        if call.heard or call.unknown:
            usage = measured(Usage(), call.hold.request, call.heard)
            spent = self._spent(call, usage)
        self._settle(call, spent)
        self._lost(call, spent)

    def _lost(self, call: _Call, spent: Spent | None) -> None:
        """Book an attempt that gave no answer, and tell who pays."""
        if spent is not None:
            self._host.usage.book(spent)
        if call.payer is not None:
            seconds = call.clock.monotonic() - call.began
            attempt = (call.candidate.target, call.outcome, spent, call.began, seconds)
            call.payer.failed.append(Attempt(*attempt))

    def _settle(self, call: _Call, spent: Spent | None) -> None:
        call.settled = True
        if self._preferred == "latency":
            self._latencies.ended(call.candidate.target.names, call)
        self._uses.ended(call.candidate.id)
        self._budgets.settle(call.hold, spent)

    def _spent(self, call: _Call, usage: Usage) -> Spent:
        return self._means.spent(call.candidate.target, call.payer, usage)

    def _open(
        self, call: _Call, token: Secret | None = None
    ) -> AsyncGenerator[Delta, None]:
        """Start the call, with a token where its key has to become one first."""
        spec, key = call.candidate.target.provider, call.candidate.key
        facts, model = spec.facts, call.candidate.target.model
        if token is None and facts.slug in self._tokens:
            return self._tokens[facts.slug].spoken(key, partial(self._open, call))
        endpoint = facts.at(token or key, model)
        policy = self._means.policy(facts, silence(model))
        egress = self._host.egress
        told = {CONTEXT: call.payer.context} if call.payer else {}
        wanted = ModelCall(
            call.hold.request,
            endpoint,
            egress.client(policy),
            egress.exchange,
            told,
            call.progress,
        )
        return egress.exchange.open(spec, wanted)

    def _candidates(self, target: Target, payer: Payer | None) -> list[Candidate]:
        chain = {each.names: each for each in (target, *self._spare(payer))}
        found: list[Candidate] = []
        for each in chain.values():
            facts = each.provider.facts
            keys = self._keys.of(facts)
            if keys:
                found += self._spread([Candidate(each, key) for key in keys])
            elif not facts.key_required:
                found.append(Candidate(each, None))
        return found

    def _spread(self, candidates: list[Candidate]) -> list[Candidate]:
        """Put a target's keys in the order that the configuration asks for."""
        policy = self._host.settings(Trying).keys
        if policy == "in_order" or len(candidates) == 1:
            return candidates
        if policy == "least_used":
            return sorted(candidates, key=lambda each: self._uses.of(each.id))
        turn = next(self._turn) % len(candidates)
        return [*candidates[turn:], *candidates[:turn]]

    def _spare(self, payer: Payer | None) -> Iterator[Target]:
        """The agent's fallbacks, then the daemon's; one that is unknown is skipped.

        A call that nobody pays for is a trial of its target, which nothing replaces.
        """
        if payer is None:
            return
        own = payer.agent.manifest.fallback_models if payer.agent else ()
        chain = [(each.provider, each.model) for each in own]
        shared = self._host.settings(FallbackProviders).root
        for names in (*chain, *((each.provider, each.model) for each in shared)):
            try:
                yield self.resolve(*names)
            except InvalidInput as error:
                log.warning("fallback skipped: %s", error.message)


def _unsaid(payer: Payer | None) -> bool:
    """Whether what was handed on is taken back, since nobody has heard it."""
    return payer is not None and payer.take_back is not None and payer.take_back()


def silence(model: ModelFacts) -> float:
    """Seconds without a word after which a call is given up."""
    return SILENCE_OF_THINKERS if model.always_thinks else SILENCE
