"""The contract of a model provider: facts, a dialect, and how a call is made.

A dialect is pure: it encodes a request and decodes bytes, so that it is tested
without a network. The :class:`Exchange` is the only place where the two meet HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import quote

from agenthost_chat.chat import ChatRequest, Delta
from agenthost_toml.suggest import did_you_mean
from agenthost_values.value_class import value_class

from .errors import PluginError, ProviderError

if TYPE_CHECKING:
    import httpx

    from .secrets import Secret


@value_class
class LongContext:
    """What the whole call costs once its prompt is longer than a threshold."""

    above_input_tokens: int
    input_cost_per_1m: float
    output_cost_per_1m: float
    cached_input_cost_per_1m: float | None = None
    cache_write_cost_per_1m: float | None = None


@value_class
class ModelFacts:
    """A row of the catalogue; costs in US dollars per million tokens.

    ``upstream_id`` is the id on the provider's wire, ``tier`` one of frontier, smart,
    balanced, fast, local, custom. ``max_input`` is set where the prompt may not fill
    the context window. ``status`` is active or deprecating, ``deprecation_date`` an
    ISO date and ``replaced_by`` the catalogue id to use instead, when known.
    ``aliases`` are short names for the model and ``replaces`` retired ids that now
    lead to it. ``dialect`` names one of the provider's alternates where the model is
    not served in the provider's own. A model that ``always_thinks`` may say nothing for
    many minutes.

    What a dialect may ask of it stands in the rest; what is not known is left to the
    provider's quirks. ``thinking`` is how its dialect writes a wish to think (``none``
    where there is no way), ``efforts`` the words it takes for how much, least first,
    and ``thinking_off`` how it is told not to: an effort, or a word of its dialect;
    empty for not at all. ``sampling`` says whether it takes a temperature,
    ``documents`` whether it reads files, ``structured`` whether its answers can be held
    to a JSON Schema, ``caches`` which caches of prompts it has:
    ``automatic``, or ``marks`` where the prompt says what to keep; then ``hour`` where
    it is to be kept an hour, ``brief`` where it never can be.

    A row of embeddings says how many ``dimensions`` its vectors have, and how many
    texts a ``batch`` of one request may hold, each up to ``max_input`` tokens.
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
    always_thinks: bool = False
    cache_write_cost_per_1m: float | None = None
    long_context: LongContext | None = None
    max_input: int | None = None
    status: str = "active"
    deprecation_date: str | None = None
    replaced_by: str | None = None
    aliases: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    dialect: str | None = None
    thinking: str = ""
    efforts: tuple[str, ...] = ()
    thinking_off: str = ""
    sampling: bool | None = None
    documents: bool = False
    structured: bool | None = None
    caches: tuple[str, ...] = ()
    dimensions: int = 0
    batch: int = 1

    def notice(self, name: str) -> str | None:
        """What who asked for the model by this name should know."""
        if name.lower() in map(str.lower, self.replaces):
            return f"{name} is retired; {self.id} takes its place"
        if self.status == "active" or self.replaced_by is None:
            return None
        return f"{self.id} ends on {self.deprecation_date}; use {self.replaced_by}"


@value_class
class Extras:
    """What an operator adds to every request of a provider.

    ``body`` is merged into the dialect's own, last. In ``key_headers``, which take the
    place of the dialect's own way to show the key, the text ``{key}`` stands for it.
    ``secrets`` are what of it no message may show.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    key_headers: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = field(default=(), repr=False)


PLAIN = Extras()


@value_class
class Probe:
    """A cheap request that tells whether the service answers.

    ``url`` is absolute, or a path below the base URL. In ``headers`` the text
    ``{key}`` stands for the key; a header that needs one is left out without.
    ``proves_key`` is False where a wrong key gets the same answer; ``keys`` is a
    pattern of those it may be sent with.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    proves_key: bool = True
    keys: str = ".*"

    def request(self, endpoint: Endpoint) -> HttpRequest:
        """Write the request for the resolved address and key."""
        key = endpoint.key.reveal() if endpoint.key else None
        headers = {
            name: value.replace("{key}", key or "")
            for name, value in self.headers.items()
            if key is not None or "{key}" not in value
        }
        base = "" if "://" in self.url else endpoint.base_url.rstrip("/")
        headers = {**endpoint.extras.headers, **headers}
        return HttpRequest(self.method, base + self.url, headers, b"")


