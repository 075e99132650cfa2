"""An emoji says that a message is being answered, and whether it was."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from agenthost import ProviderFault
from agenthost.testing import Daemons, Pause
from agenthost_channels.bridge.marks import DONE, FAILED, SEEN
from agenthost_channels.contract import Adapter, Facts, Outbound, Sent

from .pager import BUSY, CONFIG, LOST, Pager, said
from .test_bridge import quiet, started

FACTS = Facts("pager", "Pager", "test", "", reactions=True)
MARKING = CONFIG + "reactions = true\n"


class Board(Pager):
    """A pager whose messages can have an emoji."""

    def __init__(self, facts: Facts = FACTS) -> None:
        super().__init__()
        self.facts = facts
        self.marks: list[tuple[str, str]] = []
        self.answers: list[Sent | Exception] = []
        self.held: asyncio.Event | None = None

    def adapter(self) -> type[Adapter]:
        board = self

        class Marking(super().adapter()):  # type: ignore[misc]  # reason: made on the spot
            facts = board.facts

            async def send(self, message: Outbound) -> Sent:
                if not message.reaction:
                    sent: Sent = await super().send(message)
                    return sent
                if board.held is not None:
                    await board.held.wait()
                board.marks.append((message.reply_to, message.reaction))
                board.changed.set()
                answer = board.answers.pop(0) if board.answers else BUSY
                if isinstance(answer, Exception):
                    raise answer
                return answer

        return Marking


@pytest.mark.setting("channels.<name>.reactions")
async def test_a_message_is_marked_before_and_after(daemons: Daemons) -> None:
    board, pause = Board(), Pause()
    running = await started(daemons, board, MARKING)
    line = await board.line()
    running.model.says("one ", pause, "two")
    await line.received(said("count"))
    await pause.reached.wait()
    await board.until(lambda: board.marks == [("m1", SEEN)])
    pause.go_on()
    await board.until(lambda: len(board.marks) == 2)
    assert board.marks[-1] == ("m1", DONE)
    running.model.fails(ProviderFault.AUTH)
    await line.received(said("again", 2))
    await board.until(lambda: len(board.marks) == 4)
    assert board.marks[2:] == [("m2", SEEN), ("m2", FAILED)]
    # A command is answered at once.
    await line.received(said("/help", 3))
    await quiet(running)
    assert len(board.marks) == 4


async def test_nobody_waits_for_a_mark_and_one_that_fails_costs_nothing(
    daemons: Daemons,
) -> None:
    board = Board()
    board.held = asyncio.Event()
    board.answers = [LOST, RuntimeError("broken")]
    running = await started(daemons, board, MARKING)
    line = await board.line()
    await line.received(said("hello"))
    await quiet(running)
    assert [each.text for each in board.sent] == ["You said: hello"]
    assert board.marks == []
    board.held.set()
    await board.until(lambda: len(board.marks) == 2)
    # In their order, and none twice.
    assert board.marks == [("m1", SEEN), ("m1", DONE)]


@pytest.mark.parametrize(
    ("config", "facts"), [(CONFIG, FACTS), (MARKING, replace(FACTS, reactions=False))]
)
async def test_none_is_put_where_it_is_not_wanted_or_cannot_be(
    daemons: Daemons, config: str, facts: Facts
) -> None:
    board = Board(facts)
    running = await started(daemons, board, config)
    line = await board.line()
    await line.received(said("hello"))
    await quiet(running)
    await running.daemon.clock.sleep(0.05)
    assert board.marks == []


async def test_what_was_stopped_is_not_told_to_have_failed(daemons: Daemons) -> None:
    board, pause = Board(), Pause()
    running = await started(daemons, board, MARKING)
    line = await board.line()
    running.model.says("one ", pause, "two")
    await line.received(said("count"))
    await pause.reached.wait()
    await line.received(said("/stop", 2))
    await quiet(running)
    await running.daemon.stop()
    assert board.marks == [("m1", SEEN)]
