"""A model that is named itself answers itself: no agent, prompt, tool or session.

What holds for agents' calls of models holds here, too: the guards and rights of the
request come before this; budgets, keys, fallbacks, guards of what is sent, observers
and the ledger are the port's. Every face of ``/v1`` finds its model by
:func:`model_named` and asks it by :func:`spoken`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from agenthost import (
    Answered,
    Call,
    ChatRequest,
    Context,
    Delta,
    Host,
    InvalidInput,
    Payer,
    ProviderError,
    ProviderFault,
    Target,
    TurnOptions,
    authorize,
    new_id,
)

from .naming import PREFIX
from .settings import OpenAISection

NAMED = "openai-chat"
"""The dialect whose messages have names."""
RIGHT = "models:use"
"""Apart from the right to speak to agents, whose manifests say what they may spend."""


def model_named(call: Call, name: str) -> Target | None:
    """Find the model that a request names; None where it is for an agent.

    Raises:
        Refused: The principal may speak to agents alone.
    """
    host, name = call.host, name.strip()
    slug, _, rest = name.partition("/")
    if not rest.strip() or not host.settings(OpenAISection).passthrough:
        return None
    if name.startswith(PREFIX) or not _is_provider(host, slug):
        return None
    # No agent's name has a slash: what has one in it names none.
    authorize(call.principal, "route", RIGHT)
    # Local servers are not asked for it: who asks often would ask them every time.
    return host.models.resolve(None, name)


def takes_names(target: Target) -> bool:
    """Tell whether a model's messages have a place for the name of who speaks."""
    model = target.model
    return target.provider.spoken_to(model.upstream_id, model).name == NAMED


def payer_of(
    context: Context,
    take_back: Callable[[], bool] | None = None,
    known: str | None = None,
) -> Payer:
    """Have a call booked on whoever asks, under an id of its own, or the one known."""
    return Payer(None, known or new_id(), context=context, take_back=take_back)


async def said_once(
    call: Call, keyed: TurnOptions, saying: AsyncGenerator[Delta | Answered, None]
) -> AsyncGenerator[Delta | Answered, None]:
    """Give what a model says, under a key where the request has one.

    Raises:
        Mismatch: The key was given for something else.
        Unavailable: Nobody keeps it now.
    """
    if keyed.turn_id is None:
        return saying
    from .responses.service import keeping_of

    once = keeping_of(call.host).once
    return await once.said(keyed, call.context.owner, saying)


async def spoken(
    host: Host, target: Target, request: ChatRequest, payer: Payer
) -> AsyncGenerator[Delta | Answered, None]:
    """Ask a model; Answered comes last, when what it took is on disk.

    Args:
        host: The daemon.
        target: The model.
        request: What it is asked.
        payer: Who asks, as :func:`payer_of` gives it.

    Raises:
        InvalidInput: The model calls no tools.
        ProviderError: What the model failed with.
        QuotaExceeded: A budget has no room for the call.
    """
    if request.tools and not target.model.supports_tools:
        problem = f"{target.model.id} calls none; leave them out"
        raise InvalidInput("tools", problem)
    async with aclosing(host.models.ask(target, request, payer)) as deltas:
        async for delta in deltas:
            if isinstance(delta, Answered):
                _check_calls(delta)
            yield delta


def _check_calls(said: Answered) -> None:
    """Refuse calls that nobody can read: without arguments they would be others."""
    for use in said.completion.message.tool_uses:
        if use.malformed:
            slug, why = said.spent.provider, f"a tool call of it: {use.malformed}"
            raise ProviderError(ProviderFault.MALFORMED, slug, why)


def _is_provider(host: Host, slug: str) -> bool:
    known = host.models.providers
    return slug in known or slug.lower() in map(str.lower, known)
