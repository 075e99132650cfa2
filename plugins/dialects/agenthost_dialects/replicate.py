"""Replicate's predictions: a driver, since one call is several exchanges.

A prediction is created; a streamed one is read from the address that the answer names,
another is waited for and, when it takes longer, asked about. One that nobody reads to
its end is cancelled. Models take a prompt; they know no tools.

Source: Replicate HTTP API reference, "Predictions" and "Streaming output".
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from agenthost import (
    AgentHostError,
    ChatRequest,
    Delta,
    Endpoint,
    File,
    Image,
    Message,
    ModelCall,
    ProviderError,
    ProviderFault,
    Role,
    Text,
    ToolOutput,
    ToolUse,
)

from .answers import body_of, compact, text_of
from .conversation import bearer, unread
from .faults import http_fault
from .framing import WholeBody, malformed, read_object
from .quirks import read_quirks
from .replicate_decoder import PredictionDecoder, ended
from .settings import TAKES, fitted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

NAME = "replicate-predictions"
# How long the service holds an answer back before it has to be asked again.
WAIT = 60
CANCEL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ReplicateQuirks:
    """How long to wait.

    Args:
        poll_seconds: Time between two questions about a prediction.
        longest: Seconds after which an unfinished prediction is given up.
    """

    poll_seconds: float = 0.5
    longest: float = 600.0


@dataclass(frozen=True, slots=True)
class Replicate:
    """Predictions of language models."""

    quirks: ReplicateQuirks = ReplicateQuirks()
    name: str = NAME

    @classmethod
    def from_quirks(cls, table: Mapping[str, Any]) -> Replicate:
        """Make the driver of a quirks table.

        Raises:
            InvalidInput: A quirk is not known, or its value is of another type.
        """
        return cls(read_quirks(ReplicateQuirks(), table).base)

    async def stream(self, call: ModelCall) -> AsyncGenerator[Delta, None]:
        """Create a prediction and yield what it says."""
        async with call.exchange.faults(call.endpoint.provider):
            created = await _create(call)
            async with _cancelled_unless_ended(call, created) as prediction:
                decoder = PredictionDecoder(call.request, call.endpoint)
                if call.request.stream:
                    async for delta in _streamed(call, prediction, decoder):
                        yield delta
                await self._settle(call, prediction)
                rest = decoder.finish if call.request.stream else decoder.whole
                for delta in rest(prediction):
                    yield delta

    async def _settle(self, call: ModelCall, prediction: dict[str, Any]) -> None:
        """Ask until the prediction has ended: a stream brings neither end nor counts.

        Raises:
            ProviderError: TIMEOUT, it did not end.
        """
        longest = self.quirks.longest
        try:
            async with asyncio.timeout(longest):
                while not ended(prediction):
                    prediction.update(await _ask(call, prediction))
                    if not ended(prediction):
                        await asyncio.sleep(self.quirks.poll_seconds)
        except TimeoutError as error:
            raise ProviderError(
                ProviderFault.TIMEOUT,
                call.endpoint.provider,
                f"the prediction did not end in {longest:g} seconds",
            ) from error


async def _create(call: ModelCall) -> dict[str, Any]:
    request, endpoint = call.request, call.endpoint
    owner, _, name = request.model.partition("/")
    path = f"/models/{quote(owner, safe='')}/{quote(name, safe='')}/predictions"
    request = fitted(request, endpoint, TAKES[NAME])
    body: dict[str, Any] = {"input": _input(request)}
    headers = bearer(endpoint)
    if request.stream:
        body["stream"] = True
    else:
        headers["Prefer"] = f"wait={WAIT}"
    url = endpoint.base_url.rstrip("/") + path
    async with call.http.stream(
        "POST",
        url,
        headers=headers,
        content=body_of(body),
        extensions=call.extensions,
    ) as answer:
        return await _read(call, answer)


async def _ask(call: ModelCall, prediction: Mapping[str, Any]) -> dict[str, Any]:
    url = _address(call.endpoint, prediction, "get")
    headers, extensions = bearer(call.endpoint), call.extensions
    async with call.http.stream(
        "GET", url, headers=headers, extensions=extensions
    ) as answer:
        return await _read(call, answer)


async def _streamed(
    call: ModelCall, prediction: dict[str, Any], decoder: PredictionDecoder
) -> AsyncGenerator[Delta, None]:
    url = _address(call.endpoint, prediction, "stream")
    headers = {**bearer(call.endpoint), "Accept": "text/event-stream"}
    async with call.http.stream(
        "GET", url, headers=headers, extensions=call.extensions
    ) as answer:
        await _check(call, answer)
        async for chunk in answer.aiter_bytes():
            deltas = decoder.feed(chunk)
            call.progress(decoder.heard)
            for delta in deltas:
                yield delta
    for delta in decoder.close():
        yield delta


async def _read(call: ModelCall, answer: httpx.Response) -> dict[str, Any]:
    await _check(call, answer)
    body = WholeBody(call.endpoint.provider)
    async for chunk in answer.aiter_bytes():
        body.feed(chunk)
    (whole,) = body.close()
    return read_object(call.endpoint.provider, whole)


async def _check(call: ModelCall, answer: httpx.Response) -> None:
    if not answer.is_success:
        body = await call.exchange.error_body(answer)
        raise http_fault(call.endpoint, answer.status_code, answer.headers, body)


def _address(endpoint: Endpoint, prediction: Mapping[str, Any], name: str) -> str:
    """Find one of a prediction's addresses, which must belong to the service."""
    urls = prediction.get("urls")
    url = text_of(urls.get(name)) if isinstance(urls, dict) else ""
    place, own = urlsplit(url), urlsplit(endpoint.base_url)
    host, home = place.hostname or "", own.hostname or ""
    site = "." + ".".join(home.split(".")[-2:])
    related = host == home or (home[-1:].isalpha() and host.endswith(site))
    if place.scheme != own.scheme or not related:
        raise malformed(endpoint.provider, f"the prediction has no usable {name} url")
    return url


