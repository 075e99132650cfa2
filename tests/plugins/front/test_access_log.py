"""The access log tells of every request by its ids, and nothing that was said."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from agenthost.testing import Daemons, RunningDaemon
from agenthost_front import access_log
from websockets.asyncio.client import connect

from .conftest import until

CANARY = "canary-7f3a9c1e5b"
JSON = '[server]\naccess_log = "json"\n'


class Heard(logging.Handler):
    """The lines that reached the logger, and a hand to hold its thread with."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.on = threading.Event()
        self.on.set()

    def emit(self, record: logging.LogRecord) -> None:
        self.on.wait(20)
        self.lines.append(record.getMessage())

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def heard() -> Iterator[Heard]:
    logger, handler = logging.getLogger("agenthost.access"), Heard()
    level, logger.level = logger.level, logging.INFO
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


async def told(heard: Heard, number: int) -> list[dict[str, Any]]:
    """Wait for so many lines and read them."""
    await until(lambda: len(heard.lines) >= number)
    return heard.told()


@pytest.mark.setting("server.access_log")
async def test_a_message_is_a_line_with_all_its_ids(
    daemons: Daemons, heard: Heard
) -> None:
    daemon = await daemons.start(config=JSON)
    agent = await daemon.agent()
    turns: list[str] = []
    daemon.daemon.turns.listen(lambda turn: turns.append(turn.id))
    answer = await agent.send("hello")
    line = (await told(heard, 2))[-1]
    assert line == {
        "time": line["time"],
        "client": "127.0.0.1",
        "method": "POST",
        "path": f"/api/agents/{agent.id}/message",
        "status": 200,
        "bytes": len(answer.content),
        "seconds": line["seconds"],
        "request_id": answer.headers["x-request-id"],
        "turn_id": turns[0],
        "agent_id": agent.id,
    }


async def test_a_line_of_text_tells_the_same(daemons: Daemons, heard: Heard) -> None:
    daemon = await daemons.start(config='[server]\naccess_log = "text"\n')
    agent = await daemon.agent()
    answer = await agent.send("hello")
    await until(lambda: len(heard.lines) >= 2)
    line = heard.lines[-1]
    assert f' 127.0.0.1 "POST /api/agents/{agent.id}/message" 200 ' in line
    assert f" request={answer.headers['x-request-id']} turn=" in line
    assert line.endswith(f" agent={agent.id}")


async def test_requests_at_once_keep_their_own_turns(
    daemons: Daemons, heard: Heard
) -> None:
    daemon = await daemons.start(config=JSON)
    agents = [await daemon.agent(f"agent-{n}") for n in range(8)]
    await asyncio.gather(*(agent.send("hello") for agent in agents))
    lines = [line for line in await told(heard, 16) if "turn_id" in line]
    assert {line["agent_id"] for line in lines} == {agent.id for agent in agents}
    for line in lines:
        assert line["path"] == f"/api/agents/{line['agent_id']}/message"
    assert len({line["turn_id"] for line in lines}) == 8


async def test_the_turn_of_a_called_agent_is_not_the_requests(
    daemons: Daemons, heard: Heard
) -> None:
    daemon = await daemons.start(config=JSON)
    boss = await daemon.agent("boss")
    await daemon.agent("clerk")
    daemon.model.calls("agent_call", agent_id="clerk", message="file this")
    await boss.ask("have it filed")
    assert (await told(heard, 3))[-1]["agent_id"] == boss.id


async def test_what_was_refused_is_told_too(daemons: Daemons, heard: Heard) -> None:
    environ = {"AGENTHOST_API_KEY": CANARY}
    daemon = await daemons.start(config=JSON, environ=environ)
    await daemon.http.get("/api/agents")
    await daemon.http.get("/nowhere")
    reader, writer = await asyncio.open_connection(*daemon.daemon.address.split(":"))
    writer.write(b"get / HTTP/1.1\r\n\r\n")
    await reader.read()
    writer.close()
    lines = await told(heard, 3)
    assert [line["status"] for line in lines] == [401, 401, 400]
    assert lines[0]["request_id"]


async def test_no_query_header_or_body_is_told(daemons: Daemons, heard: Heard) -> None:
    daemon = await daemons.start(config=JSON)
    agent = await daemon.agent()
    head = {"x-more": CANARY, "authorization": f"Bearer {CANARY}"}
    url = f"/api/agents/{agent.id}/message?key={CANARY}"
    await daemon.http.post(url, json={"message": CANARY}, headers=head)
    await daemon.http.get(f"/api/agents%3Fkey={CANARY}")
    await told(heard, 3)
    assert CANARY not in "".join(heard.lines)


async def test_a_path_cannot_forge_or_swell_a_line(
    daemons: Daemons, heard: Heard
) -> None:
    daemon = await daemons.start(config='[server]\naccess_log = "text"\n')
    await daemon.http.get("/a%22%20200%0a2026%1b[31m%E2%80%A8" + "b" * 5_000)
    await until(lambda: bool(heard.lines))
    (line,) = heard.lines
    assert line.isascii()
    assert line.isprintable()
    assert '"GET /a\\" 200\\n2026\\u001b[31m\\u2028bbb' in line
    assert len(line) < 1_200


async def test_a_socket_is_one_line_when_it_has_closed(
    daemons: Daemons, heard: Heard
) -> None:
    daemon = await daemons.start(config=JSON)
    agent = await daemon.agent()
    url = f"ws://{daemon.daemon.address}/api/agents/{agent.id}/ws"
    async with connect(url, proxy=None) as socket:
        await socket.send(json.dumps({"type": "message", "content": "hello"}))
        while json.loads(await socket.recv())["type"] != "response":
            pass
        assert len(heard.lines) <= 1
    line = (await told(heard, 2))[-1]
    assert (line["status"], line["agent_id"]) == (101, agent.id)
    assert line["turn_id"]


async def test_a_log_that_stands_still_holds_nothing_up(
    daemons: Daemons, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_log, "MOST_WAITING", 5)
    daemon = await daemons.start(config=JSON)
    heard.on.clear()
    for _ in range(20):
        assert (await daemon.http.get("/api/health")).status_code == 200
    assert not heard.lines
    heard.on.set()
    await until(lambda: len(heard.lines) >= 6)
    await daemon.daemon.stop()
    assert len(heard.lines) == 6


async def test_the_last_lines_are_written_before_the_end(heard: Heard) -> None:
    lines = access_log.Lines(access_log.Entry.as_json)
    lines.start()
    heard.on.clear()
    for number in range(50):
        lines.add(access_log.Entry(0.0, "", "GET", f"/{number}"))
    stop = asyncio.create_task(lines.stop())
    await asyncio.wait([stop], timeout=0.1)
    assert not stop.done()
    heard.on.set()
    await stop
    assert [line["path"] for line in heard.told()] == [f"/{n}" for n in range(50)]


async def test_a_reader_that_never_comes_does_not_keep_the_daemon(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_log, "PATIENCE", 0.01)
    lines = access_log.Lines(access_log.Entry.as_json)
    lines.start()
    heard.on.clear()
    lines.add(access_log.Entry(0.0, "", "GET", "/"))
    async with asyncio.timeout(30):
        await lines.stop()
    assert not heard.lines
    heard.on.set()
    await until(lambda: bool(heard.lines))


async def test_without_the_setting_there_is_neither_line_nor_thread(
    daemon: RunningDaemon, heard: Heard
) -> None:
    await daemon.http.get("/api/health")
    await daemon.daemon.stop()
    assert not heard.lines
    assert not [t for t in threading.enumerate() if t.name == "access-log"]
