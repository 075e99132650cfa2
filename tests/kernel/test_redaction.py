"""No secret is left in a text, however somebody wrote it there."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote

from agenthost import redacted, secrets_of
from agenthost.testing import Daemons
from hypothesis import given
from hypothesis import strategies as st

LETTERS = st.characters(
    codec="utf-8", exclude_characters=":*.<>", exclude_categories=("Z", "C")
)
PARTS = st.text(LETTERS, min_size=12, max_size=40)
KEYS = st.lists(PARTS, min_size=1, max_size=3).map(":".join)
WRITTEN: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in a URL": lambda key: quote(key, safe=""),
    "in JSON": lambda key: json.dumps(key)[1:-1],
    "in JSON of any letters": lambda key: json.dumps(key, ensure_ascii=False)[1:-1],
    "as Python shows it": lambda key: repr(key)[1:-1],
    "in base64": lambda key: b64encode(key.encode()).decode(),
    "in base64 for URLs": lambda key: urlsafe_b64encode(key.encode()).decode(),
    "behind another in base64": lambda key: b64encode(b"user:" + key.encode()).decode(),
}


@given(KEYS, st.sampled_from(sorted(WRITTEN)), st.data())
def test_no_part_of_a_key_is_left(key: str, way: str, data: st.DataObject) -> None:
    part = data.draw(st.sampled_from([key, *key.split(":")]))
    left = redacted(f"<{part}>", [key])
    assert part[:8] not in left
    # Whatever the encoding: what stands between the brackets is gone, its end apart.
    left = redacted(f"<{WRITTEN[way](part)}>", [key])
    assert WRITTEN[way](part)[8:16] not in left or way.startswith("behind")
    assert "***" in left


@given(KEYS, st.integers(8, 40))
def test_a_beginning_of_eight_characters_is_enough(key: str, size: int) -> None:
    for part in key.split(":"):
        cut = part[: max(size, 8)]
        assert redacted(f"key {cut}... is wrong", [key]) == "key ***... is wrong"


def test_what_is_no_secret_stays() -> None:
    text = "the model m-5 is overloaded; try again"
    assert redacted(text, ["sk-abcdefghijkl", "AKIA0123456789AB:wJalrXUtnFEMI"]) == text
    assert redacted(text, ["", "  "]) == text


def test_a_key_of_few_characters_is_taken_out_too() -> None:
    assert redacted("key a-key is wrong", ["a-key"]) == "key *** is wrong"
    assert redacted("key xy is wrong", [" xy\n"]) == "key *** is wrong"


async def test_values_of_few_characters_are_no_secrets_of_a_daemon(
    daemons: Daemons,
) -> None:
    """They stand in any text: a log without each "a" could not be read."""
    values = {"A_TOKEN": "a", "B_KEY": "12345", "C_SECRET": "123456", "PATH": "/bin"}
    running = await daemons.start(environ=values)
    secrets = secrets_of(running.daemon)
    assert "123456" in secrets
    assert not {"a", "12345", "/bin"} & {*secrets}


def test_of_a_key_in_json_what_is_secret_is_taken_out() -> None:
    key = json.dumps(
        {
            "type": "service_account",
            "token_uri": "https://oauth2.example/token",
            "private_key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n",
        }
    )
    said = 'POST https://oauth2.example/token: {"type": "service_account"} is refused'
    assert redacted(said, [key]) == said
    assert "MIIEvQIBADANBg" not in redacted(f"<{key}>", [key])
    left = redacted('"-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBg\\n"', [key])
    assert "MIIEvQIBADANBg" not in left


def test_both_halves_of_a_composite_key_are_taken_out() -> None:
    key = "AKIA0123456789ABCDEF:wJalrXUtnFEMI/K7MDENG+bPxRfiCY"
    said = "AKIA0123456789ABCDEF signed with wJalrXUtnFEMI/K7MDENG+bPxRfiCY is refused"
    assert redacted(said, [key]) == "*** signed with *** is refused"
