"""What a tool, a resource or a prompt may say to, and ask of, the client that asks.

``client_of(context)`` gives it to a tool. ``ask`` is one way for all revisions: where
the protocol has the client ask again with its answers, the call ends here and is made
anew; where it has requests of its own, they are sent and waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agenthost import AgentHostError, Context, JsonObject, Principal

from . import rpc

CAPABILITIES = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
LEVELS = (
    *("debug", "info", "notice", "warning"),
    *("error", "critical", "alert", "emergency"),
)
MOST_QUESTIONS = 16


class ClientNeeded(AgentHostError):
    """It cannot go on before the client has answered, or at all."""

    status = 400
    code = "client_needed"


class Link:
    """A client that can be told nothing and asked nothing, as that of a bare request.

    Attributes:
        capabilities: What the client says it can do.
        state: What ``ask`` was given in the round before.
        failure: Why the call cannot be answered, however the tool took it.
        level: The least level of log lines that it wants; None for no lines.
        token: What its request calls progress by.
        tell: Takes notifications.
    """

    def __init__(self) -> None:
        self.capabilities: JsonObject = {}
        self.state = ""
        self.failure: rpc.RpcError | None = None
        self.needed: dict[str, Any] | None = None
        self.level: str | None = None
        self.token: rpc.Id | None = None
        self.tell: Callable[[JsonObject], object] | None = None

    def log(self, level: str, data: Any, logger: str = "agenthost") -> None:
        """Send the client a line of log, where it wants such lines.

        Args:
            level: One of the eight of the protocol.
            data: Any JSON value.
            logger: Who says it.
        """
        if self.tell is None or self.level is None:
            return
        if LEVELS.index(level) >= LEVELS.index(self.level):
            said = {"level": level, "logger": logger, "data": data}
            self.tell(rpc.notification("notifications/message", said))

    def progress(self, done: float, total: float | None, text: str) -> None:
        """Tell how far the request is, where the client asked for it."""
        if self.tell is None or self.token is None:
            return
        said: dict[str, Any] = {"progressToken": self.token, "progress": done}
        if total is not None:
            said["total"] = total
        if text:
            said["message"] = text
        self.tell(rpc.notification("notifications/progress", said))

    async def ask(
        self, requests: Mapping[str, JsonObject], state: str = ""
    ) -> Mapping[str, JsonObject]:
        """Have the client answer requests: ``{"name": {"method", "params"}}``.

        Args:
            requests: What is asked, each under a name of your own.
            state: What a later round is to know of this one.

        Returns:
            The result of each.

        Raises:
            ClientNeeded: The client cannot answer, or is to ask again with answers.
        """
        self._check(requests)
        return await self._asked(requests, state)

    async def _asked(
        self,
        requests: Mapping[str, JsonObject],  # noqa: ARG002
        state: str,  # noqa: ARG002
    ) -> Mapping[str, JsonObject]:
        raise self._fail(
            rpc.RpcError(rpc.INVALID_REQUEST, "it asks its client; initialize first")
        )

    def _check(self, requests: Mapping[str, JsonObject]) -> None:
        needed = {CAPABILITIES[str(each["method"])] for each in requests.values()}
        missing: dict[str, JsonObject] = {
            name: {} for name in needed if name not in self.capabilities
        }
        if missing:
            names = ", ".join(sorted(missing))
            error = f"the client has not declared the capability {names}"
            data = {"requiredCapabilities": missing}
            raise self._fail(rpc.RpcError(rpc.NO_CAPABILITY, error, data=data))

    def _fail(self, error: rpc.RpcError) -> ClientNeeded:
        # A toolbox makes a result of whatever a tool raises; the answer is this.
        self.failure = error
        return ClientNeeded(error.message)


@dataclass(frozen=True, slots=True)
class McpPrincipal(Principal):
    """Whoever calls a tool over MCP, and the link to its client."""

    link: Link = field(default_factory=Link, compare=False, repr=False)


def client_of(context: Context) -> Link | None:
    """Give a tool the client that calls it; None where it is an agent's turn."""
    principal = context.principal
    return principal.link if isinstance(principal, McpPrincipal) else None
