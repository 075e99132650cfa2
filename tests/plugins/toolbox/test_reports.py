"""What a tool reports while it runs is bounded, in line and soon over."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest
from agenthost import (
    AgentView,
    Context,
    Manifest,
    Principal,
    PrincipalKind,
    Reports,
    ToolContext,
    ToolProgress,
)
from agenthost.testing import ManualClock
from agenthost_toolbox.reports import EVERY, MOST_LINES, CallReports

from .making import call

WHO = Principal(PrincipalKind.AGENT, "ada")
AGENT = AgentView("1", "ada", cast("Manifest", None), "s")
INSIDE = Context(WHO, agent=AGENT, turn_id="t1")
Told = list[tuple[float, float | None, str]]


class Reported:
    """A tool's context whose reports are kept."""

    def __init__(self) -> None:
        self.told: Told = []
        self.clock = ManualClock()
        self.reports = CallReports(INSIDE, call("walk"), self.clock, self._take)
        self.context = ToolContext.of(INSIDE, cast("Any", None), self.reports)

    def _take(self, event: ToolProgress) -> None:
        self.told.append((event.done, event.total, event.text))


@pytest.fixture
def reported() -> Reported:
    return Reported()


async def test_progress_is_told_now_and_then(reported: Reported) -> None:
    for done in range(1_000):
        reported.context.progress(done)
    assert reported.told == [(0, None, "")]
    await reported.clock.advance(EVERY)
    reported.context.progress(1_000)
    assert reported.told[1:] == [(1_000, None, "")]


def test_the_end_is_told_at_once_and_once(reported: Reported) -> None:
    reported.context.progress(1, 2)
    for done in (2, 2, 0, 2, 3):
        reported.context.progress(done, 2)
    assert reported.told == [(1, 2, ""), (2, 2, "")]


def test_words_are_one_short_line(reported: Reported) -> None:
    reported.context.progress(1, 2, "a\n\tb " + "x" * 1_000)
    ((_, _, text),) = reported.told
    assert text.startswith("a b x")
    assert len(text) == 200


@pytest.mark.parametrize("done", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_passed_over(reported: Reported, done: float) -> None:
    reported.context.progress(done)
    assert reported.told == []
    reported.context.progress(1, done)
    assert reported.told == [(1, None, "")]


def test_a_line_of_log_names_tool_agent_and_turn(
    reported: Reported, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="agenthost")
    reported.context.log("debug", "one\n2026-01-01 error forged: line")
    reported.context.log("error", "two")
    reported.context.log("shout", "three")
    first, second, third = caplog.records
    assert first.getMessage() == (
        "tool walk, agent ada, turn t1: one 2026-01-01 error forged: line"
    )
    assert [r.levelname for r in (first, second, third)] == ["DEBUG", "ERROR", "INFO"]
    fields = {name: vars(first)[name] for name in ("tool", "agent", "turn")}
    assert fields == {"tool": "walk", "agent": "ada", "turn": "t1"}


def test_a_call_writes_so_many_lines_and_no_more(
    reported: Reported, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="agenthost")
    for _ in range(1_000):
        reported.context.log("info", "x" * 10_000)
    assert len(caplog.records) == MOST_LINES + 1
    assert "no more lines" in caplog.messages[-1]
    assert len(caplog.messages[0]) < 2_100


def test_a_call_that_has_ended_reports_nothing(
    reported: Reported, caplog: pytest.LogCaptureFixture
) -> None:
    reported.reports.end()
    reported.context.progress(1)
    reported.context.log("error", "late")
    assert reported.told == []
    assert not caplog.records


def test_a_context_without_a_turn_reports_to_nobody() -> None:
    context = ToolContext.of(INSIDE, cast("Any", None), Reports())
    context.progress(1, 2, "x")
    context.log("info", "x")
