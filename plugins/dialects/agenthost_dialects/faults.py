"""Name the fault of an error answer, from its status and what the vendor calls it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

from agenthost import Endpoint, ProviderError, ProviderFault, redacted

LONGEST_DETAIL = 500

BY_STATUS = {
    400: ProviderFault.BAD_REQUEST,
    401: ProviderFault.AUTH,
    402: ProviderFault.BILLING,
    403: ProviderFault.AUTH,
    404: ProviderFault.MODEL_NOT_FOUND,
    408: ProviderFault.TIMEOUT,
    413: ProviderFault.CONTEXT_OVERFLOW,
    422: ProviderFault.BAD_REQUEST,
    429: ProviderFault.RATE_LIMITED,
    498: ProviderFault.OVERLOADED,
    500: ProviderFault.SERVER,
    503: ProviderFault.OVERLOADED,
    504: ProviderFault.TIMEOUT,
    524: ProviderFault.TIMEOUT,
    529: ProviderFault.OVERLOADED,
}

BY_NAME = {
    "accessdeniedexception": ProviderFault.AUTH,
    "api_error": ProviderFault.SERVER,
    "api_key_invalid": ProviderFault.AUTH,
    "authentication_error": ProviderFault.AUTH,
    "billing_error": ProviderFault.BILLING,
    "billing_hard_limit_reached": ProviderFault.BILLING,
    "content_filter": ProviderFault.CONTENT_BLOCKED,
    "content_policy_violation": ProviderFault.CONTENT_BLOCKED,
    "context_length_exceeded": ProviderFault.CONTEXT_OVERFLOW,
    "deadline_exceeded": ProviderFault.TIMEOUT,
    "expiredtokenexception": ProviderFault.AUTH,
    "insufficient_quota": ProviderFault.BILLING,
    "insufficient_system_resource": ProviderFault.OVERLOADED,
    "internal": ProviderFault.SERVER,
    "internal_error": ProviderFault.SERVER,
    "internal_server_error": ProviderFault.SERVER,
    "internalserverexception": ProviderFault.SERVER,
    "invalid_api_key": ProviderFault.AUTH,
    "invalid_prompt": ProviderFault.CONTENT_BLOCKED,
    "invalidsignatureexception": ProviderFault.AUTH,
    "json_validate_failed": ProviderFault.MALFORMED,
    "model_decommissioned": ProviderFault.MODEL_NOT_FOUND,
    "model_not_found": ProviderFault.MODEL_NOT_FOUND,
    "modelerrorexception": ProviderFault.SERVER,
    "modelnotreadyexception": ProviderFault.OVERLOADED,
    "modelstreamerrorexception": ProviderFault.SERVER,
    "modeltimeoutexception": ProviderFault.TIMEOUT,
    "not_found": ProviderFault.MODEL_NOT_FOUND,
    "not_found_error": ProviderFault.MODEL_NOT_FOUND,
    "overloaded": ProviderFault.OVERLOADED,
    "overloaded_error": ProviderFault.OVERLOADED,
    "permission_denied": ProviderFault.AUTH,
    "permission_error": ProviderFault.AUTH,
    "rate_limit_error": ProviderFault.RATE_LIMITED,
    "rate_limit_exceeded": ProviderFault.RATE_LIMITED,
    "request_too_large": ProviderFault.CONTEXT_OVERFLOW,
    "resource_exhausted": ProviderFault.RATE_LIMITED,
    "resourcenotfoundexception": ProviderFault.MODEL_NOT_FOUND,
    "server_error": ProviderFault.SERVER,
    "serviceunavailableexception": ProviderFault.OVERLOADED,
    "throttlingexception": ProviderFault.RATE_LIMITED,
    "timeout_error": ProviderFault.TIMEOUT,
    "tool_use_failed": ProviderFault.MALFORMED,
    "unauthenticated": ProviderFault.AUTH,
    "unavailable": ProviderFault.OVERLOADED,
    "unrecognizedclientexception": ProviderFault.AUTH,
}

# Vendors without a code for it say it in words only; lower case.
BY_WORDS = {
    "context length": ProviderFault.CONTEXT_OVERFLOW,
    "context window": ProviderFault.CONTEXT_OVERFLOW,
    "prompt is too long": ProviderFault.CONTEXT_OVERFLOW,
    "max_model_len": ProviderFault.CONTEXT_OVERFLOW,
    "exceeds the available context": ProviderFault.CONTEXT_OVERFLOW,
    "credit balance is too low": ProviderFault.BILLING,
    "input is too long": ProviderFault.CONTEXT_OVERFLOW,
    "tokens in the prompt cannot exceed": ProviderFault.CONTEXT_OVERFLOW,
    "exceeds the maximum number of tokens": ProviderFault.CONTEXT_OVERFLOW,
}

REMEDIES = {
    ProviderFault.AUTH: "check the API key",
    ProviderFault.BILLING: "check the account's credit and limits",
    ProviderFault.MODEL_NOT_FOUND: "check the model's name and the base_url",
}


@dataclass(frozen=True, slots=True)
class VendorError:
    """An error as the vendor put it: names it gives it, and words for people."""

    names: tuple[str, ...] = ()
    words: str = ""

    @property
    def fault(self) -> ProviderFault | None:
        """What the names and the words say, when they say something known."""
        for name in self.names:
            if name in BY_NAME:
                return BY_NAME[name]
        lowered = self.words.lower()
        return next((f for words, f in BY_WORDS.items() if words in lowered), None)


def read_error(value: Any) -> VendorError:
    """Find names and words in the error shapes in use.

    Known shapes: ``{"error": {"message", "type", "code"}}`` (OpenAI, Anthropic),
    ``{"error": "text"}`` (Ollama), ``{"message"}``, ``{"detail"}``, lists of them, and
    reasons in a list of details (Google), which say more than the status beside them.
    """
    if isinstance(value, list):
        return read_error(value[0]) if value else VendorError()
    if isinstance(value, str):
        return VendorError(words=value)
    if not isinstance(value, Mapping):
        return VendorError()
    if value.get("error"):
        return read_error(value["error"])
    reasons = [detail.get("reason") for detail in _details(value)]
    names = (*reasons, *(value.get(n) for n in ("code", "type", "status", "__type")))
    words = value.get("message") or value.get("detail") or ""
    return VendorError(
        tuple(name.lower() for name in names if isinstance(name, str)),
        words if isinstance(words, str) else json.dumps(words),
    )


def _details(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    details = value.get("details")
    listed = details if isinstance(details, list) else []
    return [detail for detail in listed if isinstance(detail, Mapping)]


def http_fault(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes
) -> ProviderError:
    """Name the fault of an answer whose status is not 2xx."""
    try:
        vendor = read_error(json.loads(body))
    except (ValueError, RecursionError):
        vendor = VendorError()
    named = headers.get("x-amzn-errortype", "").partition(":")[0]
    vendor = replace(vendor, names=(*vendor.names, *filter(None, [named.lower()])))
    fault = vendor.fault or BY_STATUS.get(status) or _by_class(status)
    detail = _detail(endpoint, fault, vendor.words, f"HTTP {status}")
    return ProviderError(
        fault, endpoint.provider, detail, retry_after=retry_after(headers)
    )


def stream_fault(endpoint: Endpoint, value: Any) -> ProviderError:
    """Name the fault of an error event inside a stream that began with 200."""
    vendor = read_error(value)
    code = _number(value)
    fault = vendor.fault or BY_STATUS.get(code) or ProviderFault.SERVER
    detail = _detail(endpoint, fault, vendor.words, "broke off with an error")
    return ProviderError(fault, endpoint.provider, detail)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read how long the provider asks us to wait, in seconds.

    ``retry-after-ms`` is used by OpenAI and Azure; a date in ``Retry-After`` counts
    from the answer's own ``Date``, so that no clock of ours takes part.
    """
    folded = {name.lower(): value for name, value in headers.items()}
    return next(_waits(folded), None)


