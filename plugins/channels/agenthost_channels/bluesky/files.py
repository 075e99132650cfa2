"""Files of people, from the hosts that keep them.

Sources: https://atproto.com/specs/did, https://atproto.com/specs/blob. A file is named
by the digest of its bytes, which is checked.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from agenthost import AgentHostError, NotFound

from ..contract import Attachment, Line
from ..transports.calls import called, object_of
from .client import OK, SECONDS, host_of
from .mapping import CID, DID

PLC, WEB = "did:plc:", "did:web:"
# CIDv1, raw bytes, SHA-256, 32 bytes: https://github.com/multiformats/cid.
_HEAD = b"\x01\x55\x12\x20"


async def fetched(line: Line, directory: str, attachment: Attachment) -> bytes:
    """Fetch a file from its author's host.

    Raises:
        NotFound: Nobody has it, or what is there is another.
    """
    did = str(attachment.reference.get("did", ""))
    cid = str(attachment.reference.get("cid", ""))
    missing = NotFound("file", attachment.name)
    if not DID.fullmatch(did) or not CID.fullmatch(cid):
        raise missing
    try:
        host = await _host(line, directory, did)
        response = await _get(
            line, f"{host}/xrpc/com.atproto.sync.getBlob", did=did, cid=cid
        )
    except AgentHostError:
        raise missing from None
    if response.status_code != OK or _cid_of(response.content) != cid:
        raise missing
    return bytes(response.content)


async def _host(line: Line, directory: str, did: str) -> str:
    """Find the host of an account.

    Raises:
        NotFound: Its document names none.
    """
    if did.startswith(PLC):
        address = f"{directory}/{did}"
    elif did.startswith(WEB) and ":" not in did.removeprefix(WEB):
        name = did.removeprefix(WEB)
        address = f"https://{name}/.well-known/did.json"
    else:
        raise NotFound("host", did)
    if host := host_of(object_of(await _get(line, address))):
        return host
    raise NotFound("host", did)


async def _get(line: Line, address: str, **query: str) -> Any:
    return await called(
        line.http(), "GET", address, params=query or None, timeout=SECONDS
    )


def _cid_of(data: bytes) -> str:
    raw = _HEAD + hashlib.sha256(data).digest()
    return "b" + base64.b32encode(raw).decode().rstrip("=").lower()
