"""Lines of keys, judged against documents that tomlkit wrote."""

from __future__ import annotations

import tomllib
from typing import Any

import tomlkit
from agenthost_toml.lines import KeyLines
from hypothesis import given
from hypothesis import strategies as st

KEYS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=4
)
LEAVES = st.integers(0, 9) | st.booleans() | st.text("ab\"'[]{}#=\n", max_size=6)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.dictionaries(KEYS, inner, max_size=3)
        | st.lists(st.dictionaries(KEYS, inner, min_size=1, max_size=2), max_size=2)
    ),
    max_leaves=6,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_every_key_is_found_on_a_line_that_holds_its_name(content: Any) -> None:
    text = tomlkit.dumps(content)
    document = tomllib.loads(text)
    lines = text.split("\n")
    keys = KeyLines(text)
    for key in document:
        line = keys.find((key,))
        assert line is not None
        rest = "\n".join(lines[line - 1 :])
        assert _first_key(rest) == key


def _first_key(text: str) -> str:
    lines = text.split("\n")
    for end in range(1, len(lines) + 1):
        try:
            parsed = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        if parsed:
            return next(iter(parsed))
    raise AssertionError(text)


def test_a_key_below_a_list_of_tables_is_found_in_its_own_entry() -> None:
    text = '[[a]]\nx = 1\n[a.b]\ny = 1\n[[a]]\nx = 2\n[a.b]\n"y" = """\n[z]\n"""\nq = 1'
    keys = KeyLines(text)
    assert keys.find(("a", 0, "x")) == 2
    assert keys.find(("a", 0, "b", "y")) == 4
    assert keys.find(("a", 1, "x")) == 6
    assert keys.find(("a", 1, "b", "y")) == 8
    assert keys.find(("a", 1, "b", "q")) == 11
    assert keys.find(("a", 1, "b", "missing")) == 7
    assert keys.find(("nothing",)) is None