@asynccontextmanager
async def _cancelled_unless_ended(
    call: ModelCall, prediction: dict[str, Any]
) -> AsyncIterator[dict[str, Any]]:
    try:
        yield prediction
    finally:
        if not ended(prediction):
            await _cancel(call, prediction)


async def _cancel(call: ModelCall, prediction: Mapping[str, Any]) -> None:
    """Tell the service to stop working; that it hears so is not waited for long."""
    import httpx

    try:
        async with asyncio.timeout(CANCEL_SECONDS):
            url = _address(call.endpoint, prediction, "cancel")
            headers, extensions = bearer(call.endpoint), call.extensions
            await call.http.post(url, headers=headers, extensions=extensions)
    except (TimeoutError, AgentHostError, httpx.HTTPError):
        return


def _input(request: ChatRequest) -> dict[str, Any]:
    """Write the input fields that the language models there have in common."""
    fields: dict[str, Any] = {"prompt": _prompt(request.messages)}
    if request.system:
        fields["system_prompt"] = request.system
    if request.max_tokens is not None:
        fields["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        fields["temperature"] = request.temperature
    if request.top_p is not None:
        fields["top_p"] = request.top_p
    return fields


def _prompt(messages: tuple[Message, ...]) -> str:
    """Write one message as it stands, a conversation as a transcript."""
    if len(messages) == 1:
        return _words(messages[0])
    lines = [f"{SPEAKERS[message.role]}: {_words(message)}" for message in messages]
    return "\n\n".join([*lines, f"{SPEAKERS[Role.ASSISTANT]}:"])


SPEAKERS = {Role.USER: "User", Role.ASSISTANT: "Assistant", Role.TOOL: "Tool"}


def _words(message: Message) -> str:
    words = []
    for part in message.parts:
        if isinstance(part, Text):
            words.append(part.text)
        elif isinstance(part, ToolUse):
            words.append(f"[called {part.name} with {compact(dict(part.arguments))}]")
        elif isinstance(part, ToolOutput):
            words.append(f"[{part.name} returned] {part.text}")
        elif isinstance(part, File):
            words.append(unread(part))
        elif isinstance(part, Image):
            words.append("[an image that this model cannot see]")
    return "\n".join(words)
