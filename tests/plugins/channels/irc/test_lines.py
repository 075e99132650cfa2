"""Lines are read whatever they are, and texts fit into them whole."""

import unicodedata

import pytest
from agenthost_channels.irc.lines import is_target, lowered, parse, pieces, plain
from hypothesis import example, given
from hypothesis import strategies as st

CONTROLS = "".join(chr(code) for code in range(32)) + "\x7f\x85\u2028\u2029"


def test_a_line_has_tags_source_command_and_parameters() -> None:
    line = parse(
        b"@time=2026-01-01T00:00:00Z;a=x\\:y\\sz :ada!u@h privmsg #a :hi :)\r\n"
    )
    assert line.tags == {"time": "2026-01-01T00:00:00Z", "a": "x;y z"}
    assert (line.source, line.nick) == ("ada!u@h", "ada")
    assert (line.command, line.params) == ("PRIVMSG", ("#a", "hi :)"))


@given(st.binary(max_size=600))
@example(b"")
@example(b"@ : :")
@example(b":\r\n")
@example(b"@a;b= PRIVMSG")
def test_any_bytes_are_read_as_something(raw: bytes) -> None:
    line = parse(raw)
    assert line.at(0) is not None
    assert line.at(99) == ""


@given(st.text(max_size=900), st.integers(40, 400))
@example("a" * 100, 40)
@example("\U0001f468\u200d\U0001f469" * 30, 40)
@example("\u0301" * 200, 40)
def test_pieces_fit_and_lose_nothing_that_is_seen(text: str, room: int) -> None:
    cut = list(pieces(text, room))
    assert all(0 < len(piece.encode()) <= room for piece in cut)
    assert not any(sign in "".join(cut) for sign in "\r\n\0\x01")
    assert _seen("".join(cut)) == _seen(text)


def _seen(text: str) -> str:
    return "".join(
        c for c in text if not c.isspace() and unicodedata.category(c) != "Cc"
    )


@pytest.mark.parametrize(
    "one",
    [
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "e\u0301\u0323",
        "\U0001f1e9\U0001f1ea",
        "\U0001f44d\U0001f3fd",
        "\u2764\ufe0f",
    ],
    ids=["family", "marks", "flag", "skin", "heart"],
)
def test_what_looks_like_one_character_is_not_cut(one: str) -> None:
    for room in range(40, 60):
        for piece in pieces(one * 40, room):
            assert len(piece) % len(one) == 0


def test_words_are_kept_whole() -> None:
    assert list(pieces("alpha beta gamma delta", 12)) == ["alpha beta ", "gamma delta"]


@pytest.mark.parametrize(
    "name", ["", "a b", "a,b", "a\r\nQUIT", ":a", "$*", "*!*@*", "@a"]
)
def test_more_than_one_place_is_no_target(name: str) -> None:
    assert not is_target(name)


@pytest.mark.parametrize(
    "name", ["ada", "#room", "&local", "[x]{y}", "#t\u00fcr", "a-b|c"]
)
def test_one_place_is_a_target(name: str) -> None:
    assert is_target(name)


def test_colours_are_taken_out() -> None:
    assert (
        plain("\x02bold\x0f \x0304,01red\x03 \x04ff0000hex \x1dit") == "bold red hex it"
    )


def test_brackets_are_letters_of_the_other_case() -> None:
    assert lowered("Ada[Home]") == "ada{home}"
