"""Delivery by HTTP: a POST that its receiver can verify, and knows when it comes twice.

The headers are those of Standard Webhooks (https://www.standardwebhooks.com): libraries
of many languages check them. ``Idempotency-Key`` has the same id once more.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agenthost import (
    CHECK_HOST,
    CONTEXT,
    AgentHostError,
    EgressPolicy,
    Host,
    InvalidInput,
    NotSent,
    OutcomeUnknown,
    Parcel,
    Secret,
    Unavailable,
    UpstreamUnreachable,
    authorize,
)

from .settings import BackgroundSection

if TYPE_CHECKING:
    import httpx

ATTEMPTS = 4
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
CONNECT = 10.0
IN_ALL = 30.0
PREFIX = "whsec_"


class TryAgain(UpstreamUnreachable):
    """The receiver was busy or broken, and may take it later."""

    def __init__(self, status: int, retry_after: float | None) -> None:
        super().__init__(f"the receiver answered {status}")
        self.retry_after = retry_after


async def post(host: Host, parcel: Parcel) -> None:
    """Post a parcel until the receiver has taken it, with growing pauses.

    Also what was sent with no answer is sent again: the receiver can tell by its id.

    Raises:
        OutcomeUnknown: It was sent, and nobody knows whether it was taken.
        UpstreamUnreachable: It never was.
        Blocked: A guard refused the address.
        Denied: Whoever asked for it has no right to the address.
        InvalidInput: The target is no URL.
    """
    body = json.dumps(_told(parcel), ensure_ascii=False).encode()
    unknown = False
    pause = FIRST_PAUSE
    for attempt in range(ATTEMPTS):
        try:
            await _once(host, parcel, body)
            return
        except (TryAgain, NotSent, OutcomeUnknown, Unavailable) as error:
            unknown = unknown or isinstance(error, OutcomeUnknown)
            if attempt + 1 == ATTEMPTS:
                raise _given_up(error, unknown=unknown) from error
            asked = error.retry_after if isinstance(error, TryAgain) else None
            await host.clock.sleep(min(asked or pause, LONGEST_PAUSE))
            pause *= 4


def _given_up(error: AgentHostError, *, unknown: bool) -> AgentHostError:
    text = f"{error.message}; it was tried {ATTEMPTS} times"
    return OutcomeUnknown(text) if unknown else UpstreamUnreachable(text)


def _told(parcel: Parcel) -> Mapping[str, object]:
    return {"id": parcel.id, "text": parcel.text, **parcel.facts}


async def _once(host: Host, parcel: Parcel, body: bytes) -> None:
    """Post it once; what is in the answer's body does not matter, however long."""
    import httpx

    def may_reach(name: str) -> None:
        authorize(parcel.context.principal, "network", name)

    client = host.egress.client(_policy(host))
    extensions = {CHECK_HOST: may_reach, CONTEXT: parcel.context}
    headers = _headers(host, parcel.id, body)
    try:
        async with client.stream(
            "POST", parcel.target, headers=headers, content=body, extensions=extensions
        ) as answer:
            _check(answer)
    except (httpx.ConnectTimeout, httpx.ConnectError, httpx.PoolTimeout) as error:
        raise NotSent("the receiver cannot be reached") from error
    except httpx.HTTPError as error:
        raise OutcomeUnknown("the receiver did not answer in time") from error
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise InvalidInput("delivery.target", "it is no http(s) URL") from error


def _check(answer: httpx.Response) -> None:
    """See that it was taken.

    Raises:
        TryAgain: Not now.
        UpstreamUnreachable: It was not, and will not be.
    """
    status = answer.status_code
    if answer.is_success:
        return
    if status == 429 or status >= 500:
        raise TryAgain(status, _seconds(answer.headers.get("retry-after", "")))
    raise UpstreamUnreachable(f"the receiver answered {status}; correct the target")


def _seconds(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def _policy(host: Host) -> EgressPolicy:
    allowed = host.settings(BackgroundSection).webhook_allowed_hosts
    return EgressPolicy(
        "webhook",
        allowed_hosts=frozenset(allowed),
        timeout=CONNECT,
        total_timeout=IN_ALL,
    )


def _headers(host: Host, parcel_id: str, body: bytes) -> dict[str, str]:
    moment = str(int(host.clock.time()))
    headers = {
        "content-type": "application/json",
        "idempotency-key": parcel_id,
        "webhook-id": parcel_id,
        "webhook-timestamp": moment,
    }
    secret = host.settings(BackgroundSection).webhook_secret
    if secret is not None:
        headers["webhook-signature"] = signature(secret, parcel_id, moment, body)
    return headers


def signature(secret: Secret, parcel_id: str, moment: str, body: bytes) -> str:
    """Sign as Standard Webhooks says: HMAC-SHA256 of id, time and body."""
    signed = f"{parcel_id}.{moment}.".encode() + body
    digest = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def _key(secret: Secret) -> bytes:
    text = secret.reveal()
    if not text.startswith(PREFIX):
        return text.encode()
    try:
        return base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise InvalidInput(
            "background.webhook_secret", "what follows whsec_ must be base64"
        ) from None
