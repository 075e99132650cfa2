"""The GET by which a vendor sees that a path is ours."""

import pytest
from agenthost import Secret, Unauthenticated
from agenthost_channels.contract import Knock
from agenthost_channels.transports.challenge import answered

TOKEN = Secret("meatyhamhock")
# The sample of Meta's page.
SAMPLE = {
    "hub.mode": "subscribe",
    "hub.challenge": "1158201444",
    "hub.verify_token": "meatyhamhock",
}


def knock(**changed: str) -> Knock:
    query = {**SAMPLE, **{f"hub.{name}": value for name, value in changed.items()}}
    return Knock("GET", "/webhook", query, {}, b"")


def test_the_sample_of_metas_page_is_answered() -> None:
    opened = answered(knock(), TOKEN)
    assert (opened.status, opened.body) == (200, b"1158201444")
    assert opened.media_type == "text/plain"
    assert not opened.messages


@pytest.mark.parametrize(
    "changed",
    [
        {"verify_token": "meatyhamhoc"},
        {"verify_token": ""},
        {"verify_token": "\udc80"},
        {"mode": "unsubscribe"},
        {"challenge": ""},
        {"challenge": "1" * 201},
        {"challenge": "<b>\n"},
    ],
    ids=range(7),
)
def test_whoever_does_not_know_the_token_gets_nothing(changed: dict[str, str]) -> None:
    with pytest.raises(Unauthenticated):
        answered(knock(**changed), TOKEN)


@pytest.mark.parametrize("token", [None, Secret("")])
def test_without_a_token_nobody_knows_it(token: Secret | None) -> None:
    with pytest.raises(Unauthenticated):
        answered(knock(verify_token=""), token)
