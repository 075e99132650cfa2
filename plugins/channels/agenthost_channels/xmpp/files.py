"""Files: handed to the server's upload service, and fetched by their addresses.

The service is one that our server names (XEP-0363); it gives an address to put a file
to, and one under which whoever is told of it fetches it (XEP-0066).
"""

from __future__ import annotations

import mimetypes
from urllib.parse import SplitResult, unquote, urlsplit
from xml.etree.ElementTree import (  # nosec B405 # written, and nothing is parsed
    Element,
    SubElement,
)

from agenthost import (
    AgentHostError,
    Blocked,
    InvalidInput,
    NotFound,
    TooLarge,
    Unavailable,
)
from slixmpp.exceptions import IqError, IqTimeout
from slixmpp.jid import JID

from ..contract import Attachment, Line, OutFile
from ..transports.calls import called
from .client import PATIENCE, Client
from .config import Settings
from .mapping import OOB

UPLOAD = "urn:xmpp:http:upload:0"
TOO_LARGE = f"{{{UPLOAD}}}file-too-large"
# No others may be asked of us (XEP-0363, 5).
HEADERS = frozenset({"authorization", "cookie", "expires"})
SECONDS = 50.0
OK, CREATED, NO_CONTENT, GONE = 200, 201, 204, frozenset({404, 410})
UNKNOWN = "application/octet-stream"
FOR_GOOD = (Blocked, InvalidInput, TooLarge)
"""What is the same at the next try."""


def is_safe(address: str, options: Settings) -> bool:
    """Tell whether a file may be put to an address, or fetched from it.

    By https from wherever the guards let us. ``files_at`` names where they are on a
    server of the operator's own: nothing else of that server is asked for.
    """
    try:
        asked, ours = urlsplit(address), urlsplit(options.files_at)
        places = {(each.scheme, each.hostname, each.port) for each in (asked, ours)}
    except ValueError:
        return False
    if not asked.hostname or asked.username is not None or "\\" in address:
        return False
    if not options.files_at or asked.hostname not in {ours.hostname, options.host}:
        return asked.scheme == "https"
    below = asked.path.startswith(ours.path) and not _climbs(asked)
    return below and len(places) == 1


def _climbs(asked: SplitResult) -> bool:
    return not {".", ".."}.isdisjoint(unquote(asked.path).split("/"))


def attachment_of(address: str) -> Attachment:
    """Make of an address what is known of the file there: its name says the rest."""
    try:
        name = unquote(urlsplit(address).path.rpartition("/")[2])
    except ValueError:
        name = ""
    kind = mimetypes.guess_type(name)[0] or UNKNOWN
    return Attachment(name or "file", kind, {"url": address})


async def fetched(line: Line, attachment: Attachment) -> bytes:
    """Fetch a file that somebody sent.

    Raises:
        NotFound: It is gone.
        InvalidInput: Its address is none that is asked.
        Unavailable: It cannot be had now.
    """
    address = str(attachment.reference.get("url", ""))
    if not is_safe(address, line.settings):
        raise InvalidInput("file", "its address is none that is asked")
    answered = await called(line.http(), "GET", address, timeout=SECONDS)
    if answered.status_code in GONE:
        raise NotFound("file", attachment.name)
    if answered.status_code != OK:
        raise Unavailable(f"its server answers {answered.status_code}")
    return bytes(answered.content)


class Uploads:
    """The upload service of one stream's server."""

    def __init__(self, client: Client, line: Line) -> None:
        self._client = client
        self._line = line
        self._service: JID | None = None

    async def put(self, file: OutFile) -> str:
        """Hand a file in, and give the address under which it is fetched.

        Raises:
            Blocked: The guards do not let us there.
            InvalidInput: The server takes no files, or not this one.
            TooLarge: The server takes none so large.
            Unavailable: It cannot be handed in now.
        """
        if self._service is None:
            self._service = await self._found()
        put, headers, get = await self._slot(self._service, file)
        if not (
            is_safe(put, self._line.settings) and is_safe(get, self._line.settings)
        ):
            raise InvalidInput(
                "files",
                "the XMPP server keeps files where nothing is asked for; set files_at"
                " in [channels.xmpp] to where it does",
            )
        told = {**headers, "content-type": file.media_type}
        try:
            answered = await called(
                self._line.http(),
                "PUT",
                put,
                content=file.data,
                headers=told,
                timeout=SECONDS,
            )
        except FOR_GOOD:
            raise
        except AgentHostError as error:
            raise Unavailable(f"the file cannot be handed in: {error}") from None
        if answered.status_code not in {OK, CREATED, NO_CONTENT}:
            raise Unavailable(f"the upload service answers {answered.status_code}")
        return get

    async def _found(self) -> JID:
        """Find the service: the server, or what it names.

        Raises:
            InvalidInput: There is none.
            Unavailable: Nobody answers.
        """
        looking, domain = self._client.plugin["xep_0030"], self._client.boundjid.domain
        try:
            named = await looking.get_items(jid=JID(domain), timeout=PATIENCE)
            items = [item[0] for item in named["disco_items"]["items"]]
            for each in (domain, *items):
                try:
                    told = await looking.get_info(jid=JID(each), timeout=PATIENCE)
                except IqError:
                    continue
                if UPLOAD in told["disco_info"]["features"]:
                    return JID(each)
        except (IqError, IqTimeout):
            raise Unavailable("the XMPP server does not say where files go") from None
        raise InvalidInput("files", "the XMPP server takes no files (XEP-0363)")

    async def _slot(
        self, service: JID, file: OutFile
    ) -> tuple[str, dict[str, str], str]:
        """Ask where to put a file: the address, its headers, and where it is then."""
        query = self._client.make_iq_get(ito=service)
        asked = {"filename": file.name, "size": str(len(file.data))}
        request = Element(f"{{{UPLOAD}}}request", asked)
        request.set("content-type", file.media_type)
        query.append(request)
        try:
            answer = (await self._client.ask(query)).xml
        except IqTimeout:
            raise Unavailable("the upload service does not answer") from None
        except IqError as error:
            raise _refusal(error) from None
        put = answer.find(f"{{{UPLOAD}}}slot/{{{UPLOAD}}}put")
        get = answer.find(f"{{{UPLOAD}}}slot/{{{UPLOAD}}}get")
        if put is None or get is None:
            raise Unavailable("the upload service names no address")
        headers = {
            each.get("name", ""): "".join((each.text or "").splitlines())
            for each in put.iterfind(f"{{{UPLOAD}}}header")
            if each.get("name", "").lower() in HEADERS
        }
        return put.get("url", ""), headers, get.get("url", "")


def _refusal(error: IqError) -> AgentHostError:
    if error.iq.xml.find(f".//{TOO_LARGE}") is not None:
        return TooLarge("the XMPP server takes no files so large")
    reason = f"the upload service refuses: {error.condition}"
    return (
        Unavailable(reason) if error.etype == "wait" else InvalidInput("files", reason)
    )


def told(address: str) -> Element:
    """Write that a message is about a file (XEP-0066)."""
    element = Element(f"{{{OOB}}}x")
    SubElement(element, f"{{{OOB}}}url").text = address
    return element
