"""Error answers are named by what the vendor says first, by status second."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agenthost import Endpoint, ProviderFault, Secret
from agenthost_dialects.faults import (
    BY_NAME,
    http_fault,
    retry_after,
    stream_fault,
)
from hypothesis import given, settings
from hypothesis import strategies as st

HERE = Endpoint("acme", "http://acme", Secret("sk-secret"))


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        (429, {"error": {"code": "insufficient_quota"}}, ProviderFault.BILLING),
        (
            400,
            {"error": {"code": "context_length_exceeded"}},
            ProviderFault.CONTEXT_OVERFLOW,
        ),
        (
            400,
            {"error": {"message": "prompt is too long: 9 > 8"}},
            ProviderFault.CONTEXT_OVERFLOW,
        ),
        (400, {"error": {"code": "content_filter"}}, ProviderFault.CONTENT_BLOCKED),
        (400, [{"error": {"status": "API_KEY_INVALID"}}], ProviderFault.AUTH),
        (400, {"detail": [{"msg": "max_model_len"}]}, ProviderFault.CONTEXT_OVERFLOW),
        (
            400,
            {"type": "error", "error": {"type": "billing_error"}},
            ProviderFault.BILLING,
        ),
        (
            404,
            {"error": "model 'x' not found, try pulling it"},
            ProviderFault.MODEL_NOT_FOUND,
        ),
        (529, {}, ProviderFault.OVERLOADED),
        (418, {}, ProviderFault.BAD_REQUEST),
        (599, [], ProviderFault.SERVER),
    ],
)
def test_faults_are_named(status: int, body: Any, fault: ProviderFault) -> None:
    error = http_fault(HERE, status, {}, json.dumps(body).encode())
    assert error.fault is fault


def test_every_name_is_lower_case() -> None:
    assert all(name == name.lower() for name in BY_NAME)


def test_detail_is_short_and_names_the_remedy() -> None:
    body = json.dumps({"error": {"message": "bad sk-secret " + "x" * 5000}}).encode()
    error = http_fault(HERE, 401, {}, body)
    assert "sk-secret" not in error.message
    assert "check the API key" in error.message
    assert len(error.message) < 600


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
        (
            {
                "date": "Sat, 21 Nov 2026 02:00:00 GMT",
                "retry-after": "Sat, 21 Nov 2026 02:01:30 GMT",
            },
            90.0,
        ),
        ({"retry-after": "Sat, 21 Nov 2026 02:01:30 GMT"}, None),
    ],
)
def test_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_number_as_code_counts_as_status() -> None:
    error = stream_fault(HERE, {"error": {"code": 429, "message": "slow"}})
    assert error.fault is ProviderFault.RATE_LIMITED


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "type", "detail"]), inner
        )
    ),
)


@settings(deadline=None)
@given(JSON, st.integers(300, 599))
def test_no_error_body_breaks_the_mapping(body: Any, status: int) -> None:
    raw = json.dumps(body).encode()
    assert http_fault(HERE, status, {}, raw).provider == "acme"
    assert stream_fault(HERE, body).provider == "acme"
