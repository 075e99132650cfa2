"""What an operator adds to requests, without a network."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from agenthost import ChatRequest, Endpoint, Extras, Secret
from agenthost_dialects.bedrock import Bedrock
from agenthost_dialects.faults import http_fault
from agenthost_dialects.gemini import Gemini
from agenthost_dialects.openai_chat import OpenAIChat
from agenthost_dialects.outgoing import address, headed, merged

from .exchange import HERE, body_of

KEYS = "AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def here(extras: Extras, key: str = "sk-test") -> Endpoint:
    return replace(HERE, extras=extras, key=Secret(key))


def test_tables_are_merged_and_all_else_is_replaced() -> None:
    own = {"a": {"b": 1, "c": 2}, "d": [1], "e": 3}
    added = {"a": {"c": 4}, "d": [2], "e": {"f": 5}, "g": None}
    whole = {"a": {"b": 1, "c": 4}, "d": [2], "e": {"f": 5}, "g": None}
    assert merged(own, added) == whole
    assert own == {"a": {"b": 1, "c": 2}, "d": [1], "e": 3}


def test_where_nothing_is_added_nothing_changes() -> None:
    body, headers = {"z": 1, "a": 2}, {"B": "1", "A": "2"}
    assert merged(body, {}) is body
    assert list(headed(HERE, headers).items()) == list(headers.items())
    for url in ("http://a/b?", "http://a/b?c=d%20e#f", "http://a//b/../c"):
        assert address(HERE, url) == url


def test_a_header_of_the_dialect_stays_whatever_its_case() -> None:
    added = here(Extras({"AUTHORIZATION": "none", "X-Team": "red"}))
    assert headed(added, {"authorization": "own"}) == {
        "authorization": "own",
        "X-Team": "red",
    }


def test_a_query_stands_behind_the_dialects_own(conversation: ChatRequest) -> None:
    added = here(Extras(query={"b": "x&y=z#", "a": "é"}))
    streamed = replace(conversation, stream=True)
    url = urlsplit(Gemini().encode(streamed, added).url)
    asked = {"alt": ["sse"], "a": ["é"], "b": ["x&y=z#"]}
    assert parse_qs(url.query) == asked
    assert not url.fragment


def test_a_body_keeps_the_conversation(conversation: ChatRequest) -> None:
    added = here(Extras(body={"seed": 7, "stream_options": {"extra": True}}))
    streamed = replace(conversation, stream=True)
    plain, full = (body_of(OpenAIChat(), streamed, w) for w in (HERE, added))
    assert full.pop("seed") == 7
    assert full.pop("stream_options") == {"include_usage": True, "extra": True}
    plain.pop("stream_options")
    assert full == plain


def test_the_key_is_shown_as_the_operator_says(conversation: ChatRequest) -> None:
    azure = here(Extras(key_headers={"api-key": "{key}"}), "a {key}")
    for dialect in (OpenAIChat(), Bedrock(), Gemini()):
        headers = dialect.encode(conversation, azure).headers
        assert headers["api-key"] == "a {key}"
        assert {"Authorization", "x-goog-api-key"}.isdisjoint(headers)


def test_what_is_added_to_a_signed_request_is_signed_or_stands_aside(
    conversation: ChatRequest,
) -> None:
    botocore = pytest.importorskip("botocore.auth")
    requests = pytest.importorskip("botocore.awsrequest")
    credentials = pytest.importorskip("botocore.credentials")
    added = Extras({"X-Team": "red"}, {"b": "x y", "a": "1"}, {"extra": {"c": 1}})
    url = "https://bedrock-runtime.eu-west-1.amazonaws.com"
    where = Endpoint("acme", url, Secret(KEYS), None, added)
    sent = Bedrock().encode(conversation, where)
    assert json.loads(sent.body)["extra"] == {"c": 1}
    assert sent.headers["X-Team"] == "red"
    signed = {"Content-Type": sent.headers["Content-Type"]}
    again = requests.AWSRequest("POST", sent.url, signed, sent.body)
    again.context["timestamp"] = sent.headers["X-Amz-Date"]
    judge = botocore.SigV4Auth(
        credentials.Credentials(*KEYS.split(":")), "bedrock", "eu-west-1"
    )
    again.headers["X-Amz-Date"] = sent.headers["X-Amz-Date"]
    canonical = judge.canonical_request(again)
    signature = judge.signature(judge.string_to_sign(again, canonical), again)
    assert sent.headers["Authorization"].endswith(f"Signature={signature}")


def test_a_refusal_shows_nothing_secret_of_what_was_added() -> None:
    added = here(Extras(secrets=("gateway-secret",)))
    body = b'{"error": {"message": "no sk-test, no gateway-secret"}}'
    assert "no ***, no ***" in http_fault(added, 403, {}, body).detail
