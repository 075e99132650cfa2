"""XRPC calls with the session of one account.

Sources: https://atproto.com/specs/xrpc and the lexicons of ``com.atproto.server``.
A session has a token that is good for minutes and one that makes a new pair of both.
Making a session anew, with the app password, is limited to a few hundred a day.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
from agenthost import (
    AgentHostError,
    NotSent,
    OutcomeUnknown,
    Unauthenticated,
    Unavailable,
)

from ..contract import Fate, Line, Sent
from ..transports.addresses import LOOPBACK
from ..transports.calls import as_sent, called, object_of

SECONDS = 30.0
OK, TOO_MANY, UNAUTHORIZED, SERVER_ERROR = 200, 429, 401, 500
LONGEST_PAUSE = 3600.0
PASSWORD = "app_password"  # noqa: S105 # nosec B105 # the name of a secret
LOGIN = "com.atproto.server.createSession"
REFRESH = "com.atproto.server.refreshSession"
CHAT = {"atproto-proxy": "did:web:api.bsky.chat#bsky_chat"}
"""The service of direct messages, to which the account's host hands a call on."""
BAD_TOKENS = {"ExpiredToken", "InvalidToken", "AuthMissing", "AuthenticationRequired"}
BAD_ACCOUNT = {
    "AuthenticationRequired": "refuses the handle or the app password",
    "AuthFactorTokenRequired": "takes an app password alone, not the account's own",
    "AccountTakedown": "has taken the account down",
}


class Answer:
    """What a server answered."""

    def __init__(self, response: httpx.Response, now: float) -> None:
        self.status = response.status_code
        self.body = object_of(response)
        self.ok = self.status == OK
        name, told = self.body.get("error"), self.body.get("message")
        self.error = str(name or f"HTTP {self.status}")[:100]
        said = f"{self.error}: {told}" if told else self.error
        self.reason = f"Bluesky: {''.join(filter(str.isprintable, said))[:300]}"
        self.retry_after = _pause(response, now) if self.status == TOO_MANY else None

    def as_failure(self) -> Sent:
        """Tell what it means for a message that it did not take."""
        if self.status == TOO_MANY:
            return Sent(Fate.NOT_SENT, "", self.reason, self.retry_after)
        if self.status >= SERVER_ERROR:
            return Sent(Fate.UNKNOWN, reason=self.reason)
        final = self.error not in BAD_TOKENS
        return Sent(Fate.NOT_SENT, reason=self.reason, final=final)


class Session:
    """Who we are at the account's host, for as long as it believes it."""

    def __init__(self, body: Mapping[str, Any], service: str) -> None:
        self.access = str(body.get("accessJwt") or "")
        self.refresh = str(body.get("refreshJwt") or "")
        self.did = str(body.get("did") or "")
        self.handle = str(body.get("handle") or "")
        self.host = host_of(body.get("didDoc")) or service


