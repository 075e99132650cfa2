"""AWS's own client judges the Bedrock dialect, its frames and our signatures."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from agenthost import Endpoint, Secret
from agenthost.testing.simulators import BedrockWire, ProviderSimulator, Reply
from agenthost_dialects.bedrock import Bedrock
from hypothesis import given, settings
from hypothesis import strategies as st

from .conversation import BROKEN_OFF, CALL, JSON, SAID, SCHEMA, WHY, our_body, ours

boto3 = pytest.importorskip("boto3", reason=WHY)
auth = pytest.importorskip("botocore.auth", reason=WHY)
awsrequest = pytest.importorskip("botocore.awsrequest", reason=WHY)
config = pytest.importorskip("botocore.config", reason=WHY)
credentials = pytest.importorskip("botocore.credentials", reason=WHY)
exceptions = pytest.importorskip("botocore.exceptions", reason=WHY)

pytestmark = pytest.mark.conformance

MODEL = "global.anthropic.claude-haiku-4-5-20251001-v1:0"
ID, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def client_of(upstream: ProviderSimulator) -> Any:
    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=upstream.base_url,
        aws_access_key_id=ID,
        aws_secret_access_key=SECRET,
        config=config.Config(retries={"total_max_attempts": 1}),
    )


def params() -> dict[str, Any]:
    """The conversation as the SDK's documentation writes it."""

    def use(call_id: str, city: str) -> dict[str, Any]:
        named = {"toolUseId": call_id, "name": "get_weather", "input": {"city": city}}
        return {"toolUse": named}

    def result(call_id: str, words: str, **more: Any) -> dict[str, Any]:
        told = {"toolUseId": call_id, "content": [{"text": words}], **more}
        return {"toolResult": told}

    picture = {"format": "png", "source": {"bytes": base64.b64decode("iVBORw0=")}}
    looking = [
        {"text": "I look."},
        use("call_1", "Lisbon"),
        use("call_2", "Porto"),
    ]
    found = [
        result("call_1", "20 degrees"),
        result("call_2", "no such city", status="error"),
    ]
    spec = {
        "name": "get_weather",
        "description": "Tell the weather.",
        "inputSchema": {"json": SCHEMA},
    }
    point = {"cachePoint": {"type": "default"}}
    return {
        "modelId": MODEL,
        "system": [{"text": "Be brief."}, point],
        "messages": [
            {"role": "user", "content": [{"text": "hello"}]},
            {"role": "assistant", "content": [{"text": "hi"}]},
            {
                "role": "user",
                "content": [{"text": "where?"}, {"image": picture}, point],
            },
            {"role": "assistant", "content": looking},
            {"role": "user", "content": [*found, point]},
        ],
        "toolConfig": {"tools": [{"toolSpec": spec}]},
        "inferenceConfig": {"maxTokens": 2000, "temperature": 0.5},
    }


@pytest.mark.judge("bedrock")
@pytest.mark.parametrize("stream", [True, False])
async def test_requests_equal_the_sdks(*, stream: bool) -> None:
    async with ProviderSimulator(BedrockWire()) as upstream:
        upstream.play(SAID)
        client = client_of(upstream)
        call = client.converse_stream if stream else client.converse
        answer = await asyncio.to_thread(lambda: call(**params()))
        if stream:
            await asyncio.to_thread(lambda: list(answer["stream"]))
        await asyncio.to_thread(client.close)
    (heard,) = upstream.heard
    assert our_body("bedrock", ours(MODEL, stream=stream)) == heard.body
    where = Endpoint("bedrock", upstream.base_url, None)
    url = Bedrock().encode(ours(MODEL, stream=stream), where).url
    assert url == upstream.base_url + heard.path
    assert "%3A" in url


