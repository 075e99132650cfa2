"""What reaches a vendor through us is what its own client would have sent.

aimock's journal is the judge: each request is sent to it by the vendor's client itself,
and by OpenAI's client through the daemon. Where the two differ, a table says why.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from agenthost.testing.daemons import Daemons, RunningDaemon

WHY = "needs agenthost[judges]"
openai = pytest.importorskip("openai", reason=WHY)
anthropic = pytest.importorskip("anthropic", reason=WHY)

ROOT = Path(__file__).parents[4]
CLI = ROOT / ".cache/npm/node_modules/@copilotkit/aimock/dist/cli.js"
NODE = shutil.which("node")

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        NODE is None or not CLI.exists(),
        reason="needs node and aimock in .cache/npm; make judges installs it",
    ),
]

FIXTURES = {"fixtures": [{"match": {}, "response": {"content": "Fine."}}]}
CONFIG = """
[openai]
passthrough = true

[providers.openai]
base_url = "{url}/v1"

[providers.anthropic]
base_url = "{url}"
"""
KEYS = {"OPENAI_API_KEY": "sk-x", "ANTHROPIC_API_KEY": "sk-x"}
GPT, CLAUDE = "gpt-4o", "claude-haiku-4-5"
HELLO = {"role": "user", "content": "hello"}
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\npixel").decode()
IMAGE: dict[str, Any] = {
    "type": "image_url",
    "image_url": {"url": f"data:image/png;base64,{PICTURE}"},
}
TEXT = {"type": "text", "text": "see"}
PDF = "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.7 x").decode()
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "description": "Tell.", "parameters": PARAMETERS},
}
BARE_TOOL = {"type": "function", "function": {"name": "ping"}}
CALL = {
    "id": "call_7",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city":"Rome"}'},
}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_7", "content": "sunny"}
FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "strict": True,
        "schema": {**PARAMETERS, "additionalProperties": False},
    },
}

CHAT: dict[str, dict[str, Any]] = {
    "plain": {"messages": [HELLO]},
    "stream": {
        "messages": [HELLO],
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    "bare stream": {"messages": [HELLO], "stream": True},
    "history": {
        "messages": [
            {"role": "system", "content": "Be brief."},
            HELLO,
            {"role": "assistant", "content": "hi"},
            HELLO,
        ]
    },
    "developer": {"messages": [{"role": "developer", "content": "Be brief."}, HELLO]},
    "late system": {"messages": [HELLO, {"role": "system", "content": "Now."}, HELLO]},
    "image": {"messages": [{"role": "user", "content": [TEXT, IMAGE]}]},
    "text part": {"messages": [{"role": "user", "content": [TEXT]}]},
    "name": {
        "messages": [
            {**HELLO, "name": "bob"},
            {"role": "assistant", "content": "hi", "name": "ada"},
            {**HELLO, "name": "eve"},
        ]
    },
    "named system": {
        "messages": [{"role": "system", "content": "Be brief.", "name": "app"}, HELLO]
    },
    "logprobs": {"messages": [HELLO], "logprobs": True, "top_logprobs": 3},
    "bare logprobs": {"messages": [HELLO], "logprobs": True, "stream": True},
    "unasked logprobs": {"messages": [HELLO], "logprobs": False},
    "document": {
        "messages": [
            {
                "role": "user",
                "content": [
                    TEXT,
                    {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}},
                ],
            }
        ]
    },
    "detail": {
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "image_url",
                        "image_url": {**IMAGE["image_url"], "detail": "low"},
                    }
                ],
            }
        ]
    },
    "tool stream": {
        "messages": [HELLO, CALLED, RESULT],
        "tools": [TOOL],
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    "strict tool": {
        "messages": [HELLO],
        "tools": [{**TOOL, "function": {**TOOL["function"], "strict": True}}],
    },
    "said and called": {
        "messages": [HELLO, {**CALLED, "content": "I look."}, RESULT],
        "tools": [TOOL],
    },
    "vendor's own": {
        "messages": [HELLO],
        "metadata": {"a": "b"},
        "service_tier": "flex",
        "store": False,
        "extra_body": {"unheard_of": {"x": 1}},
    },
    "tools": {"messages": [HELLO], "tools": [TOOL], "tool_choice": "auto"},
    "bare tool": {"messages": [HELLO], "tools": [BARE_TOOL]},
    "no tool": {"messages": [HELLO], "tools": [TOOL], "tool_choice": "none"},
    "forced tool": {
        "messages": [HELLO],
        "tools": [TOOL],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "parallel_tool_calls": False,
    },
    "result": {"messages": [HELLO, CALLED, RESULT], "tools": [TOOL]},
    "settings": {
        "messages": [HELLO],
        "temperature": 0.25,
        "top_p": 0.5,
        "stop": ["x", "y"],
        "seed": 7,
        "user": "u",
        "max_tokens": 9,
        "prompt_cache_key": "k",
    },
    "one stop": {"messages": [HELLO], "stop": "x"},
    "long limit": {"messages": [HELLO], "max_completion_tokens": 9},
    "large seed": {"messages": [HELLO], "seed": 2**33},
    "form": {"messages": [HELLO], "response_format": FORM},
    "json": {"messages": [HELLO], "response_format": {"type": "json_object"}},
    "text form": {"messages": [HELLO], "response_format": {"type": "text"}},
    "penalties": {
        "messages": [HELLO],
        "frequency_penalty": 0.5,
        "presence_penalty": -1,
        "logit_bias": {"1": 2},
        "reasoning_effort": "low",
        "verbosity": "high",
        "logprobs": True,
    },
}
ALIKE = "the same to the vendor"
NO_PLACE = "our chat types have no place for it; docs/openai.md says so"
MARKED = "what is kept in the vendor's cache of prompts is marked"
DIFFERENCES: dict[str, dict[str, str]] = {
    "bare stream": {"stream_options": "what it took has to be booked"},
    "developer": {"messages.0.role": ALIKE},
    "late system": {
        "messages.1.content": "told as the application's words",
        "messages.1.role": NO_PLACE,
    },
    "text part": {"messages.0.content": ALIKE},
    "bare tool": {
        "tools.0.function.description": ALIKE,
        "tools.0.function.parameters": ALIKE,
    },
    "settings": {
        "max_completion_tokens": ALIKE,
        "max_tokens": "the vendor calls it obsolete",
        "safety_identifier": ALIKE,
        "user": "the vendor calls it obsolete",
    },
    "one stop": {"stop": ALIKE},
    "named system": {
        "messages.0.content": "the name is told in words",
        "messages.0.name": NO_PLACE,
    },
    "bare logprobs": {"stream_options": "what it took has to be booked"},
    "unasked logprobs": {"logprobs": ALIKE},
    "vendor's own": {"unheard_of": "what nobody knows nobody has priced"},
    "large seed": {"seed": "31 bits are what all vendors take"},
    "json": {
        "response_format.json_schema": "any object, as a schema",
        "response_format.type": "json_object wants the word JSON in the prompt",
    },
    "text form": {"response_format": ALIKE},
}
"""By case, then by place in the body: why it is not the same."""


CLAUDES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": (
        {"messages": [HELLO], "max_tokens": 9},
        {"messages": [HELLO], "max_tokens": 9},
    ),
    "stream": (
        {"messages": [HELLO], "max_tokens": 9, "stream": True},
        {"messages": [HELLO], "max_tokens": 9, "stream": True},
    ),
    "system": (
        {"messages": [{"role": "system", "content": "Be brief."}, HELLO]},
        {"messages": [HELLO], "max_tokens": 64_000, "system": "Be brief."},
    ),
    "image": (
        {"messages": [{"role": "user", "content": [TEXT, IMAGE]}], "max_tokens": 9},
        {
            "max_tokens": 9,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        TEXT,
                        {
                            "type": "image",
                            "source": {
                                "type": "base64",
                                "media_type": "image/png",
                                "data": PICTURE,
                            },
                        },
                    ],
                }
            ],
        },
    ),
    "tools": (
        {
            "messages": [HELLO, CALLED, RESULT],
            "tools": [TOOL],
            "tool_choice": "required",
            "parallel_tool_calls": False,
            "max_tokens": 9,
        },
        {
            "messages": [
                HELLO,
                {
                    "role": "assistant",
                    "content": [
                        {
                            "type": "tool_use",
                            "id": "call_7",
                            "name": "weather",
                            "input": {"city": "Rome"},
                        }
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "call_7",
                            "content": "sunny",
                        }
                    ],
                },
            ],
            "tools": [
                {"name": "weather", "description": "Tell.", "input_schema": PARAMETERS}
            ],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
            "max_tokens": 9,
        },
    ),
    "settings": (
        {
            "messages": [HELLO],
            "max_tokens": 9,
            "temperature": 0.25,
            "stop": ["x"],
            "user": "u",
            # Words of OpenAI's wire, which this one has not.
            "frequency_penalty": 0.5,
            "verbosity": "low",
        },
        {
            "messages": [HELLO],
            "max_tokens": 9,
            # The client's methods have no temperature any more; the API takes one.
            "extra_body": {"temperature": 0.25},
            "stop_sequences": ["x"],
            "metadata": {"user_id": "u"},
        },
    ),
}
"""By case: what OpenAI's client asks of us, and Anthropic's own of Anthropic."""
MARKED_WORDS = {"messages.0.content": MARKED}
CLAUDES_DIFFERENCES: dict[str, dict[str, str]] = {
    "plain": MARKED_WORDS,
    "stream": MARKED_WORDS,
    "settings": MARKED_WORDS,
    "system": {**MARKED_WORDS, "system": MARKED},
    "image": {"messages.0.content.1.cache_control": MARKED},
    "tools": {
        **MARKED_WORDS,
        "messages.2.content.0.cache_control": MARKED,
        "thinking": "said aloud, since who thinks cannot be made to call",
        "tools.0.cache_control": MARKED,
    },
}


def differences(direct: Any, ours: Any, place: str = "") -> Iterator[str]:
    """Name the places where two bodies differ."""
    if isinstance(direct, dict) and isinstance(ours, dict):
        for key in sorted(direct.keys() | ours.keys()):
            inside = f"{place}.{key}".lstrip(".")
            if key not in direct or key not in ours:
                yield inside
            else:
                yield from differences(direct[key], ours[key], inside)
    elif isinstance(direct, list) and isinstance(ours, list):
        if len(direct) != len(ours):
            yield place
        for at, pair in enumerate(zip(direct, ours, strict=False)):
            yield from differences(*pair, f"{place}.{at}")
    elif direct != ours:
        yield place


@pytest_asyncio.fixture
async def aimock(tmp_path: Path) -> AsyncIterator[str]:
    """The address of a running aimock."""
    fixtures = tmp_path / "fixtures.json"
    fixtures.write_text(json.dumps(FIXTURES))
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    process = await asyncio.create_subprocess_exec(
        str(NODE), str(CLI), "-p", port, "-f", str(fixtures),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            while b"listening" not in (line := await process.stdout.readline()).lower():
                assert line, "aimock ended before it listened"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.communicate()


class Upstream:
    """aimock, behind somebody who keeps what it is sent to the letter.

    Its own journal has another vendor's request in OpenAI's words.
    """

    def __init__(self, aimock: str) -> None:
        self._aimock = aimock
        self.url = ""
        self.sent: list[dict[str, Any]] = []

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Keep a request, hand it on, and hand back the answer."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ", 2)[1]
        given = re.findall(r"(?m)^([\w-]+): *(.*)\r$", head)
        headers = {k.lower(): v for k, v in given}
        body = await reader.readexactly(int(headers["content-length"]))
        self.sent.append(json.loads(body))
        handed = {
            k: v
            for k, v in headers.items()
            if k.startswith("anthropic-") or k in {"authorization", "x-api-key"}
        }
        async with httpx.AsyncClient() as http:
            answer = await http.post(
                self._aimock + path,
                content=body,
                headers={**handed, "content-type": "application/json"},
            )
        kind = answer.headers["content-type"]
        writer.write(
            f"HTTP/1.1 {answer.status_code} -\r\nconnection: close\r\ncontent-type: "
            f"{kind}\r\ncontent-length: {len(answer.content)}\r\n\r\n".encode()
            + answer.content
        )
        await writer.drain()
        writer.close()


@pytest_asyncio.fixture
async def upstream(aimock: str) -> AsyncIterator[Upstream]:
    made = Upstream(aimock)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    async with server:
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield made


@pytest_asyncio.fixture
async def daemon(daemons: Daemons, upstream: Upstream) -> RunningDaemon:
    return await daemons.start(config=CONFIG.format(url=upstream.url), environ=KEYS)


async def asked_of(url: str, model: str, asked: dict[str, Any]) -> None:
    """Have OpenAI's client ask, and read all of the answer."""
    async with openai.AsyncOpenAI(
        base_url=f"{url}/v1", api_key="sk-x", max_retries=0
    ) as client:
        answer = await client.chat.completions.create(model=model, **asked)
        if asked.get("stream"):
            answer = [chunk async for chunk in answer]
        assert "Fine." in str(answer)


@pytest.mark.parametrize("case", CHAT)
async def test_openai_is_sent_what_its_client_sends(
    upstream: Upstream, daemon: RunningDaemon, case: str
) -> None:
    await asked_of(upstream.url, GPT, CHAT[case])
    await asked_of(daemon.url, f"openai/{GPT}", CHAT[case])
    direct, ours = upstream.sent
    found = sorted(differences(direct, ours))
    assert found == sorted(DIFFERENCES.get(case, {})), (direct, ours)


@pytest.mark.parametrize("case", CLAUDES)
async def test_anthropic_is_sent_what_its_client_sends(
    upstream: Upstream, daemon: RunningDaemon, case: str
) -> None:
    asked, own = CLAUDES[case]
    async with anthropic.AsyncAnthropic(base_url=upstream.url, api_key="x") as theirs:
        answer = await theirs.messages.create(model=CLAUDE, timeout=30, **own)
        if own.get("stream"):
            async for _ in answer:
                pass
    await asked_of(daemon.url, f"anthropic/{CLAUDE}", asked)
    direct, ours = upstream.sent
    found = sorted(differences(direct, ours))
    assert found == sorted(CLAUDES_DIFFERENCES.get(case, {})), (direct, ours)
