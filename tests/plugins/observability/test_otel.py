"""One tree of spans a turn, in the conventions' names, without what was said."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest
from agenthost import PluginError, ProviderFault
from agenthost.testing import Daemons, Pause
from agenthost.testing.daemons import RunningAgent
from agenthost_observability import otel
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.trace import SpanKind, StatusCode
from websockets.asyncio.client import connect

from benchmarks.upstream import Upstream

from .spans import Spans, facts

CANARY = "canary-7f3a9c1e5b"
SAMPLED = f"00-{'a' * 32}-{'b' * 16}-01"


async def test_a_turn_with_a_tool_loop_is_one_tree(daemons: Daemons) -> None:
    spans = Spans()
    daemon = await daemons.start(plugins=[spans.plugin()])
    agent = await daemon.agent()
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.says("two")
    await agent.ask("what is 1+1?")
    assert spans.tree() == [
        "invoke_agent tester",
        "  chat scripted-model",
        "  execute_tool calculate",
        "  chat scripted-model",
    ]
    assert len({span.context.trace_id for span in spans.all()}) == 1


async def test_spans_say_who_did_what_and_what_it_took(daemons: Daemons) -> None:
    spans = Spans()
    daemon = await daemons.start(plugins=[spans.plugin()])
    agent = await daemon.agent()
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.says("two")
    await agent.send("what is 1+1?", x_request_id="req-1")
    turn = facts(spans.named("invoke_agent tester"))
    assert turn["gen_ai.operation.name"] == "invoke_agent"
    assert turn["gen_ai.agent.id"] == agent.id
    assert turn["gen_ai.provider.name"] == "scripted"
    assert turn["agenthost.caller.kind"] == "loopback"
    assert turn["gen_ai.usage.input_tokens"] == 20
    assert turn["agenthost.cost.micro_usd"] == 40
    assert turn["agenthost.model_calls"] == 2
    assert turn["agenthost.request.id"]
    first, last = (s for s in spans.all() if s.name.startswith("chat "))
    assert first.kind is SpanKind.CLIENT
    assert facts(first)["gen_ai.response.finish_reasons"] == ("tool_call",)
    assert facts(last)["gen_ai.response.finish_reasons"] == ("stop",)
    hashes = {facts(s)["agenthost.prompt.hash"] for s in (first, last)}
    assert len(hashes) == 1
    tool = facts(spans.named("execute_tool calculate"))
    assert tool["gen_ai.tool.name"] == "calculate"
    assert tool["agenthost.tool.effect"] == "read"
    assert tool["agenthost.policy.decision"] == "allow"
    assert tool["agenthost.turn.id"] == turn["agenthost.turn.id"]


async def test_an_agent_call_continues_the_tree(daemons: Daemons) -> None:
    spans = Spans()
    daemon = await daemons.start(plugins=[spans.plugin()])
    boss = await daemon.agent("boss")
    await daemon.agent("clerk")
    daemon.model.calls("agent_call", agent_id="clerk", message="file this")
    daemon.model.says("filed")
    daemon.model.says("done")
    await boss.ask("have it filed")
    assert spans.tree() == [
        "invoke_agent boss",
        "  chat scripted-model",
        "  execute_tool agent_call",
        "    invoke_agent clerk",
        "      chat scripted-model",
        "  chat scripted-model",
    ]
    clerk = facts(spans.named("invoke_agent clerk"))
    assert clerk["agenthost.caller.kind"] == "agent"
    assert clerk["agenthost.caller.name"] == "boss"


async def test_a_failure_is_recorded_by_its_kind(daemons: Daemons) -> None:
    spans = Spans()
    daemon = await daemons.start(plugins=[spans.plugin()])
    agent = await daemon.agent()
    daemon.model.fails(ProviderFault.OVERLOADED, "one")
    await agent.events("count")
    assert spans.tree() == ["invoke_agent tester", "  chat scripted-model"]
    for span in spans.all():
        assert span.status.status_code is StatusCode.ERROR
        assert facts(span)["error.type"] == "overloaded"
        assert span.events == ()


async def test_what_is_asked_of_an_answer_stands_in_its_span(daemons: Daemons) -> None:
    spans = Spans()
    daemon = await daemons.start(plugins=[spans.plugin()])
    manners = '[model]\ntop_p = 0.5\nseed = 7\nstop = ["END"]\n'
    agent = await daemon.agent(tools=[], extra=manners)
    daemon.model.says("{}")
    body = {"message": "hi", "response_format": {"type": "object"}}
    await daemon.http.post(f"/api/agents/{agent.id}/message", json=body)
    chat = next(facts(s) for s in spans.all() if s.name == "chat scripted-model")
    assert chat["gen_ai.request.top_p"] == 0.5
    assert chat["gen_ai.request.seed"] == 7
    assert chat["gen_ai.request.stop_sequences"] == ("END",)
    assert chat["gen_ai.output.type"] == "json"


async def test_a_chat_names_who_answered_and_who_did_not(daemons: Daemons) -> None:
    spans = Spans()
    config = '[[fallback_providers]]\nprovider = "offline"\n'
    daemon = await daemons.start(plugins=[spans.plugin()], config=config)
    agent = await daemon.agent(tools=[])
    daemon.model.fails(ProviderFault.SERVER, "half")
    await agent.events("hi")
    daemon.model.fails(ProviderFault.BILLING)
    await agent.ask("hi")
    failed, chat = (
        facts(span) for span in spans.all() if span.name == "chat scripted-model"
    )
    why = "agenthost.failed_attempts"
    assert failed[why] == ("scripted/scripted-model: server_error",)
    assert "gen_ai.response.model" not in failed
    assert chat[why] == ("scripted/scripted-model: billing",)
    assert chat["gen_ai.request.model"] == "scripted-model"
    assert chat["gen_ai.response.model"] == "offline"
    assert chat["agenthost.response.provider"] == "offline"


async def test_each_try_of_a_call_is_a_span_with_its_fault(daemons: Daemons) -> None:
    spans = Spans()
    config = '[[fallback_providers]]\nprovider = "offline"\n'
    daemon = await daemons.start(plugins=[spans.plugin()], config=config)
    agent = await daemon.agent(tools=[])
    daemon.model.fails(ProviderFault.BILLING)
    await agent.ask("hi")
    assert spans.tree() == [
        "invoke_agent tester",
        "  chat scripted-model",
        "    attempt scripted-model",
        "    attempt offline",
    ]
    chat = spans.named("chat scripted-model")
    first, last = spans.named("attempt scripted-model"), spans.named("attempt offline")
    assert facts(first)["error.type"] == "billing"
    assert first.status.status_code is StatusCode.ERROR
    assert facts(last)["gen_ai.provider.name"] == "offline"
    assert "error.type" not in facts(last)
    assert last.status.status_code is StatusCode.UNSET
    assert first.kind is last.kind is SpanKind.CLIENT
    moments = (first.start_time, first.end_time, last.start_time, last.end_time)
    assert list(moments) == sorted(moment for moment in moments if moment is not None)
    assert chat.start_time is not None
    assert moments[0] is not None
    # One is of the wall's clock, the other of the monotonic one.
    assert abs(moments[0] - chat.start_time) < 1e9


async def test_the_time_to_the_first_chunk_is_that_of_the_answer(
    daemons: Daemons,
) -> None:
    spans = Spans()
    daemon = await daemons.start(plugins=[spans.plugin()])
    agent = await daemon.agent(tools=["calculate"])
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.says("one", "two")
    await agent.ask("count")
    silent, spoken = (s for s in spans.all() if s.name.startswith("chat "))
    seconds = facts(spoken)["gen_ai.response.time_to_first_chunk"]
    assert spoken.start_time is not None
    assert spoken.end_time is not None
    assert 0 < seconds < (spoken.end_time - spoken.start_time) / 1e9
    # A driver that says nothing before its end has no first chunk to tell of.
    assert "gen_ai.response.time_to_first_chunk" not in facts(silent)


async def test_an_answer_is_named_as_its_provider_does(daemons: Daemons) -> None:
    spans = Spans()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Upstream(3), "127.0.0.1", 0)
    async with server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        config = f'[providers.bench]\nbase_url = "{address}"\n'
        daemon = await daemons.start(plugins=[spans.plugin()], config=config)
        model = '[model]\nprovider = "bench"\nmodel = "bench-model"\n'
        agent = await daemon.agent(tools=[], extra=model)
        await agent.ask("hi")
        chat = facts(spans.named("chat bench-model"))
        assert chat["gen_ai.response.id"] == "chatcmpl-bench"
        assert chat["gen_ai.response.time_to_first_chunk"] > 0
        await daemon.daemon.stop()


@pytest.mark.parametrize("way", ["blocking", "stream", "socket"])
async def test_a_turn_continues_the_trace_of_its_request(
    daemons: Daemons, way: str
) -> None:
    spans = Spans()
    daemon = await daemons.start(plugins=[spans.plugin()])
    agent = await daemon.agent(tools=[])
    await asked_by(agent, way, SAMPLED)
    turn = spans.named("invoke_agent tester")
    assert turn.parent is not None
    assert turn.parent.is_remote
    assert f"{turn.parent.trace_id:032x}-{turn.parent.span_id:016x}" in SAMPLED
    assert {f"{s.context.trace_id:032x}" for s in spans.all()} == {SAMPLED[3:35]}
    assert turn.context.trace_state.get("vendor") == "yes"


async def test_a_request_that_is_not_sampled_leaves_no_spans(daemons: Daemons) -> None:
    spans = Spans()
    daemon = await daemons.start(plugins=[spans.plugin()])
    agent = await daemon.agent(tools=[])
    await asked_by(agent, "blocking", f"{SAMPLED[:-2]}00")
    assert spans.all() == []


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00",
        "x" * 8_000,
        f"00-{'0' * 32}-{'b' * 16}-01",
        f"00-{'a' * 32}-{'0' * 16}-01",
        f"ff-{'a' * 32}-{'b' * 16}-01",
        f"00-{'A' * 32}-{'b' * 16}-01-more",
        f"00-{'g' * 32}-{'b' * 16}-01",
    ],
)
async def test_a_malformed_traceparent_is_ignored(
    daemons: Daemons, header: str
) -> None:
    spans = Spans()
    daemon = await daemons.start(plugins=[spans.plugin()])
    agent = await daemon.agent(tools=[])
    await asked_by(agent, "blocking", header)
    assert spans.named("invoke_agent tester").parent is None


async def asked_by(agent: RunningAgent, way: str, traceparent: str) -> None:
    """Ask the agent on one of the ways, as part of somebody's trace."""
    head = {"traceparent": traceparent, "tracestate": "vendor=yes"}
    url = f"/api/agents/{agent.id}"
    body = {"message": "hello"}
    http = agent.host.http
    if way == "blocking":
        answer = await http.post(f"{url}/message", json=body, headers=head)
        assert answer.status_code == 200
    elif way == "stream":
        async with http.stream(
            "POST", f"{url}/message/stream", json=body, headers=head
        ) as stream:
            await stream.aread()
    else:
        ws = agent.host.url.replace("http", "ws") + f"{url}/ws"
        async with connect(ws, proxy=None, additional_headers=head) as socket:
            await socket.send(json.dumps({"type": "message", "content": "hello"}))
            while json.loads(await socket.recv())["type"] != "response":
                pass


