"""Pages of strangers become text, whatever they are made of."""

from __future__ import annotations

import pytest
from agenthost import ToolContext
from agenthost.testing import Daemons
from agenthost_tools import web_fetch
from agenthost_tools.documents.html import markdown_of
from agenthost_tools.documents.plain import (
    LAST_RESORT,
    LONGEST_PAGE,
    plain_text,
    text_of,
    words_of,
)
from agenthost_workers.limits import Limits
from agenthost_workers.local import LocalWorkers
from hypothesis import given
from hypothesis import strategies as st

from ..egress.wire import Wire, always, answer
from ..workers.running import children, tool_threads, until
from .conftest import FakeDaemon
from .hostile import ENDLESS, SLOW_CHARSET, TOO_LARGE

SOON = 0.2
MANY = 1_000_000


def markdown(page: str, limit: int = MANY) -> str:
    return markdown_of(page.encode(), charset="", limit=limit)


async def fetched(context: ToolContext, page: bytes, content_type: str) -> str:
    async with Wire(always(answer(page, content_type=content_type))) as wire:
        call = web_fetch.WebFetch(url=wire.url)
        return (await web_fetch.web_fetch(context, call)).text


def test_a_page_is_markdown_without_what_nobody_reads() -> None:
    page = (
        "<head><title>T</title></head><script>x</script><h2>Hello</h2><p>a <b>b</b>"
        "<ul><li>c</ul><pre>if a:\n    b\n</pre>"
    )
    text = markdown(page)
    assert text.startswith("# T\n\n## Hello\n\na **b**\n\n* c")
    assert "if a:\n    b" in text
    assert "x" not in text


@pytest.mark.parametrize(
    "page",
    ["<div>" * 501 + "deep", "<blockquote>" * 9_000 + "deep", "<p>deep" * 100_000],
    ids=["divs", "quotes", "long"],
)
def test_a_page_that_is_too_deep_or_long_is_its_words(page: str) -> None:
    assert markdown(page).splitlines()[0] == "deep"


def test_elements_that_need_no_end_are_not_taken_for_depth() -> None:
    page = "<ul>" + "<li>an <img><br>item<p>" * 600 + "</ul><svg><path/></svg>"
    assert markdown(page).startswith("* an")


async def test_a_page_400_deep_is_still_markdown(daemon: FakeDaemon) -> None:
    page = b"<div>" * 400 + b"<b>deep</b>"
    assert "**deep**" in await daemon.workers.in_process(
        web_fetch.AS_MARKDOWN, page, charset="", limit=MANY
    )


def test_runs_of_blanks_do_not_outgrow_the_page() -> None:
    text = markdown("<pre>a" + " " * 400_000 + "b</pre>")
    assert len(text) < 200


def test_an_empty_page_is_empty_text() -> None:
    assert markdown("") == ""


def test_text_is_cut_and_says_of_how_much() -> None:
    assert markdown("<p>" + "x" * 20, limit=8) == "x" * 8 + "\n[cut after 8 of 20]"
    assert text_of(b"abc", charset="", limit=2) == "ab\n[cut after 2 of 3]"
    assert text_of(b"abc", charset="", limit=3) == "abc"


@pytest.mark.parametrize(
    ("charset", "document", "text"),
    [
        ("", "grüß".encode(), "grüß"),
        ("windows-1252", b"\x80", "€"),
        ("shift_jis", "日本".encode("shift_jis"), "日本"),
        ("utf-16", "grüß".encode("utf-16"), "grüß"),
        ("no-such-thing", "grüß".encode(), "grüß"),
        ("bz2", b"plain", "plain"),
        ("idna", b"xn--\xff", "xn--\ufffd"),
        ("utf-8", b"\xff", "\ufffd"),
    ],
)
def test_every_character_set_gives_text(
    charset: str, document: bytes, text: str
) -> None:
    assert text_of(document, charset=charset, limit=MANY) == text


def test_words_of_a_page_stand_a_block_a_line() -> None:
    page = (
        "<!doctype html><title>T &amp; U</title><style>a{}</style>\n\n"
        "<p>one <b>word</b>,\n two</p><!-- no --><script>if (a<b) x</script>"
        "<svg><text>no</text></svg><div>3 < 4 &#8364; &nope; &#xd800;</div>"
    )
    assert plain_text(page) == "T & U\n\none word,\ntwo\n\n3 < 4 € &nope; \ufffd\n"


def test_only_so_much_of_a_page_is_looked_at_for_words() -> None:
    page = b"x" * (LONGEST_PAGE + 5)
    assert words_of(page, charset="", limit=2).endswith(f"of {LAST_RESORT}]")
    assert len(plain_text(page.decode())) == LONGEST_PAGE


PIECES = ["<", ">", "&", ";", "#", "/", "!", "--", " ", "\n", "a", "9", "x", "script"]
TAGS = ["div", "<p>", "</p>", "<pre>", "&amp", "'", '"', "<td", "\ud800"]


@given(st.lists(st.sampled_from(PIECES + TAGS), max_size=60).map("".join))
def test_any_page_has_words_that_can_be_sent(page: str) -> None:
    document = page.encode("utf-8", "surrogatepass")
    words_of(document, charset="", limit=MANY).encode()
    markdown_of(document, charset="", limit=MANY).encode()


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("page", "content_type", "words"),
    [
        (ENDLESS, "text/html", "word word"),
        (TOO_LARGE, "text/html", "words\nwords"),
        (SLOW_CHARSET, "text/html; charset=punycode", "-aaa"),
        (SLOW_CHARSET, "text/plain; charset=punycode", "-aaa"),
    ],
    ids=["endless", "too large", "slow charset", "slow charset of text"],
)
async def test_a_page_that_cannot_be_read_in_time_comes_as_words(
    context: ToolContext, daemon: FakeDaemon, page: bytes, content_type: str, words: str
) -> None:
    seconds = 30.0 if page is TOO_LARGE else SOON
    await daemon.workers.close()
    before = children()
    workers = daemon.workers = LocalWorkers(Limits(start=60.0, seconds=seconds))
    text = await fetched(context, page, content_type)
    assert words in text
    assert "<<<end untrusted" in text
    assert children() <= before
    await workers.close()
    await until(lambda: not tool_threads())


async def test_a_page_comes_as_words_while_every_process_is_busy(
    context: ToolContext, daemon: FakeDaemon
) -> None:
    daemon.workers = LocalWorkers(Limits(processes=0, patience=0.01))
    text = await fetched(context, b"<h1>Hello</h1>", "text/html")
    assert "Hello" in text
    assert "# Hello" not in text


async def test_plain_text_in_utf_8_needs_no_process(context: ToolContext) -> None:
    before = children()
    assert "grüß" in await fetched(context, "grüß".encode(), "text/plain")
    assert children() <= before


@pytest.mark.setting("web.fetch.allowed_hosts")
async def test_the_last_marker_survives_any_configured_length(daemons: Daemons) -> None:
    """The kernel cuts results too, and would cut it off."""
    host = await daemons.start(
        config='[web.fetch]\nmax_chars = 500_000\nallowed_hosts = ["127.0.0.1"]\n'
    )
    agent = await host.agent()
    page = answer(b"x" * 300_000, content_type="text/plain")
    async with Wire(always(page)) as wire:
        host.model.calls("web_fetch", url=wire.url)
        host.model.says("done")
        await agent.ask("fetch it")
    (result,) = host.model.requests[-1].messages[-1].parts
    text = getattr(result, "text", "")
    assert "<<<begin untrusted" in text
    assert "<<<end untrusted" in text
