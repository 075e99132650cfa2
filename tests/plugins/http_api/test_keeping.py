"""What summaries leave alone: pins, and summaries taken back."""

from __future__ import annotations

import asyncio

from agenthost.testing import Daemons, RunningAgent

CONFIG = "[compaction]\nthreshold_messages = 6\nkeep_recent = 2\n"


async def words(agent: RunningAgent) -> list[str]:
    """What the model was last sent."""
    return [m.text for m in agent.host.model.requests[-1].messages]


async def test_pins_stay_whole_and_a_summary_is_taken_back(daemons: Daemons) -> None:
    daemon = await daemons.start(config=CONFIG)
    agent, http = await daemon.agent(), daemon.http
    for number in range(4):
        await agent.ask(f"message {number}")
    session = (await agent.session())["session_id"]
    pins = f"/api/sessions/{session}/pins"
    assert (await http.put(f"{pins}/0")).json()["pinned"] == [0]

    async def told(command: str) -> str:
        path = f"/api/agents/{agent.id}/command"
        answer = await http.post(path, json={"command": command})
        return str(answer.json().get("response", answer.status_code))

    daemon.model.says("they counted")
    compact = f"/api/agents/{agent.id}/session/compact"
    assert (await http.post(compact)).json()["status"] == "compacted"
    await agent.ask("next")
    sent = await words(agent)
    assert sent[0].endswith("they counted")
    assert sent[1:] == ["message 0", "message 3", "You said: message 3", "next"]
    shown = (await agent.session())["messages"]
    assert [m["content"] for m in shown if m.get("pinned")] == ["message 0"]
    assert "stays whole" in await told("/pin 1")
    assert len((await agent.session())["messages"]) == len(shown) + 1

    # Twice at once, one summary is taken back and not two.
    both = [http.post(f"{compact}/undo") for _ in range(2)]
    states = sorted(each.json()["status"] for each in await asyncio.gather(*both))
    assert states == ["ok", "undone"]
    daemon.model.says("not a summary")
    assert await agent.ask("all of it?") == "not a summary"
    assert (await words(agent))[:2] == ["message 0", "You said: message 0"]
    assert "othing to undo" in await told("/undo")

    assert "stays whole" in await told("/pin")
    for wrong in ("/pin x", "/pin -1", "/pin \u0663", f"/pin {'9' * 500}", "/pin 999"):
        assert await told(wrong) in {"400", "404"}, wrong
    for path in (f"{pins}/999", f"{pins}/{'9' * 30}", f"{pins[:14]}{agent.id}/pins/0"):
        assert (await http.put(path)).status_code in {400, 404}, path