async def test_a_compaction_is_part_of_its_turn(daemons: Daemons) -> None:
    spans = Spans()
    config = "[compaction]\nthreshold_messages = 3\nkeep_recent = 1\n"
    daemon = await daemons.start(plugins=[spans.plugin()], config=config)
    agent = await daemon.agent(tools=[])
    for word in ("one", "two", "three"):
        await agent.ask(word)
    turn = f"invoke_agent {agent.name}"
    chat = "  chat scripted-model"
    assert spans.tree() == [turn, chat, turn, chat, turn, chat, chat]
    url = f"/api/agents/{agent.id}/session/compact"
    assert (await daemon.http.post(url)).status_code == 200


async def test_a_stop_ends_every_span_and_is_no_error(daemons: Daemons) -> None:
    spans = Spans()
    daemon = await daemons.start(plugins=[spans.plugin()])
    agent = await daemon.agent()
    daemon.model.says("one", Pause(), "two")
    turn = agent.start("count")
    await turn.seen("one")
    await turn.stop()
    assert spans.tree() == ["invoke_agent tester", "  chat scripted-model"]
    for span in spans.all():
        assert span.status.status_code is StatusCode.UNSET
        assert facts(span)["agenthost.outcome"] == "cancelled"


async def test_a_refused_tool_call_carries_the_decision(daemons: Daemons) -> None:
    spans = Spans()
    daemon = await daemons.start(plugins=[spans.plugin()])
    agent = await daemon.agent(tools=["calculate"])
    daemon.model.calls("kv_set", key="self.a", value="b")
    await agent.ask("store it")
    refused = facts(spans.named("execute_tool kv_set"))
    assert refused["agenthost.policy.decision"] == "deny"
    assert refused["error.type"] == "denied"


