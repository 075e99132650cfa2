"""Logs never show a credential."""

from __future__ import annotations

import logging
import sys

import pytest
from agenthost_cli.logs import LineFormatter, redacted

CANARY = "s3cr3t-canary-value"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {CANARY}",
        f"api_key={CANARY}",
        f'{{"api_key": "{CANARY}"}}',
        f"https://x.example/?token={CANARY}&a=1",
        f"password: {CANARY}",
        "sk-s3cr3tcanaryvalue1234",
    ],
)
def test_a_credential_is_blotted_out(text: str) -> None:
    assert "s3cr3t" not in redacted(text)
    assert "***" in redacted(text)


@pytest.mark.parametrize("text", ["tokens=1234 were used", "the task is skilled"])
def test_plain_words_stay(text: str) -> None:
    assert redacted(text) == text


def test_a_traceback_is_redacted_too() -> None:
    try:
        int(f"api_key={CANARY}")
    except ValueError:
        record = logging.LogRecord(
            "agenthost", logging.ERROR, "", 0, "failed %s", ("x",), sys.exc_info()
        )
    line = LineFormatter().format(record)
    assert "error agenthost: failed x" in line
    assert CANARY not in line
