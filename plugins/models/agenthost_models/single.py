"""Calls that are one request and one answer: keys in turn, budgets, the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from agenthost import (
    CONTEXT,
    ChatRequest,
    EmbedderSpec,
    EmbeddingCall,
    Payer,
    ProviderError,
    ProviderFault,
    ProviderSpec,
    Secret,
    Spent,
    Target,
    Usage,
)

from .attempts import ROUNDS, Attempts, Candidate, Patience
from .keys import lack
from .means import Means
from .price import measured
from .settings import Trying

SILENCE = 60.0

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Job(Generic[Result]):
    """What one request asks for, and who pays.

    ``request`` is what the budgets measure. ``send`` asks, by a call without texts;
    ``usage`` says what the answer has taken, zeroes where the vendor does not, and
    raises where it is none.
    """

    target: Target
    payer: Payer | None
    request: ChatRequest
    send: Callable[[EmbeddingCall], Awaitable[Result]]
    usage: Callable[[Result], Usage]


@dataclass(frozen=True, slots=True)
class Single:
    """Makes such calls."""

    means: Means

    def speaker(self, spec: ProviderSpec) -> EmbedderSpec | None:
        """Find what speaks a provider's dialect beside its conversations."""
        name = spec.dialect if isinstance(spec.dialect, str) else spec.dialect.name
        offered = self.means.host.registry.offered(EmbedderSpec)
        return next((each for _, each in offered if each.name == name), None)

    async def answer(self, job: Job[Result]) -> tuple[Result, Usage]:
        """Ask with one key after the other, and again for what passes.

        Raises:
            ProviderError: What the last one failed with.
            QuotaExceeded: A budget has no room.
        """
        means, facts = self.means, job.target.provider.facts
        attempts = self._attempts(job.target)
        failure: ProviderError | None = None
        while (candidate := await attempts.next()) is not None:
            try:
                return await self._try(candidate, job)
            except ProviderError as error:
                failure = means.without_secrets(error)
                attempts.failed(candidate, failure)
        if failure is None and attempts.refused:
            failure = means.without_secrets(attempts.refused[0][1])
        raise failure or ProviderError(ProviderFault.AUTH, facts.slug, lack(facts))

    def _attempts(self, target: Target) -> Attempts:
        means, facts = self.means, target.provider.facts
        keys: list[Secret | None] = [*means.keys.of(facts)]
        if not keys and not facts.key_required:
            keys = [None]
        patience = Patience(ROUNDS, means.host.settings(Trying).most_calls)
        return Attempts(
            [Candidate(target, key) for key in keys],
            means.breakers,
            means.host.clock,
            means.random,
            patience,
        )

    async def _try(
        self, candidate: Candidate, job: Job[Result]
    ) -> tuple[Result, Usage]:
        """Make one request, and settle what it has cost, however it ends."""
        means, clock = self.means, self.means.host.clock
        spent: Spent | None = None
        try:
            hold = await means.budgets.reserve(job.payer, job.target, job.request)
        except BaseException:
            means.breakers.abandoned(candidate.id, clock.monotonic())
            raise
        try:
            answer = await self._ask(candidate, job)
            spent = self._spent(job, job.usage(answer))
            means.breakers.succeeded(candidate.id)
            return answer, spent.usage
        except ProviderError as error:
            means.breakers.failed(candidate.id, error, clock.monotonic())
            if error.fault in {ProviderFault.TIMEOUT, ProviderFault.MALFORMED}:
                spent = self._spent(job, Usage())
            raise
        except BaseException as error:
            means.breakers.abandoned(candidate.id, clock.monotonic())
            if isinstance(error, asyncio.CancelledError):
                spent = self._spent(job, Usage())
            raise
        finally:
            means.budgets.settle(hold, spent)
            if spent is not None:
                means.host.usage.book(spent)

    def _spent(self, job: Job[Result], usage: Usage) -> Spent:
        """Price a request; what the vendor does not count is estimated."""
        counted = measured(usage, job.request, 0)
        return self.means.spent(job.target, job.payer, counted)

    async def _ask(self, candidate: Candidate, job: Job[Result]) -> Result:
        tokens = self.means.tokens.get(candidate.target.names[0])
        if tokens is None:
            return await self._send(candidate.key, job)
        token = await tokens.of(candidate.key)
        try:
            return await self._send(token, job)
        except ProviderError as error:
            if error.fault is not ProviderFault.AUTH:
                raise
        tokens.forget(candidate.key, token)
        return await self._send(await tokens.of(candidate.key), job)

    async def _send(self, key: Secret | None, job: Job[Result]) -> Result:
        means, facts = self.means, job.target.provider.facts
        egress = means.host.egress
        told = {CONTEXT: job.payer.context} if job.payer else {}
        call = EmbeddingCall(
            (),
            facts.at(key, job.target.model),
            egress.client(means.policy(facts, SILENCE)),
            egress.exchange,
            extensions=told,
        )
        try:
            async with asyncio.timeout(2 * SILENCE):
                return await job.send(call)
        except TimeoutError:
            late = f"no answer within {2 * SILENCE:g} seconds"
            raise ProviderError(ProviderFault.TIMEOUT, facts.slug, late) from None
