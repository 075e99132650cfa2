"""Calls of a vendor's HTTP API: what is known when one goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
from agenthost import AgentHostError, NotSent, OutcomeUnknown

from ..contract import Fate, Sent

if TYPE_CHECKING:
    from agenthost import Secret

UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class _Hush(logging.Filter):
    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words

    def filter(self, record: logging.LogRecord) -> bool:
        return self._words not in record.getMessage()


@contextmanager
def unlogged(secret: Secret) -> Iterator[None]:
    """Keep an address that holds a secret out of httpx's log, while it is called."""
    logger, hush = logging.getLogger("httpx"), _Hush(secret.reveal())
    logger.addFilter(hush)
    try:
        yield
    finally:
        logger.removeFilter(hush)


async def called(
    client: httpx.AsyncClient, method: str, url: str, **request: Any
) -> httpx.Response:
    """Make a call and give the whole answer, whatever its status is.

    Raises:
        NotSent: It never left.
        OutcomeUnknown: It may have arrived, and no answer came.
    """
    try:
        return await client.request(method, url, **request)
    except UNSENT:
        raise NotSent("the vendor cannot be reached") from None
    except httpx.TransportError:
        raise OutcomeUnknown("the vendor broke off before it answered") from None
    except httpx.InvalidURL:
        raise NotSent("the address of the vendor's API is none") from None


def as_sent(error: AgentHostError) -> Sent:
    """Tell what an error of :func:`called` means for a message."""
    unknown = isinstance(error, OutcomeUnknown)
    return Sent(Fate.UNKNOWN if unknown else Fate.NOT_SENT, reason=str(error))


def object_of(response: httpx.Response) -> dict[str, Any]:
    """Read an answer that should be a JSON object; anything else is an empty one."""
    try:
        found = response.json()
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
