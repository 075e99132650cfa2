"""Errors as Anthropic's clients read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agenthost import (
    AgentHostError,
    Host,
    InvalidInput,
    ProviderError,
    ProviderFault,
)

VERSION = "anthropic-version"
TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}
"""By status; other refusals are invalid requests, other failures the server's."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.A)


class Overloaded(AgentHostError):
    """The model's provider has too much to do."""

    status = 529
    code = "overloaded"


class NoThreads(InvalidInput):
    """Conversations are not kept here; clients read the code and send them whole."""

    code = "thread_unsupported_request"


def written(_: Host, error: AgentHostError) -> dict[str, Any]:
    """Write the body of an error; the front adds the request's id."""
    usual = "api_error" if error.status >= 500 else "invalid_request_error"
    told = {
        "type": TYPES.get(error.status, usual),
        "message": error.message,
        "details": {"error_code": error.code, **error.facts},
    }
    return {"type": "error", "error": told}


def as_theirs(error: ProviderError) -> AgentHostError:
    """Give an overloaded provider the status that Anthropic has for it."""
    if error.fault is not ProviderFault.OVERLOADED:
        return error
    ours = Overloaded(error.message)
    ours.retry_in, ours.facts = error.retry_in, error.facts
    return ours


def check_version(headers: Mapping[str, str]) -> None:
    """Take any version, or none.

    Raises:
        InvalidInput: It is no date, as all versions are.
    """
    if VERSION in headers and not _DATE.fullmatch(headers[VERSION].strip()):
        raise InvalidInput(VERSION, "must be a date, such as 2023-06-01")