async def test_a_named_key_is_told_by_its_name_alone(daemons: Daemons) -> None:
    spans = Spans(content=True)
    daemon = await daemons.start(plugins=[spans.plugin()])
    body = {"name": "ci", "scopes": ["chat"]}
    key = (await daemon.http.post("/api/keys", json=body)).json()["key"]
    agent = await daemon.agent()
    answer = await agent.send("hello", authorization=f"Bearer {key}")
    assert answer.status_code == 200
    turn = facts(spans.named("invoke_agent tester"))
    assert turn["agenthost.caller.kind"] == "named_key"
    assert turn["agenthost.caller.name"] == "ci"
    assert key[36:] not in spans.text()


async def test_names_are_those_of_the_conventions(daemons: Daemons) -> None:
    spans = Spans(content=True)
    daemon = await daemons.start(plugins=[spans.plugin()])
    agent = await daemon.agent()
    daemon.model.calls("calculate", expression="1+1")
    await agent.ask("what is 1+1?")
    known = {v for k, v in vars(gen_ai_attributes).items() if k.startswith("GEN_AI_")}
    used = {key for span in spans.all() for key in facts(span)}
    ours = {key for key in used if not key.startswith("gen_ai.")}
    assert used - ours <= known
    assert ours <= {
        "agenthost.caller.kind",
        "agenthost.caller.name",
        "agenthost.cost.micro_usd",
        "agenthost.model_calls",
        "agenthost.outcome",
        "agenthost.policy.decision",
        "agenthost.prompt.hash",
        "agenthost.request.id",
        "agenthost.response.provider",
        "agenthost.tool.effect",
        "agenthost.turn.id",
    }


