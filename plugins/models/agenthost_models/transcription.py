"""Speech becomes text: one request a file, with retries and budgets.

What it costs is counted in seconds: a second of speech takes the place of a token.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from agenthost import (
    ChatRequest,
    EmbeddingCall,
    InvalidInput,
    Message,
    ModelFacts,
    Payer,
    Role,
    Target,
    Text,
    TooLarge,
    Usage,
)

from .means import Means
from .resolver import plain
from .settings import Transcription
from .single import Job, Single

if TYPE_CHECKING:
    from agenthost import ProviderSpec

MEGABYTE = 1_000_000
OFF = "off"
BYTES_A_SECOND = 1_000
"""Speech at the lowest rate that services send: there are no more seconds in a file."""
SECONDS_IN_A_MILLION_MINUTES = 60.0


@runtime_checkable
class Listening(Protocol):
    """What speaks a dialect that has transcriptions."""

    async def transcribe(
        self, call: EmbeddingCall, audio: bytes, media_type: str, language: str
    ) -> tuple[str, float]:
        """Give what is said, and its seconds, 0 where they are not told."""


@dataclass(frozen=True, slots=True)
class Transcriptions:
    """The transcriptions of the providers that have some."""

    means: Means

    async def transcribe(self, audio: bytes, media_type: str, payer: Payer) -> str:
        """Say what is said in a file.

        Raises:
            InvalidInput: Nobody transcribes, or not this.
            TooLarge: The file is over ``[transcription] max_mb``.
            ProviderError: No key of the provider gave an answer.
            QuotaExceeded: A budget has no room.
        """
        settings = self.means.host.settings(Transcription)
        if len(audio) > settings.max_mb * MEGABYTE:
            raise TooLarge(f"it is over the {settings.max_mb} MB of [transcription]")
        target = self.target(payer)
        speaker = Single(self.means).speaker(target.provider)
        if not isinstance(speaker, Listening):
            slug = target.provider.facts.slug
            told = f"{slug} has no transcriptions; name another in [transcription]"
            raise InvalidInput("model", told)
        most = math.ceil(len(audio) / BYTES_A_SECOND)

        async def send(call: EmbeddingCall) -> tuple[str, float]:
            return await speaker.transcribe(call, audio, media_type, settings.language)

        def usage(heard: tuple[str, float]) -> Usage:
            told = heard[1] or _seconds_in(audio)
            return Usage(input_tokens=math.ceil(told))

        job = Job(target, payer, _seconds(target, most), send, usage)
        (text, _), _ = await Single(self.means).answer(job)
        return text.strip()

    def target(self, payer: Payer) -> Target:
        """Find the model: the one that is named, or one of the provider of who pays.

        Raises:
            InvalidInput: None is named, and the agent's provider is not known for one.
        """
        settings = self.means.host.settings(Transcription)
        named = plain(settings.model)
        if named == OFF:
            raise InvalidInput("model", "transcription is off")
        slug, _, name = named.partition("/")
        slug = slug.lower() or self._provider_of(payer)
        rows = _known().get(slug, [])
        spec: ProviderSpec | None = self.means.providers.get(slug)
        name = name or (rows[0]["id"] if rows else "")
        if spec is None or not name:
            raise InvalidInput(
                "model",
                "no model transcribes; name one as <provider>/<model> in "
                "[transcription] model",
            )
        known = {row["id"]: row["cost_per_minute"] for row in rows}
        cost = settings.cost_per_minute
        if cost is None:
            cost = known.get(name, 0.0)
        return Target(spec, _row(slug, name, cost))

    def _provider_of(self, payer: Payer) -> str:
        agents = self.means.host.agents
        if payer.agent is None:
            return ""
        return agents.model_of(agents.get(payer.agent.id))[0]


def _row(slug: str, name: str, cost: float) -> ModelFacts:
    # A second is counted as a token: a million of them at the price of their minutes.
    price = cost / SECONDS_IN_A_MILLION_MINUTES * 1_000_000
    return ModelFacts(name, slug, name, name, input_cost_per_1m=price)


def _seconds_in(audio: bytes) -> float:
    """Say how long speech is, where whoever listened does not.

    The last page of an Ogg file tells how many samples of 48 kHz end on it
    (RFC 3533, RFC 7845); of anything else the size is what is known.
    """
    most = len(audio) / BYTES_A_SECOND
    last = audio.rfind(b"OggS")
    if audio.startswith(b"OggS") and last >= 0:
        samples = int.from_bytes(audio[last + 6 : last + 14], "little")
        return min(samples / 48_000, most) or most
    return most


def _seconds(target: Target, seconds: int) -> ChatRequest:
    """What the budgets measure: as many bytes as there may be seconds."""
    said = Message(Role.USER, (Text("." * seconds),))
    return ChatRequest(target.model.upstream_id, "", (said,), max_tokens=1)


def _known() -> dict[str, list[dict[str, Any]]]:
    text = files(__package__).joinpath("transcription.toml").read_text("utf-8")
    return tomllib.loads(text)
