"""The client skips what the transport does, and nothing that a caller asks for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from agenthost_egress.direct import DirectClient


def echo(request: httpx.Request) -> httpx.Response:
    """Answer with what arrived; a path of ``/away`` redirects."""
    if request.url.path == "/away":
        return httpx.Response(302, headers={"location": "/home"})
    seen = request.headers.get("authorization", "none")
    return httpx.Response(200, text=f"{request.method} {request.url} {seen}")


class Broken(httpx.AsyncByteStream):
    """A body that fails, and notes that it was closed."""

    closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"half"
        raise httpx.ReadError("broken")

    async def aclose(self) -> None:
        self.closed = True


def client(handler: object = echo) -> DirectClient:
    return DirectClient(httpx.MockTransport(handler), headers={"user-agent": "x"})  # type: ignore[arg-type]  # reason: a handler of either kind


async def test_an_answer_is_read_and_knows_its_request() -> None:
    answer = await client().post("http://host/a?b=1", content=b"x")
    assert answer.text == "POST http://host/a?b=1 none"
    assert answer.request.headers["user-agent"] == "x"


async def test_extensions_reach_the_transport_beside_the_patience() -> None:
    mine = object()
    answer = await client().get("http://host/", extensions={"mine": mine})
    assert answer.request.extensions["mine"] is mine
    assert "timeout" in answer.request.extensions


async def test_a_redirect_is_handed_back_unless_it_was_asked_for() -> None:
    own = client()
    assert (await own.get("http://host/away")).status_code == 302
    followed = await own.get("http://host/away", follow_redirects=True)
    assert followed.text == "GET http://host/home none"


async def test_credentials_that_are_asked_for_are_sent() -> None:
    answer = await client().get("http://host/", auth=("me", "secret"))
    assert answer.text.endswith("Basic bWU6c2VjcmV0")


async def test_a_body_that_breaks_is_closed() -> None:
    body = Broken()
    own = client(lambda _: httpx.Response(200, stream=body))
    with pytest.raises(httpx.ReadError):
        await own.get("http://host/")
    assert body.closed


@pytest.mark.parametrize("content", [b"", b"words"])
def test_a_request_is_the_one_that_httpx_builds(content: bytes) -> None:
    plain = httpx.AsyncClient(headers={"user-agent": "x"})
    # Taken as they are, in bytes too; httpx's types know of texts alone.
    headers: dict[object, object] = {"User-AGENT": "mine", b"X-One": b"1", "Host": "h"}
    given = {"headers": headers, "content": content, "extensions": {"a": 1}}
    url = "http://host:81/a%20b?c=d#e"
    ours = client().build_request("post", url, **given)
    theirs = plain.build_request("post", url, **given)  # type: ignore[arg-type]
    assert (ours.method, ours.url, ours.content) == ("POST", theirs.url, content)
    assert ours.read() == content
    said = {(name.lower(), value) for name, value in theirs.headers.raw}
    # What waits for no body has no length.
    said -= set() if content else {(b"content-length", b"0")}
    assert {(name.lower(), value) for name, value in ours.headers.raw} == said
    with pytest.raises(UnicodeEncodeError):
        client().build_request("get", "http://host/", headers={"X": "\u20ac"})


async def test_headers_of_a_call_take_the_place_of_the_clients() -> None:
    own = client()
    async with own.stream(
        "post", "http://host/a", headers={"User-Agent": "mine", "X-One": "1"}
    ) as answer:
        sent = answer.request
    assert sent.method == "POST"
    assert sent.headers.get_list("user-agent") == ["mine"]
    assert sent.headers["x-one"] == "1"
    assert sent.extensions["timeout"] == own.timeout.as_dict()
