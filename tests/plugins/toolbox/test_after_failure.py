"""What changes something waits until the model has read of a failure."""

from __future__ import annotations

from agenthost import ToolOutput
from agenthost.testing.daemons import RunningDaemon


async def test_a_write_behind_a_failure_is_not_made_until_it_is_asked_for_again(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    write = ("file_write", {"path": "report.md", "content": "found nothing"})
    daemon.model.calls_all(("file_read", {"path": "missing.md"}), write)
    daemon.model.calls_all(write)
    daemon.model.says("Done.")
    await agent.ask("Summarise missing.md")
    told = daemon.model.requests[1].messages[-1].parts
    outputs = [part for part in told if isinstance(part, ToolOutput)]
    assert [output.is_error for output in outputs] == [True, True]
    assert "not run, because file_read failed before it" in outputs[1].text
    files = daemon.daemon.files.workspace(agent.id)
    assert files.read("report.md", 100) == b"found nothing"
    (again,) = daemon.model.requests[2].messages[-1].parts
    assert isinstance(again, ToolOutput)
    assert not again.is_error


async def test_a_write_before_a_failure_is_made_and_a_read_behind_it_too(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    daemon.model.calls_all(
        ("file_write", {"path": "a.md", "content": "a"}),
        ("file_read", {"path": "missing.md"}),
        ("file_read", {"path": "a.md"}),
    )
    await agent.ask("go")
    told = daemon.model.requests[1].messages[-1].parts
    outputs = [part for part in told if isinstance(part, ToolOutput)]
    assert [output.is_error for output in outputs] == [False, True, False]
