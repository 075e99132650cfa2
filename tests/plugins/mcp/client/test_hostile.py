"""Servers that hang, crash, flood or grow hurt nobody but themselves."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from agenthost import AgentHostError, Reports, ToolContext
from agenthost.testing.daemons import Daemons, RunningAgent

from .servers import PATIENCE, Fake, owner_of, start, tools_of, until
from .test_source import asked

MCP = 'mcp_servers = ["*"]'
MEGABYTES = 150


def resident() -> int:
    """The memory of this process, in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") // 2**20


def alive(pid: int) -> bool:
    with suppress(OSError):
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return words[0] != "Z"
    return False


def running(mark: str) -> list[int]:
    """The processes whose command line holds a mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return [pid for pid in found if alive(pid)]


@pytest.mark.faults
async def test_of_twenty_servers_those_that_are_well_answer(
    daemons: Daemons, tmp_path: Path
) -> None:
    odd = [Fake(tmp_path, name, name) for name in ("hang", "crash", "flood", "huge")]
    well = [Fake(tmp_path, f"s{n}", "echo") for n in range(16)]
    daemon = await start(daemons, *odd, *well, timeout_secs=300)
    before = resident()
    agents = [
        await daemon.agent(f"a{n}", tools=["mcp_*"], extra=MCP) for n in range(20)
    ]
    calls = [
        asyncio.create_task(called(agent, fake.name, fake.names[0]))
        for fake, agent in zip([*odd, *well], agents, strict=True)
    ]
    async with asyncio.timeout(PATIENCE):
        answers = await asyncio.gather(*calls[4:])
    assert answers == ["{}"] * 16
    async with asyncio.timeout(PATIENCE):
        wrong = await asyncio.gather(*calls[1:4])
    assert all("may have run" in each for each in wrong), wrong
    assert not calls[0].done()
    assert resident() - before < MEGABYTES
    said = await asked(agents[7], "mcp_s3_echo", a=1)
    assert said.text == '{"a": 1}'
    await until(lambda: "mcp_crash_crash" in tools_of(daemon))


async def called(agent: RunningAgent, server: str, tool: str) -> str:
    """Call a tool past the toolbox, whose time limits and pace are not judged here."""
    inside = ToolContext.of(agent.context(), agent.host.daemon, reports=Reports())
    try:
        return (await owner_of(agent.host, server).call(tool, inside, {})).text
    except AgentHostError as error:
        return error.message


@pytest.mark.faults
async def test_a_daemon_that_is_killed_leaves_no_child(tmp_path: Path) -> None:
    mark = f"77{random.randrange(10**7):07}"
    fake = Fake(tmp_path, "s", "echo", child=mark)
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('listen_addr = "127.0.0.1:0"\n' + fake.config())
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agenthost_cli", "start"),
        env={**os.environ, "AGENTHOST_HOME": str(home)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await until(lambda: running(mark) and running(str(fake.told)))
        assert len(running(str(fake.told))) == 2
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    await until(lambda: not running(mark) and not running(str(fake.told)))


@pytest.mark.conformance
async def test_a_daemon_that_stops_leaves_no_child(
    daemons: Daemons, tmp_path: Path
) -> None:
    mark = f"78{random.randrange(10**7):07}"
    fake = Fake(tmp_path, "s", "echo", child=mark)
    daemon = await start(daemons, fake)
    assert running(mark)
    await daemon.daemon.stop()
    await until(lambda: not running(mark) and not running(str(fake.told)))
