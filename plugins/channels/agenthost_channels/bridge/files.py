"""Files both ways, by way of the workspace of the agent that answers.

What people send is put there, where the agent's tools read it; a file that an answer
links to is sent with it. Models are told of files in words, never by a service's own
addresses; one that sees is shown pictures besides.
"""

from __future__ import annotations

import asyncio
import json
import logging
import mimetypes
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import category
from urllib.parse import unquote, urlsplit

from agenthost import (
    Agent,
    AgentHostError,
    Blocked,
    Context,
    File,
    Host,
    InvalidInput,
    NotFound,
    TooLarge,
    telling,
)

from ..contract import Attachment, Facts, OutFile
from . import tables
from .events import ChannelFileReceived
from .listening import UNHEARD, Listening, speech_of
from .pictures import LARGEST, seen
from .settings import ChannelSection

if TYPE_CHECKING:
    from markdown_it.token import Token

log = logging.getLogger(__name__)

Download = Callable[[Attachment], Awaitable[bytes]]
FOLDER = "received"
DOWNLOAD_SECONDS = 120.0
MEGABYTE = 1_000_000
MOST_TAKEN = 10
MOST_KNOWN = 100
LARGEST_REFERENCE = 10_000
NAME_LENGTH = 80
UNKNOWN = "application/octet-stream"
MEDIA_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}", re.ASCII)
_ODD = frozenset('/\\:*?"<>|[]()')


def rows_of(row: Mapping[str, Any], files: Sequence[Attachment]) -> list[Any]:
    """Make the rows of a message's files: what is needed to fetch them later."""
    return [
        {
            "key": row["key"],
            "number": number,
            "name": plain_name(each.name),
            "media_type": _kind(each.media_type),
            "reference": _written(each.reference),
            "size": each.size or 0,
            "owner": row["owner"],
            "labels": row["labels"],
        }
        for number, each in enumerate(files[:MOST_KNOWN])
    ]


def plain_name(name: str) -> str:
    """Make of a name that somebody chose one that opens and hides nothing."""
    known = "".join("_" if sign in _ODD else sign for sign in _printable(name))
    stem, dot, suffix = known.strip(" .").rpartition(".")
    short = f"{stem[: NAME_LENGTH - len(suffix) - 1]}{dot}{suffix}"
    return short[:NAME_LENGTH] or "file"


def linked(markdown: str) -> list[str]:
    """Give the paths that links and pictures of a text name, each once.

    Those of the workspace are relative, without a scheme or a host.
    """
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark", {"html": False}).parse(markdown)
    found = (_path_of(each) for token in tokens for each in token.children or ())
    return [*dict.fromkeys(path for path in found if path)]


def _path_of(token: Token) -> str:
    address = str(token.attrGet("src") or token.attrGet("href") or "")
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    if parts.scheme or parts.netloc or parts.query or parts.fragment:
        return ""
    return "" if parts.path.startswith("/") else unquote(parts.path)


class Taken(NamedTuple):
    """The files of a message: lines for the agent, and what the sender is told.

    ``pictures`` are those that the agent's model is shown.
    """

    lines: str
    notice: str
    pictures: tuple[File, ...] = ()


class _Came(NamedTuple):
    """A file that is in the workspace; ``path`` is "" where it could not be taken."""

    line: str
    path: str = ""
    data: bytes = b""
    heard: bool = True


