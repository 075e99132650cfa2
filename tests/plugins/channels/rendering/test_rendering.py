"""Markdown in every dialect: nothing is lost, nothing is too long, all is closed."""

import re
import time
from html.parser import HTMLParser

import pytest
from agenthost_channels.rendering import rendered
from agenthost_channels.rendering.dialects import DIALECTS
from agenthost_channels.rendering.units import UNITS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

LIMIT = 400
QUICK = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
PARTS = st.sampled_from(
    [
        *("word ", "naïve ", "日本語 ", "👨‍👩‍👧 ", "e\u0301", "\n", "\n\n", "> ", "- "),
        *(
            "**",
            "*",
            "_",
            "`",
            "~~",
            "# ",
            "1. ",
            "    ",
            "[a](",
            "http://b.c/d_e",
            ")",
        ),
        *(
            "<b>",
            "&amp;",
            "&",
            "\\",
            "x" * 90,
            "𝔘" * 30,
            "```\n",
            "| a | b |\n|---|---|\n",
        ),
    ]
)
DOCUMENTS = st.lists(PARTS, max_size=120).map("".join)
LETTERS = st.text("ab *_`>#-\n[]~\\<&", max_size=900)


class Balance(HTMLParser):
    """A parser as strict as Telegram's."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {
            *("a", "b", "i", "s", "strong", "em", "del", "code", "pre", "blockquote")
        }
        assert {name for name, _ in attrs} <= {"href", "class"}
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag == "br"
        assert not attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


class Words(Balance):
    """Reads any tag."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        pass


def all_text(markdown: str, dialect: str) -> str:
    return "\n".join(each.text for each in rendered(markdown, dialect, 4000, "utf16"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_message_is_too_long(dialect: str) -> None:
    @QUICK
    @given(DOCUMENTS, st.sampled_from(sorted(UNITS)))
    def holds(markdown: str, unit: str) -> None:
        for each in rendered(markdown, dialect, LIMIT, unit):
            assert 0 < UNITS[unit](each.text) <= LIMIT
            assert UNITS[unit](each.plain) <= LIMIT

    holds()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_letter_is_kept_in_its_order(dialect: str) -> None:
    # Of a fence's first line only a language is kept; it is markup.
    @QUICK
    @given(LETTERS.filter(lambda text: "```" not in text and "~~~" not in text))
    def holds(markdown: str) -> None:
        said = "".join(each.plain for each in rendered(markdown, dialect, 200, "bytes"))
        assert re.sub("[^ab]", "", said) == re.sub("[^ab]", "", markdown)

    holds()


@pytest.mark.parametrize("dialect", ["telegram_html", "html"])
@QUICK
@given(markdown=DOCUMENTS)
def test_every_tag_is_known_and_closed(dialect: str, markdown: str) -> None:
    for each in rendered(markdown, dialect, LIMIT, "utf16"):
        parser = Balance()
        parser.feed(each.text)
        parser.close()
        assert not parser.open


@pytest.mark.parametrize("dialect", ["discord", "slack_mrkdwn", "xmpp", "commonmark"])
def test_a_cut_code_block_is_closed_and_opened_again(dialect: str) -> None:
    code = "\n".join(f"line {number} of it" for number in range(60))
    found = rendered(f"before\n\n```python\n{code}\n```\nafter", dialect, 300, "bytes")
    assert len(found) >= 3
    language = "" if dialect == "slack_mrkdwn" else "python"
    for each in found[1:-1]:
        assert each.text.startswith(f"```{language}\n")
    for each in found:
        assert len(re.findall("^```", each.text, re.MULTILINE)) % 2 == 0
    assert re.findall(r"line \d+ of it", "\n".join(each.text for each in found)) == (
        code.split("\n")
    )


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        ("plain", "T\n\nb i c w (https://x.y/)"),
        (
            "telegram_html",
            '<b>T</b>\n\n<b>b</b> <i>i</i> <code>c</code> <a href="https://x.y/">w</a>',
        ),
        ("discord", "**T**\n\n**b** *i* `c` [w](<https://x.y/>)"),
        ("slack_mrkdwn", "*T*\n\n*b* _i_ `c` <https://x.y/|w>"),
        ("xmpp", "*T*\n\n*b* _i_ `c` w (https://x.y/)"),
        ("irc", "\x02T\x02\n\n\x02b\x02 \x1di\x1d \x11c\x11 w (https://x.y/)"),
        ("commonmark", "**T**\n\n**b** *i* `c` [w](<https://x.y/>)"),
    ],
)
def test_each_dialect_has_its_own_marks(dialect: str, expected: str) -> None:
    assert all_text("# T\n\n**b** *i* `c` [w](https://x.y/)", dialect) == expected


