"""The contract of a model provider: facts, a dialect, and how a call is made.

A dialect is pure: it encodes a request and decodes bytes, so that it is tested
without a network. :func:`stream_dialect` is the only place where the two meet HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from .chat import ChatRequest, Completion, Delta
from .errors import NotSent, OutcomeUnknown, ProviderError, ProviderFault

if TYPE_CHECKING:
    import httpx

    from .secrets import Secret


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A row of the catalogue; costs in US dollars per million tokens.

    ``upstream_id`` is the id on the provider's wire, ``tier`` one of frontier, smart,
    balanced, fast, local, custom.
    """

    id: str
    provider: str
    upstream_id: str
    display_name: str
    tier: str = "custom"
    context_window: int = 128_000
    max_output: int = 4_096
    input_cost_per_1m: float = 0.0
    output_cost_per_1m: float = 0.0
    cached_input_cost_per_1m: float | None = None
    supports_tools: bool = True
    supports_vision: bool = False
    supports_streaming: bool = True
    supports_thinking: bool = False


@dataclass(frozen=True, slots=True)
class ProviderFacts:
    """What is known of a provider, from its data file.

    ``env_var`` names the variable that holds the key, ``env_var_alternatives`` others
    that are tried after it; ``local`` providers live on this machine or network, so
    their configured host may be a private address.
    """

    slug: str
    display_name: str
    base_url: str
    env_var: str | None = None
    env_var_alternatives: tuple[str, ...] = ()
    key_required: bool = True
    local: bool = False
    models: tuple[ModelFacts, ...] = ()
    quirks: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one call goes: the resolved address and key of a provider."""

    provider: str
    base_url: str
    key: Secret | None = None


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as a dialect wants it on the wire."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


class Decoder(Protocol):
    """Turns one answer's bytes into deltas; one instance a call.

    The last delta of a whole answer is a Completion. Both methods raise ProviderError
    (fault MALFORMED) for what cannot be read, and for an error the provider puts into
    the stream. ``close`` is called once at the end of the body; whether the stream was
    complete is decided there.
    """

    def feed(self, chunk: bytes) -> list[Delta]:
        """Take the next bytes of the body; chunks may break anywhere."""
        ...

    def close(self) -> list[Delta]:
        """The body has ended: emit what is left, the Completion if not yet."""
        ...


class Dialect(Protocol):
    """A wire format. Instances are immutable and shared between calls."""

    @property
    def name(self) -> str:
        """What configuration calls it, and the key of its opaque fields."""
        ...

    def encode(self, request: ChatRequest, endpoint: Endpoint) -> HttpRequest:
        """Write the request; ``request.stream`` decides streaming."""
        ...

    def decoder(self, request: ChatRequest, endpoint: Endpoint) -> Decoder:
        """Make the decoder of this request's answer."""
        ...

    def fault(
        self, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes
    ) -> ProviderError:
        """Name the error of an answer whose status is not 2xx."""
        ...


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call on its way: what a driver gets. ``http`` is the egress client."""

    request: ChatRequest
    endpoint: Endpoint
    http: httpx.AsyncClient


@runtime_checkable
class Driver(Protocol):
    """A provider that is more than one HTTP exchange, or none."""

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    def stream(self, call: ModelCall) -> AsyncGenerator[Delta, None]:
        """Yield deltas, a Completion last; raise ProviderError."""
        ...


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """A provider on offer: its facts and how to speak to it."""

    facts: ProviderFacts
    dialect: Dialect | Driver


@dataclass(frozen=True, slots=True)
class DialectSpec:
    """A dialect on offer to ``[providers.<slug>] dialect = "<name>"``.

    ``make`` takes the quirks table of the configuration and raises InvalidInput for a
    quirk it does not know.
    """

    name: str
    make: Callable[[Mapping[str, Any]], Dialect]


def open_stream(spec: ProviderSpec, call: ModelCall) -> AsyncGenerator[Delta, None]:
    """Start the call with the provider's driver or dialect."""
    if isinstance(spec.dialect, Driver):
        return spec.dialect.stream(call)
    return stream_dialect(spec.dialect, call)


async def stream_dialect(
    dialect: Dialect, call: ModelCall
) -> AsyncGenerator[Delta, None]:
    """Send what the dialect encodes and yield what it decodes.

    Raises:
        ProviderError: With the fault of the status, the body or the connection.
    """
    import httpx

    wire = dialect.encode(call.request, call.endpoint)
    provider = call.endpoint.provider
    decoder = dialect.decoder(call.request, call.endpoint)
    try:
        async with call.http.stream(
            wire.method, wire.url, headers=dict(wire.headers), content=wire.body
        ) as answer:
            if not answer.is_success:
                body = await answer.aread()
                raise dialect.fault(
                    call.endpoint, answer.status_code, answer.headers, body
                )
            async for chunk in answer.aiter_bytes():
                for delta in decoder.feed(chunk):
                    yield delta
                    if isinstance(delta, Completion):
                        return
        for delta in decoder.close():
            yield delta
    except httpx.TimeoutException as error:
        raise ProviderError(
            ProviderFault.TIMEOUT, provider, "no answer in time; try again"
        ) from error
    except (NotSent, httpx.ConnectError) as error:
        raise ProviderError(
            ProviderFault.UNREACHABLE,
            provider,
            "cannot be reached; check the base_url and that the service is running",
        ) from error
    except (OutcomeUnknown, httpx.TransportError) as error:
        raise ProviderError(
            ProviderFault.UNREACHABLE, provider, "the connection broke off"
        ) from error
