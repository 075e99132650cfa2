"""TOML of strangers: a document, or a place and what is wrong there."""

from __future__ import annotations

import pytest
from agenthost_toml.parse import TomlSyntax, parse_toml

DEEP = "nested deeper than 64 levels"


def test_a_document_is_parsed() -> None:
    assert parse_toml("a.b = [1, {c = 2}]") == {"a": {"b": [1, {"c": 2}]}}


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("a = 1\n = 2", 2, 2, "Invalid statement"),
        ('a = "', 1, 6, "the text ends here"),
        ("a = 1\na = 2", 2, 6, "Cannot overwrite a value"),
        ("x = 1\n" + "a." * 70 + "a = 1", 2, 1, DEEP),
        ("a = " + "[" * 70 + "]" * 70, 1, 1, DEEP),
        ("a = " + "[" * 100_000, 1, 1, DEEP),
        ("a = " + "9" * 5_000, 1, 1, "a whole number has too many digits"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    text: str, line: int, column: int, problem: str
) -> None:
    with pytest.raises(TomlSyntax) as caught:
        parse_toml(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert problem in caught.value.problem