def test_a_narrow_table_is_aligned_and_a_wide_one_a_list() -> None:
    narrow = all_text("| a | long |\n|-|-|\n| 1 | 2 |", "discord")
    assert narrow == "```\na | long\n--+-----\n1 | 2\n```"
    wide = all_text(f"| a | b |\n|-|-|\n| 1 | {'w ' * 40} |", "discord")
    assert wide.startswith("• **a**: 1; **b**: w w")


def test_lists_and_quotes_are_seen() -> None:
    text = all_text("> said\n\n3. c\n4. d\n   - e", "discord")
    assert text == "> said\n\n3. c\n4. d\n  • e"


def test_what_looks_like_markup_is_text() -> None:
    assert all_text("<b>&lt; a & b", "telegram_html") == "&lt;b&gt;&lt; a &amp; b"
    assert all_text("<!channel> & co", "slack_mrkdwn") == "&lt;!channel&gt; &amp; co"
    assert all_text(r"\*a\* 1\. x", "discord") == r"\*a\* 1. x"
    assert all_text("1\\. x", "commonmark") == "1\\. x"


def test_only_links_of_the_web_are_links() -> None:
    text = all_text("[press](ftp://x/y)", "telegram_html")
    assert text == "press (ftp://x/y)"


def test_a_message_ends_between_words_and_at_best_between_paragraphs() -> None:
    words = "one two three four five six seven eight nine ten " * 4
    for each in rendered(words, "plain", 64, "characters"):
        assert set(each.text.split()) <= set(words.split())
    two = rendered("a" * 20 + " " + "b" * 20 + "\n\n" + "c " * 15, "plain", 64, "bytes")
    assert two[1].text.startswith("c")


@pytest.mark.parametrize("dialect", ["telegram_html", "html", "discord"])
def test_what_closes_the_marks_is_counted(dialect: str) -> None:
    for length in range(1, 60):
        words = "**[" + "ab " * 60 + "x" * length + "](http://b.c)**"
        for each in rendered(words, dialect, 200 + length, "characters"):
            assert len(each.text) <= 200 + length


@pytest.mark.parametrize("frame", ["> ", "- ", "> - "])
def test_what_is_nested_beyond_reason_is_kept(frame: str) -> None:
    (only,) = rendered(f"{frame * 200}deep", "plain", 4000, "characters")
    assert only.text.endswith("deep")


def test_what_follows_a_bullet_is_no_second_bullet_and_no_rule() -> None:
    for words, shown in (
        ("- \\- -", "- \\- -"),
        ("1. \\- - -", "1. \\- - -"),
        ("> - \\# x", "> - \\# x"),
    ):
        (only,) = rendered(words, "commonmark", 400, "bytes")
        assert only.text == shown


def test_nothing_to_say_is_no_message() -> None:
    for blank in (" \n\n ", "\x01 \x02", ""):
        assert rendered(blank, "slack_mrkdwn", 400, "bytes") == []


@pytest.mark.conformance
@pytest.mark.parametrize(
    "unit", ["[", "*a **b ", "> ", "- ", "` `` ", "_a", "<", "[a](b", "\\", "a|"]
)
def test_hostile_text_takes_time_in_its_length(unit: str) -> None:
    def seconds(length: int) -> float:
        begin = time.process_time()
        rendered((unit * length)[:length], "telegram_html", 4096, "utf16")
        return time.process_time() - begin

    small = seconds(25_000)
    assert seconds(100_000) < 8 * max(small, 0.1)


@pytest.mark.conformance
@settings(max_examples=300, deadline=None)
@given(markdown=DOCUMENTS)
def test_another_parser_of_commonmark_sees_the_same_words(markdown: str) -> None:
    mistune = pytest.importorskip("mistune")
    for each in rendered(markdown, "commonmark", LIMIT, "utf16"):
        parser = Words()
        read = mistune.create_markdown(escape=True, plugins=["strikethrough"])
        parser.feed(read(each.text))
        seen = re.sub(r"[^\w日本語]", "", parser.words)
        for word in re.findall(r"word|naïve|日本語|x{90}", each.plain):
            assert word in seen