@value_class
class ProviderFacts:
    """What is known of a provider, from its data file.

    ``env_var`` names the variable that holds the key, ``env_var_alternatives`` others
    that are tried after it: ``A:B:C?`` joins the values of three with colons, the last
    one if there is one. A region in ``region_vars`` replaces ``region`` in the
    addresses. ``local`` providers live on this machine or network, so their configured
    host may be a private address. ``default_model`` is the id of the one to take when
    nobody names one: good and affordable; without it the first. ``embeddings`` are the
    models that turn texts into vectors; they are none of the ``models``.
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
    probe: Probe | None = None
    region: str | None = None
    region_vars: tuple[str, ...] = ()
    default_model: str | None = None
    extras: Extras = PLAIN
    embeddings: tuple[ModelFacts, ...] = ()

    def at(self, key: Secret | None, model: ModelFacts | None = None) -> Endpoint:
        """Say where a call with this key goes; ``{model}`` in the address is filled."""
        url = self.base_url
        if model is not None and "{model}" in url:
            url = url.replace("{model}", quote(model.upstream_id, safe=""))
        return Endpoint(self.slug, url, key, model, self.extras)


@value_class
class Endpoint:
    """Where one call goes: a provider's resolved address and key, and the model's row.

    Without a row, what the model can do is left to the provider's quirks.
    """

    provider: str
    base_url: str
    key: Secret | None = None
    model: ModelFacts | None = None
    extras: Extras = PLAIN


@value_class
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

    @property
    def heard(self) -> int:
        """How much of the answer came so far: pings and empty pieces are none of it."""

    def feed(self, chunk: bytes) -> list[Delta]:
        """Take the next bytes of the body; chunks may break anywhere."""

    def close(self) -> list[Delta]:
        """The body has ended: emit what is left, the Completion if not yet."""


class Dialect(Protocol):
    """A wire format. Instances are immutable and shared between calls."""

    @property
    def name(self) -> str:
        """What configuration calls it, and the key of its opaque fields."""

    def encode(self, request: ChatRequest, endpoint: Endpoint) -> HttpRequest:
        """Write the request; ``request.stream`` decides streaming."""

    def decoder(self, request: ChatRequest, endpoint: Endpoint) -> Decoder:
        """Make the decoder of this request's answer."""

    def fault(
        self, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes
    ) -> ProviderError:
        """Name the error of an answer whose status is not 2xx."""


def _unwatched(_: int) -> None:
    """Nobody minds how long a call is silent."""


@value_class
class ModelCall:
    """One call on its way: what a driver gets. ``http`` is the egress client.

    ``exchange`` is how a call meets HTTP, for what of it a driver does not do itself.

    Every request of the call is sent with its ``extensions``: they tell the guards of
    what leaves in whose turn it does. ``progress`` is told, whenever something has
    arrived, how much of the answer came so far; it raises ProviderError when that has
    been the same for too long.
    """

    request: ChatRequest
    endpoint: Endpoint
    http: httpx.AsyncClient
    exchange: Exchange
    extensions: dict[str, Any] = field(default_factory=dict)
    progress: Callable[[int], None] = _unwatched


@runtime_checkable
class Driver(Protocol):
    """A provider that is more than one HTTP exchange, or none."""

    @property
    def name(self) -> str:
        """What it is called in messages."""

    def stream(self, call: ModelCall) -> AsyncGenerator[Delta, None]:
        """Yield deltas, a Completion last; raise ProviderError."""


@value_class
class ProviderSpec:
    """A provider on offer: its facts and how to speak to it.

    ``dialect`` is one of its own, or the name of one that some plugin offers; it is
    made of the quirks in the facts. ``alternates`` are other dialects by name, for the
    models whose row names one; those that are not given are found by that name, too.
    """

    facts: ProviderFacts
    dialect: str | Dialect | Driver
    alternates: Mapping[str, Dialect | Driver] = field(default_factory=dict)

    def made(self, known: Mapping[str, DialectSpec]) -> ProviderSpec:
        """Make the dialects that are named.

        Raises:
            PluginError: Nobody offers a dialect of that name.
            InvalidInput: It does not know one of the quirks.
        """
        facts, own = self.facts, self.dialect
        if isinstance(own, str):
            own = _made(own, known, facts.quirks)
        wanted = {row.dialect for row in facts.models if row.dialect}
        lacking = wanted - {own.name} - self.alternates.keys()
        others = {name: _made(name, known, {}) for name in lacking}
        return ProviderSpec(facts, own, {**self.alternates, **others})

    def spoken_to(
        self, upstream_id: str, known: ModelFacts | None = None
    ) -> Dialect | Driver:
        """Choose how to speak to the model of this id on the wire, or of this row."""
        rows = (row for row in self.facts.models if row.upstream_id == upstream_id)
        row = known or next(rows, None)
        own = self.alternates.get((row and row.dialect) or "", self.dialect)
        if isinstance(own, str):
            raise PluginError(f"the dialect {own} of {self.facts.slug} is not made yet")
        return own


@value_class
class DialectSpec:
    """A dialect, or a driver, on offer to providers that name it.

    ``make`` takes a table of quirks and raises InvalidInput for one it does not know.
    ``late`` does the same, but imports nothing until the dialect is spoken, and tells
    of a wrong quirk then: for the providers of plugins, so that a start waits for none.
    """

    name: str
    make: Callable[[Mapping[str, Any]], Dialect | Driver]
    late: Callable[[Mapping[str, Any]], Dialect | Driver] | None = None


def _made(
    name: str, known: Mapping[str, DialectSpec], quirks: Mapping[str, Any]
) -> Dialect | Driver:
    offer = known.get(name)
    if offer is None:
        hint = did_you_mean(name, known)
        raise PluginError(f"no plugin offers the dialect {name!r}{hint}")
    return (offer.late or offer.make)(quirks)


class Exchange(Protocol):
    """How calls meet HTTP; who serves the port EGRESS serves it too."""

    def open(self, spec: ProviderSpec, call: ModelCall) -> AsyncGenerator[Delta, None]:
        """Start the call with the driver or dialect that serves its model.

        The generator raises ProviderError, with the fault of the status, the body or
        the connection.
        """

    def faults(self, provider: str) -> AbstractAsyncContextManager[None]:
        """Name what can happen to a connection as faults of the provider.

        What is raised inside becomes ProviderError, fault TIMEOUT or UNREACHABLE.
        """

    async def error_body(self, answer: httpx.Response) -> bytes:
        """Read the beginning of an error answer: an endless one is cut."""
