"""When schedules are due, where clocks skip and repeat, beside a model of the rules."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from agenthost import InvalidInput
from agenthost_orchestration.schedules.times import Times
from agenthost_orchestration.schedules.when import When
from hypothesis import given, settings
from hypothesis import strategies as st

from .model import DAY, TURNS, model


def local_times(when: When, start: str, count: int) -> list[str]:
    """Give the next times as the zone's clocks show them."""
    zone = ZoneInfo(when.zone)
    moment = datetime.fromisoformat(start).replace(tzinfo=zone).timestamp()
    found = []
    for _ in range(count):
        after = Times(when).after(moment)
        assert after is not None
        found.append(datetime.fromtimestamp(after, zone).strftime("%d %H:%M%z"))
        moment = after
    return found


@pytest.mark.parametrize(
    ("zone", "start", "cron", "due"),
    [
        ("Europe/Berlin", "2026-03-28T12:00", "30 2 * * *", "29 03:00+0200"),
        ("America/New_York", "2026-03-07T12:00", "30 2 * * *", "08 03:00-0400"),
        ("Australia/Lord_Howe", "2026-10-03T12:00", "15 2 * * *", "04 02:30+1100"),
        ("Europe/Berlin", "2026-10-24T12:00", "30 2 * * *", "25 02:30+0200"),
        ("America/New_York", "2026-10-31T12:00", "30 1 * * *", "01 01:30-0400"),
        ("Australia/Lord_Howe", "2026-04-04T12:00", "45 1 * * *", "05 01:45+1100"),
    ],
)
def test_a_local_time_that_is_skipped_or_repeated_is_due_once(
    zone: str, start: str, cron: str, due: str
) -> None:
    found = local_times(When(cron=cron, zone=zone), start, 2)
    assert found[0] == due
    assert found[1][:2] == f"{int(due[:2]) + 1:02}"


def test_in_the_second_of_two_equal_hours_what_was_due_in_the_first_is_over() -> None:
    second = datetime(2026, 10, 25, 1, 15, tzinfo=UTC).timestamp()
    due = Times(When(cron="30 2 * * *", zone="Europe/Berlin")).after(second)
    assert due == datetime(2026, 10, 26, 1, 30, tzinfo=UTC).timestamp()


def test_what_is_due_each_hour_goes_by_the_time_that_passes() -> None:
    hourly = When(cron="0 * * * *", zone="Europe/Berlin")
    assert local_times(hourly, "2026-03-29T00:30", 3) == [
        "29 01:00+0100",
        "29 03:00+0200",
        "29 04:00+0200",
    ]
    assert local_times(hourly, "2026-10-25T01:30", 3) == [
        "25 02:00+0200",
        "25 02:00+0100",
        "25 03:00+0100",
    ]


def test_an_interval_knows_no_local_time_and_keeps_its_beat() -> None:
    times = Times(When(every=3_600, zone="Europe/Berlin", anchor=1_800.0))
    assert [times.after(at) for at in (-2_000, 0, 1_800, 1_801.5)] == [
        -1_800 + 3_600 - 3_600,
        1_800,
        5_400,
        5_400,
    ]


def test_times_that_are_counted_and_the_last_of_them() -> None:
    times = Times(When(cron="0 12 29 2 *"))
    start = datetime(2025, 1, 1, tzinfo=UTC).timestamp()
    leap = datetime(2028, 2, 29, 12, tzinfo=UTC).timestamp()
    assert times.after(start) == leap
    assert times.last(start, leap - 1) is None
    assert times.last(start, leap + 400 * DAY) == leap
    assert times.count(start, leap + 5 * 366 * DAY, 10) == 2
    assert Times(When(cron="* * * * *")).count(start, start + DAY, 100) == 100


def test_quiet_hours_leave_out_what_lies_in_them() -> None:
    when = When(cron="0 */3 * * *", zone="Europe/Berlin", quiet="22:00-06:00")
    assert local_times(when, "2026-10-24T17:00", 4) == [
        "24 18:00+0200",
        "24 21:00+0200",
        "25 06:00+0100",
        "25 09:00+0100",
    ]
    never = When(cron="0 3 * * *", quiet="22:00-06:00")
    assert Times(never).after(0) is None
    minutely = When(cron="* * * * *", zone="Europe/Berlin", quiet="22:00-07:00")
    assert local_times(minutely, "2026-10-24T21:59", 1) == ["25 07:00+0100"]
    second = When(cron="*/10 * * * *", zone="Europe/Berlin", quiet="02:15-02:35")
    assert local_times(second, "2026-10-25T02:05", 6) == [
        "25 02:10+0200",
        "25 02:40+0200",
        "25 02:50+0200",
        "25 02:00+0100",
        "25 02:10+0100",
        "25 02:40+0100",
    ]


@pytest.mark.parametrize("text", ["", "x", "* * * *", "60 * * * *", "* * * * MONDAY"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="cron: "):
        Times(When(cron=text or " "))


MINUTES = st.sampled_from(["0", "15", "30", "45", "*/20", "7,59", "10-20/5", "*"])
HOURS = st.sampled_from(["1", "2", "1,2", "2-3", "*", "*/2", "0", "3", "23"])
DAYS = st.sampled_from(["*", "*", "*", "1-7", "*/2", "29"])
WEEKDAYS = st.sampled_from(["*", "*", "*", "0", "7", "1-5", "6,0"])


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_the_times_are_those_of_the_model(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(TURNS)))
    start = datetime.fromisoformat(data.draw(st.sampled_from(TURNS[name])))
    cron = " ".join(data.draw(each) for each in (MINUTES, HOURS, DAYS))
    cron += f" * {data.draw(WEEKDAYS)}"
    zone = ZoneInfo(name)
    since = start.replace(tzinfo=zone).timestamp() + data.draw(
        st.integers(0, 2 * DAY) | st.integers(0, 2 * 24).map(lambda half: half * 1_800)
    )
    until = start.replace(tzinfo=zone).timestamp() + 2 * DAY
    times = Times(When(cron=cron, zone=name))
    found, moment = [], times.after(since)
    while moment is not None and moment <= until:
        found.append(moment)
        moment = times.after(moment)
    expected = [at for at in model(cron, zone, start, 2) if since < at <= until]
    assert found == expected
    assert times.last(since, until) == (expected[-1] if expected else None)
