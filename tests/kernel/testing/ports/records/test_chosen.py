"""A daemon whose records are in memory holds conversations and writes no row."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from agenthost import RecordsBackend
from agenthost.testing import Daemons, MemoryRecords

from tests.kernel.plugins.entries import module


async def test_a_daemon_is_served_by_records_in_memory(daemons: Daemons) -> None:
    backend = RecordsBackend("memory", lambda _, clock: MemoryRecords(clock))
    plugin = module(register_backend=lambda: [backend])
    # Its entries ride in the commits of rows, and here there are none.
    config = (
        '[backends]\nrecords = "memory"\n'
        '[plugins]\ndisable = ["security:merkle_audit_trail"]\n'
    )
    running = await daemons.start(config=config, plugins=[plugin])
    agent = await running.agent("ada")
    assert await agent.ask("one") == "You said: one"
    assert await agent.ask("two") == "You said: two"
    assert [m.text for m in running.model.requests[1].messages] == [
        "one",
        "You said: one",
        "two",
    ]
    said = (await agent.session())["messages"]
    assert [each["content"] for each in said][::2] == ["one", "two"]
    assert (await running.daemon.usage.of_agent(agent.id)).requests == 2
    with closing(sqlite3.connect(running.daemon.data_dir / "agenthost.db")) as store:
        assert store.execute("select count(*) from messages").fetchone() == (0,)
