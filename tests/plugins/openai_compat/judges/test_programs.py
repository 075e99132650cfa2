"""Programs that people point at a base URL: ``llm``, and LiteLLM as a library.

``make programs`` installs each into an environment of its own under ``.cache``.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
import pytest_asyncio
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost.testing.scripted import MODEL

CACHE = Path(__file__).parents[4] / ".cache"
LLM = CACHE / "programs/llm/bin/llm"
LITELLM = CACHE / "litellm/bin/python"
KEY = "a-key-of-this-judge-0123456"
DIRECT = f"scripted/{MODEL}"

pytestmark = pytest.mark.conformance
without_llm = pytest.mark.skipif(not LLM.exists(), reason="make programs")
without_litellm = pytest.mark.skipif(not LITELLM.exists(), reason="make programs")

MODELS = """
- model_id: ada
  model_name: service:ada
  api_base: {url}/v1
  api_key_name: ours
  supports_tools: true
  supports_schema: true
- model_id: direct
  model_name: {direct}
  api_base: {url}/v1
  api_key_name: ours
  supports_tools: true
  supports_schema: true
"""
TOOL = '''
def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"
'''
SCHEMA = json.dumps({"type": "object", "properties": {"name": {"type": "string"}}})
SCENARIO = """
import asyncio, json, sys
import litellm

url, key, models = sys.argv[1], sys.argv[2], sys.argv[3:]
hello = [{"role": "user", "content": "hello"}]
tool = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}}}}
seen = {}
for model in models:
    asked = dict(model=f"openai/{model}", api_base=url, api_key=key, num_retries=0)
    whole = litellm.completion(messages=hello, **asked)
    stream = litellm.completion(messages=hello, stream=True, **asked)
    words = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    called = litellm.completion(messages=hello, tools=[tool], **asked)
    (call,) = called.choices[0].message.tool_calls
    later = asyncio.run(litellm.acompletion(messages=hello, **asked))
    seen[model] = [
        whole.choices[0].message.content, whole.usage.total_tokens, words,
        json.loads(call.function.arguments), called.choices[0].finish_reason,
        later.choices[0].message.content,
    ]
try:
    litellm.completion(
        model="openai/service:nobody", messages=hello, api_base=url, api_key=key,
        num_retries=0,
    )
except litellm.NotFoundError:
    seen["nobody"] = "not found"
print(json.dumps(seen))
"""


@pytest_asyncio.fixture
async def daemon(daemons: Daemons) -> RunningDaemon:
    config = f'api_key = "{KEY}"\n[openai]\npassthrough = true\n'
    running = await daemons.start(config=config)
    running.http.headers["authorization"] = f"Bearer {KEY}"
    await running.agent("ada")
    return running


async def run(*argv: str | Path, **environ: str) -> str:
    """Run a program to its end and give what it says."""
    process = await asyncio.create_subprocess_exec(
        *map(str, argv),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environ},
    )  # fmt: skip
    try:
        async with asyncio.timeout(120):
            said, wrong = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, wrong.decode()
    return said.decode().strip()


@without_llm
@pytest.mark.parametrize("model", ["ada", "direct"])
async def test_llm_prompts_streams_goes_on_and_calls_its_tools(
    daemon: RunningDaemon, tmp_path: Path, model: str
) -> None:
    told = MODELS.format(url=daemon.url, direct=DIRECT)
    (tmp_path / "extra-openai-models.yaml").write_text(told)
    (tmp_path / "keys.json").write_text(json.dumps({"ours": KEY}))
    (tmp_path / "tools.py").write_text(TOOL)
    home = {"LLM_USER_PATH": str(tmp_path)}
    assert await run(LLM, "-m", model, "hello", **home) == "You said: hello"
    whole = await run(LLM, "-m", model, "--no-stream", "hello", **home)
    assert whole == "You said: hello"
    assert await run(LLM, "-c", "again", **home) == "You said: again"
    assert len(daemon.model.requests[-1].messages) == 3
    daemon.model.calls("weather", city="Rome")
    daemon.model.says("It is sunny in Rome.")
    tools = ("--functions", tmp_path / "tools.py")
    said = await run(LLM, "-m", model, *tools, "the weather?", **home)
    assert said == "It is sunny in Rome."
    (result,) = daemon.model.requests[-1].messages[-1].parts
    assert getattr(result, "text", "") == "sunny in Rome"
    daemon.model.says('{"name": "Rome"}')
    said = await run(LLM, "-m", model, "--schema", SCHEMA, "a city", **home)
    assert json.loads(said) == {"name": "Rome"}


@without_litellm
async def test_litellm_asks_agents_and_models(daemon: RunningDaemon) -> None:
    for _ in range(2):
        daemon.model.says("fine")
        daemon.model.says("one ", "two")
        daemon.model.calls("weather", city="Rome")
        daemon.model.says("later")
    names = "service:ada", DIRECT
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    said = await run(LITELLM, "-c", SCENARIO, f"{daemon.url}/v1", KEY, *names, **quiet)
    each = ["fine", 15, "one two", {"city": "Rome"}, "tool_calls", "later"]
    assert json.loads(said.splitlines()[-1]) == {
        names[0]: each,
        names[1]: each,
        "nobody": "not found",
    }
