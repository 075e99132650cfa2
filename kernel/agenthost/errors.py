"""The one error tree: raised early, each with its HTTP status.

``message`` is meant for the person at the other end: it names the field or the thing
and the remedy, and never holds a path, SQL or a stack.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from math import ceil
from types import MappingProxyType


class AgentHostError(Exception):
    """Anything agenthost refuses or fails at, with its HTTP status and code.

    ``retry_in`` is after how many seconds it is worth to try again, where that is
    known; ``facts`` stand beside the message in an answer's body.
    """

    status: int = 500
    code: str = "internal"
    retry_in: int | None = None
    facts: Mapping[str, str | int] = MappingProxyType({})

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidInput(AgentHostError):
    """The caller sent something wrong; ``field`` says where."""

    status = 400
    code = "invalid_input"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field


class Unauthenticated(AgentHostError):
    """No credential, or a wrong one."""

    status = 401
    code = "unauthenticated"


class Denied(AgentHostError):
    """The principal may not do this, or a guard refused it."""

    status = 403
    code = "denied"


class NotFound(AgentHostError):
    """The thing does not exist."""

    status = 404
    code = "not_found"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind} not found: {name}")
        self.kind = kind
        self.name = name


class Conflict(AgentHostError):
    """The request contradicts the present state."""

    status = 409
    code = "conflict"


class Superseded(Conflict):
    """The job or turn was cancelled, or runs elsewhere: this run may change nothing."""

    code = "superseded"


class Cancelled(Conflict):
    """The turn was stopped before it had an answer."""

    code = "cancelled"


class TurnFailed(AgentHostError):
    """The turn ended without an answer, for a reason of our own."""

    code = "turn_failed"


class CutShort(TurnFailed):
    """The answer reached its length limit before it said or did anything."""

    code = "cut_short"


class LoopDetected(TurnFailed):
    """The turn does the same again and again; guards say so until it ends."""

    code = "loop_detected"


class UnfitAnswer(TurnFailed):
    """The answer does not have the form that was asked for."""

    status = 422
    code = "unfit_answer"


class Waiting(Conflict):
    """The turn waits for a person, and goes on by itself once they have answered."""

    code = "waiting"

    def __init__(self, message: str, turn_id: str, approval_id: str) -> None:
        super().__init__(message)
        self.facts = {"turn_id": turn_id, "approval_id": approval_id}


class Mismatch(AgentHostError):
    """An Idempotency-Key, or a turn's id, was given before for something else."""

    status = 422
    code = "idempotency_mismatch"


class PastFailure(AgentHostError):
    """What a turn of before failed with, as it was written down."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class TooLarge(AgentHostError):
    """A body, message or value is over its limit."""

    status = 413
    code = "too_large"


class Unreadable(AgentHostError):
    """A document takes more time or memory to read than it may."""

    status = 422
    code = "unreadable"


class RateLimited(AgentHostError):
    """Too many units were spent in the window.

    ``window``, where it is known, says how many there may be at once, how many are
    left, and in how many seconds there will be enough.
    """

    status = 429
    code = "rate_limited"

    def __init__(self, message: str, window: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.window = window


class QuotaExceeded(AgentHostError):
    """The token quota or the budget has no room for this call."""

    status = 429
    code = "quota_exceeded"


class UpstreamUnreachable(AgentHostError):
    """A service that we asked did not answer."""

    status = 502
    code = "upstream_unreachable"


class Unavailable(AgentHostError):
    """The daemon is draining, or its store cannot be reached."""

    status = 503
    code = "unavailable"


class Interrupted(Unavailable):
    """The daemon ended before the turn did; the same id or key goes on with it."""

    code = "interrupted"
    retry_in = 1

    def __init__(self, message: str, turn_id: str) -> None:
        super().__init__(message)
        self.facts = {"turn_id": turn_id}


class StorageFull(AgentHostError):
    """The disk has no room for the write."""

    status = 507
    code = "storage_full"


class ConfigError(AgentHostError):
    """The configuration cannot be used; the daemon does not start."""

    code = "config"


class PluginError(AgentHostError):
    """A plugin cannot be loaded or broke its contract."""

    code = "plugin"


class SchemaFailed(PluginError):
    """The tables of the schema of this name cannot be brought up to date."""

    def __init__(self, schema: str, problem: str) -> None:
        super().__init__(f"schema {schema!r}: {problem}")
        self.schema = schema


class ProviderFault(StrEnum):
    """What went wrong at a provider."""

    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    BILLING = "billing"
    AUTH = "auth"
    CONTEXT_OVERFLOW = "context_overflow"
    BAD_REQUEST = "bad_request"
    MODEL_NOT_FOUND = "model_not_found"
    CONTENT_BLOCKED = "content_blocked"
    MALFORMED = "malformed_answer"
    TOO_LONG = "answer_too_long"
    SERVER = "server_error"


WAITS = {ProviderFault.RATE_LIMITED: 429, ProviderFault.OVERLOADED: 503}
"""The status of a fault whose end the provider has told."""


class ProviderError(AgentHostError):
    """A model call failed; ``fault`` decides whether a retry can help, and is its code.

    Args:
        fault: The kind of failure.
        provider: The provider's slug.
        detail: What the provider said, without keys; shown to the caller.
        retry_after: Seconds the provider asked us to wait, when it did.
    """

    def __init__(
        self,
        fault: ProviderFault,
        provider: str,
        detail: str,
        *,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{provider}: {detail}")
        self.code = fault.value
        self.fault = fault
        self.provider = provider
        self.detail = detail
        self.retry_after = retry_after
        if retry_after is not None:
            self.status = WAITS.get(fault, self.status)
            self.retry_in = max(ceil(retry_after), 1)
            self.facts = {"retry_after": self.retry_in}


class Blocked(Denied):
    """An outbound address or a path was refused by a guard."""

    code = "blocked"


class NotSent(UpstreamUnreachable):
    """The request never left: repeating it is safe."""

    code = "not_sent"


class OutcomeUnknown(UpstreamUnreachable):
    """The request was sent and its outcome is not known: do not repeat blindly."""

    code = "outcome_unknown"