class Client:
    """The calls of one account.

    Args:
        line: Its line.
        service: Where it logs in.
        identifier: Its handle or DID.
    """

    def __init__(self, line: Line, service: str, identifier: str) -> None:
        self._line = line
        self._service = service
        self._identifier = identifier
        self._session: Session | None = None
        self._password = ""  # nosec B105 # none yet
        self._one = asyncio.Lock()

    async def session(self) -> Session:
        """Give the session, made anew where there is none or the password is another.

        Raises:
            Unauthenticated: The password is missing, or refused.
            Unavailable: Bluesky cannot be asked.
        """
        secret = self._line.secret(PASSWORD)
        if secret is None:
            raise Unauthenticated(f"bluesky needs {PASSWORD}: set BLUESKY_APP_PASSWORD")
        async with self._one:
            if self._session is None or self._password != secret.reveal():
                self._session = await self._log_in(secret.reveal())
                self._password = secret.reveal()
            return self._session

    async def _log_in(self, password: str) -> Session:
        given = {"identifier": self._identifier, "password": password}
        answer = await self._sessions("POST", self._service, LOGIN, json=given)
        if answer.error in BAD_ACCOUNT:
            told = BAD_ACCOUNT[answer.error]
            raise Unauthenticated(f"Bluesky {told}: see BLUESKY_APP_PASSWORD")
        return self._begun(answer, self._service)

    def _begun(self, answer: Answer, service: str) -> Session:
        if not answer.ok:
            raise Unavailable(answer.reason)
        session = Session(answer.body, service)
        if not (session.access and session.did):
            raise Unavailable("Bluesky: a session without token or DID")
        return session

    async def _renewed(self, stale: Session) -> Session:
        """Make a new session of one that is believed no more; once for all callers."""
        async with self._one:
            if self._session is not stale:
                known = self._session
            else:
                bearer = _bearer(stale.refresh)
                answer = await self._sessions(
                    "POST", stale.host, REFRESH, headers=bearer
                )
                refused = answer.error in BAD_TOKENS or answer.status == UNAUTHORIZED
                known = None if refused else self._begun(answer, stale.host)
                self._session = known
        return known or await self.session()

    async def _sessions(
        self, method: str, host: str, name: str, **given: Any
    ) -> Answer:
        try:
            return await self._call(method, host, name, **given)
        except (NotSent, OutcomeUnknown) as error:
            raise Unavailable(f"Bluesky: {error}") from None

    async def _call(self, method: str, host: str, name: str, **given: Any) -> Answer:
        response = await called(
            self._line.http(), method, f"{host}/xrpc/{name}", timeout=SECONDS, **given
        )
        return Answer(response, self._line.clock.time())

    async def call(
        self,
        method: str,
        name: str,
        headers: Mapping[str, str] | None = None,
        **given: Any,
    ) -> Answer:
        """Call a method as the account; once more where its token is believed no more.

        Raises:
            NotSent: It never left.
            OutcomeUnknown: It may have arrived, and no answer came.
            Unauthenticated: The password is missing, or refused.
            Unavailable: There is no session now.
        """
        session = await self.session()
        for last in (False, True):
            shown = {**(headers or {}), **_bearer(session.access)}
            answer = await self._call(
                method, session.host, name, headers=shown, **given
            )
            stale = answer.status == UNAUTHORIZED or answer.error in BAD_TOKENS
            if last or not stale:
                break
            session = await self._renewed(session)
        return answer

    async def asked(
        self, name: str, query: Mapping[str, Any], headers: Mapping[str, str]
    ) -> Answer:
        """Ask something, whatever the answer is.

        Raises:
            Unauthenticated: The password is missing, or refused.
            Unavailable: Bluesky does not answer.
        """
        try:
            return await self.call("GET", name, headers, params=query)
        except (NotSent, OutcomeUnknown) as error:
            raise Unavailable(f"Bluesky: {error}") from None

    async def get(self, name: str, **query: Any) -> dict[str, Any]:
        """Ask what needs an answer.

        Raises:
            Unauthenticated: The password is missing, or refused.
            Unavailable: Bluesky does not answer as it should.
        """
        answer = await self.asked(name, query, {})
        if not answer.ok:
            raise Unavailable(answer.reason)
        return answer.body

    async def said(
        self, name: str, given: Any, headers: Mapping[str, str] | None = None
    ) -> Answer | Sent:
        """Call a method that says something; what it means where it was not taken."""
        try:
            answer = await self.call("POST", name, headers, json=given)
        except AgentHostError as error:
            return as_sent(error)
        return answer if answer.ok else answer.as_failure()


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def host_of(document: Any) -> str:
    """Find the account's own host in its DID document."""
    services = document.get("service") if isinstance(document, dict) else None
    for each in services if isinstance(services, list) else ():
        if isinstance(each, dict) and str(each.get("id", "")).endswith("#atproto_pds"):
            host = str(each.get("serviceEndpoint", "")).rstrip("/")
            parts = urlsplit(host)
            # Our tokens go there: never in the clear.
            if parts.scheme == "https" or parts.hostname in LOOPBACK:
                return host
    return ""


def _pause(response: httpx.Response, now: float) -> float | None:
    """Read when a limit ends: seconds, or the time of the epoch."""
    after, ends = (
        response.headers.get(name, "") for name in ("retry-after", "ratelimit-reset")
    )
    if after.isdecimal():
        return min(float(after), LONGEST_PAUSE)
    if ends.isdecimal():
        return min(max(0.0, math.ceil(float(ends) - now)), LONGEST_PAUSE)
    return None