class Files:
    """Files of a channel.

    Args:
        host: The daemon.
        section: How large they may be.
        facts: How many the service takes, and how large.
        download: Fetches one from the service.
    """

    def __init__(
        self, host: Host, section: ChannelSection, facts: Facts, download: Download
    ) -> None:
        self._host = host
        self._largest = section.max_file_mb * MEGABYTE
        self._model = section.model
        self._facts = facts
        self._download = download
        self._listening = Listening(host)

    # In.

    async def taken(self, row: Any, agent: Agent, context: Context) -> Taken:
        """Put a message's files into the agent's workspace; give a line of each.

        The same message puts them into the same place again. What is said in voice
        messages is among the lines.
        """
        where = {"key": row["key"]}
        files = await self._host.store.read(tables.FILES_IN, where)
        sees = self._sees(agent)
        lines: list[str] = []
        pictures: list[File] = []
        notice, room = "", LARGEST
        for each in files:
            came = await self._taken_or_told(row, each, agent, context)
            lines.append(came.line)
            notice = notice if came.heard else UNHEARD
            if sees and came.path:
                in_thread = self._host.workers.in_thread
                picture = await in_thread(seen, came.path, came.data, room)
                if picture is not None:
                    pictures.append(picture)
                    room -= len(came.data)
        return Taken("\n".join(lines), notice, tuple(pictures))

    def _sees(self, agent: Agent) -> bool:
        """Tell whether the model that answers takes pictures."""
        host, named = self._host, self._model if agent.pinned_model is None else ""
        try:
            own = host.agents.target_of(agent)
            target = host.models.resolve(None, named) if named else own
            return target.model.supports_vision
        except AgentHostError:
            # The turn says what is wrong with its model.
            return False

    async def _taken_or_told(
        self, row: Any, file: Any, agent: Agent, context: Context
    ) -> _Came:
        name = file["name"]
        try:
            return await self._take(row, file, agent, context)
        except (TimeoutError, AgentHostError) as error:
            why = str(error) or "the service did not answer in time"
            return _Came(f"[file {name}: not taken: {why}]")
        except Exception:
            log.exception("channel %s: a file cannot be fetched", row["channel"])
            return _Came(f"[file {name}: not taken: it cannot be fetched]")

    async def _take(self, row: Any, file: Any, agent: Agent, context: Context) -> _Came:
        """Take one; ``heard`` is False where something was said in vain."""
        number, name, kind = file["number"], file["name"], file["media_type"]
        if number >= MOST_TAKEN:
            raise TooLarge(f"a message brings {MOST_TAKEN} files at most")
        self._check_size(file["size"])
        reference = json.loads(file["reference"])
        attachment = Attachment(name, kind, reference, file["size"] or None)
        async with asyncio.timeout(DOWNLOAD_SECONDS):
            data = await self._download(attachment)
        self._check_size(len(data))
        path = f"{FOLDER}/{row['key'][:12]}-{number}/{name}"
        host, now = self._host, self._host.clock.time()
        facts = (row["channel"], now, agent.id, path, kind, len(data))
        with telling(host.events, ChannelFileReceived, *facts) as keep:
            if keep is not None:
                await host.store.write(keep)
            workspace = host.files.workspace(agent.id, context)
            await host.workers.in_thread(workspace.write, path, data)
        line = f"[file {path}: {kind}, {len(data)} bytes, in your workspace]"
        if not (speech := speech_of(kind, data)):
            return _Came(line, path, data)
        words = await self._listening.heard(path, (speech, data), agent, context)
        if words is None:
            told = "[nobody could listen to it; the sender is told]"
            return _Came(f"{line}\n{told}", heard=False)
        heard = f"[what is said in it, as it was transcribed:]\n{words or '(nothing)'}"
        return _Came(f"{line}\n{heard}")

    def _check_size(self, size: int) -> None:
        if size > self._largest:
            raise TooLarge(f"it is over the limit of {self._largest} bytes")

    # Out.

    async def sent_with(
        self, text: str, agent: Agent, context: Context
    ) -> tuple[OutFile, ...]:
        """Read the files of the workspace that an answer links to.

        What is not there, or is no file, was not meant as one.
        """
        if not self._facts.files or "](" not in text:
            return ()
        found: list[OutFile] = []
        for path in linked(text):
            try:
                found.append(await self.read(path, agent.id, context))
            except (NotFound, InvalidInput, Blocked):
                continue
            except AgentHostError as error:
                log.warning("channel %s: %s", self._facts.id, error)
            if len(found) == MOST_TAKEN:
                break
        return tuple(found)

    async def read(self, path: str, agent_id: str, context: Context) -> OutFile:
        """Read a file of an agent's workspace, to be sent.

        Raises:
            AgentHostError: It cannot be read, or the service takes none so large.
        """
        if not self._facts.files:
            raise InvalidInput("files", f"{self._facts.display_name} takes no files")
        largest = min(self._facts.file_bytes, self._largest)
        workspace = self._host.files.workspace(agent_id, context)
        data = await self._host.workers.in_thread(workspace.read, path, largest)
        name = plain_name(path.rpartition("/")[2])
        kind = mimetypes.guess_type(name)[0] or UNKNOWN
        return OutFile(name, kind, data)


def _printable(text: str) -> str:
    # Controls, halves of surrogate pairs, and what turns the order of letters round.
    return "".join(each for each in text if category(each)[0] != "C")


def _kind(media_type: str) -> str:
    known = MEDIA_TYPE.match(media_type)
    return known[0] if known else UNKNOWN


def _written(reference: Any) -> str:
    written = json.dumps(reference)
    return written if len(written) <= LARGEST_REFERENCE else "{}"
