"""The stand-ins of the ports together are a daemon: no plugin serves one of them."""

from __future__ import annotations

from functools import partial

from agenthost import (
    ALLOW,
    AgentsBackend,
    Ask,
    Backend,
    CompactionBackend,
    FrontBackend,
    JobsBackend,
    ModelsBackend,
    Question,
    RecordsBackend,
    SettingsBackend,
    StoreBackend,
    ToolsBackend,
    TurnsBackend,
    VaultBackend,
    WorkersBackend,
)
from agenthost.testing import (
    CountingCompaction,
    Daemons,
    LoopbackFront,
    MemoryApprovals,
    MemoryJobs,
    MemoryRecords,
    MemorySettings,
    MemoryStore,
    MemoryVault,
    PlainAgents,
    PlainModels,
    PlainTools,
    PlainTurns,
    PlainWorkers,
    offering,
)
from agenthost.testing.ports.approvals import ADA
from agenthost.testing.ports.stage import until
from agenthost.testing.ports.workshop import Workshop


async def open_store(_url: str, schemas: object) -> MemoryStore:
    return MemoryStore(schemas)  # type: ignore[arg-type]  # reason: as it is handed on


STAND_INS: tuple[Backend, ...] = (
    StoreBackend("memory", open_store),
    SettingsBackend("memory", MemorySettings.open),
    VaultBackend("memory", lambda *_: MemoryVault()),
    RecordsBackend("memory", lambda _, clock: MemoryRecords(clock)),
    JobsBackend("memory", MemoryJobs),
    WorkersBackend("memory", PlainWorkers),
    CompactionBackend("memory", partial(CountingCompaction, above=100)),
    AgentsBackend("memory", PlainAgents),
    ModelsBackend("memory", PlainModels),
    ToolsBackend("memory", PlainTools),
    TurnsBackend("memory", PlainTurns),
    FrontBackend("memory", LoopbackFront),
)
# The audit trail's entries ride in the commits of rows, and here there are none.
WITHOUT = '[plugins]\ndisable = ["security:merkle_audit_trail"]\n'
STORED = '[storage]\nurl = "memory:"\n[backends]\napprovals = "memory"\n'
CHOSEN = (
    WITHOUT
    + STORED
    + "".join(f'{each.port} = "memory"\n' for each in STAND_INS if each.port != "store")
)


async def test_a_daemon_of_stand_ins_asks_a_person_and_goes_on(
    daemons: Daemons,
) -> None:
    shop = Workshop()
    ask = Ask(Question("Shall it be paid?"))
    shop.calls = lambda case: ask if case.tool == "pay" else ALLOW
    plugins = [*shop.plugins(), offering(*STAND_INS), MemoryApprovals.plugin()]
    running = await daemons.start(config=CHOSEN, plugins=plugins)
    agent = await running.agent(tools=["put", "pay"])
    running.model.calls_all(("put", {"amount": 1}), ("pay", {"amount": 2}))
    waits = (await agent.send("put one, pay two")).json()
    assert shop.log == ["put 1"]
    approvals = running.daemon.approvals
    assert isinstance(approvals, MemoryApprovals)
    await approvals.answer(ADA, waits["approval_id"], yes=True)

    async def done() -> bool:
        return "pay 2" in shop.log and not running.daemon.turns.running

    await until(done, "the turn went on")
    assert shop.log == ["put 1", "pay 2"]
    assert await agent.ask("hello") == "You said: hello"