def _waits(headers: Mapping[str, str]) -> Iterator[float]:
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * scale
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds):
            yield max(0.0, seconds)
    try:
        until = parsedate_to_datetime(headers["retry-after"])
        now = parsedate_to_datetime(headers["date"])
        yield max(0.0, (until - now).total_seconds())
    except (KeyError, ValueError, TypeError):
        return


def _by_class(status: int) -> ProviderFault:
    return ProviderFault.SERVER if status >= 500 else ProviderFault.BAD_REQUEST


def _number(value: Any) -> int:
    if isinstance(value, Mapping):
        inner = value.get("error")
        code = inner.get("code") if isinstance(inner, Mapping) else value.get("code")
        return code if isinstance(code, int) else 0
    return 0


def _detail(
    endpoint: Endpoint, fault: ProviderFault, words: str, otherwise: str
) -> str:
    said = words.strip()
    secrets = [*endpoint.extras.secrets]
    if endpoint.key is not None:
        secrets.append(endpoint.key.reveal())
    if secrets:
        said = redacted(said, secrets)
    if len(said) > LONGEST_DETAIL:
        said = said[:LONGEST_DETAIL] + "..."
    remedy = REMEDIES.get(fault)
    said = said or otherwise
    return f"{said} ({remedy})" if remedy else said
