"""What is said in the voice messages of people, by a model that listens.

Who speaks is told where nobody can: a voice message is never passed over in silence.
"""

from __future__ import annotations

import logging
from typing import Protocol, runtime_checkable
from unicodedata import category

from agenthost import (
    Agent,
    AgentHostError,
    AgentView,
    Context,
    Host,
    NotFound,
    Payer,
    TooLarge,
)

log = logging.getLogger(__name__)
UNHEARD = (
    "I could not listen to your voice message: nobody has heard what is said in it. "
    "Please write it to me."
)
WORDS = ".txt"
MOST_SIGNS = 20_000
LARGEST = 4 * MOST_SIGNS
_RIFF, _WAVE = b"RIFF", b"WAVE"
_STARTS = (
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"\x1a\x45\xdf\xa3", "audio/webm"),
)


@runtime_checkable
class Listens(Protocol):
    """What turns speech into text, where the models' plugin can."""

    async def transcribe(self, audio: bytes, media_type: str, payer: Payer) -> str:
        """Say what is said in a file."""


def speech_of(claimed: str, data: bytes) -> str:
    """Give the media type of speech by its bytes; "" for anything else.

    Pictures with sound begin like sound: somebody must have called it audio, or its
    bytes must be of a codec for speech.
    """
    if not claimed.startswith("audio/") and b"OpusHead" not in data[:64]:
        return ""
    for start, kind in _STARTS:
        if data.startswith(start):
            return kind
    if data[:4] == _RIFF and data[8:12] == _WAVE:
        return "audio/wav"
    if data[4:8] == b"ftyp":
        return "audio/mp4"
    # Eleven bits that are set begin a frame of MPEG.
    framed = data[:1] == b"\xff" and data[1:2] >= b"\xe0"
    return "audio/mpeg" if framed else ""


class Listening:
    """Listens to the files of a channel, each once.

    Args:
        host: The daemon.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    async def heard(
        self, path: str, speech: tuple[str, bytes], agent: Agent, context: Context
    ) -> str | None:
        """Say what is said in a file of the workspace; None where nobody can.

        It is kept beside the file: the same message is not listened to again.

        Args:
            path: Where the file is.
            speech: Its media type, and the bytes.
            agent: Who pays for it.
            context: Who says it, and to whom.
        """
        workspace = self._host.files.workspace(agent.id, context)
        in_thread = self._host.workers.in_thread
        try:
            kept = await in_thread(workspace.read, path + WORDS, LARGEST)
            return kept.decode()
        except (NotFound, TooLarge, UnicodeDecodeError):
            pass
        try:
            words = await self._listened(speech, agent, context)
        except AgentHostError as error:
            log.warning("a voice message is not transcribed: %s", error)
            return None
        await in_thread(workspace.write, path + WORDS, words.encode())
        return words

    async def _listened(
        self, speech: tuple[str, bytes], agent: Agent, context: Context
    ) -> str:
        models = self._host.models
        if not isinstance(models, Listens):
            raise NotFound("plugin", "that transcribes")
        view = AgentView(agent.id, agent.name, agent.manifest, agent.session_id)
        payer = Payer(view, "", context.pools, context=context)
        kind, data = speech
        said = await models.transcribe(data, kind, payer)
        return "".join(s for s in said if s == "\n" or category(s)[0] != "C")[
            :MOST_SIGNS
        ]
