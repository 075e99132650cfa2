"""What somebody does to rows or heads without the key is found, and where."""

from __future__ import annotations

from random import Random

import pytest
from agenthost_security.merkle_audit_trail import heads as signed
from agenthost_security.merkle_audit_trail.signing import SigningKey

from .tampering import WAYS, Kept, kept, tried

ROUNDS = 60


@pytest.fixture(scope="module")
def trail() -> Kept:
    return kept(40)


def test_a_trail_that_nobody_touched_is_good(trail: Kept) -> None:
    assert trail.break_at() is None


@pytest.mark.parametrize("way", WAYS)
def test_what_was_done_to_the_rows_is_found(trail: Kept, way: str) -> None:
    random = Random(way)
    for _ in range(ROUNDS):
        assert tried(WAYS[way], trail, random) == (True, True), way


def test_a_head_that_was_changed_is_found(trail: Kept) -> None:
    for name in ("size", "root", "last_hash", "at", "number", "key", "signature"):
        for place in range(len(trail.heads)):
            heads = [dict(head) for head in trail.heads]
            value = heads[place][name]
            heads[place][name] = value + 1 if isinstance(value, int) else value[::-1]
            assert Kept(trail.rows, heads, trail.public).break_at() is not None, name


def test_heads_of_another_key_are_found(trail: Kept) -> None:
    other = SigningKey(bytes(31) + b"\x01")
    heads: list[dict[str, object]] = []
    for head in trail.heads:
        told = {k: v for k, v in head.items() if k not in {"signature", "key"}}
        told["before"] = signed.digest_of(heads[-1] if heads else None)
        heads.append(signed.made(other, told))
    assert Kept(trail.rows, heads, trail.public).break_at() is not None
    assert Kept(trail.rows, heads, other.public).break_at() is None


def test_a_line_taken_out_of_the_heads_is_found(trail: Kept) -> None:
    for place in range(len(trail.heads) - 1):
        heads = [*trail.heads[:place], *trail.heads[place + 1 :]]
        assert Kept(trail.rows, heads, trail.public).break_at() is not None
