"""What a failing store did not take is written later, or before the next turn."""

from __future__ import annotations

import asyncio

import pytest
from agenthost import NotFound, Step, Unavailable
from agenthost_records import late
from agenthost_records.late import LateSteps


class Rows:
    """A store that may be full, or slow with what one turn writes."""

    full = False
    slow = ""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.never: dict[str, Exception] = {}
        self.came = asyncio.Event()
        self.waits: asyncio.Future[None] | None = None

    def write(self, step: Step) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if step.turn_id == self.slow:
            self.waits = done
            self.came.set()
        elif self.full:
            done.set_exception(Unavailable("full"))
        elif (error := self.never.get(step.turn_id)) is not None:
            done.set_exception(error)
        else:
            self.kept.append(step.turn_id)
            self.came.set()
            done.set_result(None)
        return done


async def test_a_late_step_is_written_before_its_sessions_next_turn() -> None:
    rows = Rows()
    steps = LateSteps(rows.write)
    steps.keep(Step("s1", "t1", 0.0))
    steps.keep(Step("s2", "t2", 0.0))
    await steps.close("s1")
    assert rows.kept == ["t1"]
    await steps.close("s1")
    assert rows.kept == ["t1"]
    await steps.stop()


async def test_a_session_does_not_go_on_while_its_step_cannot_be_written() -> None:
    rows = Rows()
    rows.full = True
    steps = LateSteps(rows.write)
    steps.keep(Step("s1", "t1", 0.0))
    with pytest.raises(Unavailable):
        await steps.close("s1")
    rows.full = False
    await steps.close("s1")
    assert rows.kept == ["t1"]
    await steps.stop()


async def test_what_no_store_will_take_is_tried_beside_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(late, "TRY_AFTER", 0.0)
    rows = Rows()
    rows.never["bad"] = ValueError("no such number")
    steps = LateSteps(rows.write)
    steps.keep(Step("s1", "bad", 0.0))
    steps.keep(Step("s2", "t2", 0.0))
    await asyncio.wait_for(rows.came.wait(), 30)
    with pytest.raises(ValueError, match="no such number"):
        await steps.close("s1")
    assert rows.kept == ["t2"]
    await steps.stop()


async def test_of_a_deleted_session_nothing_is_left_to_write() -> None:
    rows = Rows()
    rows.never["gone"] = NotFound("session", "s1")
    steps = LateSteps(rows.write)
    steps.keep(Step("s1", "gone", 0.0))
    await steps.close("s1")
    rows.never.clear()
    await steps.close("s1")
    assert rows.kept == []
    await steps.stop()


async def test_a_late_step_is_tried_again_until_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(late, "TRY_AFTER", 0.0)
    rows = Rows()
    steps = LateSteps(rows.write)
    steps.keep(Step("s1", "t1", 0.0))
    await asyncio.wait_for(rows.came.wait(), 30)
    assert rows.kept == ["t1"]
    before = asyncio.all_tasks()
    rows.full = True
    steps.keep(Step("s1", "t2", 0.0))
    await steps.stop()
    assert asyncio.all_tasks() == before


async def test_a_late_step_is_written_once_also_when_others_are_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(late, "TRY_AFTER", 0.0)
    rows = Rows()
    rows.slow = "t1"
    steps = LateSteps(rows.write)
    before = asyncio.all_tasks()
    steps.keep(Step("s1", "t1", 0.0))
    steps.keep(Step("s2", "t2", 0.0))
    [trying] = asyncio.all_tasks() - before
    await asyncio.wait_for(rows.came.wait(), 30)
    await steps.close("s2")
    assert rows.waits is not None
    rows.waits.set_result(None)
    await asyncio.wait_for(trying, 30)
    assert rows.kept == ["t2"]