async def test_nothing_that_was_said_is_recorded_unasked(daemons: Daemons) -> None:
    spans = Spans()
    environ = {"AGENTHOST_API_KEY": CANARY, "GROQ_API_KEY": CANARY}
    daemon = await daemons.start(plugins=[spans.plugin()], environ=environ)
    daemon.http.headers["authorization"] = f"Bearer {CANARY}"
    agent = await daemon.agent(extra=f'[model]\nsystem_prompt = "obey {CANARY}"\n')
    daemon.model.calls("calculate", expression=f"{CANARY}+")
    daemon.model.calls(f"tool-{CANARY}", a=1)
    daemon.model.says(f"the answer is {CANARY}")
    await agent.ask(f"my key is {CANARY}")
    assert len(spans.all()) == 6
    assert CANARY not in spans.text()
    assert "my key is" not in spans.text()


async def test_content_is_recorded_on_demand_without_secrets(daemons: Daemons) -> None:
    spans = Spans(content=True)
    environ = {"AGENTHOST_API_KEY": CANARY}
    daemon = await daemons.start(plugins=[spans.plugin()], environ=environ)
    daemon.http.headers["authorization"] = f"Bearer {CANARY}"
    await daemon.daemon.vault.change({"provider/groq": "vaulted-secret"})
    agent = await daemon.agent()
    daemon.model.calls("calculate", expression=f"{CANARY}+")
    daemon.model.calls(f"tool-{CANARY}")
    daemon.model.says("done with vaulted-secret")
    await agent.ask(f"my key is {CANARY}")
    assert CANARY not in spans.text()
    assert "vaulted-secret" not in spans.text()
    turn = facts(spans.named("invoke_agent tester"))
    (asked,) = json.loads(turn["gen_ai.input.messages"])
    assert asked == {
        "role": "user",
        "parts": [{"type": "text", "content": "my key is ***"}],
    }
    tool = facts(spans.named("execute_tool calculate"))
    assert json.loads(tool["gen_ai.tool.call.arguments"]) == {"expression": "***+"}
    described = spans.named("execute_tool unknown").status.description
    assert described is not None
    assert "there is no tool 'tool-***'" in described


@pytest.mark.parametrize(
    ("environ", "exporter"),
    [
        ({}, None),
        ({"OTEL_TRACES_EXPORTER": "none"}, None),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318"}, "otlp"),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
                "OTEL_SDK_DISABLED": "true",
            },
            None,
        ),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
                "OTEL_TRACES_EXPORTER": "none",
            },
            None,
        ),
    ],
)
def test_the_standard_variables_choose_the_exporter(
    environ: dict[str, str], exporter: str | None
) -> None:
    assert otel.exporter_of(environ) == exporter


@pytest.mark.parametrize(
    "environ",
    [
        {"OTEL_TRACES_EXPORTER": "zipkin"},
        {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_what_is_not_offered_is_named(environ: dict[str, str]) -> None:
    with pytest.raises(PluginError, match="is not offered; use"):
        otel.exporter_of(environ)


def test_a_missing_sdk_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setitem(sys.modules, "agenthost_observability.sdk", None)
    with pytest.raises(PluginError, match=r"agenthost\[opentelemetry\]"):
        list(otel.register_observer())


def test_with_nothing_configured_nothing_is_imported() -> None:
    script = (
        "import sys; from agenthost_observability import otel, prometheus; "
        "assert not [*otel.register_observer(), *otel.register_service()]; "
        "assert [*prometheus.register_observer()]; "
        "loaded = {name.partition('.')[0] for name in sys.modules}; "
        "assert not loaded & {'opentelemetry', 'prometheus_client', 'requests'}"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env={}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def test_the_service_is_named_by_the_variables_or_agenthost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from agenthost_observability.sdk import resource

    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    assert resource().attributes["service.name"] == "agenthost"
    monkeypatch.setenv("OTEL_SERVICE_NAME", "night-shift")
    assert resource().attributes["service.name"] == "night-shift"
