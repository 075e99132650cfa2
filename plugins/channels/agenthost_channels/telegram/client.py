"""Calls of the Bot API, and what its answers mean for a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agenthost import AgentHostError, NotFound, Unauthenticated, Unavailable

from ..contract import Fate, Line, Sent
from ..transports.calls import as_sent, called, object_of, unlogged

if TYPE_CHECKING:
    from agenthost import Secret

UNAUTHORIZED, FORBIDDEN, UNKNOWN, CONFLICT, TOO_MANY = 401, 403, 404, 409, 429
OK, SERVER_ERROR = 200, 500
SECONDS = 30.0
NO_TOKEN = "Telegram needs bot_token: set TELEGRAM_BOT_TOKEN to what @BotFather gave"  # noqa: S105  # nosec B105 # words
BAD_TOKEN = "Telegram refuses bot_token: set TELEGRAM_BOT_TOKEN anew"  # noqa: S105  # nosec B105 # words
TWO_POLLERS = (
    "another program asks Telegram for this bot's messages: stop it, or give it a bot"
    " of its own"
)


class Answer:
    """What the Bot API answered."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        self.status = status
        self.ok = body.get("ok") is True
        self.result = body.get("result")
        self.reason = str(body.get("description") or f"HTTP {status}")[:300]
        parameters = body.get("parameters")
        after = parameters.get("retry_after") if isinstance(parameters, dict) else None
        self.retry_after = float(after) if isinstance(after, int | float) else None

    def as_sent(self) -> Sent:
        """Tell what it means for a message."""
        if self.ok:
            given = self.result if isinstance(self.result, dict) else {}
            return Sent(Fate.DELIVERED, str(given.get("message_id", "")))
        reason = f"Telegram: {self.reason}"
        if self.status == OK or self.status >= SERVER_ERROR:
            return Sent(Fate.UNKNOWN, reason=reason)
        if self.status == TOO_MANY:
            return Sent(Fate.NOT_SENT, reason=reason, retry_after=self.retry_after)
        # Of a token that is wrong, nothing is known of the message: a new one may do.
        wrong_token = self.status in {UNAUTHORIZED, UNKNOWN}
        return Sent(Fate.NOT_SENT, reason=reason, final=not wrong_token)

    def raise_for_refusal(self) -> None:
        """Raise what a refused call means for the connection.

        Raises:
            Unauthenticated: The token is wrong.
            Unavailable: It is anything else.
        """
        if self.ok:
            return
        if self.status in {UNAUTHORIZED, UNKNOWN}:
            raise Unauthenticated(BAD_TOKEN)
        if self.status == CONFLICT:
            raise Unavailable(TWO_POLLERS)
        raise Unavailable(f"Telegram: {self.reason}")


class Client:
    """The Bot API with our token."""

    def __init__(self, line: Line, api_url: str) -> None:
        self._line = line
        self._api = api_url.rstrip("/")

    def _token(self) -> Secret:
        token = self._line.secret("bot_token")
        if token is None:
            raise Unauthenticated(NO_TOKEN)
        return token

    async def call(
        self, method: str, arguments: dict[str, Any], seconds: float = SECONDS
    ) -> Answer:
        """Call a method with JSON arguments.

        Raises:
            NotSent: It never left.
            OutcomeUnknown: It may have arrived, and no answer came.
            Unauthenticated: There is no token.
        """
        return await self._post(method, seconds, json=arguments)

    async def upload(
        self, method: str, arguments: dict[str, Any], file: dict[str, Any]
    ) -> Answer:
        """Call a method with a file; raises as :meth:`call` does."""
        fields = {name: str(value) for name, value in arguments.items()}
        return await self._post(method, SECONDS * 4, data=fields, files=file)

    async def send(self, method: str, arguments: dict[str, Any]) -> Sent:
        """Call a method that says something, and tell what became of it."""
        try:
            return (await self.call(method, arguments)).as_sent()
        except AgentHostError as error:
            return as_sent(error)

    async def file(self, file_id: str) -> bytes:
        """Fetch a file.

        Raises:
            NotFound: Telegram has it no more.
        """
        answer = await self.call("getFile", {"file_id": file_id})
        found = answer.result if isinstance(answer.result, dict) else {}
        if not answer.ok or "file_path" not in found:
            raise NotFound("file", "on Telegram")
        token = self._token()
        with unlogged(token):
            response = await called(
                self._line.http(),
                "GET",
                f"{self._api}/file/bot{token.reveal()}/{found['file_path']}",
            )
        if response.status_code != OK:
            raise NotFound("file", "on Telegram")
        return response.content

    async def _post(self, method: str, seconds: float, **body: Any) -> Answer:
        token = self._token()
        url = f"{self._api}/bot{token.reveal()}/{method}"
        with unlogged(token):
            response = await called(
                self._line.http(), "POST", url, timeout=seconds, **body
            )
        return Answer(response.status_code, object_of(response))
