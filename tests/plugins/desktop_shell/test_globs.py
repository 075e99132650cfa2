"""Section 5 of the semantics, and the dialect against a matcher of its own."""

from __future__ import annotations

import pytest
from agenthost_desktop_shell.globs import check_glob, matches
from agenthost_desktop_shell.labels import label_index
from hypothesis import example, given
from hypothesis import strategies as st

FACTS = [
    ("main", "main", True),
    ("main", "Main", False),
    ("main", " main", False),
    ("", "main", False),
    ("", "", False),
    ("*", "a/b", True),
    ("*", "", True),
    ("a?c", "a/c", True),
    ("a?c", "ac", False),
    ("[abc]", "b", True),
    ("[a-z]", "q", True),
    ("[a-z]", "Q", False),
    ("[z-a]", "q", False),
    ("[!x]", "y", True),
    ("[!x]", "x", False),
    ("[]]", "]", True),
    ("[!]]", "]", False),
    ("[-a]", "-", True),
    ("[*]", "*", True),
    ("[*]", "a", False),
    ("{a,b}", "{a,b}", True),
    ("{a,b}", "a", False),
    (r"\*", r"\x", True),
    (r"\*", "*", False),
    ("**", "a/b/c", True),
    ("x/**", "x/y/z", True),
    ("x/**", "x/", True),
    ("x/**", "x", False),
    ("**/y", "y", True),
    ("**/y", "a/b/y", True),
    ("**/y", "ay", False),
    ("a/**/b", "a/b", True),
    ("a/**/b", "a/x/y/b", True),
    ("a/**/b", "ab", False),
    ("*", ".hidden", True),
    ("admin-*", "admin-1", True),
    ("admin-*", "admin-", True),
    ("admin-*", "xadmin-1", False),
    ("a.c", "abc", False),
    ("*", "a\nb", True),
    ("a", "a\n", False),
    ("ü*", "über", True),
]


@pytest.mark.parametrize(("glob", "label", "expected"), FACTS)
def test_globs_match_like_the_reference(glob: str, label: str, expected: bool) -> None:
    assert matches(glob, label) is expected


@pytest.mark.parametrize(
    "glob", ["ma**in", "***", "a**", "**a", "x/**y", "[", "[a", "[]", "[!]", "a[!"]
)
def test_malformed_globs_are_refused(glob: str) -> None:
    with pytest.raises(ValueError, match="write"):
        check_glob(glob)


def _independent(glob: str, label: str) -> bool:  # noqa: PLR0911 - a case each
    """Match by trying every split, straight from the description of the dialect."""
    if not glob:
        return not label
    if glob.startswith("**"):
        rest = glob[3:]
        if len(glob) == 2:
            return True
        starts = [0, *(i + 1 for i, c in enumerate(label) if c == "/")]
        return any(_independent(rest, label[start:]) for start in starts)
    if glob[0] == "*":
        return any(_independent(glob[1:], label[i:]) for i in range(len(label) + 1))
    if not label:
        return False
    if glob[0] == "[":
        negated = glob[1] == "!"
        start = 2 if negated else 1
        end = glob.index("]", start + 1)
        found = _member(glob[start:end], label[0])
        return found is not negated and _independent(glob[end + 1 :], label[1:])
    same = glob[0] in {"?", label[0]}
    return same and _independent(glob[1:], label[1:])


def _member(body: str, character: str) -> bool:
    while body:
        if len(body) >= 3 and body[1] == "-":
            if body[0] <= character <= body[2]:
                return True
            body = body[3:]
        elif body[0] == character:
            return True
        else:
            body = body[1:]
    return False


@given(
    st.text(alphabet="ab/*?[]!-.", max_size=8), st.text(alphabet="ab/]-!.", max_size=8)
)
@example("**/**", "a/b")
@example("**/*", "")
@example("a/**/**/b", "a/x/b")
def test_globs_agree_with_an_independent_matcher(glob: str, label: str) -> None:
    try:
        check_glob(glob)
    except ValueError:
        return
    assert matches(glob, label) is (bool(glob) and _independent(glob, label))


def test_a_glob_of_many_stars_stays_fast_on_a_long_label() -> None:
    assert not matches("*a" * 50 + "b", "a" * 5000)


GLOBS = sorted({glob for glob, _, _ in FACTS})


@pytest.mark.parametrize("label", sorted({label for _, label, _ in FACTS}))
def test_the_index_of_labels_finds_what_each_glob_matches(label: str) -> None:
    index = label_index((glob, 1 << n) for n, glob in enumerate(GLOBS))
    expected = sum(1 << n for n, glob in enumerate(GLOBS) if matches(glob, label))
    assert index(label) == expected
