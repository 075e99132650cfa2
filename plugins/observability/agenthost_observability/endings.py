"""How an activity ended, in a word of a closed list, and how soon."""

from __future__ import annotations

from asyncio import CancelledError

from agenthost import (
    Activity,
    AgentHostError,
    Cancelled,
    Denied,
    ProviderError,
    ToolOutput,
)

OK = "ok"
STOPPED = "cancelled"
DENIED = "denied"
ERROR = "error"
TIMEOUT = "timeout"


def word_of(activity: Activity) -> str:
    """``ok``, a word of this module, or a provider's fault."""
    error = activity.error
    if error is None:
        failed = isinstance(activity.result, ToolOutput) and activity.result.is_error
        return ERROR if failed else OK
    if isinstance(error, Cancelled | CancelledError):
        return STOPPED
    if isinstance(error, Denied):
        return DENIED
    if isinstance(error, TimeoutError):
        return TIMEOUT
    if isinstance(error, ProviderError):
        return error.fault.value
    return ERROR


def first_chunk(activity: Activity) -> float | None:
    """Seconds from sending what was answered to the first piece of the answer."""
    answered = activity.answered
    if answered is None or not answered.first:
        return None
    return answered.first - answered.began


def type_of(error: BaseException | None) -> str:
    """The kind of an error, without what its message says."""
    if isinstance(error, ProviderError):
        return error.fault.value
    if isinstance(error, AgentHostError):
        return error.code
    return "_OTHER" if error is None else type(error).__name__
