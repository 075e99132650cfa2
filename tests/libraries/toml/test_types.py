"""Types of fields that know nothing of the program."""

from __future__ import annotations

from typing import Annotated

import pytest
from agenthost_toml.types import (
    Label,
    Lower,
    Table,
    is_loopback,
    shorthand,
    split_address,
    trimmed_line,
    unwritten,
)
from pydantic import ValidationError


class Named(Table):
    name: Annotated[str, Lower] = "none"
    label: Label = "x"


class Outer(Table):
    inner: Annotated[Named, shorthand("name")]


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("[::1]:0", ("::1", 0)),
        ("a.example:65535", ("a.example", 65_535)),
    ],
)
def test_an_address_comes_apart(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["80", ":80", "a:65536", "::1:80", "1.2.3:80"])
def test_a_wrong_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"must|port|bracket|host"):
        split_address(address)


def test_text_alone_stands_for_a_table() -> None:
    assert Outer.model_validate({"inner": "ANN"}).inner == Named(name="ann")


def test_a_line_is_trimmed_and_stays_one() -> None:
    assert trimmed_line("  key ") == "key"
    with pytest.raises(ValueError, match="one line"):
        trimmed_line("a\nb")


@pytest.mark.parametrize("label", ["", "-a", "a b", "a\n", "a" * 65, "ä"])
def test_a_label_is_a_short_plain_word(label: str) -> None:
    assert Named(label="a-1.b_2").label == "a-1.b_2"
    with pytest.raises(ValidationError, match="must be 1 to 64 letters"):
        Named(label=label)


def test_only_known_hosts_are_loopback() -> None:
    assert [is_loopback(h) for h in ("LocalHost", "127.9.9.9", "::1")] == [True] * 3
    assert not is_loopback("my.host")


def test_an_unwritten_table_has_its_defaults_and_builds_no_validator() -> None:
    class Leaf(Table):
        size: int = 3

    class Tree(Table):
        leaf: Leaf = unwritten(Leaf)

    assert not Leaf.__pydantic_complete__
    tree = Tree()
    assert tree.leaf == Leaf()
    assert Tree.model_validate({"leaf": {"size": 4}}).leaf.size == 4
    assert tree.model_dump_json(exclude_unset=True) == "{}"
    assert tree.model_dump_json() == '{"leaf":{"size":3}}'
