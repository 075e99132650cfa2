"""The responses dialect, without a network."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from agenthost import (
    ChatRequest,
    Citation,
    Finish,
    ProviderError,
    ProviderFault,
    Reasoning,
    Text,
    Usage,
)
from agenthost_dialects.openai_responses import OpenAIResponses

from .exchange import HERE, body_of, decode, sse

PLAIN = OpenAIResponses()
ITEM = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "c2VhbGVk",
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "look",
    "arguments": '{"x":1}',
}


def done(output: list[Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    answer = {"status": status, "output": output, **more}
    return {"type": f"response.{status}", "response": answer}


def fault_of(*events: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        decode(PLAIN, sse(*events))
    return caught.value


def test_sealed_reasoning_and_ids_go_back_to_who_made_them(
    conversation: ChatRequest,
) -> None:
    _, whole = decode(PLAIN, sse(done([ITEM, CALL])), conversation)
    loop = replace(conversation, messages=(*conversation.messages[:3], whole.message))
    items = body_of(PLAIN, loop)["input"]
    assert items[-2] == ITEM
    assert items[-1] == CALL
    elsewhere = replace(HERE, provider="other")
    body = PLAIN.encode(loop, elsewhere).body
    assert b"rs_1" not in body
    assert b"fc_1" not in body
    later = replace(loop, messages=(*loop.messages, conversation.messages[0]))
    assert b"rs_1" not in PLAIN.encode(later, HERE).body


def test_perplexitys_signatures_go_back_without_ids(
    conversation: ChatRequest,
) -> None:
    lean = OpenAIResponses.from_quirks({"lean": True, "summary": False})
    signed = {**CALL, "thought_signature": "c2ln"}
    _, whole = decode(lean, sse(done([signed])), conversation)
    loop = replace(conversation, messages=(*conversation.messages[:3], whole.message))
    call = body_of(lean, replace(loop, thinking_budget=900))
    assert call["input"][-1] == {k: v for k, v in signed.items() if k != "id"}
    assert call["reasoning"] == {"effort": "low"}


def test_a_server_may_skip_the_pieces() -> None:
    said = {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}
    refused = {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}
    for body in (
        sse(done([ITEM, said, refused, CALL])),
        sse(
            *(
                {"type": "response.output_item.done", "output_index": n, "item": item}
                for n, item in enumerate([ITEM, said, refused, CALL])
            ),
            done([]),
        ),
    ):
        _, whole = decode(PLAIN, body)
        thought, text, *_ = whole.message.parts
        assert isinstance(thought, Reasoning)
        assert thought.text == "hm"
        assert isinstance(text, Text)
        assert whole.message.text == "hino"
        assert whole.finish is Finish.TOOL_USE


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("max_output_tokens", Finish.LENGTH),
        ("content_filter", Finish.CONTENT_BLOCKED),
    ],
)
def test_a_short_answer_says_why(reason: str, finish: Finish) -> None:
    details = {"incomplete_details": {"reason": reason}}
    _, whole = decode(PLAIN, sse(done([CALL], "incomplete", **details)))
    assert (whole.finish, whole.message.tool_uses) == (finish, ())


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        ({"type": "error", "code": "rate_limit_exceeded"}, ProviderFault.RATE_LIMITED),
        ({"type": "error", "message": "x"}, ProviderFault.SERVER),
        (
            done([], "failed", error={"code": "server_error", "message": "x"}),
            ProviderFault.SERVER,
        ),
        (
            {"type": "response.completed", "response": {"status": "cancelled"}},
            ProviderFault.SERVER,
        ),
        (done([], "in_progress"), ProviderFault.MALFORMED),
        ({"type": "response.completed"}, ProviderFault.MALFORMED),
    ],
)
def test_failures_are_named(event: dict[str, Any], fault: ProviderFault) -> None:
    assert fault_of(event).fault is fault


def found(*urls: str) -> dict[str, Any]:
    results = [{"id": 1, "url": url, "title": f"at {url}"} for url in urls]
    return {"type": "search_results", "results": results, "queries": ["q"]}


def words(*urls: Any, title: Any = "A  page") -> dict[str, Any]:
    notes = [{"type": "url_citation", "url": url, "title": title} for url in urls]
    part = {"type": "output_text", "text": "so [1]", "annotations": notes}
    return {"type": "message", "content": [part]}


def bodies(*items: dict[str, Any]) -> list[bytes]:
    """The same answer in one piece, and item by item."""
    events = (
        {"type": "response.output_item.done", "output_index": n, "item": item}
        for n, item in enumerate(items)
    )
    return [sse(done([*items])), sse(*events, done([]))]


A, B = "https://a.example/x?y=1#z", "http://b.example"


def test_pages_that_words_point_to_are_its_citations() -> None:
    for body in bodies(found(B), words(A, B, A)):
        _, whole = decode(PLAIN, body)
        pages = (Citation(A, "A page"), Citation(B, "A page"))
        assert whole.message.citations == pages
        assert whole.message.text == "so [1]"


def test_where_no_words_point_to_a_page_those_count_that_were_found() -> None:
    for body in bodies(found(B, A), words()):
        _, whole = decode(PLAIN, body)
        assert [page.url for page in whole.message.citations] == [B, A]
    told = {**found(A), "type": "response.reasoning.search_results"}
    _, whole = decode(PLAIN, sse(told, done([words()])))
    assert [page.url for page in whole.message.citations] == [A]


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", "data:text/html,x", "//a.example", "", None, 7),
        *("https://a.example/ x", 'https://a"><b', "https://a\n.example", "https://"),
        "https://a.example/" + "x" * 2_048,
    ],
)
def test_what_a_browser_should_not_follow_is_no_citation(url: Any) -> None:
    for body in bodies(words(url)):
        assert decode(PLAIN, body)[1].message.citations == ()


def test_citations_have_bounds() -> None:
    many = [f"https://a.example/{n}" for n in range(500)]
    for body in bodies(words(*many, title="é" * 500)):
        pages = decode(PLAIN, body)[1].message.citations
        assert [page.url for page in pages] == many[:50]
        assert {len(page.title) for page in pages} == {200}
    half = sse(done([words(A, title="half")])).replace(b'"half"', b'"\\ud83d half"')
    (page,) = decode(PLAIN, half)[1].message.citations
    page.title.encode()


def test_what_is_no_list_of_pages_cites_nothing() -> None:
    odd: tuple[Any, ...] = (None, 7, "x", [7], [None], {"url": A}, [[]])
    for each in odd:
        item = {"type": "search_results", "results": each}
        part = {"type": "output_text", "text": "so", "annotations": each}
        said = {"type": "message", "content": [part]}
        for body in bodies(item, said):
            assert decode(PLAIN, body)[1].message.citations == ()


def test_citations_never_go_back(conversation: ChatRequest) -> None:
    _, whole = decode(PLAIN, bodies(words(A))[0])
    again = replace(conversation, messages=(*conversation.messages, whole.message))
    assert b"a.example" not in PLAIN.encode(again, HERE).body


def test_a_price_in_the_usage_counts() -> None:
    cost = {"cost": {"currency": "USD", "total_cost": 0.00125}}
    usage = {"input_tokens": 9, "output_tokens": 2, **cost}
    dialect = OpenAIResponses.from_quirks({"cost_field": "cost.total_cost"})
    _, whole = decode(dialect, sse(done([], usage=usage)))
    assert whole.usage == Usage(9, 2, cost_micro_usd=1250)


def test_options_follow_the_quirks(conversation: ChatRequest) -> None:
    asked = replace(conversation, thinking_budget=20_000)
    body = body_of(PLAIN, asked)
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body["store"] is False
    assert "temperature" not in body
    plain = {
        "encrypted": False,
        "lean": True,
        "thinking": False,
        "temperature": True,
    }
    bare = body_of(OpenAIResponses.from_quirks(plain), asked)
    assert not {"reasoning", "include"} & set(bare)
    assert "detail" not in str(bare["input"])
    assert bare["temperature"] == 0.5
    off = body_of(
        OpenAIResponses.from_quirks({"effort_off": "none"}),
        replace(asked, thinking_budget=0),
    )
    assert off["reasoning"] == {"effort": "none"}
    assert "reasoning" not in body_of(PLAIN, replace(asked, thinking_budget=0))
