"""A client that a generator makes of ``/openapi.json`` has types that hold, and works.

``make programs`` installs openapi-python-client into an environment of its own.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from agenthost.testing.daemons import Daemons

BIN = Path(__file__).parents[2] / ".cache/programs/openapi/bin"
KEY = "a-key-of-this-judge-0123456"
MANIFEST = 'name = "ada"\n[capabilities]\ntools = []\n'
LEFT_OUT = "Unsupported content_type */*"
"""Files, whatever they are: the generator makes no answer of them."""
STREAMS = {
    "client.py",
    "logs_read_logs.py",
    "mcp_server_hear_mcp.py",
    "mcp_server_speak_mcp_over_a_pipe.py",
    "messages_attach_to_turn.py",
    "messages_stream_message.py",
    "workflow_runs_watch_run.py",
}
"""Routes that answer with events alone: the generator reads text as an object; and how
its client leaves that of httpx, where httpx is there with its types."""
SCRIPT = """
import json, sys
from made import AuthenticatedClient
from made.api.agents import agents_create_agent, agents_list_agents
from made.api.messages import messages_send_message
from made.api.openai_chat import openai_chat_create_chat_completion
from made.api.system import system_status
from made.models import ChatBody, ChatCompletion, CreateAgent, SendMessage
from made.models.chat_body_messages_item import ChatBodyMessagesItem

url, key, manifest = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=key, raise_on_unexpected_status=True)
made = agents_create_agent.sync(client=client, body=CreateAgent(manifest_toml=manifest))
agents = agents_list_agents.sync(client=client)
said = messages_send_message.sync(
    made.agent_id, client=client, body=SendMessage(message="hello"))
hello = ChatBodyMessagesItem.from_dict({"role": "user", "content": "hello"})
chat = openai_chat_create_chat_completion.sync(
    client=client, body=ChatBody(model="service:ada", messages=[hello]))
assert isinstance(chat, ChatCompletion), chat
status = system_status.sync(client=client)
print(json.dumps([
    [agent.name for agent in agents], said.response,
    chat.choices[0].message.content, status.status,
]))
"""

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        not (BIN / "openapi-python-client").exists(), reason="make programs"
    ),
]


async def run(folder: Path, *argv: str) -> tuple[int | None, str, str]:
    """Run one of the environment's programs to its end."""
    process = await asyncio.create_subprocess_exec(
        str(BIN / argv[0]), *argv[1:], cwd=folder,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(300):
            said, wrong = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, said.decode(), wrong.decode()


async def test_a_generated_client_builds_types_and_calls(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n')
    shown = {"authorization": f"Bearer {KEY}"}
    document = await daemon.http.get("/openapi.json", headers=shown)
    (tmp_path / "openapi.json").write_bytes(document.content)
    code, said, wrong = await run(
        tmp_path, "openapi-python-client", "generate", "--path", "openapi.json",
        "--output-path", "made", "--meta", "none",
    )  # fmt: skip
    assert code == 0, wrong
    warnings = [line for line in (said + wrong).splitlines() if "Cannot" in line]
    assert [line for line in warnings if LEFT_OUT not in line] == []
    _, said, _ = await run(tmp_path, "mypy", "made")
    errors = [line for line in said.splitlines() if ": error: " in line]
    places = {Path(line.partition(":")[0]).name for line in errors}
    assert places <= STREAMS, said
    code, said, wrong = await run(
        tmp_path, "python", "-c", SCRIPT, daemon.url, KEY, MANIFEST
    )
    assert code == 0, wrong
    hello = "You said: hello"
    assert json.loads(said) == [["ada"], hello, hello, "running"]