async def test_the_sdk_reads_our_frames() -> None:
    async with ProviderSimulator(BedrockWire()) as upstream:
        upstream.play(SAID)
        client = client_of(upstream)
        answer = await asyncio.to_thread(lambda: client.converse_stream(**params()))
        events = await asyncio.to_thread(lambda: list(answer["stream"]))
        await asyncio.to_thread(client.close)
    deltas = [
        e["contentBlockDelta"]["delta"] for e in events if "contentBlockDelta" in e
    ]
    said = "".join(d["text"] for d in deltas if "text" in d)
    thoughts = [d["reasoningContent"] for d in deltas if "reasoningContent" in d]
    arguments = "".join(d["toolUse"]["input"] for d in deltas if "toolUse" in d)
    assert said == SAID.text
    assert "".join(t.get("text", "") for t in thoughts) == SAID.reasoning
    assert thoughts[-1]["signature"]
    assert arguments == CALL.arguments
    assert events[-2]["messageStop"]["stopReason"] == "tool_use"
    assert events[-1]["metadata"]["usage"]["cacheReadInputTokens"] == 40


async def test_the_sdk_reads_our_whole_answers_and_errors() -> None:
    wire = BedrockWire()
    async with ProviderSimulator(wire) as upstream:
        failed = Reply((wire.events(SAID)[0], wire.failure("out of memory")))
        refused = Reply((wire.refusal(429, "slow down"),), 429, JSON)
        upstream.play(SAID, BROKEN_OFF, refused, failed)
        client = client_of(upstream)
        whole = await asyncio.to_thread(lambda: client.converse(**params()))
        short = await asyncio.to_thread(lambda: client.converse(**params()))
        with pytest.raises(exceptions.ClientError, match="slow down"):
            await asyncio.to_thread(lambda: client.converse(**params()))
        answer = await asyncio.to_thread(lambda: client.converse_stream(**params()))
        with pytest.raises(exceptions.EventStreamError, match="out of memory"):
            await asyncio.to_thread(lambda: list(answer["stream"]))
        # A stream that broke off keeps its socket until somebody closes it.
        answer["stream"].close()
        await asyncio.to_thread(client.close)
    thought, said, call = whole["output"]["message"]["content"]
    assert thought["reasoningContent"]["reasoningText"]["text"] == SAID.reasoning
    assert said["text"] == SAID.text
    assert call["toolUse"]["input"] == {"city": "Lisbon"}
    assert short["stopReason"] == "max_tokens"


@settings(max_examples=40, deadline=None)
@given(
    model=st.text("abc.:/-%é ", max_size=12).map("m".__add__),
    text=st.text(max_size=20),
    session=st.none() | st.just("token/with+signs="),
    region=st.sampled_from(["us-east-1", "eu-central-1", "us-gov-west-1"]),
)
def test_signatures_equal_botocores(
    model: str, text: str, session: str | None, region: str
) -> None:
    moment = datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC)
    key = ":".join(filter(None, [ID, SECRET, session]))
    base = f"https://bedrock-runtime.{region}.amazonaws.com"
    where = Endpoint("bedrock", base, Secret(key))
    asked = replace(ours(model, stream=True), system=text)
    wire = Bedrock(now=lambda: moment).encode(asked, where)
    request = awsrequest.AWSRequest(
        method=wire.method,
        url=wire.url,
        data=wire.body,
        headers={"Content-Type": wire.headers["Content-Type"]},
    )
    request.context["timestamp"] = "20261121T030405Z"
    signer = auth.SigV4Auth(
        credentials.Credentials(ID, SECRET, session), "bedrock", region
    )
    request.headers["X-Amz-Date"] = request.context["timestamp"]
    if session:
        request.headers["X-Amz-Security-Token"] = session
    to_sign = signer.string_to_sign(request, signer.canonical_request(request))
    signature = signer.signature(to_sign, request)
    assert wire.headers["Authorization"].endswith(f"Signature={signature}")
    assert f"/{region}/bedrock/aws4_request" in wire.headers["Authorization"]
