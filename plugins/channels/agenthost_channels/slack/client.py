"""Calls of Slack's Web API, and what its answers mean for a message."""

from __future__ import annotations

from typing import Any

import httpx
from agenthost import (
    AgentHostError,
    NotFound,
    NotSent,
    OutcomeUnknown,
    Unauthenticated,
    Unavailable,
)

from ..contract import Fate, Line, OutFile, Sent
from ..transports.calls import as_sent, called, object_of

SECONDS = 30.0
OK, TOO_MANY, SERVER_ERROR = 200, 429, 500
VARIABLES = {"bot_token": "SLACK_BOT_TOKEN", "app_token": "SLACK_APP_TOKEN"}  # nosec B105 # the name of a variable
BAD_TOKEN = {
    *("invalid_auth", "not_authed", "token_revoked", "token_expired"),
    *("account_inactive", "not_allowed_token_type", "missing_scope"),
}
LATER = {"ratelimited", "service_unavailable", "team_added_to_org"}
UNKNOWN = {"internal_error", "fatal_error", "request_timeout"}


class Answer:
    """What the Web API answered."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.body = object_of(response)
        self.ok = self.status == OK and self.body.get("ok") is True
        self.error = str(self.body.get("error") or f"HTTP {self.status}")[:200]
        after = response.headers.get("retry-after", "")
        self.retry_after = float(after) if after.isdecimal() else None

    def as_sent(self) -> Sent:
        """Tell what it means for a message."""
        if self.ok:
            return Sent(Fate.DELIVERED, str(self.body.get("ts") or ""))
        reason = f"Slack: {self.error}"
        if self.status == TOO_MANY or self.error in LATER:
            return Sent(Fate.NOT_SENT, reason=reason, retry_after=self.retry_after)
        if self.status >= SERVER_ERROR or self.error in UNKNOWN or not self.body:
            return Sent(Fate.UNKNOWN, reason=reason)
        return Sent(Fate.NOT_SENT, reason=reason, final=self.error not in BAD_TOKEN)


class Client:
    """The Web API with our tokens."""

    def __init__(self, line: Line, api_url: str) -> None:
        self._line = line
        self._api = api_url.rstrip("/")

    def _bearer(self, name: str) -> dict[str, str]:
        token = self._line.secret(name)
        if token is None:
            raise Unauthenticated(f"Slack needs {name}: set {VARIABLES[name]}")
        return {"authorization": f"Bearer {token.reveal()}"}

    async def call(
        self, method: str, arguments: dict[str, Any], of: str = "bot_token"
    ) -> Answer:
        """Call a method.

        Raises:
            NotSent: It never left.
            OutcomeUnknown: It may have arrived, and no answer came.
            Unauthenticated: There is no token.
        """
        # Some methods take no JSON; all take a form.
        client, url = self._line.http(), f"{self._api}/{method}"
        headers = self._bearer(of)
        response = await called(
            client, "POST", url, data=arguments, headers=headers, timeout=SECONDS
        )
        return Answer(response)

    async def asked(self, method: str, of: str = "bot_token") -> dict[str, Any]:
        """Ask what needs an answer.

        Raises:
            Unauthenticated: The token is wrong.
            Unavailable: Slack does not answer as it should.
        """
        answer = await self.call(method, {}, of)
        if answer.error in BAD_TOKEN:
            named = VARIABLES[of]
            raise Unauthenticated(f"Slack refuses {of} ({answer.error}): see {named}")
        if not answer.ok:
            raise Unavailable(f"Slack: {answer.error}")
        return answer.body

    async def send(self, method: str, arguments: dict[str, Any]) -> Sent:
        """Call a method that says something, and tell what became of it."""
        try:
            return (await self.call(method, arguments)).as_sent()
        except AgentHostError as error:
            return as_sent(error)

    async def upload(self, file: OutFile) -> str | Sent:
        """Hand in a file, which nobody sees yet; give its id, or why there is none."""
        wanted = {"filename": file.name, "length": str(len(file.data))}
        try:
            answer = await self.call("files.getUploadURLExternal", wanted)
            if not answer.ok:
                return answer.as_sent()
            client, url = self._line.http(), str(answer.body["upload_url"])
            response = await called(
                client, "POST", url, content=file.data, timeout=SECONDS * 4
            )
        except (NotSent, OutcomeUnknown, KeyError):
            response = None
        if response is None or response.status_code != OK:
            return Sent(Fate.NOT_SENT, reason="Slack did not take the file")
        return str(answer.body.get("file_id", ""))

    async def file(self, url: str) -> bytes:
        """Fetch a file of Slack's; our token goes nowhere else.

        Raises:
            NotFound: It is not there, or not Slack's.
        """
        theirs = httpx.URL(url).host
        ours = httpx.URL(self._api).host
        if theirs not in {ours, "files.slack.com"}:
            raise NotFound("file", "on Slack")
        headers = self._bearer("bot_token")
        response = await called(self._line.http(), "GET", url, headers=headers)
        if response.status_code != OK:
            raise NotFound("file", "on Slack")
        return response.content
