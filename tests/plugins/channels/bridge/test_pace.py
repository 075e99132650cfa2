"""So many a minute: at once, then steadily, and never more memory than it has."""

import pytest
from agenthost import RateLimited
from agenthost_channels.bridge import pace
from agenthost_channels.bridge.pace import Pace, network


class Time:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def taken(pace: Pace, count: int, who: str = "a") -> int:
    """Tell how many of so many were let in."""
    good = 0
    for _ in range(count):
        try:
            pace.take(who)
            good += 1
        except RateLimited:
            pass
    return good


def test_a_minutes_worth_at_once_then_steadily() -> None:
    time = Time()
    limited = Pace(time, 600, "wait {wait} s")
    assert taken(limited, 700) == 600
    assert taken(limited, 700, "b") == 600
    time.now += 1
    assert taken(limited, 700) == 10
    time.now += 3600
    assert taken(limited, 700) == 600
    with pytest.raises(RateLimited, match="wait 1 s") as told:
        limited.take("a")
    assert told.value.window == (600, 0, 1)


def test_what_is_given_back_may_be_used_again() -> None:
    limited = Pace(Time(), 3, "wait {wait} s")
    assert taken(limited, 4) == 3
    limited.give_back("a")
    limited.give_back("nobody")
    assert taken(limited, 4) == 1
    assert taken(limited, 4, "nobody") == 3


def test_it_remembers_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "REMEMBERED", 10)
    time = Time()
    limited = Pace(time, 2, "wait {wait} s")
    assert taken(limited, 3, "a") == 2
    for number in range(50):
        limited.take(str(number))
    # Who owes most is not forgotten for those who owe little.
    assert len(limited._paid_off) == 10
    assert taken(limited, 1, "a") == 0
    time.now += 3600
    limited.take("new")
    assert [*limited._paid_off] == ["new"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::1", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "no address", True),
    ],
)
def test_an_address_belongs_to_somebody(one: str, other: str, *, same: bool) -> None:
    assert (network(one) == network(other)) is same
